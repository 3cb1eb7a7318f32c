-- Where definitions come from that may change while they are used: directories, watched or not. A source
-- holds the value that was made of them last; a change makes a new one, or is refused and told.
--
-- A kind says what is made:
--   what                  -> "tools": the events are tools_reloaded and tools_reload_failed
--   take(dirs)            -> a snapshot, or nil and { file, line, message }
--   build(taken)          -> the value; throws what is wrong with it
--   same(old, new)        -> whether nothing has changed between two snapshots
--   compare(old, new)     -> the fields of the event for them
local _, core = ...

local snapshot = require "barchan.snapshot"
local tool = require "barchan.tool"

local source = {}

---@class barchan.Source
---@field value any
local Source = {}
Source.__index = Source

--- Opens a source, or throws what is wrong with it.
---@return barchan.Source
function source.open(dirs, kind, options)
  local self = setmetatable({ dirs = dirs, kind = kind, on_event = options.on_event }, Source)
  if options.watch then
    if #dirs == 0 then error("option 'watch' needs 'dir'", 0) end
    local watch, err = core.watch.open(dirs) -- before the first read: no edit falls between
    if not watch then error(err, 0) end
    self.watch = watch
  end
  local taken, problem = kind.take(dirs)
  if not taken then error(snapshot.describe(problem), 0) end
  self.taken = taken
  self.value = kind.build(taken)
  return self
end

--- Opens what the option `dir` names (a path, a list of paths, or none): whole directories of definitions.
---@param given { dir: string|string[]?, watch: boolean?, on_event: function? }
---@return barchan.Source
function source.open_dirs(given, what, take, build)
  local dirs = type(given.dir) == "string" and { given.dir } or given.dir or {}
  local function same(old, new) return old.texts == new.texts end
  local kind = { what = what, take = take, build = build, same = same, compare = snapshot.compare }
  return source.open(dirs, kind, given)
end

-- A value of what is there now: value, taken | nil, problem.
local function make(self)
  local taken, problem = self.kind.take(self.dirs)
  if not taken then return nil, problem end
  local ok, value = pcall(self.kind.build, taken)
  if ok then return value, taken end
  return nil, { file = self.dirs[1], message = tool.message(value) }
end

--- Makes the value anew: an event when something came of it, nil when nothing has changed. Taking back what
--- was wrong is an event, too, with no difference in it.
function Source:reload()
  local value, taken = make(self)
  if value == nil then
    local problem = taken
    local text = snapshot.describe(problem)
    if text == self.problem then return nil end -- told already
    self.problem = text
    local what = self.kind.what .. "_reload_failed"
    return { type = what, file = problem.file, line = problem.line, message = text }
  end
  if self.kind.same(self.taken, taken) and not self.problem then return nil end
  local event = self.kind.compare(self.taken, taken)
  self.taken, self.value, self.problem = taken, value, nil
  event.type = self.kind.what .. "_reloaded"
  return event
end

--- Tells what came of something: the one who asked, or else the host; and who was named at the start.
function Source:tell(event, emit)
  event.time = core.util.wall_time()
  if self.on_event then self.on_event(event) end
  if emit then return emit(event) end
  core.host.emit(event)
end

--- Takes in what has changed since the last call, if it is watched: a whole new value, or the old one
--- when anything is wrong with the new. Returns whether there is a new one.
function Source:refresh(emit)
  if not self.watch then return false end
  self.watch:settle() -- an edit of this very moment is waited for
  if not self.watch:changed() and not self.pending then return false end
  self.pending = nil
  local before = self.value
  local event = self:reload()
  if event then self:tell(event, emit) end
  return self.value ~= before
end

--- Waits until something may have changed; then refresh takes it in.
function Source:wait_change()
  self.watch:wait()
  self.pending = true
end

return source
