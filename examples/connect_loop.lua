-- The loop that connect_claude.lua and connect_openai.lua share: one turn after the other, at most
-- eight, every tool call answered.
local barchan = require "barchan"

local loop = {}

local MAX_TURNS = 8

function loop.run(model_options, prompt)
  model_options.stream = os.getenv "BARCHAN_STREAM" ~= "0"
  local model = assert(barchan.model(model_options))
  local sbx <close> = assert(barchan.sandbox { template = "host", network = "off" })
  local tools = barchan.toolset { "run_python", "read_file", "write_file", "list_files", sandbox = sbx }
  local messages = { barchan.user(prompt or "What is the 1000th prime number? Use the tool to compute it.") }

  local last
  for reply in model:turns { messages = messages, tools = tools, max = MAX_TURNS, on_delta = io.write } do
    last = reply
    for _, call in ipairs(reply.tool_calls) do print(("\n[%s]"):format(call.name)) end
    tools:answer(reply, messages)
  end

  print()
  if #last.tool_calls > 0 then
    io.stderr:write(("stopped early: %d turns were used and the model still wants tools\n"):format(MAX_TURNS))
    return 1
  elseif last.stop_reason ~= "end_turn" then
    io.stderr:write(("stopped early: the model ended with '%s'\n"):format(last.stop_reason))
    return 1
  end
  return 0
end

return loop
