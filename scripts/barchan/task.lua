-- Tasks: many conversations and tool calls on one thread. Every wait in a task lets others run.
local _, core = ...

local misuse = require "barchan.misuse"

local task = {
  spawn = core.task.spawn,
  sleep = core.task.sleep,
  cancelled = core.task.cancelled,
}

-- Beyond this time, a task that does not wait for anything is stopped; one that does can be cancelled.
local GRACE = 1 -- second, to come to an end when cancelled

--- Like spawn; for who cancels the task when `seconds` are over, in case that it never waits.
---@param seconds? number nil: no limit
function task.spawn_within(seconds, fn, ...)
  if not seconds then return task.spawn(fn, ...) end
  return core.task.spawn_within(seconds + GRACE, fn, ...)
end

local function outcome_of(ok, ...)
  if not ok then return { ok = false, error = (...) } end
  local outcome = table.pack(...)
  outcome.ok, outcome.value = true, outcome[1]
  return outcome
end
task.outcome_of = outcome_of

--- Waits for a task, and cancels it when `seconds` are over: then false and `late`, a format for them.
---@param t table a task
---@param late string
function task.wait_within(seconds, t, late)
  local timed_out = false
  local _ <close> = task.spawn(function()
    task.sleep(seconds)
    timed_out = true
    t:cancel()
  end)
  local outcome = table.pack(t:wait())
  if timed_out and not outcome[1] then return false, late:format(seconds) end
  return table.unpack(outcome, 1, outcome.n)
end

--- Runs the functions as tasks and waits for all of them. One's failure leaves the others alone.
---@param functions function[]
---@return table[] outcomes in the same order: { ok = true, value = first result, n = …, [1] = … }
---                         or { ok = false, error = … }
function task.gather(functions)
  if type(functions) ~= "table" then misuse.expected("gather", "a list of functions", functions) end
  local tasks, outcomes = {}, {}
  for key in pairs(functions) do
    if math.type(key) ~= "integer" or key < 1 or key > #functions then
      misuse.throw(("gather: a list of functions expected; it has the key '%s'"):format(tostring(key)))
    end
  end
  for i, fn in ipairs(functions) do
    if type(fn) ~= "function" then
      misuse.throw(("gather: item %d: function expected, got %s"):format(i, type(fn)))
    end
  end
  for i, fn in ipairs(functions) do tasks[i] = task.spawn(fn) end
  for i, t in ipairs(tasks) do
    outcomes[i] = outcome_of(t:wait())
  end
  return outcomes
end

return task
