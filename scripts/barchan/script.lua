-- Loop scripts: agent loops of one's own that may be edited while a conversation goes on. Such a script
-- returns a table of functions:
--   open(state, …)   once, with the arguments of the run: makes what lasts (may be missing)
--   turn(state)      one turn, again and again; the first answer that is not nil ends the loop
--   close(state)     once, at the end (may be missing); what can be closed in `state` is closed anyway
-- `state` is one plain table for the whole conversation, so all that must outlive an edit is kept there. An
-- edited script takes over between two turns. When its first turn throws, `state` and the plain tables in
-- it (the list of messages) are put back as they were, and the version before goes on.
local _, core = ...

local misuse = require "barchan.misuse"
local modules = require "barchan.modules"
local options = require "barchan.options"
local snapshot = require "barchan.snapshot"
local source = require "barchan.source"
local tool = require "barchan.tool"

local script = {}

-- ---- driving a loop ----

-- A holder has the version that is to be used: current(), refresh(), restore(good, bad), tell(event), path.

local function copy(t)
  local out = {}
  for key, value in pairs(t) do out[key] = value end
  return out
end

-- What `state` holds now, and a function that puts it back.
local function keep(state)
  local kept = { [state] = copy(state) }
  for _, value in pairs(state) do
    if type(value) == "table" and getmetatable(value) == nil then kept[value] = copy(value) end
  end
  return function()
    for t, content in pairs(kept) do
      for key in pairs(t) do t[key] = nil end
      for key, value in pairs(content) do t[key] = value end
    end
  end
end

-- The first turn of a new version: what it returned, or what the version before returned instead.
local function try(holder, good, new, state)
  local put_back = keep(state)
  local outcome = table.pack(pcall(new.turn, state))
  if outcome[1] then return new, table.unpack(outcome, 2, outcome.n) end
  if tool.is_cancelled(outcome[2]) then error(outcome[2], 0) end
  put_back()
  holder:restore(good, new)
  holder:tell { type = "script_rolled_back", file = holder.path, message = tool.message(outcome[2]) }
  return good, good.turn(state)
end

local function close_value(value) local _ <close> = value end

local function close(holder, state)
  local fn = holder:current().close
  local ok, problem = true, nil
  if fn then ok, problem = pcall(fn, state) end
  for _, value in pairs(state) do
    local meta = type(value) == "table" and getmetatable(value)
    if type(meta) == "table" and meta.__close then pcall(close_value, value) end
  end
  if not ok then error(problem, 0) end
end

local function drive(holder, ...)
  local state = {}
  local good = holder:current()
  local _ <close> = setmetatable({}, { __close = function() close(holder, state) end })
  if good.open then good.open(state, ...) end
  local outcome = table.pack(good, good.turn(state))
  while outcome[2] == nil do
    holder:refresh()
    good = outcome[1]
    local new = holder:current()
    outcome = new == good and table.pack(good, good.turn(state)) or table.pack(try(holder, good, new, state))
  end
  return table.unpack(outcome, 2, outcome.n)
end

-- ---- what a script returned ----

--- Whether a value is what a loop script returns.
function script.is_loop(value) return type(value) == "table" and type(rawget(value, "turn")) == "function" end

local function check(value)
  if not script.is_loop(value) then
    error("a loop script returns a table with the function turn (and open, close); see barchan.script", 0)
  end
  for _, name in ipairs { "open", "close" } do
    if value[name] ~= nil and type(value[name]) ~= "function" then
      error(("%s: function expected, got %s"):format(name, type(value[name])), 0)
    end
  end
  return value
end

