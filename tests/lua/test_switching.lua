-- A conversation that goes on with another model: each provider's turn, with what only its own model can read
-- in it, sent to each of them. The same model gets it back as it came; others get what all can take.
local lu = require "luaunit"
local barchan = require "barchan"
local wire = require "wire_support"

local T = {}

-- One turn: a thought that is signed, some words, a call.
local turns = {
  anthropic = [[{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[
    {"type":"thinking","thinking":"PRIVATE","signature":"SIGNED"},{"type":"text","text":"I look."},
    {"type":"tool_use","id":"toolu_1","name":"look","input":{"at":"here"}}],
    "stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":1}}]],
  openai = [[{"id":"c","choices":[{"finish_reason":"tool_calls","message":{"role":"assistant",
    "content":"I look.","reasoning_content":"PRIVATE SIGNED","tool_calls":[{"id":"call_1","type":"function",
    "function":{"name":"look","arguments":"{\"at\":\"here\"}"}}]}}]}]],
  ["openai-responses"] = [[{"id":"resp_1","status":"completed","output":[
    {"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"PRIVATE"}],
     "encrypted_content":"SIGNED"},
    {"type":"message","role":"assistant","id":"msg_1","status":"completed",
     "content":[{"type":"output_text","text":"I look.","annotations":[]}]},
    {"type":"function_call","id":"fc_1","call_id":"call_1","name":"look",
     "arguments":"{\"at\":\"here\"}","status":"completed"}]}]],
  gemini = [[{"candidates":[{"content":{"role":"model","parts":[{"text":"PRIVATE","thought":true},
    {"text":"I look."},{"functionCall":{"name":"look","args":{"at":"here"}},"thoughtSignature":"SIGNED"}]},
    "finishReason":"STOP"}],"responseId":"r1"}]],
}

local function conversation(maker)
  local question = barchan.user "what is there?"
  local reply = wire.reply_of(maker, { messages = { question }, stream = false }, turns[maker])
  lu.assertEquals({ reply.text, reply.stop_reason, #reply.tool_calls }, { "I look.", "tool_use", 1 }, maker)
  return { question, reply, barchan.tool_result(reply.tool_calls[1], "a tree") }
end

local function count(text, what)
  local n, at = 0, 1
  while true do
    local from, to = text:find(what, at, true)
    if not from then return n end
    n, at = n + 1, to + 1
  end
end

-- What every model must get, whoever made the turn.
local function has_all(text, where)
  lu.assertEquals(count(text, "what is there?"), 1, where)
  lu.assertEquals(count(text, "I look."), 1, where)
  lu.assertEquals(count(text, "a tree"), 1, where)
  lu.assertEquals(count(text:gsub("\\", ""), '"at":"here"'), 1, where)
end

local function sent(receiver, messages, options)
  local body, text = wire.body_of(receiver, { messages = messages }, options)
  return text, body
end

function T:test_the_same_model_gets_its_turn_back()
  for maker in pairs(turns) do
    local text = sent(maker, conversation(maker))
    has_all(text, maker)
    lu.assertStrContains(text, "SIGNED")
  end
end

function T:test_another_model_gets_what_it_can_take()
  for maker in pairs(turns) do
    local messages = conversation(maker)
    for receiver in pairs(turns) do
      local elsewhere = { base_url = "http://127.0.0.1:9/other" }
      for _, options in ipairs { { name = "other" }, elsewhere, maker ~= receiver and {} or elsewhere } do
        local where = maker .. " to " .. receiver
        local text = sent(receiver, messages, options)
        has_all(text, where)
        lu.assertEquals(count(text, "SIGNED"), 0, where)
        lu.assertEquals(count(text, "PRIVATE"), 0, where)
      end
    end
  end
end

local schema = require "barchan.schema"
local here = arg[0]:match("^(.*)/") or "."

-- The id with which a call goes out is that of its result; and OpenAI's bodies are as described.
local ids = {
  anthropic = function(body)
    local call = body.messages[2].content[#body.messages[2].content]
    return call.id, body.messages[3].content[1].tool_use_id
  end,
  openai = function(body) return body.messages[2].tool_calls[1].id, body.messages[3].tool_call_id end,
  ["openai-responses"] = function(body)
    return body.input[#body.input - 1].call_id, body.input[#body.input].call_id
  end,
  gemini = function(body)
    local call, result = body.contents[2].parts, body.contents[3].parts[1].functionResponse
    return call[#call].functionCall.name, result.name
  end,
}

function T:test_calls_and_results_pair_everywhere()
  local rules = { openai = "openai_chat", ["openai-responses"] = "openai_responses" }
  for maker in pairs(turns) do
    local messages = conversation(maker)
    for receiver in pairs(turns) do
      local _, body = sent(receiver, messages)
      local call, result = ids[receiver](body)
      lu.assertNotNil(call)
      lu.assertEquals(call, result, maker .. " to " .. receiver)
      if rules[receiver] and maker ~= receiver then
        local path = ("%s/../data/provider/%s.schema.json"):format(here, rules[receiver])
        local ok, problems = schema.check(body, barchan.json.decode(wire.read(path)))
        lu.assertTrue(ok, problems)
      end
    end
  end
end

-- Edited by the script, a turn is what the script says, also for the model that made it.
function T:test_an_edited_turn_is_made_anew()
  for maker in pairs(turns) do
    local messages = conversation(maker)
    messages[2].text = "I looked."
    local text = sent(maker, messages)
    lu.assertStrContains(text, "I looked.")
    lu.assertEquals(count(text, "SIGNED"), 0, maker)
  end
end

return { TestSwitching = T }
