-- A toolset: named tools bound to a sandbox. It declares them to a model and dispatches its calls.
local _, core = ...

local messages = require "barchan.messages"
local options = require "barchan.options"
local schema = require "barchan.schema"
local task = require "barchan.task"
local tool = require "barchan.tool"

local toolset = {}

local MAX_CALLS_PER_TURN = 128

local spec = { [1] = "string or table", dir = "string or table", sandbox = "table" }

-- Which tools a call was declared from: dispatch runs that version. Keys are the calls themselves.
local declared_from = setmetatable({}, { __mode = "k" })

---@class barchan.Toolset
local Toolset = { __name = "barchan.toolset" }
Toolset.__index = Toolset

-- ---- where tools come from ----

local function built_in(name)
  local path = "tools/" .. name .. ".lua"
  if not core.scripts.text(path) then return nil end
  return core.scripts.load(path)("tools." .. name)
end

local function built_in_names()
  local names = {}
  for i, path in ipairs(core.scripts.list "tools/") do names[i] = path:match("([^/]+)%.lua$") end
  return names
end
toolset.built_in_names = built_in_names

-- A file returns one tool or a list of them.
local function load_file(filename)
  local chunk, problem = core.scripts.load_file(filename)
  if not chunk then error(problem, 0) end
  local ok, value = pcall(chunk, filename)
  if not ok then error(("%s: %s"):format(filename, tool.message(value)), 0) end
  if type(value) == "table" and value.name then return { value } end
  if type(value) ~= "table" or value[1] == nil then
    error(("%s: a tool file returns a tool or a list of tools, got %s")
      :format(filename, type(value)), 0)
  end
  return value
end

