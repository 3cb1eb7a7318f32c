---@meta

--- Tasks: many conversations and calls on one thread. In a task everything that waits lets others run; outside
--- tasks (a plain script under stock lua5.4) the same calls just wait. A task's own tasks end with it.

--- Runs a function as a task. At most 2^20 that have not ended.
---@param fn function
---@param ... any its arguments
---@return barchan.Task
function barchan.spawn(fn, ...) end

--- Runs functions as tasks and waits for all; one's failure leaves the others alone. Of one that returned, its
--- outcome has ok = true, `value`, the first result, and all of them by number: outcome[1] to outcome[outcome.n]. Of
--- one that threw, it has ok = false and `error`.
---@param functions function[] a list without holes
---@return { ok: boolean, value: any, n: integer?, error: any }[] outcomes in the same order
function barchan.gather(functions) end

--- Waits.
---@param seconds number 0 to 1e9; 0 lets other tasks run
function barchan.sleep(seconds) end

---@class barchan.Task
local Task = {}

--- Waits for its end: true and what it returned, or false and what it threw. There is no timeout to give: to wait for
--- so long at most, cancel the task from another one that sleeps.
---@return boolean ok
---@return any ...
function Task:wait() end

--- Has its waits throw "cancelled", now and later, and those of its own tasks. One that has not begun, or that gives
--- others a turn by coroutine.yield, ends there.
function Task:cancel() end

--- "running", "done" or "failed".
---@return string
function Task:status() end
