-- Models as scripts see them: complete one turn, or loop over turns.
local _, core = ...

local messages = require "barchan.messages"
local misuse = require "barchan.misuse"
local options = require "barchan.options"
local presets = require "barchan.presets"
local prices = require "barchan.prices"
local replies = require "barchan.reply"
local schema = require "barchan.schema"
local toolset = require "barchan.toolset"

local model = {}

local create_spec = {
  provider = "string or table",
  name = "string",
  api_key = "string",
  base_url = "string",
  use_key = "boolean", -- with base_url: send the key of the environment there
  headers = "table",
  allow_plain_http = "boolean",
  max_tokens = "integer",
  replay = "string", -- what is played: a transcript, or of a provider over HTTP a recording of its wire
  record = "string", -- a new file: the bytes of the wire, to be played later
  connect_timeout = "number",
  idle_timeout = "number",
  timeout = "number",
  max_retries = "integer", -- of a request that failed in passing; 2, 0 for none
  max_retry_wait = "number", -- longest wait that a server may ask for; 60
  extra = "table", -- goes into each request, below the request's own
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
  effort = "string", -- how hard it thinks: minimal, low, medium, high, xhigh, max
  schema = "table", -- JSON Schema of the answer; reply.output is its value
  cache = "boolean", -- what stays the same of the conversation is cached
  extra = "table",
  stream = "boolean",
  on_delta = "function", -- (text of the answer, as it arrives)
  on_event = "function", -- (kind, data): text, reasoning, tool_call, restart; retry with a table
}

local turns_spec = { max = "integer" }
for name, kind in pairs(complete_spec) do turns_spec[name] = kind end

-- The model that is asked where nobody names one.
local default_names = {
  anthropic = "claude-opus-4-8",
  openai = "gpt-5",
  ["openai-responses"] = "gpt-5",
  gemini = "gemini-3-flash-preview",
}

-- The variables that hold a provider's key and base URL when the script gives none. A base URL that
-- the script gives itself gets the key from the environment only with `use_key`; it may bring its own.
-- Which belong together is known in C, where the key's value is read; it never enters Lua.
local environment = core.model.environment()
for _, known in ipairs(environment) do
  known.name = default_names[known.provider]
  environment[known.provider] = known
end

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

function Model:__close()
  if self.handle then self.handle:close() end
end

-- An option that could do nothing is an error.
local function no_http_options(given, what, its)
  for name in pairs(given) do
    if not its[name] then
      misuse.throw(("model: option '%s' is for models over HTTP; this one is %s"):format(name, what))
    end
  end
end

-- A model whose `complete(request, emit)` is Lua: it gets the neutral request of barchan/model.h, checked as
-- one that goes over HTTP, may emit(kind, data) while it works, and returns a reply, of which only what there
-- is must be given, or nil and an error.
local function scripted(given)
  if type(given.provider.complete) ~= "function" then
    misuse.throw("model: option 'provider': a name, or a table with a function 'complete', expected")
  end
  no_http_options(given, "a function", { provider = true, name = true, stream = true })
  return setmetatable({
    scripted = given.provider, provider = "lua", name = given.name, stream = given.stream,
  }, Model)
end

--- A model as the default loop asks it: a table with a function complete(self, options), which gets what
--- model:complete takes, is checked and completed like any model that is a function.
---@param value table
---@return barchan.Model
function model.of(value)
  if getmetatable(value) == Model then return value end
  return scripted {
    name = type(value.name) == "string" and value.name or nil,
    provider = {
      complete = function(request, emit, given)
        local asked = {}
        for name, field in pairs(request) do asked[name] = field end
        asked.tools, asked.on_event = given.tools, emit
        return value:complete(asked)
      end,
    },
  }
end

-- A turn that was recorded is played whatever the options, so the options would be forgotten.
local function check_replay(given, config)
  if given.replay and given.record then
    misuse.throw("model: options 'replay' and 'record' exclude each other")
  end
  if config.provider ~= "replay" then return end
  no_http_options(given, "a replay", { provider = true, name = true, stream = true, replay = true })
  if not given.replay then
    misuse.throw("model: option 'replay' is missing: the JSONL transcript to play")
  end
end

local TOKEN = "^[%w!#$%%&'*+.^_`|~-]+$" -- what may be the name of a header

