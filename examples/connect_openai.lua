-- An OpenAI model, or any server with the same API, with a sandbox, the loop by hand.
--   OPENAI_API_KEY=… barchan run examples/connect_openai.lua ["PROMPT"]
-- OPENAI_BASE_URL names another server; a local one needs no key.
local loop = require "connect_loop"

return loop.run({ provider = "openai", name = os.getenv "MODEL" or "gpt-5" }, ...)
