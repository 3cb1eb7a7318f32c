-- A checker for the part of JSON Schema that tools use: type, properties, required,
-- additionalProperties, items, enum, const, anyOf, oneOf, allOf, minimum, maximum, exclusive bounds,
-- minLength, maxLength, minItems, maxItems, $ref into $defs. Other keywords are annotations here.
local _, core = ...

local util = require "barchan.util"

local json = core.json

local schema = {}

local MAX_DEPTH = 64
local MAX_PROBLEMS = 8
local MAX_STEPS = 100000 -- of one check: branches of branches grow without end

local check -- forward

local function is_array(value)
  return type(value) == "table" and (json.is_array(value) or #value > 0)
end

-- An empty plain table may be either: scripts write {} for both.
local function is_empty(value) return type(value) == "table" and next(value) == nil end

local function type_of(value)
  if value == json.null then return "null" end
  local kind = type(value)
  if kind == "table" then return is_array(value) and "array" or "object" end
  if kind == "number" then
    return math.tointeger(value) and "integer" or "number"
  end
  return kind
end

local function has_type(value, wanted)
  local actual = type_of(value)
  if actual == wanted then return true end
  if wanted == "number" then return actual == "integer" end
  if wanted == "array" then return is_empty(value) end
  if wanted == "object" then return is_empty(value) end
  return false
end

local function equal(a, b)
  if a == b then return true end
  if type(a) ~= "table" or type(b) ~= "table" then return false end
  for key, value in pairs(a) do
    if not equal(value, b[key]) then return false end
  end
  for key in pairs(b) do
    if a[key] == nil then return false end
  end
  return true
end

local function say(state, path, format, ...)
  if #state.problems < MAX_PROBLEMS then
    local where = path == "" and "arguments" or path
    table.insert(state.problems, ("%s: %s"):format(where, format:format(...)))
  end
end

local function show(value)
  local text = util.encode(value)
  if not text then return type(value) end
  return #text > 60 and text:sub(1, 57) .. "..." or text
end

local function join(path, key)
  if type(key) == "number" then return ("%s[%d]"):format(path, key - 1) end
  return path == "" and key or path .. "." .. key
end

local function check_type(state, value, wanted, path)
  local kinds = type(wanted) == "table" and wanted or { wanted }
  for _, kind in ipairs(kinds) do
    if has_type(value, kind) then return true end
  end
  say(state, path, "%s expected, got %s", table.concat(kinds, " or "), type_of(value))
  return false
end

local function check_object(state, value, node, path, depth)
  for _, name in ipairs(node.required or {}) do
    if value[name] == nil then say(state, join(path, name), "is missing") end
  end
  local properties = node.properties or {}
  for key, item in pairs(value) do
    local rule = properties[key]
    if rule ~= nil then
      check(state, item, rule, join(path, key), depth)
    elseif node.additionalProperties == false then
      say(state, join(path, tostring(key)), "is not a known field")
    elseif type(node.additionalProperties) == "table" then
      check(state, item, node.additionalProperties, join(path, tostring(key)), depth)
    end
  end
end

local function check_array(state, value, node, path, depth)
  if node.minItems and #value < node.minItems then
    say(state, path, "at least %d items expected", node.minItems)
  end
  if node.maxItems and #value > node.maxItems then
    say(state, path, "at most %d items expected", node.maxItems)
  end
  if type(node.items) == "table" then
    for i, item in ipairs(value) do check(state, item, node.items, join(path, i), depth) end
  end
end

local function check_string(state, value, node, path)
  local length = utf8.len(value) or #value
  if node.minLength and length < node.minLength then
    say(state, path, "at least %d characters expected", node.minLength)
  end
  if node.maxLength and length > node.maxLength then
    say(state, path, "at most %d characters expected", node.maxLength)
  end
end

local function check_number(state, value, node, path)
  if node.minimum and value < node.minimum then
    say(state, path, "at least %s expected", node.minimum)
  end
  if node.maximum and value > node.maximum then
    say(state, path, "at most %s expected", node.maximum)
  end
  if type(node.exclusiveMinimum) == "number" and value <= node.exclusiveMinimum then
    say(state, path, "more than %s expected", node.exclusiveMinimum)
  end
  if type(node.exclusiveMaximum) == "number" and value >= node.exclusiveMaximum then
    say(state, path, "less than %s expected", node.exclusiveMaximum)
  end
end

local function passes(state, value, node, depth)
  local trial = { root = state.root, problems = {}, budget = state.budget }
  check(trial, value, node, "", depth)
  return #trial.problems == 0
end

local function check_combinations(state, value, node, path, depth)
  for _, part in ipairs(node.allOf or {}) do check(state, value, part, path, depth) end
  for keyword, limit in pairs { anyOf = math.huge, oneOf = 1 } do
    if node[keyword] then
      local matched = 0
      for _, part in ipairs(node[keyword]) do
        if passes(state, value, part, depth) then matched = matched + 1 end
      end
      if matched == 0 then say(state, path, "fits none of the forms that are allowed") end
      if matched > limit then say(state, path, "fits more than one of the forms") end
    end
  end
end

-- What "#", "#/$defs/NAME" or "#/definitions/NAME" names; nil for anything else.
local function referenced(root, reference)
  if reference == "#" then return root end
  local group, name = reference:match "^#/(%$?def[a-z]*)/([^/]+)$"
  if group ~= "$defs" and group ~= "definitions" then return nil end
  return type(root[group]) == "table" and root[group][name] or nil
end

local function resolve(state, node)
  local hops = 0
  while type(node) == "table" and node["$ref"] ~= nil and hops < MAX_DEPTH do
    node, hops = referenced(state.root, node["$ref"]), hops + 1
  end
  return node
end

function check(state, value, node, path, depth)
  if node == true or node == nil then return end
  if node == false then return say(state, path, "nothing is allowed here") end
  state.budget.steps = state.budget.steps + 1
  if state.budget.steps > MAX_STEPS then return end -- said at the end
  if depth > MAX_DEPTH then return say(state, path, "nests too deep") end
  node, depth = resolve(state, node), depth + 1
  if type(node) ~= "table" then return check(state, value, node, path, depth) end
  if node.type ~= nil and not check_type(state, value, node.type, path) then return end
  if node.enum then
    local known = false
    for _, item in ipairs(node.enum) do known = known or equal(item, value) end
    if not known then say(state, path, "one of %s expected, got %s", show(node.enum), show(value)) end
  end
  if node.const ~= nil and not equal(node.const, value) then
    say(state, path, "%s expected", show(node.const))
  end
  local kind = type(value)
  if kind == "string" then check_string(state, value, node, path) end
  if kind == "number" then check_number(state, value, node, path) end
  if kind == "table" and is_array(value) then
    check_array(state, value, node, path, depth)
  elseif kind == "table" and type_of(value) == "object" then
    if is_empty(value) and node.type == "array" then
      check_array(state, value, node, path, depth)
    else
      check_object(state, value, node, path, depth)
    end
  end
  check_combinations(state, value, node, path, depth)
end

--- Checks a decoded value against a schema.
---@return boolean ok
---@return string? problems one a line, each with its place: "path: is missing"
function schema.check(value, root)
  local state = { root = root, problems = {}, budget = { steps = 0 } }
  check(state, value, root, "", 0)
  if state.budget.steps > MAX_STEPS then return false, "arguments: too complex to be checked" end
  if #state.problems == 0 then return true end
  return false, table.concat(state.problems, "\n")
end

-- ---- schemas themselves ----

local keyword_types = {
  properties = "map", ["$defs"] = "map", definitions = "map", patternProperties = "map",
  items = "schema", additionalProperties = "schema",
  allOf = "list", anyOf = "list", oneOf = "list",
  required = "strings", enum = "values",
  minimum = "number", maximum = "number", exclusiveMinimum = "number", exclusiveMaximum = "number",
  minLength = "number", maxLength = "number", minItems = "number", maxItems = "number",
  ["$ref"] = "reference",
}

local validate -- forward

local validators = {}

function validators.schema(value, path, depth, root) return validate(value, path, depth, root) end

function validators.map(value, path, depth, root)
  if type(value) ~= "table" then return path .. ": a table expected" end
  for key, item in pairs(value) do
    local problem = validate(item, path .. "." .. tostring(key), depth, root)
    if problem then return problem end
  end
end

function validators.list(value, path, depth, root)
  if type(value) ~= "table" or #value == 0 then return path .. ": a list of schemas expected" end
  for i, item in ipairs(value) do
    local problem = validate(item, ("%s[%d]"):format(path, i), depth, root)
    if problem then return problem end
  end
end

function validators.strings(value, path)
  if type(value) ~= "table" then return path .. ": a list of names expected" end
  for _, item in ipairs(value) do
    if type(item) ~= "string" then return path .. ": a list of names expected" end
  end
end

function validators.values(value, path)
  if type(value) ~= "table" then return path .. ": a list of values expected" end
end

function validators.number(value, path)
  -- JSON Schema's older drafts have true and false for the exclusive bounds.
  if type(value) ~= "number" and type(value) ~= "boolean" then return path .. ": a number expected" end
  if type(value) == "boolean" and not path:find "%.exclusive" then return path .. ": a number expected" end
end

function validators.reference(value, path, _, root)
  if type(value) ~= "string" then return path .. ": a string expected" end
  if referenced(root, value) == nil then
    return ("%s: '%s' is not in this schema ($defs or definitions)"):format(path, value)
  end
end

local type_names = {
  string = true, number = true, integer = true, boolean = true, object = true, array = true, null = true,
}

local function validate_type(value, path)
  local kinds = type(value) == "table" and value or { value }
  for _, kind in ipairs(kinds) do
    if type(kind) ~= "string" then return path .. ".type: a name or a list of names expected" end
    if not type_names[kind] then return ("%s.type: there is no type '%s'"):format(path, kind) end
  end
end

function validate(node, path, depth, root)
  if type(node) == "boolean" then return nil end
  if type(node) ~= "table" or is_array(node) then
    return path .. ": a schema expected, got a " .. (type(node) == "table" and "list" or type(node))
  end
  if depth > MAX_DEPTH then return path .. ": nests too deep" end
  for keyword, kind in pairs(keyword_types) do
    local value = node[keyword]
    if value == json.null then return ("%s.%s: null is no %s"):format(path, keyword, kind) end
    if value ~= nil then
      local problem = validators[kind](value, ("%s.%s"):format(path, keyword), depth + 1, root)
      if problem then return problem end
    end
  end
  if node.type == json.null then return path .. ".type: null is no type" end
  if node.type ~= nil then return validate_type(node.type, path) end
end

--- Whether a table can be the parameters of a tool: an object schema, JSON all through.
---@return boolean ok
---@return string? problem
function schema.is_parameters(node)
  if type(node) ~= "table" then return false, "a table expected, got " .. type(node) end
  if node.type ~= "object" then return false, 'its type must be "object"' end
  local text, problem = util.encode(node)
  if not text then return false, problem end
  problem = validate(node, "schema", 0, node)
  if problem then return false, problem end
  return true
end

return schema