local function names(functions)
  local list = {}
  for name, value in pairs(functions or {}) do
    if type(name) == "string" and type(value) == "function" then list[#list + 1] = name end
  end
  table.sort(list)
  return list
end

-- ---- scripts of one's own, watched or not ----

local function load_script(taken, dir, name)
  taken.dir = modules.read(dir)
  if not taken.dir.files[name] then
    error({ file = dir .. "/" .. name .. ".lua", message = "there is no such script" }, 0)
  end
  taken.functions = check(taken.dir:load(name))
  taken.text = taken.dir:source(name)
end

-- The kind of source that one script is; see source.lua.
local function kind_of(path)
  local dir, name = path:match "^(.*)/([^/]+)%.lua$"
  if not dir then dir, name = ".", path:match "^([^/]+)%.lua$" end
  if not name then error(("'%s' is no script: its name ends in .lua"):format(path), 0) end
  if dir == "" then dir = "/" end
  local function take()
    local taken = {}
    local ok, problem = snapshot.load(load_script, taken, dir, name)
    if ok then return taken end
    if tool.is_cancelled(problem) then error(problem, 0) end
    if type(problem) == "table" and problem.file then return nil, problem end
    return nil, { file = taken.dir and taken.dir:place() or dir, message = tool.message(problem) }
  end
  return dir, {
    what = "script",
    take = take,
    build = function(taken) return taken.functions end,
    same = function(old, new) return old.text == new.text end,
    compare = function() return { file = path } end,
  }
end

---@class barchan.Script
local Script = { __name = "barchan.script" }
Script.__index = Script

--- A loop script from a file. Its neighbours reload with it: what it requires from its own directory. With
--- `watch`, an edit takes over at the next turn; `on_event` gets what came of it.
---@return barchan.Script
function script.create(given)
  options.check("script", given, { file = "string", watch = "boolean", on_event = "function" })
  if not given.file then misuse.throw("script: option 'file' is missing") end
  local ok, opened = pcall(function()
    local dir, kind = kind_of(given.file)
    return source.open({ dir }, kind, given)
  end)
  if not ok then misuse.within("script", opened) end
  return setmetatable({ source = opened, path = given.file }, Script)
end

function Script:current() return self.source.value end

--- Takes in an edit, as toolset:refresh does; `run` does it between turns.
function Script:refresh(emit) return self.source:refresh(emit) end

function Script:tell(event) self.source:tell(event) end

function Script:restore(good, bad)
  if self.source.value == bad then self.source.value = good end
end

--- Runs the loop to its end; returns what the last turn returned.
function Script:run(...) return drive(self, ...) end

misuse.methods(Script, "script")

--- Runs a loop that was not loaded from a file of its own.
function script.run_loop(functions, ...)
  local holder = { current = function() return functions end, refresh = function() end }
  return drive(holder, ...)
end

-- ---- the script that a host application has loaded ----

local Loaded = {}

function Loaded:current() -- luacheck: no self
  return check(core.host.functions())
end

function Loaded:refresh() end -- the host reloads it: barchan_engine_reload

function Loaded:restore(good, bad) -- luacheck: no self
  if core.host.functions() == bad then core.host.set_functions(good) end
end

function Loaded:tell(event) -- luacheck: no self
  event.file = event.file or core.host.script_path()
  event.time = core.util.wall_time()
  core.host.emit(event)
end

--- For hosts: barchan_engine_call(engine, "barchan.script:run", …) runs the loaded script as a loop.
function script.run(...) return drive(Loaded, ...) end

local function load_again(path)
  local chunk, problem = core.scripts.load_file(path)
  if not chunk then error(problem, 0) end
  return chunk()
end

local function difference(old, new)
  local event = { added = core.json.array {}, removed = core.json.array {} }
  for _, name in ipairs(names(new)) do
    if not (old and old[name]) then table.insert(event.added, name) end
  end
  for _, name in ipairs(names(old)) do
    if not new[name] then table.insert(event.removed, name) end
  end
  return event
end

--- What barchan_engine_reload calls.
function script.reload()
  local path = core.host.script_path()
  if not path then
    error(core.util.error {
      code = "invalid_argument",
      message = "reload: no script file is loaded; text is loaded anew by barchan_engine_load_string",
    }, 0)
  end
  local before = core.scripts.exchange_modules {}
  local old = core.host.functions()
  local ok, new = snapshot.load(load_again, path)
  if ok and type(new) ~= "table" then
    ok, new = false, ("%s: a table of functions expected, got %s"):format(path, type(new))
  end
  if not ok then
    core.scripts.exchange_modules(before)
    local message = tool.message(new)
    local file, line = message:match "^([^:\n]+%.lua):(%d+): "
    Loaded:tell {
      type = "script_reload_failed", file = file or path, line = math.tointeger(line), message = message,
    }
    error(new, 0)
  end
  core.host.set_functions(new)
  local event = difference(old, new)
  event.type = "script_reloaded"
  Loaded:tell(event)
end

return script
