-- A snapshot of tool directories: every script read at once, compiled, run in a scratch environment and
-- checked. It is whole or it is not there: a caller swaps it in, or keeps the one before.
local _, core = ...

local tool = require "barchan.tool"

local snapshot = {}

local function fail(path, message)
  message = tool.message(message)
  local file, line, rest = message:match "^([^:\n]+%.lua):(%d+): (.*)"
  error({ file = file or path, line = line and math.tointeger(line) or nil, message = rest or message }, 0)
end

-- One directory: its texts by module name, and what each module returned.
local Dir = {}
Dir.__index = Dir

-- `require` for the scripts of a directory: their neighbours first, cached in this snapshot, so that
-- helpers reload with the tools that use them.
function Dir:environment()
  local env = setmetatable({}, { __index = _G })
  env._G = env
  function env.require(name)
    if self.files[name] == nil then return require(name) end
    self.required[name] = true
    if self.loading then self.uses[self.loading][name] = true end
    return self:load(name)
  end
  return env
end

function Dir:load(name)
  local loaded = self.loaded[name]
  if loaded ~= nil then
    if loaded == self then error(("'%s' requires itself"):format(name), 2) end
    return loaded
  end
  local file = self.files[name]
  local chunk, problem = core.scripts.load_string(file.text, "@" .. file.path, self.env)
  if not chunk then fail(file.path, problem) end
  self.loaded[name] = self -- being loaded
  self.uses[name] = {}
  local outer = self.loading
  self.loading = name
  local ok, value = pcall(chunk, name)
  self.loading = outer
  if not ok then
    if type(value) == "table" and value.file then error(value, 0) end
    fail(file.path, value)
  end
  if value == nil then value = true end
  self.loaded[name] = value
  return value
end

-- What a module is made of: its own text and that of all it requires here.
function Dir:source(name, seen)
  seen = seen or {}
  if seen[name] then return "" end
  seen[name] = true
  local parts, used = { self.files[name].text }, {}
  for helper in pairs(self.uses[name]) do used[#used + 1] = helper end
  table.sort(used)
  for _, helper in ipairs(used) do parts[#parts + 1] = self:source(helper, seen) end
  return table.concat(parts, "\0")
end

local function read_dir(path)
  local list, problem = core.scripts.read_dir(path)
  if not list then error({ file = path, message = problem }, 0) end
  local dir = { path = path, files = {}, names = {}, loaded = {}, required = {}, uses = {} }
  setmetatable(dir, Dir)
  for i, file in ipairs(list) do
    local name = file.name:gsub("%.lua$", "")
    dir.names[i] = name
    dir.files[name] = { text = file.text, path = path .. "/" .. file.name }
  end
  dir.env = dir:environment()
  return dir
end

local function tools_of(value)
  if type(value) ~= "table" then return nil end
  if value.name ~= nil or value.run ~= nil then return { value } end
  if type(value[1]) == "table" then return value end
end

-- Adds a directory's tools; a later directory wins over an earlier one.
local function add_dir(result, dir)
  local here = {}
  for _, name in ipairs(dir.names) do dir:load(name) end
  for _, name in ipairs(dir.names) do
    local file = dir.files[name]
    local list = tools_of(dir.loaded[name])
    if not list and not dir.required[name] then
      fail(file.path, "a tool file returns a tool or a list of tools, got " .. type(dir.loaded[name]))
    end
    for _, definition in ipairs(list or {}) do
      local ok, problem = pcall(tool.check, definition)
      if not ok then fail(file.path, problem) end
      if here[definition.name] then
        fail(file.path, ("the tool '%s' is defined in %s too"):format(definition.name, here[definition.name]))
      end
      here[definition.name] = file.path
      if not result.by_name[definition.name] then table.insert(result.order, definition.name) end
      result.by_name[definition.name] = definition
      result.source[definition.name] = dir:source(name)
    end
  end
end

--- Reads, compiles, runs and checks every script of the directories.
---@param dirs string[] later ones win
---@return table? result { by_name, order, source }
---@return { file: string, line: integer?, message: string }? problem
function snapshot.take(dirs)
  local result = { by_name = {}, order = {}, source = {}, texts = {} }
  local ok, problem = pcall(function()
    for _, path in ipairs(dirs) do
      local dir = read_dir(path)
      for _, name in ipairs(dir.names) do
        table.insert(result.texts, dir.files[name].path .. "\0" .. dir.files[name].text)
      end
      add_dir(result, dir)
    end
  end)
  if ok then
    result.texts = table.concat(result.texts, "\0")
    return result
  end
  if type(problem) ~= "table" or not problem.message then
    problem = { file = table.concat(dirs, ", "), message = tool.message(problem) }
  end
  return nil, problem
end

--- The names of tools that were added, changed and removed. A tool has changed when the file that
--- defines it, or one that it requires, has.
function snapshot.compare(old, new)
  local difference = { added = {}, changed = {}, removed = {} }
  for _, name in ipairs(new.order) do
    if not old.by_name[name] then
      table.insert(difference.added, name)
    elseif old.source[name] ~= new.source[name] then
      table.insert(difference.changed, name)
    end
  end
  for _, name in ipairs(old.order) do
    if not new.by_name[name] then table.insert(difference.removed, name) end
  end
  for _, list in pairs(difference) do core.json.array(list) end
  return difference
end

--- "tools/x.lua:3: message"
function snapshot.describe(problem)
  local place = problem.line and ("%s:%d"):format(problem.file, problem.line) or problem.file
  if problem.message:find(problem.file, 1, true) then return problem.message end
  return place .. ": " .. problem.message
end

return snapshot