-- { ["X-Name"] = "value" } as the lines that the core sends. A value may be a key: it is not shown.
local function header_lines(given)
  local lines, seen = {}, {}
  for name in pairs(given) do
    if type(name) ~= "string" then
      misuse.throw "model: option 'headers': names and their values expected: { [\"X-Name\"] = \"value\" }"
    end
  end
  for _, name in ipairs(options.sorted_keys(given)) do
    local value = given[name]
    if not name:find(TOKEN) then
      misuse.throw(("model: option 'headers': %q cannot be the name of a header"):format(name))
    end
    if type(value) ~= "string" then
      misuse.throw(("model: option 'headers': '%s': a string expected, got %s"):format(name, type(value)))
    end
    if value:find "[%z\1-\8\10-\31\127]" then
      misuse.throw(("model: option 'headers': the value of '%s' has a control character"):format(name))
    end
    if seen[name:lower()] then misuse.throw(("model: option 'headers': '%s' is there twice"):format(name)) end
    seen[name:lower()] = true
    lines[#lines + 1] = name .. ": " .. value
  end
  return lines
end

local function merged(below, above)
  if not below and not above then return nil end
  local both = {}
  for name, value in pairs(below or {}) do both[name] = value end
  for name, value in pairs(above or {}) do both[name] = value end
  return both
end

-- The preset's fields below what was given.
local function from_preset(preset, given)
  local config = {}
  for _, name in ipairs { "provider", "base_url", "headers", "allow_plain_http", "max_tokens" } do
    config[name] = preset[name]
  end
  for name, value in pairs(given) do
    if name ~= "provider" then config[name] = value end
  end
  config.headers = config.headers and header_lines(config.headers)
  config.extra = merged(preset.extra, given.extra)
  if not config.api_key then config.key_variable = preset.key end
  return config
end

local function no_key(provider, variable)
  return core.util.error {
    code = "auth",
    message = ("model: no key for '%s': set %s, or give api_key"):format(provider, variable),
    retryable = false,
  }
end

--- A model of a provider ("anthropic", "openai", "openai-responses", "gemini", "replay"), of a preset
--- (see barchan.presets), or one whose `complete` is a function of yours. The key comes from the
--- environment unless given. `replay` is the transcript to play, or the recording of a wire.
---@return barchan.Model? model
---@return table? err
function model.create(given)
  options.check("model", given, create_spec)
  for _, name in ipairs { "connect_timeout", "idle_timeout", "timeout" } do
    options.seconds("model", given, name)
  end
  for _, name in ipairs { "max_retries", "max_retry_wait", "max_tokens" } do
    local least = name == "max_tokens" and 1 or 0
    local value = given[name]
    if value and (value < least or value ~= value) then
      misuse.throw(("model: option '%s' is at least %d"):format(name, least))
    end
  end
  if type(given.provider) == "table" then
    return scripted(given)
  end
  local preset = presets[given.provider]
  local config = from_preset(preset or { provider = given.provider }, given)
  config.stream = nil
  if config.max_retries == 0 then config.max_retries = -1 end -- in C 0 means the default
  config.provider = config.provider or (config.replay and "replay")
  if config.provider == nil then
    misuse.throw("model: option 'provider' is missing: anthropic, openai, openai-responses, gemini or replay")
  end
  check_replay(given, config)
  local known = not preset and environment[config.provider]
  local at_home = known and not config.base_url and not core.util.getenv(known.base_url)
  local offline = config.replay ~= nil -- nobody is asked: no key is needed
  if preset and preset.key and not offline and not config.api_key and not core.util.has_key(preset.key) then
    return nil, no_key(given.provider, preset.key)
  end
  if known and (not config.base_url or config.use_key) then
    if not offline and not config.api_key and not core.util.has_key(known.key) and not config.base_url
      and not core.util.getenv(known.base_url) then
      return nil, no_key(config.provider, known.key)
    end
    config.use_environment = true
  end
  config.use_key = nil
  local extra = config.extra
  config.extra = nil
  if config.record and extra then config.recorded_extra = core.json.encode(extra) end
  local handle, err = core.model.create(config)
  if not handle then return nil, err end
  return setmetatable({
    handle = handle,
    provider = given.provider or config.provider,
    name = config.name,
    stream = given.stream,
    extra = extra,
    at_home = at_home, -- at the provider's own address
  }, Model)
end

local MAX_HEADER = 65536

local header_spec = {
  provider = "string", model = "string", base_url = "string",
  max_tokens = "number", max_retries = "number", extra = "table",
}
local may_lack = { max_tokens = true, max_retries = true, extra = true }

--- The options of a model that plays this file: a recording of a wire names its provider, model and
--- address itself; anything else is taken for a transcript.
---@return table? options
---@return table? err
function model.recorded(path)
  if type(path) ~= "string" then misuse.expected("recorded", "a path", path) end
  local ok, err = core.host.check_file(path)
  if not ok then return nil, err end
  local file, problem = io.open(path, "r")
  if not file then return nil, core.util.error { code = "io", message = problem, retryable = false } end
  local first = (file:read(MAX_HEADER) or ""):match "^[^\n]*"
  file:close()
  local header = core.json.decode(first)
  if type(header) ~= "table" or header.type ~= "recording" then
    return { provider = "replay", replay = path }
  end
  for name, kind in pairs(header_spec) do
    local value = header[name]
    if type(value) ~= kind and not (value == nil and may_lack[name]) then
      return nil, core.util.error {
        code = "protocol", retryable = false,
        message = ("the recording %s, line 1: '%s' must be a %s"):format(path, name, kind),
      }
    end
  end
  return {
    provider = header.provider, name = header.model, base_url = header.base_url, replay = path,
    max_tokens = math.tointeger(header.max_tokens), max_retries = math.tointeger(header.max_retries),
    extra = header.extra,
    allow_plain_http = true, -- nobody is asked
  }
end

local efforts = { "minimal", "low", "medium", "high", "xhigh", "max" }

--- How hard a model may be asked to think.
function model.check_effort(where, word)
  for _, known in ipairs(efforts) do
    if word == known then return end
  end
  misuse.throw(where .. ": option 'effort': " .. options.unknown("word", word, efforts))
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
    effort = given.effort,
    schema = given.schema,
    cache = given.cache,
    extra = merged(self.extra, given.extra),
    stream = given.stream,
  }
  if request.stream == nil then request.stream = self.stream end
  if request.stream == nil then request.stream = true end
  local tools = given.tools
  if toolset.is_toolset(tools) then tools = tools:declarations() end
  if tools and #tools > 0 then request.tools = tools end
  return request
