-- Models as scripts see them: complete one turn, or loop over turns.
local _, core = ...

local messages = require "barchan.messages"
local options = require "barchan.options"
local toolset = require "barchan.toolset"

local model = {}

local create_spec = {
  provider = "string",
  name = "string",
  api_key = "string",
  base_url = "string",
  use_key = "boolean", -- with base_url: send the key of the environment there
  headers = "table",
  allow_plain_http = "boolean",
  max_tokens = "integer",
  replay = "string",
  connect_timeout = "number",
  idle_timeout = "number",
  timeout = "number",
  stream = "boolean",
}

local complete_spec = {
  [1] = "table",
  messages = "table or string",
  tools = "table",
  system = "string",
  tool_choice = "string or table",
  parallel_tool_calls = "boolean",
  max_tokens = "integer",
  temperature = "number",
  stop = "table",
  extra = "table",
  stream = "boolean",
  on_delta = "function", -- (text of the answer, as it arrives)
  on_event = "function", -- (kind, data): text, reasoning, tool_call, restart
  max = "integer", -- turns only
}

-- The variables that hold a provider's key and base URL when the script gives none. A base URL that
-- the script gives itself gets the key from the environment only with `use_key`; it may bring its own.
-- The key's value is read in C and never enters Lua.
-- `name` is the model that is asked where nobody names one.
local environment = {
  { provider = "anthropic", key = "ANTHROPIC_API_KEY", base_url = "ANTHROPIC_BASE_URL",
    name = "claude-opus-4-8" },
  { provider = "openai", key = "OPENAI_API_KEY", base_url = "OPENAI_BASE_URL", name = "gpt-5" },
  { provider = "openai-responses", key = "OPENAI_API_KEY", base_url = "OPENAI_BASE_URL", name = "gpt-5" },
}
for _, known in ipairs(environment) do environment[known.provider] = known end

--- The provider and model to ask by default: BARCHAN_MODEL ("provider:name"), or the first provider
--- whose key or base URL is in the environment. nil when there is none.
---@return string?
function model.default()
  local chosen = core.util.getenv "BARCHAN_MODEL"
  if chosen and chosen ~= "" then return chosen end
  for _, known in ipairs(environment) do
    if core.util.has_key(known.key) or core.util.getenv(known.base_url) then
      return known.provider .. ":" .. known.name
    end
  end
end

---@class barchan.Model
local Model = { __name = "barchan.model" }
Model.__index = Model

function Model:__tostring()
  return ("model %s:%s"):format(self.provider, self.name or "?")
end

function Model:__close() self.handle:close() end

--- A model of a provider ("anthropic", "openai", "openai-responses", "replay"). The key comes from the
--- environment unless given. `replay` is the transcript to play.
---@return barchan.Model? model
---@return table? err
function model.create(given)
  options.check("model", given, create_spec)
  local config = {}
  for key, value in pairs(given) do config[key] = value end
  config.stream = nil
  config.provider = config.provider or (config.replay and "replay")
  if config.provider == nil then
    error("model: option 'provider' is missing: anthropic, openai, openai-responses or replay", 2)
  end
  local known = environment[config.provider]
  if known and (not config.base_url or config.use_key) then
    if not config.api_key and not core.util.has_key(known.key) and not config.base_url
      and not core.util.getenv(known.base_url) then
      return nil, core.util.error {
        code = "auth",
        message = ("model: no key for '%s': set %s, or give api_key")
          :format(config.provider, known.key),
        retryable = false,
      }
    end
    config.key_variable, config.url_variable = known.key, known.base_url
  end
  config.use_key = nil
  local handle, err = core.model.create(config)
  if not handle then return nil, err end
  return setmetatable({
    handle = handle,
    provider = config.provider,
    name = config.name,
    stream = given.stream,
  }, Model)
end

local function request_of(self, given)
  local request = {
    messages = core.json.array(messages.list(given.messages or given[1])),
    system = given.system,
    tool_choice = given.tool_choice,
    parallel_tool_calls = given.parallel_tool_calls,
    max_tokens = given.max_tokens,
    temperature = given.temperature,
    stop = given.stop,
    extra = given.extra,
    stream = given.stream,
  }
  if request.stream == nil then request.stream = self.stream end
  if request.stream == nil then request.stream = true end
  local tools = given.tools
  if toolset.is_toolset(tools) then tools = tools:declarations() end
  if tools and #tools > 0 then request.tools = tools end
  return request
end

local function complete(self, given)
  local wants = given.on_delta ~= nil or given.on_event ~= nil
  if toolset.is_toolset(given.tools) then given.tools:refresh() end
  local completion <close>, err = self.handle:start(request_of(self, given), wants)
  if not completion then return nil, err end
  for kind, data in completion.next, completion do
    if given.on_event then given.on_event(kind, data) end
    if given.on_delta and kind == "text" then given.on_delta(data) end
  end
  local reply, failure = completion:result()
  if not reply then return nil, failure end
  if toolset.is_toolset(given.tools) then given.tools:stamp(reply) end
  return reply
end

--- Completes one turn: { messages, tools, system, tool_choice, max_tokens, on_delta, … }.
--- The reply is the assistant message to append; see barchan/model.h for its fields.
---@return table? reply
---@return table? err
function Model:complete(given)
  if type(given) == "string" then given = { messages = given } end
  options.check("complete", given, complete_spec)
  if given.messages == nil and given[1] == nil then
    error("complete: option 'messages' is missing", 2)
  end
  return complete(self, given)
end

--- Loops over turns: each reply is appended to `messages` and given to the loop's body, which
--- answers its tool calls (tools:answer(reply, messages)). Ends after a reply without calls, or
--- after `max` turns (default 8). Throws what a completion fails with.
function Model:turns(given)
  options.check("turns", given, complete_spec)
  if type(given.messages) ~= "table" then
    error("turns: option 'messages': a list expected, got " .. type(given.messages), 2)
  end
  local left, finished = given.max or 8, false
  return function()
    if finished or left <= 0 then return nil end
    left = left - 1
    local reply, err = complete(self, given)
    if not reply then error(err, 2) end
    table.insert(given.messages, reply)
    finished = #toolset.calls_of(reply) == 0 and reply.stop_reason ~= "pause_turn"
    return reply
  end
end

return model
