-- Replies of models that are functions: checked like those of a wire (barchan/model.h), and completed. What
-- is wrong with one is the script's fault, and thrown.
local _, core = ...

local misuse = require "barchan.misuse"
local options = require "barchan.options"
local util = require "barchan.util"

local reply = {}

local stops = {
  end_turn = true, tool_use = true, max_tokens = true, stop_sequence = true, refusal = true,
  content_filter = true, pause_turn = true, context_window = true, error = true,
}

local counts = {
  "input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens",
}

-- What is more than a text, and its fields.
local told = {
  retry = { { "attempt", "number" }, { "wait", "number" }, { "error", "string" }, { "code", "string" } },
  fallback = { { "from", "string" }, { "to", "string" }, { "error", "string" }, { "code", "string" } },
}
local deltas = { "text", "reasoning", "tool_call", "restart", "retry", "fallback" }

local MAX_COUNT = 1 << 53

local function fail(text, ...) error("model: complete returned a reply " .. text:format(...), 0) end

-- Without holes, which `#` may jump over.
local function is_list(t)
  local count = 0
  for key in pairs(t) do
    if math.type(key) ~= "integer" or key < 1 then return false end
    count = count + 1
  end
  for i = 1, count do
    if t[i] == nil then return false end
  end
  return true
end

local function of_type(name, value, expected)
  if type(value) == expected then return end
  fail("whose %s is of a wrong type: a %s expected, got %s", name, expected, type(value))
end

local function check_name(where, call, name)
  local value = call[name]
  if value == nil or value == "" then fail("whose %s lacks '%s'", where, name) end
  of_type(where .. "." .. name, value, "string")
end

local function check_call(call, where, seen)
  of_type(where, call, "table")
  check_name(where, call, "id")
  check_name(where, call, "name")
  if seen[call.id] then fail("with two calls of the id '%s'", call.id) end
  seen[call.id] = true
end

local function check_arguments(arguments, where)
  if arguments == nil then fail("whose %s lacks 'arguments'", where) end
  of_type(where .. ".arguments", arguments, "table")
  for key in pairs(arguments) do
    if type(key) ~= "string" then fail("whose %s has arguments that are no object", where) end
  end
end

local function check_calls(given)
  local seen = {}
  for i, call in ipairs(given.tool_calls or {}) do
    local where = ("call %d"):format(i)
    check_call(call, where, seen)
    check_arguments(call.arguments, where)
  end
  for i, call in ipairs(given.invalid_tool_calls or {}) do
    check_call(call, ("invalid call %d"):format(i), seen)
  end
end

local function check_usage(usage)
  for _, name in ipairs(counts) do
    local count = usage[name]
    local whole = math.type(count) and math.tointeger(count)
    if count ~= nil and (not whole or whole < 0 or whole > MAX_COUNT) then
      fail("whose usage.%s is not a whole number from 0 to 2^53", name)
    end
  end
end

-- Checks what a model that is a function says while it works.
local function check_delta(kind, data)
  local expected
  for _, known in ipairs(deltas) do
    if kind == known then expected = told[kind] and "table" or "string" end
  end
  if type(kind) ~= "string" then
    misuse.expected("emit", ("a kind (%s)"):format(table.concat(deltas, ", ")), kind)
  end
  if not expected then misuse.throw("emit: " .. options.unknown("kind", kind, deltas)) end
  if kind == "restart" and data == nil then return end
  if type(data) ~= expected then
    misuse.expected(("emit: with '%s'"):format(kind), "a " .. expected .. " of data", data)
  end
  for _, field in ipairs(told[kind] or {}) do
    local name, is = table.unpack(field)
    if data[name] ~= nil and type(data[name]) ~= is then
      misuse.expected(("emit: with '%s': '%s'"):format(kind, name), "a " .. is, data[name])
    end
  end
end

--- What a model that is a function says by while it works: checked, and refused once the turn is closed.
function reply.emitter(emit)
  local over = false
  return setmetatable({}, { __close = function() over = true end }), function(kind, data)
    if over then misuse.throw "emit: its turn is over" end
    check_delta(kind, data)
    emit(kind, data)
  end
end

local fields = {
  "text", "tool_calls", "invalid_tool_calls", "stop_reason", "usage", "cost", "reasoning", "refusal",
}
-- What a reply of another model has, which may be passed on: barchan/model.h, and what complete adds.
local passed_on = {
  "role", "raw_stop_reason", "model", "id", "request_id", "raw", "output", "output_error",
}
local known_fields = table.move(passed_on, 1, #passed_on, #fields + 1, { table.unpack(fields) })
local lists = { "tool_calls", "invalid_tool_calls" }

local function check(given)
  if given.text ~= nil then of_type("text", given.text, "string") end
  for _, name in ipairs(lists) do
    if given[name] ~= nil then of_type(name, given[name], "table") end
    if given[name] and not is_list(given[name]) then fail("whose %s are no list", name) end
  end
  check_calls(given)
  if given.usage ~= nil then
    of_type("usage", given.usage, "table")
    check_usage(given.usage)
  end
  local cost = given.cost
  if cost ~= nil and not (type(cost) == "number" and cost >= 0 and cost < math.huge) then
    fail("whose cost is no amount: a number from 0 on expected, got %s", tostring(cost))
  end
  if given.reasoning ~= nil then of_type("reasoning", given.reasoning, "string") end
  if given.stop_reason ~= nil and not stops[given.stop_reason] then
    local known = options.sorted_keys(stops)
    fail("with the %s", options.unknown("stop_reason", tostring(given.stop_reason), known))
  end
end

local function check_fields(made)
  for _, name in ipairs(options.sorted_keys(made)) do
    local known = false
    for _, field in ipairs(known_fields) do known = known or field == name end
    if not known then fail("with the %s", options.unknown("field", name, known_fields)) end
  end
end

-- A copy as it would have come from a wire: the model cannot change it later, and what cannot be sent with
-- the next turn, or written to a transcript, is known now.
local function copy_of(given)
  local text, problem = util.encode { messages = { given } } -- as deep as it will be
  if not text then fail("that cannot be sent: %s", problem:match "cannot encode.*" or problem) end
  local copy = core.json.decode(text).messages[1]
  if core.json.is_array(copy) then fail "that is a list" end
  return copy
end

--- The reply with what every reply has: a table of its own.
function reply.complete(given)
  if type(given) ~= "table" then
    error("model: complete must return a reply or nil and an error, got " .. type(given), 0)
  end
  check(given)
  local made = copy_of(given)
  check_fields(made)
  for _, name in ipairs(fields) do
    if given[name] ~= nil and made[name] == nil then
      fail("whose %s is not its own: no plain table", name)
    end
  end
  check(made) -- what answers for the fields may have answered twice
  made.role = "assistant"
  made.text = made.text or ""
  made.usage = made.usage or {}
  made.tool_calls = made.tool_calls or {}
  for _, name in ipairs(lists) do -- an empty list has no sign of being one
    if made[name] then core.json.array(made[name]) end
  end
  made.stop_reason = made.stop_reason or (#made.tool_calls > 0 and "tool_use" or "end_turn")
  return made
end

return reply
