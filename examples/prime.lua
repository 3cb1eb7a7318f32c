-- The main job: a model is asked a question, writes code, the code runs in a real sandbox, the result
-- goes back, the answer is printed.   barchan run examples/prime.lua
local barchan = require "barchan"

local here = arg[0]:match("^(.*)/") or "."

-- With a key in the environment the question goes to a model; without one, recorded model turns are
-- played. The sandbox and what runs in it are real either way.
local function choose_model()
  if os.getenv "ANTHROPIC_API_KEY" then
    local name = os.getenv "MODEL" or "claude-opus-4-8"
    return barchan.model { provider = "anthropic", name = name, max_tokens = 16000 }
  end
  if os.getenv "OPENAI_API_KEY" then
    return barchan.model { provider = "openai", name = os.getenv "MODEL" or "gpt-5" }
  end
  print "No API key is set: replaying recorded model turns. The sandbox is real."
  return barchan.model { provider = "replay", replay = here .. "/data/prime.jsonl" }
end

local sbx <close> = assert(barchan.sandbox { template = "host", network = "off" })
local computed -- what the sandbox printed last

local agent = barchan.agent {
  model = assert(choose_model()),
  tools = barchan.toolset { "run_python", sandbox = sbx },
  max_steps = 8,
  on_event = function(event)
    if event.type == "tool_call" then print("> " .. event.name .. "\n" .. event.arguments.code) end
    if event.type == "tool_result" then
      print(event.content)
      computed = event.content:match "out:\n(%d+)"
    end
  end,
}

local result = agent:run "What is the 1000th prime number? Verify by computing it."
if result.stop_reason ~= "end_turn" then
  error(("the run stopped early: %s: %s"):format(result.stop_reason, tostring(result.error)), 0)
end

print(result.text)
assert(computed and result.text:find(computed, 1, true), "the answer is not what the sandbox computed")
print(computed)