local function load_dir(dir, by_name, order)
  local names, err = core.scripts.list_dir(dir)
  if not names then error(err, 0) end
  for _, name in ipairs(names) do
    if name:match("%.lua$") and not name:match("^%.") then
      for _, definition in ipairs(load_file(dir .. "/" .. name)) do
        local ok, problem = pcall(tool.check, definition)
        if not ok then error(("%s/%s: %s"):format(dir, name, problem), 0) end
        if not by_name[definition.name] then order[#order + 1] = definition.name end
        by_name[definition.name] = definition
      end
    end
  end
end

local function add(by_name, order, definition)
  if by_name[definition.name] then
    error(("toolset: two tools have the name '%s'"):format(definition.name), 0)
  end
  by_name[definition.name] = tool.check(definition)
  order[#order + 1] = definition.name
end

local function collect(given)
  local by_name, order, from_dirs = {}, {}, {}
  local dirs = type(given.dir) == "string" and { given.dir } or given.dir or {}
  for _, dir in ipairs(dirs) do load_dir(dir, from_dirs, order) end
  for _, name in ipairs(order) do by_name[name] = from_dirs[name] end
  for _, item in ipairs(given) do
    if type(item) == "table" then
      add(by_name, order, item)
    elseif not by_name[item] then
      local definition = built_in(item)
      if not definition then
        error("toolset: " .. options.unknown("tool", item, built_in_names()), 0)
      end
      add(by_name, order, definition)
    end
  end
  return { by_name = by_name, order = order }
end

--- A toolset of built-in tools by name, tools given as tables, and every tool file of `dir` (a path
--- or a list of paths; a later one wins). `sandbox` is what the tools work in.
---@return barchan.Toolset
function toolset.create(given)
  options.check("toolset", given, spec)
  local ok, snapshot = pcall(collect, given)
  if not ok then error(snapshot, 2) end
  return setmetatable({ snapshot = snapshot, sandbox = given.sandbox, state = {} }, Toolset)
end

--- The same tools for another conversation: its own sandbox, its own ctx.state.
function Toolset:bind(given)
  options.check("bind", given, { sandbox = "table" })
  return setmetatable({ snapshot = self.snapshot, sandbox = given.sandbox, state = {} }, Toolset)
end

-- ---- declaring ----

--- What the model is told: name, description and parameters of each tool, in a fixed order.
function Toolset:declarations()
  local list = core.json.array {}
  for i, name in ipairs(self.snapshot.order) do
    list[i] = tool.declaration(self.snapshot.by_name[name])
  end
  return list
end

function Toolset:names() return { table.unpack(self.snapshot.order) } end

--- Remembers which version of the tools a reply's calls were made against.
function Toolset:stamp(reply)
  for _, call in ipairs(reply.tool_calls or {}) do declared_from[call] = self.snapshot end
end

-- ---- dispatching ----

local function context(self, call)
  local state = self.state[call.name]
  if not state then
    state = {}
    self.state[call.name] = state
  end
  return {
    sandbox = self.sandbox,
    call_id = call.id,
    state = state,
    log = self.log or function() end,
    cancelled = task.cancelled,
  }
end

local function is_cancelled(err) return type(err) == "table" and rawget(err, "code") == "cancelled" end

-- Runs the tool in a task of its own: content, is_error.
local function run(self, definition, call)
  local t <close> = task.spawn(definition.run, call.arguments, context(self, call))
  local outcome = table.pack(t:wait())
  if outcome[1] then return tool.content(outcome[2], outcome[3], outcome.n - 1) end
  if is_cancelled(outcome[2]) then return "not run: cancelled", true end
  return tool.message(outcome[2]), true
end

--- Runs one call and returns the tool message that answers it. Never throws for what the model
--- sent: an unknown tool, arguments that do not fit, a tool that fails are answers with is_error.
---@param call { id: string, name: string, arguments: table }
---@return table message
function Toolset:dispatch(call)
  local function fail(format, ...)
    return messages.tool_result(call, format:format(...), true)
  end
  if type(call) ~= "table" or type(call.name) ~= "string" then
    error("dispatch: a tool call expected", 2)
  end
  local snapshot = declared_from[call] or self.snapshot
  local definition = snapshot.by_name[call.name]
  if not definition then
    return fail("There is no tool '%s'. The tools are: %s.", call.name:sub(1, 100),
      table.concat(snapshot.order, ", "))
  end
  if type(call.arguments) ~= "table" then
    return fail("The arguments of '%s' must be a JSON object.", call.name)
  end
  local ok, problems = schema.check(call.arguments, definition.parameters)
  if not ok then
    return fail("The arguments of '%s' do not fit; it was not run.\n%s\nIts parameters are: %s",
      call.name, problems, core.json.encode(definition.parameters))
  end
  local content, is_error = run(self, definition, call)
  return messages.tool_result(call, content, is_error)
end

-- The answer to a call whose arguments could not be read.
local function reject(call)
  return messages.tool_result(call, ("The call of '%s' was not run: %s"):format(
    tostring(call.name), tostring(call.error)), true)
end

--- Every call of a reply, those that cannot be run last.
local function calls_of(reply)
  local calls = {}
  for _, call in ipairs(reply.tool_calls or {}) do calls[#calls + 1] = call end
  for _, call in ipairs(reply.invalid_tool_calls or {}) do calls[#calls + 1] = call end
  return calls
end
toolset.calls_of = calls_of

--- Answers every call of a reply: the runnable ones run in parallel; one tool message per call is
--- appended to `list`, in order. `around(call, run)` may wrap each run (policies, events); it returns
--- the message. Returns how many calls there were.
function Toolset:answer(reply, list, around)
  local calls, runs = calls_of(reply), {}
  for i, call in ipairs(calls) do
    local function run_call()
      if i > MAX_CALLS_PER_TURN then
        return messages.tool_result(call, ("not run: at most %d calls a turn"):format(
          MAX_CALLS_PER_TURN), true)
      end
      if call.error ~= nil then return reject(call) end
      return self:dispatch(call)
    end
    runs[i] = function() return around and around(call, run_call) or run_call() end
  end
  for i, outcome in ipairs(task.gather(runs)) do
    local message = outcome.value
    if not outcome.ok then
      local text = is_cancelled(outcome.error) and "not run: cancelled" or tool.message(outcome.error)
      message = messages.tool_result(calls[i], text, true)
    end
    list[#list + 1] = message
  end
  return #calls
end

function toolset.is_toolset(value) return getmetatable(value) == Toolset end

return toolset
