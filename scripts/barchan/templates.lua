-- The templates of this user: files of sandboxes, kept by sbx:snapshot, from which others begin.
local _, core = ...

local misuse = require "barchan.misuse"

local templates = {}

local function check(what, name)
  if type(name) == "string" then return end
  misuse.throw(what .. ": the name of a template expected, got " .. type(name))
end

--- All of them, sorted by name: { name, base, note, created, entries, bytes, left_out }, …; and how many
--- leftovers of programs that were killed are gone now.
function templates.list() return core.template.list() end

---@param name string
function templates.info(name)
  check("templates.info", name)
  return core.template.info(name)
end

--- Refused ("busy") while a sandbox uses it.
---@param name string
function templates.remove(name)
  check("templates.remove", name)
  return core.template.remove(name)
end

return templates
