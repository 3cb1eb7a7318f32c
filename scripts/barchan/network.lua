-- What a sandbox can reach: the option `network` of its profile, and what happens under it.
local _, core = ...

local misuse = require "barchan.misuse"
local options = require "barchan.options"
local tool = require "barchan.tool"

local network = {}

local modes = { off = true, restricted = true, open = true }

local spec = {
  mode = "string", -- "allow" (default), "restricted" or "open"
  allow = "table",
  deny = "table",
  hosts = "table", -- name = address
  max_connections = "integer",
  max_bytes = "integer",
  bytes_per_second = "integer",
  on_connect = "function", -- (host, port) -> whether it may
  on_event = "function",   -- (event)
}

local function check_hosts(where, hosts)
  for name, address in pairs(hosts) do
    if type(name) ~= "string" or type(address) ~= "string" then
      misuse.throw(where .. ": option 'hosts': names and their addresses expected: "
        .. "{ [\"a.example\"] = \"127.0.0.1\" }")
    end
  end
end

local function check_list(where, name, list)
  for key, value in pairs(list) do
    if math.type(key) ~= "integer" or type(value) ~= "string" then
      misuse.throw(("%s: option '%s': a list of entries like \"api.example.com:443\" expected")
        :format(where, name))
    end
  end
end

--- Checks what a network is to be and splits it: the mode's name and the core's rules.
---@param where string the call, and its option
---@param given string|table|nil
---@return string mode
---@return table? rules
function network.check(where, given)
  if given == nil then return "off" end
  if type(given) == "string" then
    if modes[given] then return given end
    local host = given:find(".", 1, true) and given or "api.example.com"
    misuse.throw(("%s: '%s' is unknown; write \"off\", \"restricted\", \"open\" or a table "
      .. "{ allow = { \"%s\" } }"):format(where, given, host))
  end
  if type(given) ~= "table" then
    misuse.expected(where, "a mode or a table", given)
  end
  if given[1] ~= nil then
    misuse.throw(where .. ": a list of hosts goes into { allow = { … } }")
  end
  options.check(where, given, spec)
  local mode = given.mode or "allow"
  if mode ~= "allow" and not modes[mode] or mode == "off" then
    misuse.throw(("%s: mode '%s' is unknown; 'allow', 'restricted' and 'open' are"):format(where, mode))
  end
  for _, name in ipairs { "allow", "deny" } do
    if given[name] then check_list(where, name, given[name]) end
  end
  if given.hosts then check_hosts(where, given.hosts) end
  local rules = { ask = given.on_connect ~= nil, tell = given.on_event ~= nil }
  for name in pairs(spec) do
    if name ~= "mode" and name ~= "on_connect" and name ~= "on_event" then rules[name] = given[name] end
  end
  return mode, rules
end

local function say_problem(name, problem)
  core.host.warn(("sandbox: network: %s failed: %s"):format(name, tool.message(problem)))
end

-- What is neither true nor false is no, and said, but for nil.
local function ask(news, given, event)
  local ok, allowed = pcall(given.on_connect, event.host, event.port)
  news:answer(event.question, ok and allowed == true)
  if not ok and tool.is_cancelled(allowed) then error(allowed, 0) end
  if ok and allowed ~= nil and type(allowed) ~= "boolean" then
    ok, allowed = false, ("true or false expected, got a %s; %s was refused"):format(type(allowed),
      event.host)
  end
  if not ok then say_problem("on_connect", allowed) end
end

-- Knows nothing of the sandbox, which may be collected meanwhile: then there is no news any more. Events are
-- told one after the other, so that no more of them wait than there is room for.
local function watch(news, given)
  for event in news.news, news do
    if event.question then
      core.task.spawn(ask, news, given, event)
    else
      local told, problem = pcall(given.on_event, event)
      if not told then say_problem("on_event", problem) end
    end
  end
end

--- Has on_connect called, each time in a task of its own, and on_event, one call after the other, as long as
--- the sandbox is there, whatever task has made it; nil when there is none.
---@return table? task
function network.watch(handle, given)
  if type(given) ~= "table" or not (given.on_connect or given.on_event) then return nil end
  return core.task.spawn_apart(watch, handle:network_object(), given)
end

--- The same network for a process that has another environment: the registries are looked up here.
---@param given string|table|nil
---@return string|table|nil
---@return table? err
function network.resolved(given)
  local mode = type(given) == "table" and given.mode or given
  if mode ~= "restricted" then return given end
  local list, err = network.describe(given)
  if not list then return nil, err end
  local copy = {}
  for key, value in pairs(type(given) == "table" and given or {}) do copy[key] = value end
  copy.mode, copy.allow, copy.deny = "allow", list.allow, list.deny
  return copy
end

--- Other lists for the connections of a sandbox that are made from now on. Caps and callbacks stay.
---@param given string|table as the option `network` of a sandbox, but for "off"
function network.set(handle, given)
  if given == nil then misuse.expected("set_network", "a mode or a table", given) end
  local mode, rules = network.check("set_network", given)
  if mode == "off" then
    misuse.throw("set_network: \"off\" is for new sandboxes; { allow = {} } lists nothing from now on")
  end
  return handle:set_network { network = mode, network_rules = rules }
end

--- The hosts that a mode would allow now: { mode, allow, deny, sources = { { entry, from } }, notes }.
---@param given string|table as the option `network` of a sandbox
function network.describe(given)
  local mode, rules = network.check("network", given)
  return core.sandbox.network_describe { network = mode, network_rules = rules }
end

return network
