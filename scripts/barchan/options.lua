-- Checks option tables: unknown keys and wrong types are errors that say what to do.

local misuse = require "barchan.misuse"

local options = {}

local MAX_SECONDS = 1000000000 -- that the core takes

-- The number of single-character edits between two words, at most `limit` (then limit + 1).
local function distance(a, b, limit)
  local previous = {}
  for j = 0, #b do previous[j] = j end
  for i = 1, #a do
    local current = { [0] = i }
    local best = i
    for j = 1, #b do
      local cost = a:byte(i) == b:byte(j) and 0 or 1
      current[j] = math.min(previous[j] + 1, current[j - 1] + 1, previous[j - 1] + cost)
      best = math.min(best, current[j])
    end
    if best > limit then return limit + 1 end
    previous = current
  end
  return previous[#b]
end

--- The candidate closest to `word`, or nil when none is close.
---@param word string
---@param candidates string[]
---@return string?
function options.closest(word, candidates)
  word = word:sub(1, 64):lower()
  local limit = #word <= 3 and 1 or math.max(2, #word // 3)
  local best, best_distance
  for _, candidate in ipairs(candidates) do
    local d = distance(word, candidate:lower(), limit)
    if d <= limit and (best_distance == nil or d < best_distance) then
      best, best_distance = candidate, d
    end
  end
  return best
end

local function sorted_keys(t)
  local keys = {}
  for key in pairs(t) do
    if type(key) == "string" then keys[#keys + 1] = key end
  end
  table.sort(keys)
  return keys
end
options.sorted_keys = sorted_keys

--- "unknown option 'timout'; did you mean 'timeout'?" or a list of what there is.
---@param what string
---@param word string
---@param candidates string[]
---@return string
function options.unknown(what, word, candidates)
  local closest = options.closest(word, candidates)
  if closest then return ("unknown %s '%s'; did you mean '%s'?"):format(what, word, closest) end
  return ("unknown %s '%s'; there is: %s"):format(what, word, table.concat(candidates, ", "))
end

local function matches(value, expected)
  local kind = type(value)
  if kind == "number" and expected:find("integer", 1, true) then
    return math.tointeger(value) ~= nil or expected:find("number", 1, true) ~= nil
  end
  for word in expected:gmatch("[%a_]+") do
    if word == kind then return true end
  end
  return false
end

--- Checks `given` against `spec` (name = "type or type"); throws at the place of the library's caller.
--- Positive integer keys are left alone when spec has [1]. Returns `given`.
---@param where string for the message: "sandbox"
---@param given table
---@param spec table<string|integer, string>
---@param entry string? what an integer key stands for in a message, with a %d; "entry %d"
function options.check(where, given, spec, entry)
  if type(given) ~= "table" then
    misuse.expected(where, "a table of options", given)
  end
  for key, value in pairs(given) do
    local expected = spec[key]
    local name = ("option '%s'"):format(key)
    if spec[1] and math.type(key) == "integer" and key > 0 then
      expected, name = spec[1], (entry or "entry %d"):format(key)
    end
    if expected == nil then
      misuse.throw(where .. ": " .. options.unknown("option", tostring(key), sorted_keys(spec)))
    end
    if not matches(value, expected) then
      misuse.throw(("%s: %s: %s expected, got %s"):format(where, name, expected, type(value)))
    end
  end
  return given
end

--- Checks a number of seconds that must be greater than 0, if it is given.
---@param where string
---@param given table
---@param name string
function options.seconds(where, given, name)
  local value = given[name]
  if type(value) ~= "number" then return end
  if value <= 0 or value ~= value then
    misuse.throw(("%s: option '%s' must be greater than 0"):format(where, name))
  end
  if value > MAX_SECONDS then
    misuse.throw(("%s: option '%s' is at most %d seconds"):format(where, name, MAX_SECONDS))
  end
end

--- A table for others to add to, and correct: `check(key, value)` throws at what must not be in it.
--- `meta` may have more of its metatable.
function options.checked(entries, check, meta)
  meta = meta or {}
  meta.__index, meta.__pairs = entries, function() return next, entries end
  function meta.__newindex(_, key, value)
    check(key, value)
    entries[key] = value
  end
  return setmetatable({}, meta)
end

--- Both tables in a new one; where both have a key the second has it. nil: neither was given.
function options.merged(below, above)
  if not below and not above then return nil end
  local both = {}
  for name, value in pairs(below or {}) do both[name] = value end
  for name, value in pairs(above or {}) do both[name] = value end
  return both
end

return options
