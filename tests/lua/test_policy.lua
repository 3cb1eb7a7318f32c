-- Policies by name, as files, reloaded while an agent runs; the built-in ones.
local lu = require "luaunit"
local barchan = require "barchan"
local support = require "reload_support"

local T = {}

local dir

function T:setUp() dir = support.dir() end
function T:tearDown() dir:remove() end

local echo = { name = "echo", description = "", run = function(args) return "echo " .. tostring(args.v) end }

local function run(policy, ...)
  local events = {}
  local result = barchan.agent {
    model = support.replaying(...),
    tools = barchan.toolset { echo, { name = "read_file", description = "", run = function() return "text" end } },
    policy = policy,
    on_event = function(event)
      if event.type:find "^polic" then events[#events + 1] = event end
    end,
  }:run "q"
  local answers = {}
  for _, message in ipairs(result.messages) do
    if message.role == "tool" then answers[#answers + 1] = message.content end
  end
  return answers, result, events
end

function T:test_read_only()
  local answers = run("read_only", { { "read_file" }, { "echo", { v = 1 } } }, "end")
  lu.assertEquals(answers[1], "text")
  lu.assertStrContains(answers[2], "not run: denied: 'echo' could change something")
end

-- All that the manual says may be answered.
function T:test_what_a_policy_may_answer()
  local function answering(...)
    local given = table.pack(...)
    return function() return table.unpack(given, 1, given.n) end
  end
  for _, fn in ipairs { answering(), answering(nil), answering(true), answering "allow", answering { action = "allow" } } do
    local answers, result = run({ { before_call = fn, before_turn = fn } }, { { "echo" } }, "end")
    lu.assertEquals({ answers[1], result.stop_reason }, { "echo nil", "end_turn" })
  end
  for _, fn in ipairs { answering(false, "no"), answering("deny", "no"), answering { action = "deny", reason = "no" } } do
    local answers, result = run({ { before_call = fn } }, { { "echo" } }, "end")
    lu.assertEquals({ answers[1], result.stop_reason }, { "not run: denied: no", "end_turn" })
    lu.assertEquals(select(2, run({ { before_turn = fn } }, "end")).reason, "no")
  end
  local rewrite = answering { action = "rewrite", arguments = { v = 5 } }
  lu.assertEquals(run({ { before_call = rewrite } }, { { "echo" } }, "end"), { "echo 5" })
  for _, fn in ipairs { answering "denied", answering(5), answering {} } do
    local answers = run({ { before_call = fn } }, { { "echo" } }, "end")
    lu.assertStrContains(answers[1], 'nil, true, false, "allow", "deny" and "stop" are')
    lu.assertEquals(select(2, run({ { before_turn = fn } }, "end")).stop_reason, "error")
  end
end

function T:test_no_repeats()
  local same = { { "echo", { v = 1 } } }
  local answers, result = run("no_repeats", same, same, { { "echo", { v = 2 } } }, same, same, same, "end")
  lu.assertEquals({ answers[1], answers[2], answers[5] }, { "echo 1", "echo 1", "echo 1" })
  lu.assertStrContains(answers[6], "try something else")
  lu.assertEquals(result.stop_reason, "end_turn")
  lu.assertEquals(select(2, run("no_repeats", same, same, same, same, same, same, "end")).stop_reason, "denied")
end

function T:test_what_stopped_a_run_is_said()
  local policy = { before_turn = function(r) if r.turn > 0 then return "stop", "one turn is enough" end end }
  local _, result = run({ policy }, { { "echo" } }, "end")
  lu.assertEquals({ result.stop_reason, result.reason, result.error }, { "denied", "one turn is enough" })
  policy = { before_call = function() return "stop", "no calls" end }
  _, result = run({ policy }, { { "echo" } }, "end")
  lu.assertEquals({ result.stop_reason, result.reason }, { "denied", "no calls" })
  _, result = run({ { before_call = function() return "stop", { why = "no" } end } }, { { "echo" } }, "end")
  lu.assertEquals(result.stop_reason, "denied")
  lu.assertStrContains(result.reason, "table")
  _, result = run({ { before_call = function() return "deny", "not now" end } }, { { "echo" } }, "end")
  lu.assertEquals({ result.stop_reason, result.reason }, { "end_turn" })
  _, result = run({ { before_turn = function() error "broken" end } }, "end")
  lu.assertEquals(result.stop_reason, "error")
  lu.assertStrContains(tostring(result.error), "broken")
  local answers, _, events = run({ { before_call = function() error "broken" end } }, { { "echo" } }, "end")
  lu.assertStrContains(answers[1], "not run: denied: the policy failed:")
  lu.assertStrContains(answers[1], "broken")
  lu.assertEquals({ #events, events[1].type }, { 1, "policy_failed" })
end

function T:test_policies_of_a_directory_are_asked_by_name_after_those_given()
  dir:write("b.lua", 'return { before_call = function(_, run) run.messages[1].order = run.messages[1].order .. "b" end }')
  dir:write("a.lua", 'return { before_call = function(_, run) run.messages[1].order = run.messages[1].order .. "a" end }')
  local given = { before_call = function(_, r) r.messages[1].order = "g" end }
  local _, result = run(barchan.policies { given, dir = dir.path }, { { "echo" } }, "end")
  lu.assertEquals(result.messages[1].order, "gab")
end

function T:test_an_edit_is_asked_from_the_next_turn_and_state_is_kept()
  local text = 'return { before_call = function(call, run) run.state.n = (run.state.n or 0) + 1 '
    .. 'return "deny", "%s " .. run.state.n end }'
  dir:write("rule.lua", text:format "old")
  local turn = 0
  local edit = { before_turn = function()
    turn = turn + 1
    if turn == 2 then dir:write("rule.lua", text:format "new") end
    if turn == 3 then dir:write("rule.lua", "return { before_call = 1 }") end
  end }
  local policies = barchan.policies { edit, dir = dir.path, watch = true }
  local answers, result, events = run(policies, { { "echo" } }, { { "echo" } }, { { "echo" } }, { { "echo" } }, "end")
  lu.assertEquals(result.stop_reason, "end_turn")
  lu.assertEquals(answers, {
    "not run: denied: old 1", "not run: denied: old 2", "not run: denied: new 3", "not run: denied: new 4",
  })
  lu.assertEquals({ #events, events[1].type, events[1].changed }, { 2, "policies_reloaded", { "rule" } })
  lu.assertEquals(events[2].type, "policies_reload_failed")
  lu.assertStrContains(events[2].message, "rule.lua")
  lu.assertStrContains(events[2].message, "'before_call': function expected, got number")
end

function T:test_what_is_no_policy_is_refused_with_the_reason()
  lu.assertErrorMsgContains("unknown policy 'no_repaets'; did you mean 'no_repeats'?", barchan.policies, "no_repaets")
  lu.assertErrorMsgContains("did you mean 'before_turn'", barchan.policies, { { befor_turn = print } })
  lu.assertErrorMsgContains("option 'watch' needs 'dir'", barchan.policies, { "read_only", watch = true })
  dir:write("bad.lua", "return 7")
  lu.assertErrorMsgContains("bad.lua: a policy file returns a table", barchan.policies, { dir = dir.path })
end

function T:test_a_policy_that_throws_has_denied()
  local answers = run({ before_call = function() error "oops" end }, { { "echo" } }, "end")
  lu.assertStrContains(answers[1], "oops")
  lu.assertNil(answers[1]:find "^echo")
end

return { TestPolicy = T }
