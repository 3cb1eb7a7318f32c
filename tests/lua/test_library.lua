-- The library of an engine for operators' scripts (full). The safe one is tested from C.
local lu = require "luaunit"

local T = {}

function T:test_bytecode_is_nowhere()
  lu.assertNil(string.dump)
  local chunk, problem = load("\27Lua")
  lu.assertNil(chunk)
  lu.assertStrContains(problem, "binary")
  lu.assertNil((load("\27Lua", "x", "b")))
  local name = os.tmpname()
  local file = io.open(name, "w")
  file:write "\27Lua"
  file:close()
  lu.assertNil((loadfile(name)))
  lu.assertErrorMsgContains("binary", dofile, name)
  os.remove(name)
end

function T:test_text_loads()
  lu.assertEquals(load("return 6 * 7")(), 42)
  lu.assertEquals(load("return x", "n", "t", { x = 1 })(), 1)
  local parts = { "return ", "1 + 1" }
  lu.assertEquals(load(function() return table.remove(parts, 1) end)(), 2)
end

function T:test_no_way_to_c_modules()
  lu.assertNil(package.loadlib)
  lu.assertEquals(package.cpath, "")
  lu.assertEquals(#package.searchers, 2)
  lu.assertErrorMsgContains("not a module name", require, "../x")
  lu.assertErrorMsgContains("not a module name", require, "a/b")
  lu.assertErrorMsgContains("not a module name", require, "")
  lu.assertErrorMsgContains("no file", require, "surely.not.there")
end

function T:test_the_string_metatable_is_locked()
  lu.assertEquals(getmetatable "", "locked")
  lu.assertFalse(pcall(setmetatable, setmetatable({}, { __metatable = 1 }), {}))
end

function T:test_cjson_is_the_real_one_here()
  lu.assertEquals(require("cjson")._VERSION:sub(1, 2), "2.")
end

function T:test_xpcall()
  lu.assertEquals({ xpcall(function(...) return ... end, print, 1, nil, 3) }, { true, 1, nil, 3 })
  lu.assertEquals({ xpcall(error, function(m) return m .. "!", 2 end, "x", 0) }, { false, "x!" })
  lu.assertEquals({ xpcall(function() require("barchan").sleep(0.001) return 1 end, print) }, { true, 1 })
  local ok, err = xpcall(function() require("barchan").sleep(0.001) error("late", 0) end, function(m) return m .. "?" end)
  lu.assertEquals({ ok, err }, { false, "late?" })
  lu.assertFalse((xpcall(error, error)))
  lu.assertFalse((pcall(xpcall, print)))
end

function T:test_primitives_are_hidden()
  for name in pairs(package.loaded) do lu.assertNil(name:match "^_barchan") end
  lu.assertErrorMsgContains("", require, "_barchan.sandbox")
end

return { TestLibrary = T }
