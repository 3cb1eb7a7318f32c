-- Models that are written in Lua: what they are asked, what they may say while they work, what they answer. The
-- same for barchan.model { provider = { complete = … } } and for an agent's plain table.
local lu = require "luaunit"
local barchan = require "barchan"
local support = require "reload_support"

local T = {}

local function model_of(complete) return assert(barchan.model { provider = { complete = complete } }) end

-- What an agent makes of a plain table whose complete answers this.
local function run_plain(answer)
  local calls = 0
  local result = barchan.agent { model = { complete = function(_, request)
    calls = calls + 1
    return answer(request)
  end } }:run "q"
  return result, calls
end

function T:test_a_plain_table_is_checked_and_completed_as_a_provider_is()
  local result, calls = run_plain(function() return { text = "x" } end)
  lu.assertEquals({ result.text, result.stop_reason, calls }, { "x", "end_turn", 1 })
  local plain = { text = "done", usage = { output_tokens = 3 } }
  result = run_plain(function() return plain end)
  lu.assertEquals({ result.usage.output_tokens, result.messages[2].tool_calls }, { 3, {} })
  for text, answer in pairs {
    ["must return a reply or nil and an error, got nil"] = function() end,
    ["got string"] = function() return "hello" end,
    ["text is of a wrong type: a string expected, got number"] = function() return { text = 5 } end,
    ["whose call 1 lacks 'name'"] = function() return { tool_calls = { { id = "1" } } } end,
    ["usage.output_tokens"] = function() return { usage = { output_tokens = -1 } } end,
  } do
    result, calls = run_plain(answer)
    lu.assertEquals({ result.stop_reason, calls }, { "error", 1 })
    lu.assertStrContains(tostring(result.error), text)
    lu.assertErrorMsgContains(text, function() model_of(answer):complete "q" end)
  end
  result = run_plain(function() return nil, { code = "quota", message = "no more" } end)
  lu.assertEquals(tostring(result.error), "no more (quota)")
end

