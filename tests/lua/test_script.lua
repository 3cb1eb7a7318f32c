-- Loop scripts that are edited while a conversation goes on.
local lu = require "luaunit"
local barchan = require "barchan"
local support = require "reload_support"

local T = {}

local dir

function T:setUp() dir = support.dir() end
function T:tearDown() dir:remove() end

-- A loop that notes what it does in state.log, and is edited by what `edits[n]` does in turn n.
local LOOP = [[
local M = {}
function M.open(state, log, edits) state.log, state.edits, state.n, state.messages = log, edits, 0, {} end
function M.turn(state)
  state.n = state.n + 1
  state.messages[#state.messages + 1] = "VERSION " .. state.n
  state.log[#state.log + 1] = "VERSION " .. state.n
  if state.edits[state.n] then state.edits[state.n]() end
  EXTRA
  if state.n == 4 then return table.concat(state.messages, ", "), state.n end
end
function M.close(state) state.log[#state.log + 1] = "close VERSION" end
return M
]]

local function version(name, extra) return (LOOP:gsub("VERSION", name):gsub("EXTRA", extra or "")) end

local function run(edits, options)
  dir:write("loop.lua", version "a")
  local log, events = {}, {}
  options = options or {}
  options.file, options.watch = dir.path .. "/loop.lua", true
  options.on_event = function(event) events[#events + 1] = event end
  local results = table.pack(barchan.script(options):run(setmetatable(log, { __name = "kept as it is" }), edits))
  return results, log, events
end

function T:test_an_edit_takes_over_between_two_turns_and_the_state_is_kept()
  local results, log, events = run { [2] = function() dir:write("loop.lua", version "b") end }
  lu.assertEquals({ results[1], results[2] }, { "a 1, a 2, b 3, b 4", 4 })
  lu.assertEquals(table.concat(log, ", "), "a 1, a 2, b 3, b 4, close b")
  lu.assertEquals({ #events, events[1].type, events[1].file }, { 1, "script_reloaded", dir.path .. "/loop.lua" })
end

function T:test_a_broken_edit_changes_nothing()
  local bad = { "return {", "error 'top'", "return 1", "return { turn = 1 }", "while true do end",
    "return { turn = print, open = 1 }" }
  for _, text in ipairs(bad) do
    local results, _, events = run {
      [1] = function() dir:write("loop.lua", text) end,
      [2] = function() dir:write("loop.lua", version "b") end,
    }
    lu.assertEquals(results[1], "a 1, a 2, b 3, b 4", text)
    lu.assertEquals({ events[1].type, events[2].type }, { "script_reload_failed", "script_reloaded" }, text)
    lu.assertStrContains(events[1].message, "loop.lua")
  end
end

function T:test_an_edit_whose_first_turn_throws_is_taken_back()
  local results, log, events = run {
    [1] = function() dir:write("loop.lua", version("b", "if true then error 'no good' end")) end,
    [3] = function() dir:write("loop.lua", version "c") end,
  }
  lu.assertEquals(results[1], "a 1, a 2, a 3, c 4")
  lu.assertEquals(table.concat(log, ", "), "a 1, b 2, a 2, a 3, c 4, close c") -- what has a metatable is not put back
  lu.assertEquals({ events[1].type, events[2].type, events[3].type },
    { "script_reloaded", "script_rolled_back", "script_reloaded" })
  lu.assertStrContains(events[2].message, "loop.lua:")
  lu.assertStrContains(events[2].message, "no good")
end

function T:test_a_version_that_worked_before_is_not_taken_back()
  local ok, err = pcall(run, {
    [1] = function() dir:write("loop.lua", version("b", "if state.n == 3 then error 'late' end")) end,
  })
  lu.assertFalse(ok)
  lu.assertStrContains(err, "late")
end

function T:test_neighbours_reload_with_it()
  dir:write("helper.lua", "return 'old'")
  dir:write("loop.lua", [[
local word = require "helper"
return { turn = function(state)
  state.words = (state.words or "") .. word
  require "barchan".sleep(0)
  if #state.words > 5 then return state.words end
  local file = assert(io.open("]] .. dir.path .. [[/helper.lua", "w"))
  file:write "return 'new'"
  file:close()
end }]])
  lu.assertEquals(barchan.script({ file = dir.path .. "/loop.lua", watch = true }):run(), "oldnew")
end

function T:test_what_is_open_in_the_state_is_closed_at_the_end()
  local closed = {}
  local function closable(name)
    return setmetatable({}, { __close = function() closed[#closed + 1] = name end })
  end
  dir:write("loop.lua", [[return {
    open = function(state, a, b) state.a, state.b = a, b end,
    turn = function(state) if state.again then error "over" end state.again = true end,
  }]])
  local loop = barchan.script { file = dir.path .. "/loop.lua" }
  lu.assertErrorMsgContains("over", loop.run, loop, closable "a", closable "b")
  table.sort(closed)
  lu.assertEquals(closed, { "a", "b" })
end

function T:test_cancelling_ends_a_loop_and_is_no_fault_of_an_edit()
  dir:write("loop.lua", "return { turn = function(state) state.n = 1 require 'barchan'.sleep(0) end }")
  local events = {}
  local loop = barchan.script { file = dir.path .. "/loop.lua", watch = true,
    on_event = function(event) events[#events + 1] = event.type end }
  local t = barchan.spawn(function() loop:run() end)
  dir:write("loop.lua", "return { turn = function() require 'barchan'.sleep(60) end }")
  support.eventually(function() return #events > 0 end, "no reload")
  barchan.sleep(0.05)
  t:cancel()
  local ok, err = t:wait()
  lu.assertEquals({ ok, err.code, events }, { false, "cancelled", { "script_reloaded" } })
end

function T:test_what_is_no_loop_script_is_refused_with_the_reason()
  dir:write("plain.lua", "return 1")
  for file, message in pairs {
    ["plain.lua"] = "returns a table with the function turn", ["absent.lua"] = "there is no such script",
    ["plain.txt"] = "its name ends in .lua",
  } do
    lu.assertErrorMsgContains(message, barchan.script, { file = dir.path .. "/" .. file })
  end
  lu.assertErrorMsgContains("option 'file' is missing", barchan.script, {})
  dir:write("open.lua", "return { turn = print }")
  support.sh("chmod 666 %s/open.lua", dir.path)
  lu.assertErrorMsgContains("can be written by others", barchan.script, { file = dir.path .. "/open.lua" })
end

return { TestScript = T }
