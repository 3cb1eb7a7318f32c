-- Models that are functions, presets, fallbacks, prices, answers by schema. Wires are tested elsewhere.
local lu = require "luaunit"
local barchan = require "barchan"
local support = require "reload_support"
local wire = require "wire_support"

local T = {}

local function says(reply, seen)
  return assert(barchan.model { name = "fake", provider = { complete = function(request, emit)
    if seen then seen[#seen + 1] = request end
    if type(reply) == "function" then return reply(request, emit) end
    return reply
  end } })
end

function T:test_a_function_that_fails_says_how()
  local none, err = says(function() return nil, { code = "quota", message = "my message" } end):complete "q"
  lu.assertNil(none)
  lu.assertEquals(tostring(err), "my message (quota)")
  none, err = says(function() return nil, { code = "quota" } end):complete "hi"
  lu.assertEquals({ none, err.code }, { nil, "quota" })
end

function T:test_a_model_may_be_a_function()
  local seen, deltas = {}, {}
  local model = says(function(_, emit)
    emit("text", "he")
    barchan.sleep(0)
    emit("text", "llo")
    return { text = "hello", usage = { output_tokens = 2 } }
  end, seen)
  local reply = assert(model:complete {
    messages = "hi", system = "s", effort = "low", cache = true, tools = barchan.toolset { "exec" },
    on_delta = function(text) deltas[#deltas + 1] = text end,
  })
  lu.assertEquals(deltas, { "he", "llo" })
  lu.assertEquals({ reply.role, reply.text, reply.stop_reason, reply.tool_calls }, { "assistant", "hello", "end_turn", {} })
  lu.assertEquals({ seen[1].system, seen[1].effort, seen[1].cache, seen[1].stream }, { "s", "low", true, true })
  lu.assertEquals(seen[1].messages[1], barchan.user "hi")
  lu.assertEquals(seen[1].tools[1].name, "exec")
end

function T:test_a_recording_plays_without_a_server()
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  for _, line in ipairs {
    { type = "recording", version = 1, provider = "openai", model = "m", base_url = "https://llm.example/v1" },
    {
      type = "exchange", url = "https://llm.example/v1/chat/completions", ["end"] = "complete", status = 200,
      request = '{"model":"m","messages":[{"role":"user","content":"hi"}]}', headers = barchan.json.decode "{}",
      body = '{"choices":[{"finish_reason":"stop","message":{"role":"assistant","content":"hello"}}]}',
    },
  } do
    file:write(barchan.json.encode(line), "\n")
  end
  file:close()
  local model = assert(barchan.model(assert(barchan.recorded(path))))
  lu.assertEquals(tostring(model), "model openai:m")
  local none, err = model:complete { messages = "ho", stream = false }
  lu.assertNil(none)
  lu.assertEquals(err.code, "not_found")
  lu.assertStrContains(err.message, 'at /messages/0/content recorded was "hi", now it is "ho"')
  lu.assertEquals(assert(model:complete { messages = "hi", stream = false }).text, "hello")
  file = assert(io.open(path, "w"))
  file:write '{"type":"recording","version":1,"provider":{},"model":"m","base_url":"u"}\n'
  file:close()
  none, err = barchan.recorded(path)
  lu.assertNil(none)
  lu.assertStrContains(err.message, "line 1: 'provider' must be a string")
  os.remove(path)
  none, err = barchan.recorded(path)
  lu.assertNil(none)
  lu.assertEquals(err.code, "not_found")
end

-- Each piece takes the memory of the one before, where it fits.
function T:test_pieces_of_all_sizes_arrive_whole()
  local path, body, pieces, sent = os.tmpname(), {}, {}, {}
  for i, size in ipairs { 1, 255, 2, 256, 257, 3, 70000, 4, 300, 0, 5 } do
    sent[i] = string.rep(string.char(96 + i), size)
    local event = barchan.json.encode { choices = barchan.json.array { { delta = { content = sent[i] } } } }
    body[i] = "data: " .. event .. "\n\n"
    pieces[i] = #body[i]
  end
  body[#body + 1] = 'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
  pieces[#pieces + 1] = #body[#body]
  local file = assert(io.open(path, "w"))
  for _, line in ipairs {
    { type = "recording", version = 1, provider = "openai", model = "m", base_url = "https://llm.example/v1" },
    {
      type = "exchange", url = "https://llm.example/v1/chat/completions", ["end"] = "complete", status = 200,
      request = '{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true,' ..
        '"stream_options":{"include_usage":true}}',
      headers = { ["content-type"] = "text/event-stream" }, body = table.concat(body), pieces = pieces,
    },
  } do
    file:write(barchan.json.encode(line), "\n")
  end
  file:close()
  local model, shown, count = assert(barchan.model(assert(barchan.recorded(path)))), "", 0
  local reply = assert(model:complete { messages = "hi", on_delta = function(text)
    shown, count = shown .. text, count + 1
  end })
  os.remove(path)
  lu.assertTrue(shown == table.concat(sent) and reply.text == shown)
  lu.assertTrue(count >= 5, count .. " pieces")
end

function T:test_options_over_HTTP_are_not_for_a_function()
  lu.assertErrorMsgContains("function 'complete'", barchan.model, { provider = {} })
  lu.assertErrorMsgContains("'api_key' is for models over HTTP", barchan.model,
    { provider = { complete = print }, api_key = "x" })
end

-- The places up to which a provider keeps what it has read: the system prompt, where the request before ended,
-- and the end.
function T:test_cache_marks_move_with_a_tool_loop()
  local function call(id) return { id = id, name = "look", arguments = {} } end
  local function turn(...) return { role = "assistant", text = "", tool_calls = { ... } } end
  local messages = {
    barchan.user "go", turn(call "a", call "b"), barchan.tool_result(call "a", "1"), barchan.tool_result(call "b", "2"),
    turn(call "c"), barchan.tool_result(call "c", "3"),
  }
  local mark = { type = "ephemeral" }
  local function marks(list)
    local body = wire.body_of("anthropic", { messages = list, system = "Be brief.", cache = true })
    lu.assertEquals(body.cache_control, mark)
    lu.assertEquals(body.system, { { type = "text", text = "Be brief.", cache_control = mark } })
    local found = {}
    for i, message in ipairs(body.messages) do
      for k, block in ipairs(message.content) do
        if block.cache_control then found[#found + 1] = i .. "." .. k end
      end
    end
    return table.concat(found, " ")
  end
  local extra = { cache_control = { type = "ephemeral", ttl = "1h" } } -- the script's own kind, and only that
  local body = wire.body_of("anthropic", { messages = messages, system = "s", cache = true, extra = extra })
  lu.assertEquals({ body.system, body.cache_control.ttl, body.messages[3].content[2].cache_control }, { "s", "1h" })
  lu.assertEquals(marks { messages[1] }, "")
  lu.assertEquals(marks(table.move(messages, 1, 4, 1, {})), "1.1")
  lu.assertEquals(marks(messages), "3.2")
  body = wire.body_of("anthropic", { messages = messages, system = "Be brief." })
  lu.assertNil(body.cache_control)
  lu.assertEquals(body.system, "Be brief.")
end

function T:test_an_agent_runs_on_it()
  local turn = 0
  local model = says(function(request)
    turn = turn + 1
    if turn == 1 then return { tool_calls = { { id = "1", name = "add", arguments = { a = 1 } } } } end
    return { text = request.messages[#request.messages].content }
  end)
  local tools = barchan.toolset { { name = "add", description = "", run = function(args) return args.a + 1 end } }
  local result = barchan.agent { model = model, tools = tools }:run "?"
  lu.assertEquals({ result.text, result.stop_reason, result.cost }, { "2", "end_turn", nil })
end

function T:test_answers_by_schema()
  local wanted = { type = "object", properties = { n = { type = "integer" } }, required = { "n" } }
  local function output(text)
    local reply = assert(says({ text = text }):complete { messages = "hi", schema = wanted })
    return reply.output, reply.output_error
  end
  lu.assertEquals(output '{"n": 5}', { n = 5 })
  local none, problem = output "five"
  lu.assertNil(none)
  lu.assertStrContains(problem, "no JSON")
  none, problem = output '{"n": "5"}'
  lu.assertNil(none)
  lu.assertStrContains(problem, "n: integer expected")
  local cut = assert(says({ text = "{", stop_reason = "max_tokens" }):complete { messages = "hi", schema = wanted })
  lu.assertNil(cut.output_error)
end

-- A model that fails, after it has said something.
local function failing(asked, name, code, partial)
  return assert(barchan.model { name = name, provider = { complete = function(_, emit)
    asked[#asked + 1] = name
    if partial then emit("text", partial) end
    return nil, { code = code, message = name .. " failed", retryable = code == "overloaded" }
  end } })
end

function T:test_fallback_asks_the_next_one()
  local asked, events = {}, {}
  local model = barchan.fallback {
    failing(asked, "a", "overloaded", "half"), failing(asked, "b", "auth"), says { text = "c answers" },
  }
  local reply = assert(model:complete { messages = "hi", on_event = function(kind, data)
    events[#events + 1] = { kind, data }
  end })
  lu.assertEquals({ reply.text, table.concat(asked) }, { "c answers", "ab" })
  lu.assertEquals(events, {
    { "text", "half" },
    { "fallback", { from = "lua:a", to = "lua:b", error = "a failed", code = "overloaded" } }, { "restart", "" },
    { "fallback", { from = "lua:b", to = "lua:fake", error = "b failed", code = "auth" } },
  })
  lu.assertErrorMsgContains("a list of models", barchan.fallback, {})
  lu.assertErrorMsgContains("model 1", barchan.fallback, { 5 })
end

function T:test_fallback_says_how_each_model_failed()
  local asked = {}
  local none, err = barchan.fallback { failing(asked, "a", "overloaded"), failing(asked, "b", "auth") }:complete "hi"
  lu.assertNil(none)
  lu.assertEquals(err.message, "no model could answer: lua:a: a failed (overloaded); lua:b: b failed (auth)")
  lu.assertEquals({ err.code, err.retryable, table.concat(asked) }, { "auth", true, "ab" })
  asked = {}
  none, err = barchan.fallback { failing(asked, "a", "invalid_request"), failing(asked, "b", "auth") }:complete "hi"
  lu.assertNil(none)
  lu.assertEquals({ err.code, err.message, table.concat(asked) }, { "invalid_request", "a failed", "a" })
  local odd = says(function() return nil, "no table" end) -- fails with a text, and below one that is none of ours
  none, err = barchan.fallback { barchan.fallback { odd, odd }, { complete = function() return nil, "nor this" end } }
    :complete "hi"
  lu.assertNil(none)
  lu.assertStrContains(err.message, "lua:fake: no table; lua:fake: no table")
  lu.assertStrContains(err.message, "; model: nor this")
end

function T:test_fallback_takes_what_others_call_an_error()
  local told = {}
  local model = barchan.fallback {
    { complete = function() return nil, { message = { 1 }, code = 5 } end }, says { text = "fine" },
  }
  local reply = assert(model:complete { messages = "hi", on_event = function(kind, data)
    if kind == "fallback" then told[#told + 1] = data end
  end })
  lu.assertEquals({ reply.text, #told, told[1].error, told[1].code }, { "fine", 1, '{"code":5,"message":[1]}' })
  local asked = {}
  local _, err = barchan.fallback {
    failing(asked, "a", "overloaded"), failing(asked, "b", "invalid_request"), failing(asked, "c", "auth"),
  }:complete "hi"
  lu.assertEquals({ asked, err.code }, { { "a", "b" }, "invalid_request" })
  lu.assertStrContains(err.message, "the models that were asked failed: lua:a: a failed")
end

function T:test_an_agent_tells_of_a_fallback()
  local told = {}
  local result = barchan.agent {
    model = barchan.fallback { failing({}, "a", "overloaded"), says { text = "done" } },
    on_event = function(event) if event.type == "fallback" then told[#told + 1] = event end end,
  }:run "?"
  lu.assertEquals({ result.text, #told }, { "done", 1 })
  local event = told[1]
  lu.assertEquals({ event.from, event.to, event.code, event.message, event.turn, event.run_id },
    { "lua:a", "lua:fake", "overloaded", "a failed", 1, result.run_id })
end

function T:test_presets()
  local presets = barchan.presets
  local none, err = barchan.model { provider = "groq", name = "x" }
  if not os.getenv "GROQ_API_KEY" then
    lu.assertNil(none)
    lu.assertStrContains(tostring(err), "GROQ_API_KEY")
  end
  presets.here = { provider = "openai", base_url = "http://127.0.0.1:9", extra = { top_k = 1 } }
  local model = assert(barchan.model { provider = "here", name = "x", max_retries = 0 })
  local failed
  none, failed = model:complete "hi"
  presets.here = nil
  lu.assertNil(none)
  lu.assertStrContains(tostring(failed), "127.0.0.1:9")
  lu.assertEquals(tostring(model), "model here:x")
  presets.here = { provider = "openai", base_url = "http://192.0.2.1/v1", key = "HERE_API_KEY", max_tokens = 5,
    headers = { ["X-Name"] = "v" } }
  none, err = barchan.model { provider = "here", name = "x" }
  lu.assertNil(none)
  lu.assertStrContains(err.message, "HERE_API_KEY")
  none, err = barchan.model { provider = "here", name = "x", api_key = "k" }
  lu.assertNil(none)
  lu.assertStrContains(err.message, "allow plain http")
  presets.here.allow_plain_http = true
  assert(barchan.model { provider = "here", name = "x", api_key = "k" })
  presets.here = nil
  presets.here = { provider = "openai", base_url = "http://192.0.2.1/v1", allow_plain_http = true }
  assert(barchan.model { provider = "here", name = "x" })
  presets.here = nil
end

-- Played without the preset, or with another one, a recorded request is still the same.
function T:test_the_extra_of_a_preset_is_recorded()
  local presets, path = barchan.presets, os.tmpname()
  os.remove(path)
  presets.here = { provider = "openai", base_url = "http://127.0.0.1:9", extra = { top_k = 1, top_p = 0.5 } }
  local model = assert(barchan.model {
    provider = "here", name = "x", max_retries = 0, record = path, extra = { top_p = 0.25, note = "a key: secret-key-1" },
    api_key = "secret-key-1",
  })
  local none, err = model:complete { messages = "hi", extra = { seed = 7 } }
  presets.here = nil
  lu.assertNil(none)
  lu.assertEquals(err.code, "network")
  local options = assert(barchan.recorded(path))
  lu.assertEquals(options.extra, { top_k = 1, top_p = 0.25, note = "a key: ***" })
  options.extra.note = "a key: secret-key-1" -- hidden in what was recorded and in what is compared
  options.api_key = "secret-key-1"
  model = assert(barchan.model(options))
  none, err = model:complete { messages = "hi", extra = { seed = 7 } }
  lu.assertNil(none)
  lu.assertEquals(err.code, "network", tostring(err)) -- played, not "it was not recorded"
  options.extra = nil
  none, err = assert(barchan.model(options)):complete { messages = "hi", extra = { seed = 7 } }
  lu.assertNil(none)
  lu.assertStrContains(err.message, "at /note recorded was")
  os.remove(path)
end

function T:test_cost_is_known_or_nil()
  local prices = barchan.prices
  local usage = { input_tokens = 1000000, cache_read_tokens = 1000000, output_tokens = 100000 }
  prices["lua:fake"] = { input = 2, cache_read = 0.5, output = 10 }
  lu.assertAlmostEquals(says({ text = "", usage = usage }):complete("hi").cost, 3.5, 1e-9)
  prices["lua:fake"] = nil
  lu.assertNil(says({ text = "", usage = usage }):complete("hi").cost)
  lu.assertAlmostEquals(prices("openai", "gpt-5-2025-08-07", usage), 1.25 + 0.125 + 1, 1e-9)
  lu.assertAlmostEquals(prices("openai-responses", "gpt-5-mini", usage), 0.25 + 0.025 + 0.2, 1e-9)
  lu.assertNil(prices("openai", "gpt-5-ultra", usage))
  lu.assertNil(prices("openai", "gpt-5", {}))
  prices["lua:fake"] = { input = 2, cache_write = 9 } -- what is left out is as input
  lu.assertAlmostEquals(says({ text = "", usage = usage }):complete("hi").cost, 4.2, 1e-9)
  prices["lua:fake"] = nil
end

function T:test_the_example_of_prices_works()
  local asked
  local without = setmetatable({ model = function(options) asked = options return true end }, { __index = barchan })
  support.example("prices", nil, { barchan = without })()
  lu.assertAlmostEquals(barchan.prices("openai", "my-model", { input_tokens = 1000000, output_tokens = 0 }), 1.25, 1e-9)
  lu.assertAlmostEquals(barchan.prices("lua", "echo", { input_tokens = 0, output_tokens = 500000 }), 1, 1e-9)
  local none, err = barchan.model(asked)
  lu.assertNil(none)
  lu.assertStrContains(err.message, "MINE_API_KEY")
  barchan.prices["openai:my-model"], barchan.prices["lua:echo"], barchan.presets.mine = nil, nil, nil
end

function T:test_prices_and_presets_that_could_not_count_are_refused()
  local function price(key, value) return function() barchan.prices[key] = value end end
  local function preset(key, value) return function() barchan.presets[key] = value end end
  for wrong, add in pairs {
    ["a key \"provider:name\" expected"] = price("gpt-5", { input = 1 }),
    ["unknown option 'in'"] = price("openai:mine", { ["in"] = 1, output = 1 }),
    ["'input' is missing"] = price("openai:mine", { output = 1 }),
    ["'output': an amount from 0 on expected, got -1"] = price("openai:mine", { input = 1, output = -1 }),
    ["a table of options expected, got 5"] = price("openai:mine", 5),
    ["unknown option 'url'; there is: allow_plain_http"] = preset("mine", { provider = "openai", url = "https://x" }),
    ["'provider' is missing"] = preset("mine", { base_url = "https://x.example" }),
    ["a name expected, got 5"] = preset(5, {}),
    ["unknown option 'output_'"] = price("openai:gpt-5", { input = 1, output_ = 1 }), -- of those that are there
    ["a table of options expected, got \"a text\""] = preset("ollama", "a text"),
  } do
    lu.assertErrorMsgContains(wrong, add)
    lu.assertErrorMsgContains("test_model.lua:", add) -- at the caller's line
  end
  barchan.prices["openai:mine"] = nil -- as of any table
  lu.assertNil(barchan.prices["openai:mine"])
  lu.assertNil(barchan.presets.mine)
  local found = {}
  for name in pairs(barchan.presets) do found[name] = true end
  lu.assertTrue(found.ollama and barchan.presets.ollama ~= nil)
  local before = barchan.prices["openai:gpt-5"]
  barchan.prices["openai:gpt-5"] = { input = 7, output = 7 }
  lu.assertEquals(barchan.prices("openai", "gpt-5", { input_tokens = 1000000, output_tokens = 0 }), 7)
  barchan.prices["openai:gpt-5"] = before
end

function T:test_what_is_not_known_is_not_in_its_label()
  local written = assert(barchan.model { provider = { complete = print } })
  lu.assertEquals(tostring(written), "model lua")
  local replay = { provider = "replay", replay = support.data "prime.jsonl" }
  lu.assertEquals(tostring(assert(barchan.model(replay))), "model replay")
  lu.assertEquals(tostring(barchan.fallback { written, assert(barchan.model(replay)) }), "model lua:lua|replay")
end

function T:test_options_are_of_one_call()
  local model = says { text = "" }
  lu.assertErrorMsgContains("unknown option 'max'", model.complete, model, { messages = "hi", max = 2 })
  local n = 0
  for _ in model:turns { messages = { barchan.user "hi" }, max = 2 } do n = n + 1 end
  lu.assertEquals(n, 1)
end

-- The default loop says that it may be copied.
function T:test_a_copy_of_the_agent_is_an_agent()
  local top = assert(debug.getinfo(1, "S").source:match "^@(.-)tests/lua/")
  local copy = assert(loadfile(top .. "scripts/barchan/agent.lua"))()
  local result = copy.create { model = says { text = "copied" } }:run "?"
  lu.assertEquals({ result.text, result.stop_reason }, { "copied", "end_turn" })
end

return { TestModel = T }
