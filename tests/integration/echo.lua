-- A turn that only survives as bytes goes through a script and back: the server says whether it came
-- back as it was. Argument: the port of byte_server.py.
local barchan = require "barchan"

local model = assert(barchan.model {
  provider = "anthropic", name = "m", api_key = "any",
  base_url = "http://127.0.0.1:" .. ... .. "/tricky",
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
print "2 passed, 0 failed"
