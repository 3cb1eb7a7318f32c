-- Services and servers that speak a protocol of another's: barchan.model { provider = "ollama", … }.
-- A table to add to:
--
--   require("barchan.presets").mine = {
--     provider = "openai", base_url = "https://llm.example/v1", key = "MINE_API_KEY",
--   }
--
-- `key` names the variable that holds the key; without one none is sent. `extra` goes into each
-- request, below the request's own.

return {
  openrouter = { provider = "openai", base_url = "https://openrouter.ai/api/v1", key = "OPENROUTER_API_KEY" },
  groq = { provider = "openai", base_url = "https://api.groq.com/openai/v1", key = "GROQ_API_KEY" },
  mistral = { provider = "openai", base_url = "https://api.mistral.ai/v1", key = "MISTRAL_API_KEY" },
  deepseek = { provider = "openai", base_url = "https://api.deepseek.com/v1", key = "DEEPSEEK_API_KEY" },
  ollama = { provider = "openai", base_url = "http://127.0.0.1:11434/v1" },
  llamacpp = { provider = "openai", base_url = "http://127.0.0.1:8080/v1" },
  vllm = { provider = "openai", base_url = "http://127.0.0.1:8000/v1" },
}
