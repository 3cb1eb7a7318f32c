-- What `require "cjson"` gives where the real lua-cjson cannot be used (engines with a memory cap,
-- and the safe library): the same calls over barchan.json. Integers stay integers here.
local _, core = ...

local cjson = {
  _NAME = "cjson",
  _VERSION = "barchan " .. core.util.version,
  null = core.json.null,
}

--- Throws on text that is not JSON, as lua-cjson does.
function cjson.decode(text)
  local value, problem = core.json.decode(text)
  if problem then error(problem.message, 2) end
  return value
end

cjson.encode = core.json.encode

function cjson.new() return cjson end

return cjson
