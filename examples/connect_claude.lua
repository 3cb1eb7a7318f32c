-- Claude with a sandbox, the loop by hand.
--   ANTHROPIC_API_KEY=… barchan run examples/connect_claude.lua ["PROMPT"]
local loop = require "connect_loop"

return loop.run({ provider = "anthropic", name = os.getenv "BARCHAN_MODEL" or "claude-opus-4-8", max_tokens = 16000 }, ...)
