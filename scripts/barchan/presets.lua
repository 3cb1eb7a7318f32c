-- Services and servers that speak a protocol of another's: barchan.model { provider = "ollama", … }.
-- A table to add to:
--
--   barchan.presets.mine = {
--     provider = "openai", base_url = "https://llm.example/v1", key = "MINE_API_KEY",
--   }
--
-- `key` names the variable that holds the key; without one none is sent. `extra` goes into each
-- request, below the request's own.

local misuse = require "barchan.misuse"
local options = require "barchan.options"

local entries = {
  openrouter = { provider = "openai", base_url = "https://openrouter.ai/api/v1", key = "OPENROUTER_API_KEY" },
  groq = { provider = "openai", base_url = "https://api.groq.com/openai/v1", key = "GROQ_API_KEY" },
  mistral = { provider = "openai", base_url = "https://api.mistral.ai/v1", key = "MISTRAL_API_KEY" },
  deepseek = { provider = "openai", base_url = "https://api.deepseek.com/v1", key = "DEEPSEEK_API_KEY" },
  ollama = { provider = "openai", base_url = "http://127.0.0.1:11434/v1" },
  llamacpp = { provider = "openai", base_url = "http://127.0.0.1:8080/v1" },
  vllm = { provider = "openai", base_url = "http://127.0.0.1:8000/v1" },
}

local spec = {
  provider = "string", base_url = "string", key = "string", headers = "table", extra = "table",
  allow_plain_http = "boolean", max_tokens = "integer",
}

-- What would be forgotten, or could not be asked, is refused when it is added.
local function check(name, preset)
  if type(name) ~= "string" then misuse.expected("presets", "a name", name) end
  if preset == nil then return end
  options.check("presets", preset, spec)
  if not preset.provider then misuse.throw "presets: option 'provider' is missing" end
end

return options.checked(entries, check)
