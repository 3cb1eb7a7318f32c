-- The default loop, on recorded turns: real tools, real dispatch, every way a run can end.
local lu = require "luaunit"
local barchan = require "barchan"
local coverage = require "coverage"

local T = {}

local function reply(fields)
  fields.role = "assistant"
  fields.text = fields.text or ""
  fields.tool_calls = barchan.json.array(fields.tool_calls)
  fields.stop_reason = fields.stop_reason or (#fields.tool_calls > 0 and "tool_use" or "end_turn")
  fields.usage = fields.usage or { input_tokens = 10, output_tokens = 5 }
  return { type = "model_reply", reply = fields }
end

local function call(id, name, arguments) return { id = id, name = name, arguments = arguments or {} } end

local function replaying(...)
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  file:write('{"type":"transcript","version":1}\n')
  for _, event in ipairs { ... } do file:write(barchan.json.encode(event), "\n") end
  file:close()
  local model = assert(barchan.model { provider = "replay", replay = path })
  os.remove(path)
  return model
end

local function echo_tool(fn)
  return { name = "echo", description = "", run = fn or function(args) return "echo " .. tostring(args.v) end }
end

local function agent(model, options)
  options = options or {}
  options.model = model
  options.tools = options.tools or barchan.toolset { echo_tool() }
  return barchan.agent(options)
end

local function roles(messages)
  local list = {}
  for i, message in ipairs(messages) do
    list[i] = message.role .. (message.tool_call_id and ":" .. message.tool_call_id or "")
  end
  return table.concat(list, " ")
end

function T:test_the_loop_answers_calls_in_order_and_ends()
  local events = {}
  local result = agent(replaying(
    reply { text = "first", tool_calls = { call("a", "echo", { v = 1 }), call("b", "echo", { v = 2 }) } },
    reply { text = "the answer" }
  ), { on_event = function(event) events[#events + 1] = event end }):run "question"
  lu.assertEquals({ result.text, result.stop_reason, result.error, result.turns }, { "the answer", "end_turn", nil, 2 })
  lu.assertEquals(roles(result.messages), "user assistant tool:a tool:b assistant")
  lu.assertEquals({ result.messages[3].content, result.messages[4].content }, { "echo 1", "echo 2" })
  lu.assertEquals({ result.usage.input_tokens, result.usage.output_tokens }, { 20, 10 })
  local finished = 0
  for i, event in ipairs(events) do
    lu.assertEquals({ event.seq, event.run_id }, { i, result.run_id })
    if event.type == "run_finished" then finished = finished + 1 end
  end
  lu.assertEquals({ finished, events[#events].type }, { 1, "run_finished" })
end

function T:test_what_the_model_gets_wrong_goes_back_to_it()
  local result = agent(replaying(
    reply { tool_calls = { call("a", "ecko", { v = 1 }) } },
    reply { tool_calls = { call("b", "echo", { v = 2 }) } },
    reply { text = "done" }
  )):run "q"
  lu.assertTrue(result.messages[3].is_error)
  lu.assertStrContains(result.messages[3].content, "There is no tool 'ecko'")
  lu.assertEquals({ result.messages[5].content, result.stop_reason }, { "echo 2", "end_turn" })
end

function T:test_after_the_last_step_there_is_one_turn_to_wrap_up()
  local ran = 0
  local tools = barchan.toolset { echo_tool(function() ran = ran + 1 return "x" end) }
  local result = agent(replaying(
    reply { tool_calls = { call("a", "echo") } },
    reply { tool_calls = { call("b", "echo") } },
    reply { text = "what I know", tool_calls = { call("c", "echo") } }
  ), { tools = tools, max_steps = 2 }):run "q"
  lu.assertEquals({ result.text, result.stop_reason, ran }, { "what I know", "max_steps", 2 })
  lu.assertEquals(roles(result.messages), "user assistant tool:a assistant tool:b user assistant tool:c")
  lu.assertStrContains(result.messages[8].content, "not run")
end

function T:test_stop_reasons_of_the_model_end_the_run()
  for _, reason in ipairs { "max_tokens", "refusal", "content_filter", "context_window" } do
    local result = agent(replaying(reply { text = "partial", stop_reason = reason })):run "q"
    lu.assertEquals({ result.stop_reason, result.text }, { reason, "partial" })
  end
end

function T:test_a_pause_is_continued_but_not_for_ever()
  local turns = { reply { stop_reason = "pause_turn" }, reply { text = "done" } }
  lu.assertEquals(agent(replaying(table.unpack(turns))):run("q").stop_reason, "end_turn")
  for i = 1, 20 do turns[i] = reply { stop_reason = "pause_turn" } end
  local result = agent(replaying(table.unpack(turns)), { max_steps = 20 }):run "q"
  lu.assertEquals({ result.stop_reason, result.turns }, { "pause_turn", 6 })
end

function T:test_a_failing_model_is_a_result_with_the_error()
  local result = agent(replaying(reply { tool_calls = { call("a", "echo") } })):run "q"
  lu.assertEquals(result.stop_reason, "error")
  lu.assertStrContains(tostring(result.error), "1 repl")
  lu.assertEquals(roles(result.messages), "user assistant tool:a") -- paired, so it can go on
end

function T:test_cancelling_ends_with_a_result_and_paired_messages()
  local result
  local events = {}
  local tools = barchan.toolset { echo_tool(function() barchan.sleep(60) end) }
  local t = barchan.spawn(function()
    result = agent(replaying(reply { tool_calls = { call("a", "echo"), call("b", "echo") } }), {
      tools = tools, on_event = function(event) events[#events + 1] = event.type end,
    }):run "q"
  end)
  barchan.sleep(0.05)
  t:cancel()
  t:wait()
  lu.assertEquals(result.stop_reason, "cancelled")
  lu.assertEquals(result.error.code, "cancelled")
  lu.assertEquals(events[#events], "run_finished")
  lu.assertEquals(roles(result.messages), "user assistant tool:a tool:b")
  lu.assertStrContains(result.messages[3].content, "cancelled")
  local calls, results = 0, 0
  for _, kind in ipairs(events) do
    calls = calls + (kind == "tool_call" and 1 or 0)
    results = results + (kind == "tool_result" and 1 or 0)
  end
  lu.assertEquals({ calls, results }, { 2, 2 })
end

function T:test_a_run_that_takes_too_long_stops()
  local tools = barchan.toolset { echo_tool(function() barchan.sleep(60) end) }
  local start = barchan.now()
  local result = agent(replaying(reply { tool_calls = { call("a", "echo") } }), { tools = tools, max_seconds = 0.1 }):run "q"
  lu.assertEquals({ result.stop_reason, result.error }, { "budget", nil })
  lu.assertTrue(barchan.now() - start < 30)
  lu.assertEquals(roles(result.messages), "user assistant tool:a")
end

function T:test_a_run_that_does_not_wait_stops()
  local tools = barchan.toolset { echo_tool(function() while true do end end) }
  local turns = { reply { tool_calls = { call("a", "echo") } }, reply { text = "Done." } }
  local result
  coverage.without(function()
    result = agent(replaying(table.unpack(turns)), { tools = tools, max_seconds = 0.1 }):run "q"
  end)
  lu.assertStrContains(result.messages[3].content, "it ran past its time")
  lu.assertEquals({ result.stop_reason, result.error, result.text }, { "budget", nil, "" })
end

function T:test_output_tokens_are_a_budget()
  local turns = {}
  for i = 1, 9 do turns[i] = reply { tool_calls = { call("c" .. i, "echo") } } end
  local result = agent(replaying(table.unpack(turns)), { max_output_tokens = 15 }):run "q"
  lu.assertEquals({ result.stop_reason, result.turns }, { "budget", 3 })
end

function T:test_policies_deny_rewrite_and_stop()
  local asked = {}
  local policy = {
    before_call = function(c)
      asked[#asked + 1] = c.id
      if c.id == "a" then return false, "not that" end
      if c.id == "b" then return { action = "rewrite", arguments = { v = "other" } } end
      if c.id == "d" then return { action = "stop", reason = "enough" } end
    end,
  }
  local result = agent(replaying(
    reply { tool_calls = { call("a", "echo"), call("b", "echo", { v = 1 }), call("c", "echo", { v = 3 }) } },
    reply { tool_calls = { call("d", "echo") } }
  ), { policy = policy }):run "q"
  lu.assertEquals(asked, { "a", "b", "c", "d" })
  lu.assertStrContains(result.messages[3].content, "denied: not that")
  lu.assertEquals({ result.messages[4].content, result.messages[5].content }, { "echo other", "echo 3" })
  lu.assertEquals(result.stop_reason, "denied")
  lu.assertErrorMsgContains("did you mean 'before_call'", barchan.agent,
    { model = replaying(), policy = { befor_call = print } })
  lu.assertErrorMsgContains("a model expected", barchan.agent, { model = {} })
  lu.assertErrorMsgContains("a prompt expected", function() agent(replaying()):run() end)
end

function T:test_what_is_done_when_a_run_is_cancelled_is_kept()
  local tools = barchan.toolset { echo_tool(function(args) barchan.sleep(args.s) return "done" end) }
  local result
  local t = barchan.spawn(function()
    result = agent(replaying(reply {
      tool_calls = { call("a", "echo", { s = 60 }), call("b", "echo", { s = 0 }) },
    }), { tools = tools }):run "q"
  end)
  barchan.sleep(0.1)
  t:cancel()
  t:wait()
  lu.assertStrContains(result.messages[3].content, "cancelled")
  lu.assertEquals(result.messages[4].content, "done")
end

function T:test_a_listener_that_fails_in_the_midst_leaves_the_messages_paired()
  local result = agent(replaying(reply { tool_calls = { call("a", "echo") } }), {
    on_event = function(event) if event.type == "model_reply" then error "listener" end end,
  }):run "q"
  lu.assertEquals({ result.stop_reason, roles(result.messages) }, { "error", "user assistant tool:a" })
end

function T:test_calls_of_a_paused_turn_are_answered()
  local result = agent(replaying(
    reply { tool_calls = { call("a", "echo", { v = 1 }) }, stop_reason = "pause_turn" }, reply { text = "end" }
  )):run "q"
  lu.assertEquals(roles(result.messages), "user assistant tool:a assistant")
end

function T:test_a_rewrite_leaves_the_conversation_as_it_was()
  local seen
  local result = agent(replaying(reply { tool_calls = { call("a", "echo", { v = "said" }) } }, reply { text = "end" }), {
    policy = { before_call = function() return { action = "rewrite", arguments = { v = "changed" } } end,
      after_call = function() error "after" end },
    on_event = function(event) if event.type == "tool_call" then seen = event.arguments.v end end,
  }):run "q"
  lu.assertEquals({ seen, result.messages[3].content }, { "changed", "echo changed" })
  lu.assertEquals(result.messages[2].tool_calls[1].arguments.v, "said")
  lu.assertEquals(result.stop_reason, "end_turn")
end

function T:test_a_failing_listener_does_not_lose_the_result()
  local result = agent(replaying(reply { text = "x" }), { on_event = function() error "listener" end }):run "q"
  lu.assertEquals(result.stop_reason, "error")
  lu.assertStrContains(tostring(result.error), "listener")
end

function T:test_transcripts_replay_the_same_run()
  local path = os.tmpname()
  os.remove(path)
  local writer = assert(barchan.transcript.open(path))
  local first = agent(replaying(
    reply { tool_calls = { call("a", "echo", { v = 1 }) } }, reply { text = "end" }
  ), { transcript = writer }):run "q"
  writer:close()
  local events = assert(barchan.transcript.read(path))
  lu.assertEquals({ events[1].type, events[1].version }, { "transcript", 1 })
  local again = agent(assert(barchan.model { provider = "replay", replay = path })):run "q"
  lu.assertEquals(again.messages[3], first.messages[3])
  lu.assertEquals(again.text, first.text)
  local none, err = barchan.transcript.open(path)
  lu.assertNil(none)
  lu.assertStrContains(err.message, "exists")
  local file = assert(io.open(path, "a"))
  file:write '{"type":"cut of'
  file:close()
  lu.assertEquals(#assert(barchan.transcript.read(path)), #events)
  writer = assert(barchan.transcript.open(path, { append = true })) -- the line that was cut off goes
  writer:write { type = "more", text = ("x"):rep(9000) }
  writer:close()
  file = assert(io.open(path, "a"))
  file:write('{"type":"cut of', ("y"):rep(9000))
  file:close()
  assert(barchan.transcript.open(path, { append = true })):close()
  local all = assert(barchan.transcript.read(path))
  lu.assertEquals({ #all, all[#all].type }, { #events + 1, "more" })
  os.remove(path)
  none, err = barchan.transcript.open("/dev", { append = true })
  lu.assertNil(none)
  lu.assertNotNil(err.code)
end

local function contents(path, text)
  local file = assert(io.open(path, text and "w" or "r"))
  local before = text and file:write(text) or file:read "a"
  file:close()
  return before
end

function T:test_going_on_with_a_transcript()
  local path = os.tmpname()
  local function go_on()
    local writer, err = barchan.transcript.open(path, { append = true })
    if not writer then return nil, err end
    writer:write { type = "more" }
    writer:close()
    return #assert(barchan.transcript.read(path))
  end
  local header = '{"type":"transcript","version":1}'
  lu.assertEquals(go_on(), 2) -- an empty file gets its header
  os.remove(path)
  lu.assertEquals(go_on(), 2) -- and a missing one
  contents(path, header .. '\n{"type":"whole"}')
  lu.assertEquals(go_on(), 3) -- only its end was missing
  contents(path, header)
  lu.assertEquals(go_on(), 2)
  for _, text in ipairs { "notes\nmine, without an end", "{}\n{", header:sub(1, -3), '"x', "\n\n",
    '{"type":"transcript","version":2}\n{"type":"cut of', "[]\n" } do
    contents(path, text)
    local none, err = go_on()
    lu.assertNil(none)
    lu.assertStrContains(err.message, path)
    lu.assertEquals(contents(path), text) -- nothing of it is lost
  end
  os.remove(path)
end

function T:test_what_is_no_file_is_not_read()
  local path = os.tmpname()
  os.remove(path)
  assert(os.execute("mkfifo " .. path))
  for _, name in ipairs { path, "/tmp" } do
    local none, err = barchan.transcript.read(name)
    lu.assertNil(none)
    lu.assertStrContains(err.message, "not a regular file")
    none, err = barchan.transcript.open(name, { append = true })
    lu.assertNil(none)
    lu.assertStrContains(err.message, "not a regular file")
  end
  os.remove(path)
end

function T:test_many_conversations_at_once()
  local fns = {}
  for i = 1, 100 do
    local model = replaying(reply { tool_calls = { call("a", "echo", { v = i }) } }, reply { text = "done " .. i })
    fns[i] = function() return agent(model):run("q").text end
  end
  for i, outcome in ipairs(barchan.gather(fns)) do lu.assertEquals(outcome.value, "done " .. i) end
end

function T:test_the_loop_by_hand()
  local tools = barchan.toolset { echo_tool() }
  local messages, seen, text = { barchan.user "q" }, {}, ""
  local model = replaying(reply { text = "one ", tool_calls = { call("a", "echo", { v = 1 }) } }, reply { text = "two" })
  for turn in model:turns { messages = messages, tools = tools, max = 8, on_delta = function(s) text = text .. s end } do
    seen[#seen + 1] = turn.stop_reason
    tools:answer(turn, messages)
  end
  lu.assertEquals(seen, { "tool_use", "end_turn" })
  lu.assertEquals(text, "one two")
  lu.assertEquals(roles(messages), "user assistant tool:a assistant")
end

function T:test_the_loop_by_hand_from_a_text_or_a_message()
  local tools = barchan.toolset { echo_tool() }
  for _, start in ipairs { "q", { messages = "q" }, { messages = barchan.user "q" }, { barchan.user "q" },
    { { barchan.user "q" } } } do
    local model = replaying(reply { text = "one ", tool_calls = { call("a", "echo", { v = 1 }) } }, reply { text = "two" })
    local last
    for turn, messages in model:turns(start) do
      tools:answer(turn, messages)
      last = messages
    end
    lu.assertEquals(roles(last), "user assistant tool:a assistant")
  end
  lu.assertErrorMsgContains("turns: option 'messages' is missing", function()
    local next_turn = replaying(reply { text = "x" }):turns {}
    return next_turn
  end)
end

-- A conversation may be the table of options itself: all of it is asked then.
function T:test_messages_without_their_name()
  local seen
  local model = assert(barchan.model { provider = { complete = function(request)
    seen = request.messages
    return { text = "" }
  end } })
  assert(model:complete { barchan.user "one", { role = "assistant", text = "two" }, barchan.user "three", max_tokens = 5 })
  lu.assertEquals({ #seen, seen[3].content }, { 3, "three" })
end

function T:test_bad_requests_are_refused_before_they_are_sent()
  local model = replaying(reply { text = "x" })
  local unanswered = { role = "assistant", text = "", tool_calls = { call("a", "echo") } }
  local none, err = model:complete { messages = { barchan.user "q", unanswered } }
  lu.assertNil(none)
  lu.assertEquals(err.code, "invalid_argument")
  lu.assertErrorMsgContains("'messages' is missing", model.complete, model, {})
  lu.assertErrorMsgContains("did you mean 'messages'", model.complete, model, { mesages = {} })
end

return { TestAgent = T }
