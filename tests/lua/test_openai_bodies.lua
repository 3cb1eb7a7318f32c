-- What goes to OpenAI's two protocols is what their published descriptions allow: each body, taken from a
-- recording of a request that nobody answers, against a schema written from them (tests/data/provider). They
-- are stricter than servers are: no member that is not described, and what is a 400 in practice is refused.
local lu = require "luaunit"
local barchan = require "barchan"
local schema = require "barchan.schema"
local wire = require "wire_support"

local T = {}

local here = arg[0]:match("^(.*)/") or "."

local function rule(name)
  return barchan.json.decode(wire.read(("%s/../data/provider/%s.schema.json"):format(here, name)))
end

local protocols = { openai = rule "openai_chat", ["openai-responses"] = rule "openai_responses" }

local call = { id = "call_1", name = "look", arguments = { at = "here" } }
local tool = {
  name = "look", description = "Looks.",
  parameters = { type = "object", properties = { at = { type = "string" } }, required = { "at" } },
}
local picture = { type = "image", media_type = "image/png", data = "iVBORw0KGgo=" }

local function turn(text, ...)
  return { role = "assistant", text = text, tool_calls = barchan.json.array { ... } }
end

local answer = { type = "object", properties = { n = { type = "integer" } }, required = { "n" } }

local requests = {
  ["a question"] = { messages = "hi" },
  ["without streaming"] = { messages = "hi", stream = false },
  ["all settings"] = {
    messages = "hi", system = "Be brief.", max_tokens = 100, temperature = 0.5, effort = "low", cache = true,
  },
  ["tools"] = { messages = "hi", tools = { tool } },
  ["no tools"] = { messages = "hi", tools = {}, tool_choice = "auto", parallel_tool_calls = true },
  ["some tool"] = { messages = "hi", tools = { tool }, tool_choice = "any", parallel_tool_calls = false },
  ["this tool"] = { messages = "hi", tools = { tool }, tool_choice = { name = "look" } },
  ["none of the tools"] = { messages = "hi", tools = { tool }, tool_choice = "none" },
  ["a form"] = { messages = "hi", schema = answer },
  ["a picture"] = { messages = { barchan.user { { type = "text", text = "what is it?" }, picture } } },
  ["a loop"] = {
    tools = { tool },
    messages = {
      barchan.user "look", turn("I look.", call), barchan.tool_result(call, "a tree"),
      turn "A tree.", barchan.user "again", turn("", call), barchan.tool_result(call, "no light", true),
    },
  },
  ["several calls"] = {
    tools = { tool },
    messages = {
      barchan.user "look", turn("", call, { id = "call_2", name = "look", arguments = {} }),
      barchan.tool_result(call, ""), barchan.tool_result({ id = "call_2", name = "look" }, { picture }),
    },
  },
  ["a tool of a strange name"] = {
    messages = {
      barchan.user "look", turn("", { id = "c", name = "lööks.at it!" .. ("x"):rep(100), arguments = {} }),
      barchan.tool_result({ id = "c", name = "x" }, "there is no such tool", true),
    },
  },
  ["an empty turn"] = { messages = { barchan.user "hi", turn "", barchan.user "so?" } },
}

function T:test_bodies_are_as_described()
  for provider, allowed in pairs(protocols) do
    for name, request in pairs(requests) do
      local body = wire.body_of(provider, request)
      local ok, problems = schema.check(body, allowed)
      lu.assertTrue(ok, ("%s, %s: %s\n%s"):format(provider, name, problems, barchan.json.encode(body)))
    end
  end
  local stops = wire.body_of("openai", { messages = "hi", stop = { "a", "b" } })
  lu.assertTrue((schema.check(stops, protocols.openai)))
  lu.assertEquals(stops.stop, { "a", "b" })
end

function T:test_the_schemas_refuse_what_servers_refuse()
  local function refused(provider, body) lu.assertFalse((schema.check(body, protocols[provider])), body) end
  local function chat(messages, more)
    local body = more or {}
    body.model, body.messages = "m", messages
    return body
  end
  refused("openai", chat {})
  refused("openai", chat({ { role = "user", content = "hi" } }, { tools = barchan.json.array {} }))
  refused("openai", chat({ { role = "user", content = "hi" } }, { max_output_tokens = 5 }))
  refused("openai", chat { { role = "assistant", content = barchan.json.null } })
  refused("openai", chat { { role = "tool", content = "x" } })
  refused("openai", chat { { role = "tool", tool_call_id = "a", content = { picture } } })
  refused("openai-responses", { model = "m", input = { { role = "user", content = { { type = "text", text = "x" } } } } })
  refused("openai-responses", { model = "m", input = "x", max_tokens = 5 })
  refused("openai-responses", { model = "m", input = { { type = "function_call", id = "fc", name = "f", arguments = "" } } })
end

return { TestOpenaiBodies = T }