function T:test_a_plain_table_may_emit_and_ask_another_model()
  local shown, seen = {}, nil
  local inner = model_of(function(request, emit)
    seen = request
    emit("text", "he")
    emit("text", "llo")
    return { text = "hello" }
  end)
  local outer = { name = "outer", complete = function(_, request)
    lu.assertEquals(request.tools:names(), { "exec" }) -- as it was given
    return inner:complete(request)
  end }
  local result = barchan.agent {
    model = outer, tools = { "exec" }, on_delta = function(text) shown[#shown + 1] = text end,
  }:run "q"
  lu.assertEquals({ result.text, shown, seen.tools[1].name }, { "hello", { "he", "llo" }, "exec" })
end

function T:test_what_emit_takes()
  local events = {}
  local function emitting(...)
    local given = table.pack(...)
    return function()
      local reply, err = model_of(function(_, emit)
        emit(table.unpack(given, 1, given.n))
        return { text = "" }
      end):complete { messages = "q", on_event = function(kind, data) events[#events + 1] = { kind, data } end }
      return reply, err
    end
  end
  for message, fn in pairs {
    ["emit: unknown kind 'txet'; did you mean 'text'?"] = emitting("txet", "x"),
    ["emit: unknown kind 'zzzzzzzzz'; there is: text, reasoning, tool_call, restart"] = emitting("zzzzzzzzz", "x"),
    ["emit: a kind (text, reasoning, tool_call, restart, retry, fallback) expected, got nil"] = emitting(),
    ["emit: with 'text': a string of data expected, got nil"] = emitting "text",
    ["emit: with 'reasoning': a string of data expected, got table"] = emitting("reasoning", {}),
    ["emit: with 'retry': a table of data expected"] = emitting("retry", "x"),
    ["emit: with 'fallback': a table of data expected"] = emitting("fallback", "x"),
    ["emit: with 'fallback': 'to': a string expected, got 5"] = emitting("fallback", { to = 5 }),
    ["emit: with 'retry': 'attempt': a number expected, got \"x\""] = emitting("retry", { attempt = "x" }),
  } do
    lu.assertErrorMsgContains(message, fn)
    lu.assertErrorMsgContains("test_written_models.lua:", fn)
  end
  lu.assertEquals(events, {})
  for _, given in ipairs { { "text", "a" }, { "reasoning", "b" }, { "tool_call", "f" }, { "restart" },
    { "retry", { attempt = 2, wait = 1, error = "m", code = "network" } },
    { "fallback", { from = "a", to = "b", error = "m", code = "network" } } } do
    assert(emitting(table.unpack(given))())
  end
  lu.assertEquals(#events, 6)
end

function T:test_errors_name_the_field()
  local function call(id, name, arguments) return { id = id, name = name, arguments = arguments } end
  for text, reply in pairs {
    ["whose call 1 lacks 'id'"] = { tool_calls = { {} } },
    ["whose call 1.id is of a wrong type: a string expected, got number"] = { tool_calls = { call(5, "f", {}) } },
    ["whose call 2 lacks 'arguments'"] = { tool_calls = { call("a", "f", {}), call("b", "f") } },
    ["whose call 1.arguments is of a wrong type: a table expected, got string"] = { tool_calls = { call("a", "f", "{}") } },
    ["whose call 1 is of a wrong type: a table expected, got string"] = { tool_calls = { "exec" } },
    ["tool_calls is of a wrong type: a table expected, got string"] = { tool_calls = "exec" },
    ["usage is of a wrong type: a table expected, got number"] = { usage = 5 },
    ["reasoning is of a wrong type: a string expected, got table"] = { reasoning = {} },
    ["invalid_tool_calls are no list"] = { invalid_tool_calls = { a = 1 } },
    ["whose invalid call 1 lacks 'name'"] = { invalid_tool_calls = { { id = "x" } } },
    ["unknown stop_reason 'endturn'; did you mean 'end_turn'?"] = { stop_reason = "endturn" },
    ["cost is no amount: a number from 0 on expected, got -1"] = { cost = -1 },
    ["cost is no amount"] = { cost = 0 / 0 },
    ["two calls of the id 'a'"] = { tool_calls = { call("a", "f", {}), call("a", "f", {}) } },
    ["call 1 has arguments that are no object"] = { tool_calls = { call("a", "f", { 1, 2 }) } },
    ["reply with the unknown field 'txt'; did you mean 'text'?"] = { txt = "x" },
    ["unknown field 'tool_call'; did you mean 'tool_calls'?"] = { text = "", tool_call = {} },
    ["unknown field 'zzzzzzzzzzzz'; there is: text, tool_calls,"] = { zzzzzzzzzzzz = 1 },
    ["tool_calls are no list"] = { tool_calls = { first = call("a", "f", {}) } },
    ["tool_calls are no list "] = { tool_calls = { call("a", "f", {}), [3] = call("b", "f", {}) } },
    ["usage.output_tokens"] = { usage = { output_tokens = "5" } },
    ["usage.input_tokens"] = { usage = { input_tokens = -1 } },
    ["usage.reasoning_tokens"] = { usage = { reasoning_tokens = 0 / 0 } },
    ["usage.cache_read_tokens"] = { usage = { cache_read_tokens = math.maxinteger } },
  } do
    lu.assertErrorMsgContains((text:gsub(" $", "")), function() model_of(function() return reply end):complete "q" end)
  end
end

local function plus()
  return { name = "plus", description = "", parameters = { type = "object" },
    run = function(args) return tostring(args.a + 1) end }
end

-- Its own reply comes back to it, and to any other model.
function T:test_a_conversation_has_a_second_turn()
  local replies = {
    { text = "so far", stop_reason = "pause_turn" },
    { tool_calls = { { id = "1", name = "plus", arguments = { a = 1 } } } },
    { invalid_tool_calls = { { id = "2", name = "plus", arguments_text = "{", error = "no JSON" } } },
    { tool_calls = {}, invalid_tool_calls = {}, text = "done" },
  }
  local function answering(seen)
    return function(request)
      seen[#seen + 1] = request
      return replies[#seen]
    end
  end
  for _, made in ipairs { model_of, function(complete)
    return { complete = function(_, request) return complete(request) end }
  end } do
    local seen = {}
    local result = barchan.agent { model = made(answering(seen)), tools = { plus() } }:run "q"
    lu.assertEquals({ result.error, result.text, #seen, #result.messages }, { nil, "done", 4, 7 })
    lu.assertEquals(seen[4].messages[4].content, "2")
    lu.assertStrContains(seen[4].messages[6].content, "no JSON")
    -- As any provider takes it: nobody listens there, which is after the check.
    local http = assert(barchan.model { provider = "openai", name = "m", api_key = "k",
      base_url = "http://127.0.0.1:1", max_retries = 0 })
    local all = table.move(result.messages, 1, #result.messages, 1, {})
    all[#all + 1] = { role = "user", content = "and now?" }
    local reply, err = http:complete(all)
    lu.assertEquals({ reply, err.code }, { nil, "network" })
  end
end

-- All that replies have: of a wire, of a transcript, of an answer by schema.
function T:test_a_reply_of_another_model_may_be_passed_on()
  local recorded = assert(barchan.model(assert(barchan.recorded(support.data "hello.wire.jsonl"))))
  local whole = {
    role = "assistant", text = "[1]", reasoning = "r", refusal = "n", stop_reason = "end_turn", raw_stop_reason = "stop",
    usage = { input_tokens = 1 }, cost = 0.5, model = "m", id = "i", request_id = "q",
    tool_calls = { { id = "1", name = "f", arguments = {} } },
    invalid_tool_calls = { { id = "2", name = "f", arguments_text = "{", error = "no JSON", position = 1 } },
    raw = { provider = "openai", model = "m", base_url = "u", view = "v", turn = "{}" },
  }
  local path = os.tmpname()
  local file <close> = assert(io.open(path, "w"))
  file:write(barchan.json.encode { type = "model_reply", reply = whole }, "\n")
  file:close()
  for prompt, inner in pairs {
    ["Say hello in French."] = recorded,
    replayed = assert(barchan.model { provider = "replay", replay = path }),
    written = model_of(function() return whole end),
  } do
    local wanted = prompt == "written" and { type = "array" } or nil
    local seen
    local outer = model_of(function(request)
      seen = assert(inner:complete { messages = request.messages, schema = wanted })
      return seen
    end)
    local reply = assert(outer:complete(prompt))
    for name, value in pairs(seen) do lu.assertEquals(reply[name], value, name) end
  end
  os.remove(path)
end

local function deep(levels)
  local value = 1
  for _ = 1, levels do value = { value } end
  return value
end

-- A reply as it would have come from a wire: JSON, and nobody else's.
function T:test_a_reply_is_a_copy()
  local given = { text = "a", tool_calls = { { id = "1", name = "f", arguments = { list = {} } } } }
  local model = model_of(function() return given end)
  local reply = assert(model:complete "q")
  given.text, given.tool_calls[1].arguments.list = "b", 5
  lu.assertEquals({ reply.text, reply.tool_calls[1].arguments, given.role }, { "a", { list = {} }, nil })
  local times = 0
  local turncoat = setmetatable({}, { __index = function(_, name)
    times = times + 1
    return name == "text" and (times == 1 and "x" or 5) or nil
  end })
  local cycle = {}
  cycle.cycle = cycle
  for text, answer in pairs {
    ["that cannot be sent: cannot encode a function as JSON at .messages[1].tool_calls[1].arguments.f"] =
      { tool_calls = { { id = "1", name = "f", arguments = { f = print } } } },
    ["that cannot be sent: cannot encode"] = { tool_calls = { { id = "1", name = "f", arguments = cycle } } },
    ["cannot be sent: cannot encode"] = { tool_calls = { { id = "1", name = "f", arguments = { n = 0 / 0 } } } },
    ["a reply that is a list"] = { "hello" },
    ["is of a wrong type: a string expected, got number"] = turncoat,
    ["whose text is not its own: no plain table"] = setmetatable({}, { __index = { text = "x" } }),
    ["whose usage is not its own"] = setmetatable({ text = "x" }, { __index = { usage = { output_tokens = 5 } } }),
    ["nests too deep"] = { text = "x", extra = deep(126) },
  } do
    lu.assertErrorMsgContains(text, function() return (model_of(function() return answer end):complete "q") end)
  end
end

function T:test_a_request_is_a_copy()
  local list = { { role = "user", content = "q" } }
  local reply = assert(model_of(function(request)
    request.messages[1].content = "something else"
    request.messages[2] = { role = "user", content = "more" }
    return { text = request.messages[1].content }
  end):complete(list))
  lu.assertEquals({ reply.text, list }, { "something else", { { role = "user", content = "q" } } })
end

function T:test_emit_ends_with_its_turn()
  local kept
  local events = 0
  assert(model_of(function(_, emit)
    kept = emit
    return { text = "" }
  end):complete { messages = "q", on_event = function() events = events + 1 end })
  lu.assertErrorMsgContains("emit: its turn is over", function() kept("text", "late") end)
  lu.assertEquals(events, 0)
end

function T:test_nil_is_thrown()
  local result = barchan.agent { model = model_of(function() error() end) }:run "q"
  lu.assertEquals({ result.stop_reason, result.error }, { "error", "nil was thrown" })
end

-- As before a request goes over HTTP.
function T:test_requests_are_checked()
  local asked = 0
  local model = model_of(function()
    asked = asked + 1
    return { text = "" }
  end)
  local http = assert(barchan.model { provider = "openai", name = "m", api_key = "k", base_url = "http://127.0.0.1:1" })
  for message, request in pairs {
    ["messages[0]"] = { messages = { 5 } },
    ["messages[0]: 'role' must be"] = { messages = { { role = "usr", content = "x" } } },
    ["tools[0]: 'name' must be"] = { messages = "q", tools = { 5 } },
    ["'messages' is empty"] = { messages = {} },
    ["effort"] = { messages = "q", effort = "extreme" },
    ["must be a list of strings"] = { messages = "q", stop = { 5 } },
  } do
    for _, m in ipairs { model, http } do
      local reply, err = m:complete(request)
      lu.assertEquals({ reply, err.code }, { nil, "invalid_argument" })
      lu.assertStrContains(err.message, "complete: ")
      lu.assertStrContains(err.message, message)
    end
  end
  lu.assertEquals(asked, 0)
  lu.assertErrorMsgContains("complete: cannot encode a function as JSON at .messages[1]", function()
    local reply = model:complete { messages = { print } }
    return reply
  end)
end

function T:test_an_agent_refuses_an_unknown_effort()
  lu.assertErrorMsgContains("agent: option 'effort': unknown word 'extreme'; there is: minimal, low, medium", function()
    local agent = barchan.agent { model = model_of(print), effort = "extreme" }
    return agent
  end)
end

function T:test_the_example_of_the_manual_works()
  local printed
  support.example("model", nil, { barchan = barchan, print = function(text) printed = text end })()
  lu.assertEquals(printed, "hello there")
end

return { TestWrittenModels = T }
