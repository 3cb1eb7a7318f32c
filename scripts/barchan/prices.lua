-- What tokens cost, in US dollars a million: input, cache_read, cache_write, output. The key is
-- "provider:name"; the longest one that a model begins with counts. Published list prices of late 2025,
-- to be corrected by whoever knows better:
--
--   barchan.prices["openai:my-model"] = { input = 1, output = 4 }
--
-- A price that is left out is that of `input`. A model that is not here has no cost (nil, never 0).

local misuse = require "barchan.misuse"
local options = require "barchan.options"

local entries = {
  ["anthropic:claude-opus-4-5"] = { input = 5, cache_read = 0.5, cache_write = 6.25, output = 25 },
  ["anthropic:claude-sonnet-4-5"] = { input = 3, cache_read = 0.3, cache_write = 3.75, output = 15 },
  ["anthropic:claude-haiku-4-5"] = { input = 1, cache_read = 0.1, cache_write = 1.25, output = 5 },
  ["openai:gpt-5"] = { input = 1.25, cache_read = 0.125, output = 10 },
  ["openai:gpt-5-mini"] = { input = 0.25, cache_read = 0.025, output = 2 },
  ["openai:gpt-5-nano"] = { input = 0.05, cache_read = 0.005, output = 0.4 },
  ["openai:gpt-4.1"] = { input = 2, cache_read = 0.5, output = 8 },
  ["openai:gpt-4.1-mini"] = { input = 0.4, cache_read = 0.1, output = 1.6 },
}

local spec = { input = "number", cache_read = "number", cache_write = "number", output = "number" }

-- What could never count is refused when it is added.
local function check(key, price)
  if type(key) ~= "string" or not key:find "^[^:]+:." then
    misuse.expected("prices", "a key \"provider:name\"", key)
  end
  if price == nil then return end
  options.check("prices", price, spec)
  if not price.input then misuse.throw "prices: option 'input' is missing: dollars a million tokens" end
  for name, dollars in pairs(price) do
    if not (dollars >= 0 and dollars < math.huge) then
      misuse.expected(("prices: option '%s'"):format(name), "an amount from 0 on", dollars)
    end
  end
end

-- A longer name is another model, unless what follows is a date or a version.
local function is_version(rest) return rest == "" or rest:match "^[-@:]%d[%d.-]*$" or rest == "-latest" end

--- The dollars of a completion's usage, or nil when the price or a count is not known.
---@param provider string
---@param name string
---@param usage table
---@return number?
local function cost(_, provider, name, usage)
  if provider == "openai-responses" then provider = "openai" end
  local full, best = provider .. ":" .. tostring(name), nil
  for key in pairs(entries) do
    local fits = full:sub(1, #key) == key and is_version(full:sub(#key + 1))
    if fits and (not best or #key > #best) then best = key end
  end
  local price = best and entries[best]
  if not price or not price.input or not usage.input_tokens or not usage.output_tokens then return nil end
  return (usage.input_tokens * price.input
    + (usage.cache_read_tokens or 0) * (price.cache_read or price.input)
    + (usage.cache_write_tokens or 0) * (price.cache_write or price.input)
    + usage.output_tokens * (price.output or price.input)) / 1e6
end

return options.checked(entries, check, { __call = cost })
