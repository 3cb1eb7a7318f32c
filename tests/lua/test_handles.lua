-- Handles of C in wrong hands: dead ones, other kinds of them, finalizers that are called by hand. Errors, or
-- nothing; never a crash. And what tools may give back.
local lu = require "luaunit"
local barchan = require "barchan"
local support = require "reload_support"

local T = {}

local dir

function T:setUp()
  dir = support.dir()
  dir:write("t.lua", "return { name = 't', description = '', run = print }")
end

function T:tearDown() dir:remove() end

-- One live handle of each kind, by the name of its kind.
local function handles()
  local sbx = assert(barchan.sandbox())
  local model = support.replaying "hi"
  local stream = sbx:stream { "cat", stdin = true }
  local tools = barchan.toolset { dir = dir.path, watch = true }
  return {
    sandbox = sbx.handle,
    exec = stream.handle,
    model = model.handle,
    watch = tools.source.watch,
    task = barchan.spawn(function() end),
  }
end

-- Every function that the metatable of a handle has: methods and metamethods.
local function functions_of(handle)
  local list = {}
  local meta = debug.getmetatable(handle)
  for name, fn in pairs(meta) do
    if type(fn) == "function" then list[name] = fn end
  end
  if type(meta.__index) == "table" then
    for name, fn in pairs(meta.__index) do list[name] = fn end
  end
  return list
end

function T:test_methods_on_handles_of_other_kinds_are_refused()
  local all = handles()
  local tried = 0
  for kind, handle in pairs(all) do
    for name, fn in pairs(functions_of(handle)) do
      for other, wrong in pairs(all) do
        if other ~= kind then
          lu.assertFalse((pcall(fn, wrong)), kind .. "." .. name .. " took a " .. other)
          tried = tried + 1
        end
      end
      for _, wrong in ipairs { 1, "x", {}, print, io.stdout, coroutine.create(print), barchan.json.null } do
        lu.assertFalse((pcall(fn, wrong)), kind .. "." .. name)
      end
      lu.assertFalse((pcall(fn)), kind .. "." .. name)
    end
  end
  lu.assertTrue(tried > 60)
  for _, handle in pairs(all) do functions_of(handle).__close(handle) end
end

function T:test_dead_handles_answer_or_throw()
  for kind, handle in pairs(handles()) do
    local functions = functions_of(handle)
    for _ = 1, 3 do
      functions.__close(handle)
      functions.__gc(handle)
    end
    lu.assertEquals(type(tostring(handle)), "string")
    for name, fn in pairs(functions) do
      -- In a task: a finalizer that was called by hand has let go of what a wait would be for.
      local t <close> = barchan.spawn(function()
        local ok, first, err = pcall(fn, handle)
        if ok and first == nil and err ~= nil then lu.assertNotNil(err.code, kind .. "." .. name) end
        pcall(fn, handle, {})
        pcall(fn, handle, "x", "y", "z")
      end)
      barchan.sleep(0)
      barchan.sleep(0)
      lu.assertNotNil(t:status())
    end
  end
  collectgarbage()
  collectgarbage()
end

function T:test_a_dead_sandbox_is_closed_to_all_that_was_made_of_it()
  local sbx = assert(barchan.sandbox())
  local stream = sbx:stream { "sleep", "60" }
  local tools = barchan.toolset { "exec", "read_file", sandbox = sbx }
  sbx:terminate()
  for _, fn in ipairs {
    function() return sbx:exec "true" end, function() return sbx.files:read "x" end,
    function() return sbx.files:write("x", "y") end, function() return sbx.files:list "." end,
  } do
    local value, err = fn()
    lu.assertEquals({ value, err.code }, { nil, "closed" })
  end
  lu.assertStrContains(stream:result().reason, "lost")
  local message = tools:dispatch { id = "1", name = "exec", arguments = { command = "true" } }
  lu.assertTrue(message.is_error)
  lu.assertStrContains(message.content, "closed")
end

function T:test_handles_are_dropped_while_they_work()
  for _ = 1, 10 do
    local sbx = assert(barchan.sandbox())
    barchan.spawn(function() sbx:exec "sleep 60" end)
    barchan.spawn(function() for _ in sbx:stream "yes" do barchan.sleep(0) end end)
    barchan.sleep(0.01)
    sbx = nil
    collectgarbage()
  end
end

function T:test_what_else_a_tool_may_return()
  local cycle = {}
  cycle.c = cycle
  local function trap() error "a metamethod ran" end
  local traps = setmetatable({ a = 1 }, { __index = trap, __pairs = trap, __len = trap, __tostring = trap })
  local cases = {
    { cycle, "nests too deep", true }, { coroutine.create(print), "not JSON", true }, { 0 / 0, "NaN", true },
    { math.huge, "infinity", true }, { { f = print }, "function", true }, { traps, '{"a":1}', false },
    { { [1] = 1, x = 2 }, "both items and named fields", true }, { false, "false", false },
    { "\xff\0\27[31m", "\u{FFFD}\0", false }, { ("x"):rep(20 << 20), "bytes left out", false },
    { { 1, 2, [4] = 4 }, "not JSON", true }, { { ("x"):rep(100000) }, "bytes left out", false },
  }
  for i, case in ipairs(cases) do
    local tools = barchan.toolset { { name = "t", description = "", run = function() return case[1] end } }
    local message = tools:dispatch { id = "1", name = "t", arguments = {} }
    lu.assertStrContains(message.content, case[2], false, false, i)
    lu.assertEquals(message.is_error, case[3], i)
  end
  local many = barchan.toolset { { name = "t", description = "", run = function()
    return "first", table.unpack({}, 1, 300)
  end } }
  lu.assertEquals(many:dispatch({ id = "1", name = "t", arguments = {} }).content, "first")
end

function T:test_snapshots_of_many_scripts()
  for i = 1, 300 do
    dir:write(("t%d.lua"):format(i), ("return { name = 'n%d', description = '', run = print }"):format(i))
  end
  lu.assertEquals(#barchan.toolset({ dir = dir.path }):names(), 301)
  for i = 1, 70 do dir:write(("big%d.lua"):format(i), ("-- %s\nreturn 1"):format(("x"):rep(500000))) end
  lu.assertErrorMsgContains("over 32 MiB", barchan.toolset, { dir = dir.path })
end

function T:test_require_in_a_tool_file_stays_in_its_folder_and_the_engines()
  for name, message in pairs {
    ["../x"] = "not a module name", ["/etc/passwd"] = "not a module name", ["sub/dir"] = "not a module name",
    [""] = "not a module name", ["surely.not.there"] = "not found",
  } do
    dir:write("t.lua", ("require %q"):format(name))
    lu.assertErrorMsgContains(message, barchan.toolset, { dir = dir.path })
  end
  dir:write("a.lua", "return require 'b'")
  dir:write("b.lua", "return require 'a'")
  dir:write("t.lua", "return { name = 't', description = '', run = print }")
  lu.assertErrorMsgContains("requires itself", barchan.toolset, { dir = dir.path })
end

return { TestHandles = T }
