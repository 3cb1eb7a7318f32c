-- Reads a command line by a table of flags. Unknown flags are refused with a suggestion.

local options = require "barchan.options"
local tool = require "barchan.tool"

local args = {}

local function fail(format, ...) error({ usage = format:format(...) }, 0) end
args.fail = fail

--- What a call of the library has thrown, as wrong usage: without the place and the name of the call.
function args.refused(call, problem)
  fail("%s", (tool.message(problem):gsub("^.-%f[%w]" .. call .. ": ", "", 1)))
end

local function flag_names(flags)
  local names = {}
  for name in pairs(flags) do names[#names + 1] = "--" .. name end
  table.sort(names)
  return names
end

local converters = {
  string = function(text) return text end,
  seconds = function(text) return tonumber(text) end,
  integer = function(text) return math.tointeger(tonumber(text)) end,
}

local takes = { string = "a string", seconds = "a number of seconds", integer = "an integer" }

local function convert(name, rule, text)
  local value = converters[rule.type](text)
  local is_number = type(value) == "number"
  if value == nil or (is_number and (value ~= value or value == math.huge or value == -math.huge)) then
    fail("--%s takes %s, got '%s'", name, takes[rule.type], text)
  end
  if rule.positive and value <= 0 then fail("--%s must be greater than 0", name) end
  return value
end

--- Parses `words` by `flags`: name = { type = "flag" | "string" | "seconds" | "integer", many = bool }.
--- Stops at "--", and at the first word that is not a flag when `stop_early`.
---@return table values by flag name
---@return string[] rest
function args.parse(words, flags, stop_early)
  local values, rest = {}, {}
  local i = 1
  while i <= #words do
    local word = words[i]
    i = i + 1
    if word == "--" then
      for j = i, #words do rest[#rest + 1] = words[j] end
      break
    elseif word:sub(1, 1) ~= "-" or word == "-" then
      rest[#rest + 1] = word
      if stop_early then
        for j = i, #words do rest[#rest + 1] = words[j] end
        break
      end
    else
      local name, inline = word:match("^%-%-([%w-]+)=(.*)$")
      name = name or word:match("^%-%-([%w-]+)$") or (word == "-h" and "help")
      local rule = name and flags[name]
      if name == "help" then error({ help = true }, 0) end
      if not rule then
        local known = flag_names(flags)
        if #known == 0 then fail("unexpected option '%s': there are none here", word) end
        fail("%s", options.unknown("option", word:match("^[^=]*"), known))
      end
      local value
      if rule.type == "flag" then
        if inline then fail("--%s takes no value", name) end
        value = true
      else
        if inline == nil then
          inline = words[i]
          i = i + 1
          if inline == nil then fail("--%s needs a value", name) end
        end
        value = convert(name, rule, inline)
      end
      if rule.many then
        values[name] = values[name] or {}
        table.insert(values[name], value)
      elseif values[name] ~= nil and rule.type ~= "flag" then
        fail("--%s was given twice", name)
      else
        values[name] = value
      end
    end
  end
  return values, rest
end

return args
