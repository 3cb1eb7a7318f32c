-- What a sandbox is made of: the options of barchan.sandbox, checked before anything is made.
local misuse = require "barchan.misuse"
local network = require "barchan.network"
local options = require "barchan.options"
local price = require "barchan.price"
local secrets = require "barchan.secrets"

local profile = {}

local spec = {
  template = "string",
  network = "string or table",
  lease = "number",
  limits = "table",
  env = "table",
  best_effort = "boolean",
  timeout = "number",
  on_lease_end = "string", -- "terminate" or "pause"
  idle_timeout = "number",
  mounts = "table",
  secrets = "table",
  price = "table",
  max_cost_micros = "number",
  detached = "boolean",
}

local DEFAULT_LEASE = 1800

--- The limits that a profile may have, and the type of each.
profile.limits = {
  memory = "integer", -- bytes, of all commands and files together
  cpus = "number",    -- processors, of all commands together
  pids = "integer",   -- processes and threads, of all commands together
  disk = "integer",   -- bytes of everything writable
  files = "integer",
  open_files = "integer",  -- of each process
  output = "integer",      -- bytes written by each command
  cpu_seconds = "number",  -- of each command
  wall = "number",         -- seconds, of each command
}

local function check_limits(limits)
  options.check("sandbox: limits", limits, profile.limits)
  for name, value in pairs(limits) do
    if value <= 0 or value ~= value then
      misuse.throw(("sandbox: limits: option '%s' must be greater than 0"):format(name))
    end
  end
end

local function check_env(env)
  for name, value in pairs(env) do
    if type(name) ~= "string" or type(value) ~= "string" and type(value) ~= "number" then
      misuse.throw "sandbox: option 'env': a table of NAME = \"value\" expected"
    end
  end
end

local mount_modes = { ro = true, rw = true, cow = true }
local mount_spec = { source = "string", target = "string", mode = "string" }

local function check_mounts(mounts)
  if #mounts == 0 and next(mounts) ~= nil then
    misuse.throw "sandbox: option 'mounts': a list of { source, target } expected"
  end
  for i, mount in ipairs(mounts) do
    local where = ("sandbox: mounts[%d]"):format(i)
    options.check(where, mount, mount_spec)
    if not mount.source or not mount.target then misuse.throw(where .. ": source and target are needed") end
    if mount.mode ~= nil and not mount_modes[mount.mode] then
      misuse.throw(("%s: mode '%s' is unknown; 'ro', 'rw' and 'cow' are"):format(where, mount.mode))
    end
  end
end

-- What would have to be handed to another process, or is not its to decide.
local function check_detached(given)
  if type(given.network) == "table" and (given.network.on_connect or given.network.on_event) then
    misuse.throw("sandbox: network: on_connect and on_event are not for a detached sandbox: "
      .. "its holder decides")
  end
  if given.secrets then
    misuse.throw("sandbox: option 'secrets' is not for a detached sandbox: they would have to be handed to "
      .. "its holder, another process")
  end
  if given.max_cost_micros then
    misuse.throw("sandbox: option 'max_cost_micros' is not for a detached sandbox: others could extend its "
      .. "lease")
  end
end

-- A lease that cannot cost more than allowed: then nothing that happens under it can, either.
local function cost_refusal(given)
  if given.price then price.check(given.price) end
  if not given.max_cost_micros then return nil end
  if not given.price then misuse.throw "sandbox: option 'max_cost_micros' needs 'price'" end
  local why = price.exceeds(given.price, given.limits or {}, given.lease or DEFAULT_LEASE,
    given.max_cost_micros)
  return why and price.refusal("create sandbox: " .. why)
end

--- Checks the options of barchan.sandbox. Returns the network's mode and rules; nil, nil and an error for
--- what could cost more than allowed.
---@return string? mode
---@return table? rules
---@return table? err
function profile.check(given)
  options.check("sandbox", given, spec)
  for _, name in ipairs { "lease", "idle_timeout", "timeout" } do options.seconds("sandbox", given, name) end
  if given.on_lease_end and given.on_lease_end ~= "terminate" and given.on_lease_end ~= "pause" then
    misuse.expected("sandbox: option 'on_lease_end'", "\"terminate\" or \"pause\"", given.on_lease_end)
  end
  local mode, rules = network.check("sandbox: network", given.network)
  if given.limits then check_limits(given.limits) end
  if given.env then check_env(given.env) end
  if given.mounts then check_mounts(given.mounts) end
  if given.secrets then secrets.check(given.secrets) end
  if given.detached then check_detached(given) end
  local refusal = cost_refusal(given)
  if refusal then return nil, nil, refusal end
  return mode, rules
end

return profile
