-- What a model is made of: the options of barchan.model, checked, and what presets and the environment add.
local _, core = ...

local misuse = require "barchan.misuse"
local options = require "barchan.options"
local presets = require "barchan.presets"

local config = {}

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

-- The model that is asked where nobody names one.
local default_names = {
  anthropic = "claude-opus-4-8",
  openai = "gpt-5",
  ["openai-responses"] = "gpt-5",
  gemini = "gemini-3-flash-preview",
}

-- The variables that hold a provider's key and base URL when the script gives none. A base URL that
-- the script gives itself gets the key from the environment only with `use_key`; it may bring its own.
-- Which belong together is known in C, where the key's value is read; it is not given to Lua.
local environment = core.model.environment()
for _, known in ipairs(environment) do
  known.name = default_names[known.provider]
  environment[known.provider] = known
end

--- The provider and model to ask by default: BARCHAN_MODEL ("provider:name"), or the first provider
--- whose key or base URL is in the environment. nil when there is none.
---@return string?
function config.default()
  local chosen = core.util.getenv "BARCHAN_MODEL"
  if chosen and chosen ~= "" then return chosen end
  for _, known in ipairs(environment) do
    if core.util.has_key(known.key) or core.util.getenv(known.base_url) then
      return known.provider .. ":" .. known.name
    end
  end
end

--- An option that could do nothing is an error.
function config.no_http_options(given, what, its)
  for name in pairs(given) do
    if not its[name] then
      misuse.throw(("model: option '%s' is for models over HTTP; this one is %s"):format(name, what))
    end
  end
end

-- A turn that was recorded is played whatever the options, so the options would be forgotten.
local function check_replay(given, made)
  if given.replay and given.record then
    misuse.throw("model: options 'replay' and 'record' exclude each other")
  end
  if made.provider ~= "replay" then return end
  config.no_http_options(given, "a replay", { provider = true, name = true, stream = true, replay = true })
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

-- The preset's fields below what was given.
local function from_preset(preset, given)
  local made = {}
  for _, name in ipairs { "provider", "base_url", "headers", "allow_plain_http", "max_tokens" } do
    made[name] = preset[name]
  end
  for name, value in pairs(given) do
    if name ~= "provider" then made[name] = value end
  end
  made.headers = made.headers and header_lines(made.headers)
  made.extra = options.merged(preset.extra, given.extra)
  if not made.api_key then made.key_variable = preset.key end
  return made
end

local function no_key(provider, variable)
  return core.util.error {
    code = "auth",
    message = ("model: no key for '%s': set %s, or give api_key"):format(provider, variable),
    retryable = false,
  }
end

--- Checks the options of barchan.model.
function config.check(given)
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
end

--- What the core makes a model over HTTP, or a replay, of; then what goes into each request, and whether it
--- is asked at its provider's own address.
---@return table? made
---@return table? extra or the error
---@return boolean? at_home
function config.of(given)
  local preset = presets[given.provider]
  local made = from_preset(preset or { provider = given.provider }, given)
  made.stream = nil
  if made.max_retries == 0 then made.max_retries = -1 end -- in C 0 means the default
  made.provider = made.provider or (made.replay and "replay")
  if made.provider == nil then
    misuse.throw("model: option 'provider' is missing: anthropic, openai, openai-responses, gemini or replay")
  end
  check_replay(given, made)
  local known = not preset and environment[made.provider]
  local at_home = known and not made.base_url and not core.util.getenv(known.base_url)
  local offline = made.replay ~= nil -- nobody is asked: no key is needed
  if preset and preset.key and not offline and not made.api_key and not core.util.has_key(preset.key) then
    return nil, no_key(given.provider, preset.key)
  end
  if known and (not made.base_url or made.use_key) then
    if not offline and not made.api_key and not core.util.has_key(known.key) and not made.base_url
      and not core.util.getenv(known.base_url) then
      return nil, no_key(made.provider, known.key)
    end
    made.use_environment = true
  end
  made.use_key = nil
  local extra = made.extra
  made.extra = nil
  if made.record and extra then made.recorded_extra = core.json.encode(extra) end
  return made, extra, at_home
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
function config.recorded(path)
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

return config
