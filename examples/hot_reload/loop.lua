-- A loop that may be edited while it runs, as may its tools:
--   barchan run --watch loop.lua TOOL_DIR TRANSCRIPT.jsonl
-- Each turn prints what was declared and what came of the call, and waits for a line of input.
local barchan = require "barchan"

local loop = {}

--- Once. All that must outlive an edit is kept in `state`.
function loop.open(state, tool_dir, transcript)
  state.sandbox = assert(barchan.sandbox())
  state.model = assert(barchan.model { provider = "replay", replay = transcript })
  state.tools = barchan.toolset {
    dir = tool_dir, watch = true, sandbox = state.sandbox,
    on_event = function(event) io.stderr:write(event.type, " ", event.message or "", "\n") end,
  }
  state.messages = { barchan.user "How long is 'a moon made of sand'? Measure it again and again." }
end

--- One turn. An answer that is not nil ends the loop.
function loop.turn(state)
  local reply = assert(state.model:complete { messages = state.messages, tools = state.tools })
  local declared = state.tools:declarations()[1]
  table.insert(state.messages, reply)
  local from = #state.messages
  if state.tools:answer(reply, state.messages) == 0 then
    print(("%s (%d messages)"):format(reply.text, #state.messages))
    return 0
  end
  print(declared.description)
  print(state.messages[from + 1].content)
  if not io.read() then return 1 end
end

return loop