end

-- { attempt = the coming one, wait = seconds, error = message, code }
local function retry_of(json)
  local retry = core.json.decode(json)
  retry.wait, retry.wait_ms = retry.wait_ms / 1000, nil
  return retry
end

local function ask(self, request, wants, emit, given)
  if self.scripted then
    local fits, problem = core.model.check(request)
    if not fits then return nil, problem end
    local _ <close>, may_emit = replies.emitter(emit)
    -- As it would be read from a wire: a copy.
    local asked = core.json.decode(core.json.encode(request))
    local reply, err = self.scripted.complete(asked, may_emit, given)
    if reply ~= nil or err == nil then return replies.complete(reply) end
    if type(err) == "table" and getmetatable(err) == nil then err = core.util.error(err) end
    return nil, err
  end
  local completion <close>, err = self.handle:start(request, wants)
  if not completion then return nil, err end
  for kind, data in completion.next, completion do
    emit(kind, kind == "retry" and retry_of(data) or data)
  end
  return completion:result()
end

-- `output` is the value of an answer by schema, `output_error` why there is none.
local function take_output(reply, wanted)
  if reply.stop_reason ~= "end_turn" and reply.stop_reason ~= "stop_sequence" then return end
  local ok, value, err = pcall(core.json.decode, reply.text)
  if not ok or value == nil then
    reply.output_error = "the answer is no JSON: " .. (ok and err.message or tostring(value))
    return
  end
  local fits, problems = schema.check(value, wanted)
  if fits then reply.output = value else reply.output_error = problems end
end

local function complete(self, given)
  local wants = given.on_delta ~= nil or given.on_event ~= nil
  if toolset.is_toolset(given.tools) then given.tools:refresh() end
  local reply, err = ask(self, request_of(self, given), wants, function(kind, data)
    if given.on_event then given.on_event(kind, data) end
    if given.on_delta and kind == "text" then given.on_delta(data) end
  end, given)
  if not reply then return nil, err end
  if toolset.is_toolset(given.tools) then given.tools:stamp(reply) end
  if given.schema then take_output(reply, given.schema) end
  if reply.cost == nil and self.name then reply.cost = prices(self.provider, self.name, reply.usage or {}) end
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
    misuse.throw("complete: option 'messages' is missing")
  end
  local reply, err = complete(self, given) -- no tail call: C looks for the name of what was called
  return reply, err
end

--- Loops over turns: each reply is appended to `messages` and given to the loop's body, which
--- answers its tool calls (tools:answer(reply, messages)). Ends after a reply without calls, or
--- after `max` turns (default 8). Throws what a completion fails with.
function Model:turns(given)
  options.check("turns", given, turns_spec)
  if type(given.messages) ~= "table" then
    misuse.throw("turns: option 'messages': a list expected, got " .. type(given.messages))
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

misuse.methods(Model, "model")

return model
