-- What a script sees of a wire: a turn that only survives as bytes goes through it and back (the server
-- says whether it came back as it was), and a request that is sent again is an event. Argument: the
-- port of byte_server.py.
local barchan = require "barchan"
local port = ...

local model = assert(barchan.model {
  provider = "anthropic", name = "m", api_key = "any",
  base_url = "http://127.0.0.1:" .. port .. "/tricky",
})
local tools = { { name = "probe", description = "Probes.", parameters = { type = "object" } } }

local function ask(edit)
  local messages = { barchan.user "hi" }
  local reply = assert(model:complete { messages = messages, tools = tools })
  assert(#reply.tool_calls == 1 and reply.tool_calls[1].arguments.int == 9007199254740993)
  -- As a transcript would keep it.
  reply = barchan.json.decode(barchan.json.encode(reply))
  if edit then edit(reply) end
  messages[2] = reply
  messages[3] = { role = "tool", tool_call_id = reply.tool_calls[1].id, content = "ok" }
  return assert(model:complete { messages = messages, tools = tools }).text
end

local kept = ask()
local edited = ask(function(reply) reply.text = "something else" end)
print(kept)
print(edited)
assert(kept == "verbatim", kept)
assert(edited:find "something else" and not edited:find "signature", edited)

local function flaky(name, options)
  options.provider, options.name, options.api_key = "anthropic", "m", "any"
  options.base_url = ("http://127.0.0.1:%s/flaky/%s"):format(port, name)
  local events = {}
  local agent = barchan.agent {
    model = assert(barchan.model(options)),
    on_event = function(event) if event.type == "retry" then events[#events + 1] = event end end,
  }
  return agent:run "hi", events
end

local result, events = flaky("lua/1/status/529/overloaded/retry=0.05", {})
assert(result.text == "Hello \u{20ac}\u{1f600}", result.text)
assert(#events == 1 and events[1].attempt == 2 and events[1].wait == 0.05)
assert(events[1].code == "overloaded" and events[1].message:find "Overloaded")

result, events = flaky("none/1/status/529/overloaded", { max_retries = 0 })
assert(#events == 0 and result.stop_reason == "error" and result.error.code == "overloaded")
print "4 passed, 0 failed"
