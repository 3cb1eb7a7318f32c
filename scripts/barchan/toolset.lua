-- A toolset: named tools bound to a sandbox. It declares them to a model and dispatches its calls.
local _, core = ...

local built_in = require "barchan.built_in"
local messages = require "barchan.messages"
local misuse = require "barchan.misuse"
local options = require "barchan.options"
local schema = require "barchan.schema"
local snapshot = require "barchan.snapshot"
local source = require "barchan.source"
local task = require "barchan.task"
local tool = require "barchan.tool"

local toolset = {}

local MAX_CALLS_PER_TURN = 128

local spec = {
  [1] = "string or table",
  dir = "string or table",
  sandbox = "table",
  watch = "boolean",
  on_event = "function",
}

-- Which tools a call was declared from: dispatch runs that version. Keys are the calls themselves.
local declared_from = setmetatable({}, { __mode = "k" })

---@class barchan.Toolset
local Toolset = { __name = "barchan.toolset" }
Toolset.__index = Toolset

-- ---- where tools come from ----

local function definitions(value)
  if type(value) ~= "table" then return nil end
  local list = value
  if value.name ~= nil or value.run ~= nil then
    list = { value }
  elseif type(value[1]) ~= "table" then
    return nil
  end
  local found = {}
  for i, definition in ipairs(list) do
    local checked = tool.check(definition)
    found[i] = { name = checked.name, definition = checked }
  end
  return found
end

local kind = { definitions = definitions, expected = "a tool file returns a tool or a list of tools" }

--- The tools of directories as they are now: { by_name, order } | nil, { file, line, message }.
function toolset.snapshot(dirs) return snapshot.take(dirs, kind) end

--- What there is of them, and a text for each fault.
function toolset.check(dirs) return snapshot.check(dirs, kind) end

