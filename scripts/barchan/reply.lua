-- Replies of models that are functions: checked like those of a wire (barchan/model.h), and completed. What
-- is wrong with one is the script's fault, and thrown.
local reply = {}

local stops = {
  end_turn = true, tool_use = true, max_tokens = true, stop_sequence = true, refusal = true,
  content_filter = true, pause_turn = true, context_window = true, error = true,
}

local counts = {
  "input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens",
}

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

local function check_call(call, i, seen)
  if type(call) ~= "table" or type(call.id) ~= "string" or call.id == "" or type(call.name) ~= "string"
    or type(call.arguments) ~= "table" then
    fail("whose call %d lacks id, name or arguments", i)
  end
  if seen[call.id] then fail("with two calls of the id '%s'", call.id) end
  seen[call.id] = true
  for key in pairs(call.arguments) do
    if type(key) ~= "string" then fail("whose call %d has arguments that are no object", i) end
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

--- The reply with what every reply has.
function reply.complete(given)
  if type(given) ~= "table" then
    error("model: complete must return a reply or nil and an error, got " .. type(given), 0)
  end
  given.role = "assistant"
  given.text = given.text or ""
  given.tool_calls = given.tool_calls or {}
  given.usage = given.usage or {}
  if type(given.text) ~= "string" or type(given.tool_calls) ~= "table" or type(given.usage) ~= "table" then
    fail "whose text, tool_calls or usage is of a wrong type"
  end
  if not is_list(given.tool_calls) then fail "whose tool_calls are no list" end
  local seen = {}
  for i, call in ipairs(given.tool_calls) do check_call(call, i, seen) end
  check_usage(given.usage)
  local cost = given.cost
  if cost ~= nil and not (type(cost) == "number" and cost >= 0 and cost < math.huge) then
    fail "whose cost is no amount"
  end
  if given.reasoning ~= nil and type(given.reasoning) ~= "string" then
    fail "whose reasoning is of a wrong type"
  end
  given.stop_reason = given.stop_reason or (#given.tool_calls > 0 and "tool_use" or "end_turn")
  if not stops[given.stop_reason] then
    fail("with the unknown stop_reason '%s'", tostring(given.stop_reason))
  end
  return given
end

return reply
