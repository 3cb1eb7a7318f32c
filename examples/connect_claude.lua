-- Claude with a sandbox, the loop by hand.
--   ANTHROPIC_API_KEY=… barchan run examples/connect_claude.lua ["PROMPT"]
local loop = require "connect_loop"

local name = os.getenv "MODEL" or "claude-opus-4-8"

return loop.run({ provider = "anthropic", name = name, max_tokens = 16000 }, ...)
