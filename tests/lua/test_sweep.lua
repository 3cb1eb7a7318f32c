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

local refusals = 0

local function sweep(name, ...)
  local ok, problem = pcall(function(fn, ...)
    local value = fn(...)
    return value
  end, ...)
  if ok then return end
  refusals = refusals + 1
  if type(problem) == "table" then return end
  local rest = problem:match "^[^:]*test_sweep%.lua:%d+: (.*)$"
  lu.assertNotNil(rest, name .. ": " .. problem)
  for _, inside in ipairs { "attempt to", "%.lua:%d+:", "core%." } do
    lu.assertNil(rest:find(inside), name .. ": " .. problem)
  end
end

-- `text` stands for any text: what a call makes of it can be thrown away.
local function sweep_all(text, where, functions, ...)
  local kinds = {
    5, text, {}, function() end, true, -1, 0 / 0, { 5 }, { {} }, { x = 1 }, "a\0b", coroutine.create(print), io.stdout,
  }
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
        call(text, value)
        call({}, value)
      end
    end
  end
end

function T:test_no_call_shows_its_inside()
  local dir = support.dir()
  local text = dir.path .. "/x"
  local sbx <close> = assert(barchan.sandbox())
  local objects = support.objects(dir, sbx)
  for where, object in pairs(objects) do
    sweep_all(text, where, debug.getmetatable(object).__index, object)
  end
  for where, functions in pairs { barchan = barchan, templates = barchan.templates, transcript = barchan.transcript,
    json = barchan.json } do
    sweep_all(text, where, functions)
  end
  objects.process:kill()
  dir:remove()
  lu.assertTrue(refusals > 1000, tostring(refusals))
end

return { TestSweep = T }
