-- Every public call with arguments of every kind, most of them wrong: what is thrown begins with the line of this
-- script that calls, once, and shows nothing of the library's inside.
local lu = require "luaunit"
local barchan = require "barchan"
local support = require "reload_support"

local T = {}

-- They wait, end what others need, or are other tests' (forks and templates take a while).
local left_out = {
  sleep = true, wait = true, result = true, wait_change = true, fork = true, snapshot = true, doctor = true,
  spawn = true, -- the coverage of the whole run stands around it
  terminate = true, kill = true, close = true, close_input = true, cancel = true, detach = true,
  tell = true, current = true, restore = true, ask_turn = true, ask_call = true, -- they are private
}
local waits_without_arguments = { read = true }

local kinds = {
  5, "x", {}, function() end, true, -1, 0 / 0, { 5 }, { {} }, { x = 1 }, "a\0b", coroutine.create(print), io.stdout,
}

local function objects(dir)
  local sbx = assert(barchan.sandbox())
  local model = assert(barchan.model { provider = { complete = function() return { text = "x" } end } })
  return sbx, {
    sandbox = sbx, files = sbx.files, process = assert(sbx:spawn "cat"), stream = sbx:stream { "cat", stdin = true },
    model = model, result = assert(sbx:exec "true"), tools = barchan.toolset {},
    agent = barchan.agent { model = model }, policies = barchan.policies {},
    script = barchan.script { file = dir.path .. "/loop.lua" }, task = barchan.spawn(function() end),
    writer = assert(barchan.transcript.open(dir.path .. "/run.jsonl")),
  }
end

local function sweep(name, ...)
  local ok, problem = pcall(function(fn, ...)
    local value = fn(...)
    return value
  end, ...)
  if ok or type(problem) == "table" then return end
  local rest = problem:match "^[^:]*test_sweep%.lua:%d+: (.*)$"
  lu.assertNotNil(rest, name .. ": " .. problem)
  for _, inside in ipairs { "attempt to", "%.lua:%d+:", "core%." } do
    lu.assertNil(rest:find(inside), name .. ": " .. problem)
  end
end

local function sweep_all(where, functions, ...)
  for name, fn in pairs(functions) do
    if type(fn) == "function" and not name:find "^__" and not left_out[name] then
      local called = where .. "." .. name
      local own = table.pack(...)
      local function call(...)
        local all = table.move({ ... }, 1, select("#", ...), own.n + 1, table.move(own, 1, own.n, 1, {}))
        sweep(called, fn, table.unpack(all, 1, own.n + select("#", ...)))
      end
      if not waits_without_arguments[name] then call() end
      for _, value in ipairs(kinds) do
        call(value)
        call("x", value)
        call({}, value)
      end
    end
  end
end

function T:test_no_call_shows_its_inside()
  local dir = support.dir()
  dir:write("loop.lua", "return { turn = function() return 1 end }")
  local sbx, list = objects(dir)
  for where, object in pairs(list) do
    sweep_all(where, debug.getmetatable(object).__index, object)
  end
  for where, functions in pairs { barchan = barchan, templates = barchan.templates, transcript = barchan.transcript,
    json = barchan.json } do
    sweep_all(where, functions)
  end
  list.process:kill()
  sbx:terminate()
  dir:remove()
  os.remove "x"
end

return { TestSweep = T }
