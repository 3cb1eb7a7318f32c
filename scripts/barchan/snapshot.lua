-- A snapshot of directories of definitions (tools, policies): every script read at once, compiled, run in
-- a scratch environment and checked. It is whole or it is not there: a caller swaps it in, or keeps the
-- one before.
--
-- What the scripts define is told by a kind:
--   definitions(value, name) -> list of { name, definition } that a script returned, or nil: none
--   expected                 -> what a script should have returned, for the message
-- definitions throws what is wrong with one.
local _, core = ...

local modules = require "barchan.modules"
local task = require "barchan.task"
local tool = require "barchan.tool"

local snapshot = {}

-- What the top levels of all scripts may take, waits included: they define things. (What one may run
-- without waiting is limited by the engine.)
local MAX_SECONDS = 3

local function describe(value)
  if value == true then return "nothing" end -- what `require` keeps of a script that returns nothing
  if type(value) == "table" then return "a table that is neither; a helper is required by another script" end
  return "a " .. type(value)
end

-- Calls fn(…). Its failure is kept where all faults are wanted, and thrown where one is enough.
local function try(result, fn, ...)
  if not result.faults then return fn(...) end
  task.sleep(0) -- each has the time that a script may run without waiting
  local ok, value = pcall(fn, ...)
  if ok then return value end
  if type(value) ~= "table" or not value.file then error(value, 0) end
  table.insert(result.faults, value)
end

-- Adds what one script of a directory defines; `here` has the names of those before it.
local function add_script(result, dir, kind, name, here)
  local file = dir.files[name]
  local ok, list = pcall(kind.definitions, dir.loaded[name], name)
  if not ok then modules.fail(file.path, list) end
  if not list and not dir.required[name] then
    modules.fail(file.path, ("%s, got %s"):format(kind.expected, describe(dir.loaded[name])))
  end
  for _, found in ipairs(list or {}) do
    local other = here[found.name]
    if other then
      local place = other == file.path and "it" or other
      modules.fail(file.path, ("'%s' is defined in %s too"):format(found.name, place))
    end
    here[found.name] = file.path
    if not result.by_name[found.name] then table.insert(result.order, found.name) end
    result.by_name[found.name] = found.definition
    result.source[found.name] = dir:source(name)
  end
end

-- Adds a directory's definitions; a later directory wins over an earlier one.
local function add_dir(result, path, kind, texts)
  local dir, here = modules.read(path), {}
  result.dir = dir
  for _, name in ipairs(dir.names) do
    texts[#texts + 1] = dir.files[name].path .. "\0" .. dir.files[name].text
  end
  for _, name in ipairs(dir.names) do try(result, dir.load, dir, name) end
  if result.faults then dir:note_required() end
  for _, name in ipairs(dir.names) do
    if dir.loaded[name] ~= nil then try(result, add_script, result, dir, kind, name, here) end
  end
end

local function take(result, dirs, kind)
  local texts = {}
  for _, path in ipairs(dirs) do try(result, add_dir, result, path, kind, texts) end
  result.texts = table.concat(texts, "\0")
end

--- Runs what loads scripts, in a task of its own that has little time.
---@return boolean ok
---@return any problem { file, line, message }, or what was thrown
function snapshot.load(fn, ...)
  local t <close> = core.task.spawn_load(fn, ...)
  return task.wait_within(MAX_SECONDS, t, "it did not end within %g s")
end

-- nil, or { file, line, message }
local function load_all(result, dirs, kind)
  if #dirs == 0 then
    result.texts = ""
    return nil
  end
  local ok, problem = snapshot.load(take, result, dirs, kind)
  if ok then return nil end
  if type(problem) == "table" and problem.file then return problem end
  if tool.is_cancelled(problem) then error(problem, 0) end
  local place = result.dir and result.dir:place() or table.concat(dirs, ", ")
  return { file = place, message = tool.message(problem) }
end

--- Reads, compiles, runs and checks every script of the directories.
---@param dirs string[] later ones win
---@return table? result { by_name, order, source, texts }
---@return { file: string, line: integer?, message: string }? problem
function snapshot.take(dirs, kind)
  local result = { by_name = {}, order = {}, source = {} }
  local problem = load_all(result, dirs, kind)
  if problem then return nil, problem end
  return result
end

--- As take, but goes on after a fault: what there is, and a text for each fault.
---@return table result
---@return string[] faults
function snapshot.check(dirs, kind)
  local result = { by_name = {}, order = {}, source = {}, faults = {} }
  table.insert(result.faults, (load_all(result, dirs, kind)))
  local texts, seen = {}, {}
  for _, fault in ipairs(result.faults) do
    local text = snapshot.describe(fault)
    if not seen[text] then texts[#texts + 1] = text end -- those who require a faulty script fail with it
    seen[text] = true
  end
  return result, texts
end

--- The names of what was added, changed and removed. A definition has changed when the script that
--- makes it, or one that this requires, has.
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
