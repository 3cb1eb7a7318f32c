-- What a sandbox costs, by prices that its operator sets, in millionths of their unit.
--
-- price = { cpu_hour, vcpu_hour, gib_hour }: an hour of processor time that was used; an hour of a
-- processor that it may use (limits.cpus); an hour of a GiB of memory that it may use
-- (limits.memory), or, without that limit, did use.
local _, core = ...

local misuse = require "barchan.misuse"
local options = require "barchan.options"

local price = {}

local HOUR = 3600
local GIB = 1 << 30
local MICROS = 1000000

local spec = { cpu_hour = "number", vcpu_hour = "number", gib_hour = "number" }

--- Checks a price table.
function price.check(given)
  options.check("sandbox: price", given, spec)
  for name, value in pairs(given) do
    if not (value >= 0 and value < math.huge) then
      misuse.throw(("sandbox: price: option '%s' must not be negative"):format(name))
    end
  end
end

--- The most that `seconds` of a sandbox with these limits can cost; nil and the limit that is
--- missing when nothing bounds it.
---@return number? micros
---@return string? missing
function price.most(given, limits, seconds)
  local cpu, vcpu, gib = given.cpu_hour or 0, given.vcpu_hour or 0, given.gib_hour or 0
  if (cpu > 0 or vcpu > 0) and not limits.cpus then return nil, "cpus" end
  if gib > 0 and not limits.memory then return nil, "memory" end
  local per_hour = (cpu + vcpu) * (limits.cpus or 0) + gib * (limits.memory or 0) / GIB
  return per_hour * seconds / HOUR * MICROS
end

--- Why `seconds` of a sandbox with these limits could cost more than `max_micros`; nil when they cannot.
---@return string? why
function price.exceeds(given, limits, seconds, max_micros)
  local most, missing = price.most(given, limits, seconds)
  if missing then return ("nothing bounds its cost: limits.%s is missing"):format(missing) end
  if most <= max_micros then return nil end
  return ("its lease of %g s could cost %.0f micros; max_cost_micros is %.0f"):format(seconds, most,
    max_micros)
end

--- The error of what could cost more than allowed.
function price.refusal(message)
  return core.util.error { code = "limit", message = message, retryable = false }
end

--- What a sandbox has cost so far, by its usage.
---@return integer micros
function price.cost(given, limits, usage)
  local memory = limits.memory and limits.memory * usage.wall or usage.memory_byte_seconds
  local units = (given.cpu_hour or 0) * usage.cpu
    + (given.vcpu_hour or 0) * (limits.cpus or 0) * usage.wall
    + (given.gib_hour or 0) * memory / GIB
  return math.floor(units / HOUR * MICROS + 0.5)
end

return price
