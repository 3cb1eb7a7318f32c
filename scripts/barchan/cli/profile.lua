-- What commands say of a sandbox: --limits memory=64M,pids=50, --mount FOLDER:TARGET[:rw|:cow],
-- --env NAME=value, --network MODE with --allow and --deny.

local args = require "barchan.cli.args"
local network = require "barchan.network"
local options = require "barchan.options"
local sandbox = require "barchan.sandbox"

local profile = {}

local units = { [""] = 1, K = 1 << 10, M = 1 << 20, G = 1 << 30, T = 1 << 40 }
local mount_modes = { ro = true, rw = true, cow = true }
local in_bytes = { memory = true, disk = true, output = true }

-- "memory=64M,pids=50" as the table that a profile takes.
function profile.limits(text)
  local parsed = {}
  for item in (text .. ","):gmatch("([^,]*),") do
    local name, digits, unit = item:match("^([%w_]+)=([%d.]+)([KMGT]?)$")
    local value = tonumber(digits)
    if not value then
      args.fail("--limits takes NAME=NUMBER,…, sizes with K, M, G or T: memory=64M,pids=50; got '%s'", item)
    end
    local kind = sandbox.limits[name]
    if not kind then
      args.fail("--limits: %s", options.unknown("limit", name, options.sorted_keys(sandbox.limits)))
    end
    if unit ~= "" and not in_bytes[name] then args.fail("--limits: %s takes no unit", name) end
    if value * 1.0 * units[unit] >= 2^63 then
      args.fail("--limits: %s is too large: '%s'", name, digits .. unit)
    end
    if kind == "integer" then value = math.tointeger(value * units[unit]) end
    if not value then args.fail("--limits: %s takes a whole number, got '%s'", name, item) end
    if parsed[name] then args.fail("--limits: %s stands there twice", name) end
    if value <= 0 then args.fail("--limits: %s must be greater than 0", name) end
    parsed[name] = value
  end
  return parsed
end

-- The library takes absolute paths only: it has no directory that it is in.
local function absolute(path)
  if path:sub(1, 1) == "/" then return path end
  local pipe <close> = assert(io.popen "pwd -P")
  local here = pipe:read "a":gsub("\n$", "")
  if here == "" then args.fail("--mount: '%s' is relative, and nothing tells the current directory", path) end
  path = path:gsub("^%./+", "")
  return path == "." and here or here:gsub("/$", "") .. "/" .. path
end

--- "/data:/mnt/data:rw" as a profile takes it; a relative source is one of the current directory.
function profile.mounts(given)
  local list = {}
  for _, text in ipairs(given or {}) do
    local source, target, mode = text:match("^(.+):(/[^:]*):(%l+)$")
    if mode and not mount_modes[mode] then source = nil end
    if not source then source, target = text:match("^(.+):(/[^:]*)$") end
    if not source then
      args.fail("--mount takes SOURCE:TARGET, SOURCE:TARGET:rw or SOURCE:TARGET:cow, got '%s'", text)
    end
    list[#list + 1] = { source = absolute(source), target = target, mode = mode }
  end
  return #list > 0 and list or nil
end

function profile.environment(given)
  local env = {}
  for _, text in ipairs(given or {}) do
    local name, value = text:match("^([^=]+)=(.*)$")
    if not name then args.fail("--env takes NAME=value, got '%s'", text) end
    env[name] = value
  end
  return env
end

-- ---- the network ----

--- The lines of a usage text about it.
profile.network_usage = [[
  --network M    off (default); restricted: this machine's package registries; open: any public host;
                 allow=A,B: these, as HOST[:PORT], *.HOST[:PORT] or an address; see barchan network --help
  --allow E      also this; may be repeated
  --deny E       never this; may be repeated
  --host N=A     the name N has the address A; may be repeated
]]

--- A command's flags with those of the network.
function profile.with_network(flags)
  flags.network = { type = "string" }
  flags.allow = { type = "string", many = true }
  flags.deny = { type = "string", many = true }
  flags.host = { type = "string", many = true }
  return flags
end

local network_modes = { "allow", "off", "open", "restricted" }

-- "a.example,b.example:8443" and the words of repeated flags as one list.
local function entries(...)
  local list = {}
  for _, text in ipairs(table.pack(...)) do
    for entry in (text .. ","):gmatch "([^,]*)," do list[#list + 1] = entry end
  end
  return list
end

local function network_mode(text)
  local listed = text:match "^allow=(.*)$"
  local mode = listed and "allow" or text
  for _, known in ipairs(network_modes) do
    if mode == known then return mode, listed end
  end
  args.fail("--network: %s", options.unknown("mode", text, network_modes))
end

-- What an entry lacks is told before a sandbox is made.
local function check_entries(lists)
  local ok, err = network.describe(lists)
  if not ok then args.fail("%s", (err.message:gsub("^describe the network: ", ""))) end
end

local function hosts(given)
  if not given then return nil end
  local list = {}
  for _, text in ipairs(given) do
    local name, address = text:match("^([^=]+)=(.+)$")
    if not name then args.fail("--host takes NAME=ADDRESS, got '%s'", text) end
    list[name] = address
  end
  return list
end

--- --network, --allow, --deny and --host as a profile takes them; nil when none was given.
function profile.network(given)
  local allow, deny = entries(table.unpack(given.allow or {})), entries(table.unpack(given.deny or {}))
  if not given.network and #allow == 0 then
    if #deny > 0 or given.host then args.fail "--deny and --host go with --network or --allow" end
    return nil
  end
  local mode, listed = network_mode(given.network or "allow")
  if mode == "off" then
    if #allow + #deny > 0 then args.fail "--network off goes without --allow and --deny" end
    return "off"
  end
  for _, entry in ipairs(listed and listed ~= "" and entries(listed) or {}) do allow[#allow + 1] = entry end
  if mode == "allow" and #allow == 0 then
    args.fail "--network allow names nothing: allow=HOST[:PORT],…, or --allow HOST[:PORT]"
  end
  local lists = { allow = allow, deny = deny, hosts = hosts(given.host) }
  check_entries(lists)
  lists.mode = mode
  return lists
end

return profile
