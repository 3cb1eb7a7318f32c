-- What commands say of a sandbox: --limits memory=64M,pids=50, --mount FOLDER:TARGET[:rw|:cow],
-- --env NAME=value.

local args = require "barchan.cli.args"
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
    if not value then args.fail("--limits takes name=number,…, got '%s'", item) end
    local kind = sandbox.limits[name]
    if not kind then
      args.fail("--limits: %s", options.unknown("limit", name, options.sorted_keys(sandbox.limits)))
    end
    if unit ~= "" and not in_bytes[name] then args.fail("--limits: %s takes no unit", name) end
    if kind == "integer" then value = math.tointeger(value * units[unit]) end
    if not value then args.fail("--limits: %s takes a whole number, got '%s'", name, item) end
    if value <= 0 then args.fail("--limits: %s must be greater than 0", name) end
    parsed[name] = value
  end
  return parsed
end

--- "/data:/mnt/data:rw" as a profile takes it; a relative source is refused by the core.
function profile.mounts(given)
  local list = {}
  for _, text in ipairs(given or {}) do
    local source, target, mode = text:match("^(.+):(/[^:]*):(%l+)$")
    if mode and not mount_modes[mode] then source = nil end
    if not source then source, target = text:match("^(.+):(/[^:]*)$") end
    if not source then
      args.fail("--mount takes SOURCE:TARGET, SOURCE:TARGET:rw or SOURCE:TARGET:cow, got '%s'", text)
    end
    list[#list + 1] = { source = source, target = target, mode = mode }
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

return profile
