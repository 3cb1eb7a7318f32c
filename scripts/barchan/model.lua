-- Models as scripts see them: complete one turn, or loop over turns.
local _, core = ...

local config = require "barchan.model_config"
local messages = require "barchan.messages"
local misuse = require "barchan.misuse"
local options = require "barchan.options"
local prices = require "barchan.prices"
local replies = require "barchan.reply"
local schema = require "barchan.schema"
local toolset = require "barchan.toolset"

local model = {}

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
  on_event = "function", -- (kind, data): text, reasoning, tool_call, restart; retry, fallback with a table
}

local turns_spec = { max = "integer" }
for name, kind in pairs(complete_spec) do turns_spec[name] = kind end

---@class barchan.Model
local Model = { __name = "barchan.model" }
Model.__index = Model

function Model:__tostring()
  return "model " .. self.provider .. (self.name and ":" .. self.name or "")
end

function Model:__close()
  if self.handle then self.handle:close() end
end

-- A model whose `complete(request, emit)` is Lua: it gets the neutral request of barchan/model.h, checked as
-- one that goes over HTTP, may emit(kind, data) while it works, and returns a reply, of which only what there
-- is must be given, or nil and an error.
local function scripted(given)
  if type(given.provider.complete) ~= "function" then
    misuse.throw("model: option 'provider': a name, or a table with a function 'complete', expected")
  end
  config.no_http_options(given, "a function", { provider = true, name = true, stream = true })
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

--- A model of a provider ("anthropic", "openai", "openai-responses", "gemini", "replay"), of a preset
--- (see barchan.presets), or one whose `complete` is a function of yours. The key comes from the
--- environment unless given. `replay` is the transcript to play, or the recording of a wire.
---@return barchan.Model? model
---@return table? err
function model.create(given)
  config.check(given)
  if type(given.provider) == "table" then
    return scripted(given)
  end
  local made, extra, at_home = config.of(given)
  if not made then return nil, extra end
  local handle, err = core.model.create(made)
  if not handle then return nil, err end
  return setmetatable({
    handle = handle,
    provider = given.provider or made.provider,
    name = made.name,
    stream = given.stream,
    extra = extra,
    at_home = at_home,
  }, Model)
end

model.default = config.default
model.recorded = config.recorded

local efforts = { "minimal", "low", "medium", "high", "xhigh", "max" }

--- How hard a model may be asked to think.
function model.check_effort(where, word)
  for _, known in ipairs(efforts) do
    if word == known then return end
  end
  misuse.throw(where .. ": option 'effort': " .. options.unknown("word", word, efforts))
end

-- The messages of a request: the option `messages`, or what stands in the table itself: a list, or each one.
local function conversation(given)
  local first = given[1]
  if given.messages == nil and first and first.role then return table.move(given, 1, #given, 1, {}) end
  return messages.list(given.messages or first)
end

local function request_of(self, given)
  local request = {
    messages = core.json.array(conversation(given)),
    system = given.system,
    tool_choice = given.tool_choice,
    parallel_tool_calls = given.parallel_tool_calls,
    max_tokens = given.max_tokens,
    temperature = given.temperature,
    stop = given.stop,
    effort = given.effort,
    schema = given.schema,
    cache = given.cache,
    extra = options.merged(self.extra, given.extra),
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
    local asked, problem = core.model.check(request) -- a copy, as it would be read from a wire
    if not asked then return nil, problem end
    local _ <close>, may_emit = replies.emitter(emit)
    local reply, err = self.scripted.complete(asked, may_emit, given)
    if reply ~= nil or err == nil then return replies.complete(reply) end
    if type(err) == "table" and getmetatable(err) == nil then err = core.util.error(err) end
    return nil, err
  end
  local completion <close>, err = self.handle:start(request, wants)
  if not completion then return nil, err end
  for kind, data in completion:pieces() do
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
  local on_delta, on_event = given.on_delta, given.on_event
  local wants = on_delta ~= nil or on_event ~= nil
  if toolset.is_toolset(given.tools) then given.tools:refresh() end
  local reply, err = ask(self, request_of(self, given), wants, function(kind, data)
    if on_event then on_event(kind, data) end
    if on_delta and kind == "text" then on_delta(data) end
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

--- Loops over turns: each reply is appended to the list `messages`, or to one that begins with that text or
--- message, and given with it to the loop's body, which answers its tool calls:
---   for reply, list in model:turns { messages = "…", tools = tools } do tools:answer(reply, list) end
--- Ends after a reply without calls, or after `max` turns (default 8). Throws what a completion fails with.
function Model:turns(asked)
  if type(asked) == "string" then asked = { messages = asked } end
  options.check("turns", asked, turns_spec)
  local list = conversation(asked)
  if list == nil then misuse.throw("turns: option 'messages' is missing") end
  local left, finished = asked.max or 8, false
  return function()
    if finished or left <= 0 then return nil end
    left = left - 1
    local given = {} -- as they are now
    for key, value in pairs(asked) do given[key] = value end
    given.messages = list
    local reply, err = complete(self, given)
    if not reply then error(err, 2) end
    table.insert(list, reply)
    finished = #toolset.calls_of(reply) == 0 and reply.stop_reason ~= "pause_turn"
    return reply, list
  end
end

misuse.methods(Model, "model")

return model
