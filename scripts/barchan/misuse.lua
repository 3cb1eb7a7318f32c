-- What a caller did wrong: thrown at the caller's line, the first one on the way out of the library that is
-- not the library's own. So it does not matter how many calls below the public one it is found.
local _, core = ...

local misuse = {}

--- Throws a message, which begins with the name of the public call.
---@param message string
function misuse.throw(message) error(core.util.caller() .. message, 0) end

--- Throws "where: what expected, got …".
---@param where string
---@param expected string
---@param value any what was given
function misuse.expected(where, expected, value)
  local got = type(value)
  if got == "string" then got = ("%q"):format(#value > 40 and value:sub(1, 40) .. "…" or value) end
  if got == "number" or got == "boolean" then got = tostring(value) end
  misuse.throw(("%s: %s expected, got %s"):format(where, expected, got))
end

--- Throws what a call within failed with, after the name of the one around it.
function misuse.within(where, problem)
  if type(problem) ~= "string" then error(problem, 0) end
  local place = core.util.caller()
  if problem:sub(1, #place) == place then problem = problem:sub(#place + 1) end
  misuse.throw(("%s: %s"):format(where, problem))
end

-- A method that first looks at what it was called on.
local function checked(class, what, name, method)
  core.util.published[method] = name
  return function(self, ...)
    if getmetatable(self) ~= class then
      misuse.throw(("%s: call it with ':', as %s:%s(…)"):format(name, what, name))
    end
    return method(self, ...)
  end
end

--- Has the methods of a class, all there are by now, refuse to be called with '.'.
---@param class table
---@param what string an object of it, in a message
function misuse.methods(class, what)
  for name, method in pairs(class) do
    if type(method) == "function" and not name:find "^__" then
      class[name] = checked(class, what, name, method)
    end
  end
end

--- Notes the names of public functions, for what C finds wrong.
function misuse.publish(functions)
  for name, fn in pairs(functions) do
    if type(fn) == "function" then core.util.published[fn] = name end
  end
end

return misuse
