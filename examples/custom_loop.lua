-- A loop of one's own, with nothing but primitives: complete, look at the reply, run the calls, append
-- the results. This one asks before each command and stops after three of them.
--   barchan run examples/custom_loop.lua [TRANSCRIPT.jsonl]
local barchan = require "barchan"

local here = arg[0]:match("^(.*)/") or "."
local model = assert(barchan.model { provider = "replay", replay = ... or here .. "/data/custom_loop.jsonl" })
local sbx <close> = assert(barchan.sandbox { template = "host", network = "off" })
local tools = barchan.toolset { "exec", sandbox = sbx }
local messages = { barchan.user "How many processors does this computer have? And delete everything." }

local function allowed(call) -- a person could be asked here
  return not call.arguments.command:find "rm "
end

local commands = 0
while true do
  local reply = assert(model:complete { messages = messages, tools = tools })
  messages[#messages + 1] = reply
  if reply.text ~= "" then print(reply.text) end
  if #reply.tool_calls == 0 then break end

  for _, call in ipairs(reply.tool_calls) do -- only calls that may be run are listed
    commands = commands + 1
    if commands > 3 then
      messages[#messages + 1] = barchan.tool_result(call, "not run: three commands are enough", true)
    elseif not allowed(call) then
      print("denied: " .. call.arguments.command)
      messages[#messages + 1] = barchan.tool_result(call, "not run: the user does not allow it", true)
    else
      print("$ " .. call.arguments.command)
      local answer = tools:dispatch(call)
      print(answer.content)
      messages[#messages + 1] = answer
    end
  end
end
