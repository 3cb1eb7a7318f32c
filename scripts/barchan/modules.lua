-- The scripts of a directory as one set: read at once, each loaded once in an environment of the set's
-- own, with a `require` that finds neighbours first. A set read later shares nothing with one before.
local _, core = ...

local tool = require "barchan.tool"

local modules = {}

--- Throws { file, line, message } for what is wrong with a script; a message that says its place keeps it.
function modules.fail(path, message)
  message = tool.message(message)
  local file, line, rest = message:match "^([^:\n]+%.lua):(%d+): (.*)"
  error({ file = file or path, line = line and math.tointeger(line) or nil, message = rest or message }, 0)
end

---@class barchan.Modules
local Modules = {}
Modules.__index = Modules

-- A module that is not of the set; the error points at the script that wants it, two calls above.
local function require_elsewhere(path, name)
  local ok, value = pcall(require, name)
  if ok then return value end
  local missing = type(value) == "string" and value:find(("module '%s' not found"):format(name), 1, true)
  if missing and not value:find("not a module name", 1, true) then
    error(("module '%s' not found: there is no %s/%s.lua, and none of that name is installed"):format(
      name, path, name), 3)
  end
  error(value, 0)
end

local function environment(self)
  local env = setmetatable({}, { __index = _G })
  env._G = env
  function env.require(name)
    if self.files[name] == nil then
      local value = require_elsewhere(self.path, name)
      return value
    end
    self.required[name] = true
    if self.loading then self.uses[self.loading][name] = true end
    return self:load(name)
  end
  return env
end

--- Reads every script of a directory; throws when one of them may not be read.
---@return barchan.Modules
function modules.read(path)
  local list, problem = core.scripts.read_dir(path)
  if not list then error({ file = path, message = problem }, 0) end
  local self = { path = path, files = {}, names = {}, loaded = {}, required = {}, uses = {} }
  for i, file in ipairs(list) do
    local name = file.name:gsub("%.lua$", "")
    self.names[i] = name
    self.files[name] = { text = file.text, path = path .. "/" .. file.name }
  end
  self.env = environment(self)
  return setmetatable(self, Modules)
end

--- What the script `name` returns; it runs the first time that it is asked for.
function Modules:load(name)
  local loaded = self.loaded[name]
  if loaded ~= nil then
    if loaded == self then error(("'%s' requires itself"):format(name), 2) end
    return loaded
  end
  local file = self.files[name]
  local chunk, problem = core.scripts.load_string(file.text, "@" .. file.path, self.env)
  if not chunk then modules.fail(file.path, problem) end
  self.loaded[name] = self -- being loaded
  self.uses[name] = {}
  local outer = self.loading
  self.loading, self.latest = name, name
  local ok, value = pcall(chunk, name)
  self.loading = outer
  if ok then self.latest = outer or name end
  if not ok then
    self.loaded[name] = nil
    if type(value) == "table" and value.file then error(value, 0) end
    modules.fail(file.path, value)
  end
  if value == nil then value = true end
  self.loaded[name] = value
  return value
end

--- Takes for required what those scripts name that could not be loaded: they may not have come so far.
function Modules:note_required()
  for name, file in pairs(self.files) do
    if self.loaded[name] == nil then
      for helper in file.text:gmatch "require%s*%(?%s*[\"']([^\"']+)[\"']" do self.required[helper] = true end
    end
  end
end

--- What a script is made of: its own text and that of all it requires here.
function Modules:source(name, seen)
  seen = seen or {}
  if seen[name] or not self.files[name] then return "" end
  seen[name] = true
  local parts, used = { self.files[name].text }, {}
  for helper in pairs(self.uses[name] or {}) do used[#used + 1] = helper end
  table.sort(used)
  for _, helper in ipairs(used) do parts[#parts + 1] = self:source(helper, seen) end
  return table.concat(parts, "\0")
end

--- Where a failure comes from that does not say so: the script that was loaded last, or the directory.
function Modules:place()
  return self.latest and self.files[self.latest].path or self.path
end

return modules
