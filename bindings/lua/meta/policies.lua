---@meta

--- Policies: functions that an agent asks around each turn and each call. Built in: read_only, no_repeats. A policy is
--- conduct, not isolation. What `before_turn` and `before_call` answer:
---
--- | answer | of a call | of a turn |
--- |---|---|---|
--- | nothing, `true`, `"allow"` | the next policy is asked; it runs when all allow | it begins |
--- | `false`, `"deny"` | it does not run; the model gets the reason | the run ends: stop_reason "denied" |
--- | `"stop"` | as denied, and the run ends after this turn: "denied" | as denied |
--- | `{ action = "rewrite", arguments = … }` | with other arguments, if the policies after it allow that | |
---
--- A reason is a second value, or `{ action = "deny", reason = "…" }`. Any other answer, and one that throws, denies a call,
--- and ends the run before a turn with an error.

---@class barchan.Policy
---@field before_turn? fun(run: barchan.PolicyRun): ...
---@field before_call? fun(call: barchan.Call, run: barchan.PolicyRun): ...
---@field after_call? fun(call: barchan.Call, message: table, run: barchan.PolicyRun)

---@class barchan.PolicyRun
---@field id string
---@field turn integer
---@field messages table[]
---@field usage table
---@field state table this policy's own in this run; outlives reloads

---@class barchan.PoliciesOptions: (string|barchan.Policy)[]
---@field dir? string|string[] directories of policy files
---@field watch? boolean take in edits of them, from the next turn on
---@field on_event? fun(event: barchan.Event) policies_reloaded, policies_reload_failed: see the topic events

--- Policies by name, as tables, and from directories; asked in that order.
---@param options string|barchan.Policy|barchan.PoliciesOptions
---@return barchan.Policies
function barchan.policies(options) end

---@class barchan.Policies
local Policies = {}

--- Takes in edits of a watched directory now; agents do it before each turn.
---@param emit? fun(event: table)
---@return boolean
function Policies:refresh(emit) end

--- Waits until something may have changed in the directories.
function Policies:wait_change() end

---@private
function Policies:ask_turn(run) end

---@private
function Policies:ask_call(call, run) end

---@private
function Policies:tell(call, message, run) end
