-- The scripts that come with the library by kind: those of scripts/tools and scripts/policies.
local _, core = ...

local options = require "barchan.options"

local built_in = {}

---@param folder string "tools" or "policies"
---@return string[]
function built_in.names(folder)
  local names = {}
  for i, path in ipairs(core.scripts.list(folder .. "/")) do names[i] = path:match "([^/]+)%.lua$" end
  return names
end

--- What the script returns; throws what there is when there is none of this name.
---@param what string for the message: "tool"
function built_in.load(folder, name, what)
  local path = ("%s/%s.lua"):format(folder, name)
  if not core.scripts.text(path) then error(options.unknown(what, name, built_in.names(folder)), 0) end
  return core.scripts.load(path)(folder .. "." .. name)
end

return built_in