local function add(by_name, order, definition)
  if by_name[definition.name] then
    error(("two tools have the name '%s'"):format(definition.name), 0)
  end
  by_name[definition.name] = tool.check(definition)
  order[#order + 1] = definition.name
end

-- The tools of a toolset: those of its directories, and those that were given by name or as tables.
local function collect(given, from_dirs)
  local by_name, order = {}, {}
  for _, name in ipairs(from_dirs.order) do
    by_name[name] = from_dirs.by_name[name]
    order[#order + 1] = name
  end
  for _, item in ipairs(given) do
    if type(item) == "table" then
      add(by_name, order, item)
    elseif not by_name[item] then
      local definition = built_in.load("tools", item, "tool")
      if type(definition) ~= "table" or definition.name ~= item then
        error(("the script tools/%s.lua must return the tool '%s'"):format(item, item), 0)
      end
      add(by_name, order, definition)
    end
  end
  return { by_name = by_name, order = order }
end

-- Where a toolset's tools come from; shared by its bindings, so that all see one reload.
local function open_source(given)
  local function build(taken) return collect(given, taken) end
  return source.open_dirs(given, "tools", toolset.snapshot, build)
end

-- Or what stands for one: it is known by its methods.
local function check_sandbox(where, sandbox)
  if sandbox == nil or type(sandbox.exec) == "function" then return end
  misuse.throw(where .. ": option 'sandbox': a sandbox expected (barchan.sandbox)")
end

--- A toolset of built-in tools by name, tools given as tables, and every tool file of `dir` (a path
--- or a list of paths; a later one wins). `sandbox` is what the tools work in. With `watch`, an edit
--- of a tool file takes effect at the model's next turn; `on_event` gets what came of it.
---@return barchan.Toolset
function toolset.create(given)
  options.check("toolset", given, spec)
  check_sandbox("toolset", given.sandbox)
  local ok, opened = pcall(open_source, given)
  if not ok then misuse.within("toolset", opened) end
  return setmetatable({ source = opened, sandbox = given.sandbox, state = {} }, Toolset)
end

--- The same tools for another conversation: its own sandbox, its own ctx.state.
function Toolset:bind(given)
  options.check("bind", given, { sandbox = "table" })
  check_sandbox("bind", given.sandbox)
  return setmetatable({ source = self.source, sandbox = given.sandbox, state = {} }, Toolset)
end

-- ---- reloading ----

--- Takes in what changed in the directories of a watched toolset since the last call: a whole new set,
--- or the old one when anything is wrong with the new. Called before each turn. `emit` gets the event,
--- `tools_reloaded` (added, changed, removed) or `tools_reload_failed` (file, line, message).
function Toolset:refresh(emit) return self.source:refresh(emit) end

--- Waits until something may have changed in the directories; then refresh takes it in.
function Toolset:wait_change()
  if not self.source.watch then misuse.throw("wait_change: the toolset is not watched") end
  self.source:wait_change()
end

-- ---- declaring ----

--- What the model is told: name, description and parameters of each tool, in a fixed order.
function Toolset:declarations()
  local list = core.json.array {}
  for i, name in ipairs(self.source.value.order) do
    list[i] = tool.declaration(self.source.value.by_name[name])
  end
  return list
end

function Toolset:names() return { table.unpack(self.source.value.order) } end

local function check_reply(where, reply)
  if type(reply) ~= "table" then misuse.expected(where, "a model's reply", reply) end
  for _, name in ipairs { "tool_calls", "invalid_tool_calls" } do
    local calls = reply[name]
    if calls ~= nil and type(calls) ~= "table" then
      misuse.expected(("%s: the reply's %s"):format(where, name), "a list", calls)
    end
    for _, call in ipairs(calls or {}) do messages.check_call(where, call) end
  end
end

--- Remembers which version of the tools a reply's calls were made against.
function Toolset:stamp(reply)
  check_reply("stamp", reply)
  for _, call in ipairs(reply.tool_calls or {}) do declared_from[call] = self.source.value end
end

-- ---- dispatching ----

-- Long enough for the model to mend its call, short enough to leave room in its context.
local MAX_PROBLEM_BYTES = 4000

local Context = {}

function Context.__index(_, key)
  if key == "sandbox" then
    misuse.throw("this toolset has no sandbox: give one to barchan.toolset or to tools:bind")
  end
end

-- A line for people, beside the answers: to standard error in the program and under a stock Lua, whose
-- `print` is its own; an application that has made the engine gets it as it gets what scripts print.
local in_engine = print == core.host.print

local function log(...)
  if core.host.log then return core.host.log(...) end
  if in_engine or not io then return core.host.print(...) end
  local words = table.pack(...)
  for i = 1, words.n do words[i] = tostring(words[i]) end
  io.stderr:write(table.concat(words, "\t"), "\n")
end

local function context(self, call)
  local state = self.state[call.name]
  if not state then
    state = {}
    self.state[call.name] = state
  end
  return setmetatable({
    sandbox = self.sandbox,
    call_id = call.id,
    state = state,
    log = function(...) log(call.name .. ":", ...) end,
    cancelled = task.cancelled,
  }, Context)
end

-- To read a value may run code of the tool that made it: that is done in a task, and for not much longer.
local READ_SECONDS = 1

-- What the tool answers: content, is_error.
local function ask(definition, arguments, its_context)
  return tool.content(definition.run(arguments, its_context))
end

local function text_of(err)
  local plain = tool.plain_message(err)
  if plain then return tool.cap(plain) end
  local t <close> = task.spawn_within(READ_SECONDS, tool.message, err)
  local waited, ok, text = pcall(t.wait, t) -- not in a task that was cancelled
  return waited and ok and tool.cap(text) or "an error whose text cannot be read"
end

-- Runs the tool in a task of its own: content, is_error.
local function run(self, definition, call)
  local ok, content, is_error
  local seconds = definition.timeout
  local t <close> = task.spawn_within(seconds, ask, definition, call.arguments, context(self, call))
  if seconds then
    ok, content, is_error = task.wait_within(seconds, t, "timed out: the tool was stopped after %g s")
  else
    ok, content, is_error = t:wait()
  end
  if ok then return content, is_error end
  if tool.is_cancelled(content) then return "not run: cancelled", true end
  return text_of(content), true
end

--- Runs one call and returns the tool message that answers it. Never throws for what the model
--- sent: an unknown tool, arguments that do not fit, a tool that fails are answers with is_error.
---@param call { id: string, name: string, arguments: table }
---@return table message
function Toolset:dispatch(call)
  local function fail(format, ...)
    return messages.tool_result(call, format:format(...), true)
  end
  messages.check_call("dispatch", call)
  local tools = declared_from[call] or self.source.value
  local definition = tools.by_name[call.name]
  if not definition then
    return fail("There is no tool '%s'. The tools are: %s.", tool.cap(call.name, 100),
      table.concat(tools.order, ", "))
  end
  if type(call.arguments) ~= "table" or core.json.is_array(call.arguments) then
    return fail("The arguments of '%s' must be a JSON object.", call.name)
  end
  local ok, problems = schema.check(call.arguments, definition.parameters)
  if not ok then
    return fail("The arguments of '%s' do not fit; it was not run.\n%s\nIts parameters are: %s",
      call.name, tool.cap(problems, MAX_PROBLEM_BYTES), core.json.encode(definition.parameters))
  end
  local content, is_error = run(self, definition, call)
  return messages.tool_result(call, content, is_error)
end

-- The answer to a call whose arguments could not be read.
local function reject(call)
  return messages.tool_result(call, ("The call of '%s' was not run: %s"):format(
    tool.cap(tostring(call.name), 100), tool.cap(tostring(call.error), MAX_PROBLEM_BYTES)), true)
end

--- Every call of a reply in the order of the turn, and which of them may be run.
local function calls_of(reply)
  local calls, runnable = {}, {}
  for _, call in ipairs(reply.tool_calls or {}) do
    calls[#calls + 1] = call
    runnable[call] = true
  end
  for _, call in ipairs(reply.invalid_tool_calls or {}) do
    local place = math.tointeger(call.position) or #calls
    table.insert(calls, math.max(1, math.min(place + 1, #calls + 1)), call)
  end
  return calls, runnable
end
toolset.calls_of = calls_of

local function run_call(self, call, index, may_run)
  if index > MAX_CALLS_PER_TURN then
    return messages.tool_result(call, ("not run: at most %d calls a turn"):format(MAX_CALLS_PER_TURN), true)
  end
  if not may_run then return reject(call) end
  return self:dispatch(call)
end

local function message_of(call, outcome)
  if outcome.ok then return outcome.value end
  local text = tool.is_cancelled(outcome.error) and "not run: cancelled" or text_of(outcome.error)
  return messages.tool_result(call, text, true)
end

-- Whether the call must not run beside others of its turn.
local function is_sequential(self, call)
  local tools = declared_from[call] or self.source.value
  local definition = tools.by_name[call.name]
  return definition ~= nil and definition.sequential == true
end

-- Waits for the calls that must have ended before the i-th one begins: all of them when it is
-- sequential, else those up to the last sequential one.
local function await_turn(tasks, sequential, i)
  local last = i - 1
  if not sequential[i] then
    while last > 0 and not sequential[last] do last = last - 1 end
  end
  for at = 1, last do tasks[at]:wait() end
end

--- Answers every call of a reply: the runnable ones run in parallel, but for those of sequential tools;
--- one tool message per call is appended to `list`, in order, also when this task is cancelled
--- meanwhile. `around(call, run, may_run)` may wrap each run (policies, events); it returns the message, or
--- nothing for that of run().
--- Returns how many calls there were.
function Toolset:answer(reply, list, around)
  check_reply("answer", reply)
  if type(list) ~= "table" then misuse.expected("answer", "the list of messages to append to", list) end
  if around ~= nil and type(around) ~= "function" then
    misuse.expected("answer: what stands around a call", "a function", around)
  end
  local calls, runnable = calls_of(reply)
  local tasks, sequential = {}, {}
  for i, call in ipairs(calls) do sequential[i] = runnable[call] and is_sequential(self, call) end
  for i, call in ipairs(calls) do
    local message
    local function run_it(changed)
      if changed and changed ~= call then declared_from[changed] = declared_from[call] end
      message = run_call(self, changed or call, i, runnable[call])
      return message
    end
    tasks[i] = task.spawn(function()
      await_turn(tasks, sequential, i)
      local answer = around and around(call, run_it, runnable[call] or false)
      if answer and type(answer) ~= "table" then
        misuse.expected("answer: from what stands around a call", "a message", answer)
      end
      return answer or message or run_it()
    end)
  end
  local failure
  for i, t in ipairs(tasks) do
    local outcome
    if failure == nil or t:status() ~= "running" then
      local ok, result = pcall(function() return task.outcome_of(t:wait()) end)
      if ok then outcome = result else failure = result end
    end
    if not outcome then
      t:cancel()
      outcome = { ok = false, error = failure }
    end
    list[#list + 1] = message_of(calls[i], outcome)
  end
  if failure ~= nil then error(failure, 0) end
  return #calls
end

misuse.methods(Toolset, "tools")

function toolset.is_toolset(value) return getmetatable(value) == Toolset end

return toolset
