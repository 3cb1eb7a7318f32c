-- Secrets of a sandbox: the option `secrets` of its profile. The library reads what "env:" and "file:" lead
-- to itself, so that the value is in no string of Lua's.
local misuse = require "barchan.misuse"
local options = require "barchan.options"

local secrets = {}

local spec = {
  name = "string",
  from = "string or function", -- "env:NAME", "file:/path", or () -> value
  hosts = "table",
  header = "string",
  format = "string",
  user = "string",
  methods = "table",
  paths = "table",
  ca_file = "string",
  on_guest_authorization = "string", -- "strip" or "refuse"
}

local lists = {
  hosts = "api.example.com",
  methods = "GET",
  paths = "/repos",
}

local function check_list(where, name, list, example)
  for key, value in pairs(list) do
    if math.type(key) ~= "integer" or type(value) ~= "string" then
      misuse.throw(("%s: option '%s': a list like { \"%s\" } expected"):format(where, name, example))
    end
  end
end

local function check_one(i, secret)
  local where = ("sandbox: secrets[%d]"):format(i)
  if type(secret) ~= "table" then misuse.throw(where .. ": a table { name, from, hosts } expected") end
  options.check(where, secret, spec)
  for _, name in ipairs { "name", "from", "hosts" } do
    if secret[name] == nil then misuse.throw(("%s: option '%s' is missing"):format(where, name)) end
  end
  for name, example in pairs(lists) do
    if secret[name] then check_list(where, name, secret[name], example) end
  end
  if type(secret.from) == "string" and not (secret.from:find "^env:." or secret.from:find "^file:.") then
    -- What stands there may be the secret itself: it is not shown.
    misuse.throw(where .. ": option 'from': \"env:NAME\", \"file:/path\" or a function expected")
  end
end

--- Checks the option: a list of { name, from, hosts, … }.
---@param given table
function secrets.check(given)
  if type(given) ~= "table" or (#given == 0 and next(given) ~= nil) then
    misuse.throw("sandbox: option 'secrets': a list of { name, from, hosts } expected")
  end
  for i, secret in ipairs(given) do check_one(i, secret) end
end

--- As the core reads them: functions are called, and what they give is its value.
function secrets.resolve(given)
  local list = {}
  for i, secret in ipairs(given) do
    local one = {}
    for key, value in pairs(secret) do one[key] = value end
    if type(secret.from) == "function" then
      local value = secret.from()
      if type(value) ~= "string" then
        misuse.throw(("sandbox: secrets[%d]: 'from' gave a %s, not a string"):format(i, type(value)))
      end
      one.from, one.value = nil, value
    end
    list[i] = one
  end
  return list
end

return secrets
