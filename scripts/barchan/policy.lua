-- Policies: functions that are asked around each turn and each tool call. A policy is a table with any of
--   before_turn(run)         -> nil, or { action = "stop", reason = … }
--   before_call(call, run)   -> nil, or { action = "deny" | "stop", reason = … },
--                               or { action = "rewrite", arguments = {…} }
--   after_call(call, message, run)
-- `true` and "allow" mean nil; `false` and "deny" mean deny; a reason may follow a word as a second value.
-- The first that does not allow decides. `run` has turn, messages, usage, id, and `state`: a table of this
-- policy's own for this run, which outlives a reload.
local built_in = require "barchan.built_in"
local misuse = require "barchan.misuse"
local options = require "barchan.options"
local snapshot = require "barchan.snapshot"
local source = require "barchan.source"

local policy = {}

local spec = { before_turn = "function", before_call = "function", after_call = "function" }
local set_spec = {
  [1] = "string or table",
  dir = "string or table",
  watch = "boolean",
  on_event = "function",
}
local actions = { allow = true, deny = true, stop = true, rewrite = true }

-- ---- where policies come from ----

local function is_policy(value)
  return type(value) == "table" and (value.before_turn or value.before_call or value.after_call) ~= nil
end

local function definitions(value, name)
  if not is_policy(value) then return nil end
  return { { name = name, definition = options.check("policy", value, spec) } }
end

local kind = {
  definitions = definitions,
  expected = "a policy file returns a table with before_turn, before_call or after_call",
}

--- The policies of directories as they are now: { by_name, order } | nil, { file, line, message }.
function policy.snapshot(dirs) return snapshot.take(dirs, kind) end

-- A list of { key, policy }: what was given, in its order, then those of the directories by name. `key` is
-- what a policy's state is kept under.
local function collect(given, taken)
  local list, taken_by_name = {}, {}
  for _, item in ipairs(given) do
    if type(item) == "string" then
      taken_by_name[item] = true
      local found = taken.by_name[item] or built_in.load("policies", item, "policy")
      list[#list + 1] = { key = item, policy = found }
    else
      list[#list + 1] = { key = item, policy = options.check("policy", item, spec) }
    end
  end
  for _, name in ipairs(taken.order) do
    if not taken_by_name[name] then list[#list + 1] = { key = name, policy = taken.by_name[name] } end
  end
  return list
end

local function open_source(given)
  local function build(taken) return collect(given, taken) end
  return source.open_dirs(given, "policies", policy.snapshot, build)
end

---@class barchan.Policies
local Policies = { __name = "barchan.policies" }
Policies.__index = Policies

--- Policies by name, as tables, and every policy file of `dir` (a path or a list of paths; a later one
--- wins). With `watch`, an edit of a file is asked from the next turn on; `on_event` gets what came of it.
---@return barchan.Policies
function policy.create(given)
  local one = type(given) == "table" and given[1] == nil and given.dir == nil and next(given) ~= nil
  if type(given) == "string" or one then given = { given } end
  options.check("policies", given or {}, set_spec)
  local ok, opened = pcall(open_source, given or {})
  if not ok then misuse.within("policies", opened) end
  return setmetatable({ source = opened }, Policies)
end

--- The policies that an option means: such a set, or what makes one; nil means none.
function policy.of(value)
  if getmetatable(value) == Policies then return value end
  return policy.create(value)
end

--- Takes in what changed in the directories since the last call, as toolset:refresh does.
function Policies:refresh(emit) return self.source:refresh(emit) end

--- Waits until something may have changed in the directories; then refresh takes it in.
function Policies:wait_change()
  if not self.source.watch then misuse.throw("wait_change: the policies are not watched") end
  self.source:wait_change()
end

-- ---- asking ----

-- What a policy sees of a run.
local function view(run, item)
  local state = run.policy_state[item.key]
  if not state then
    state = {}
    run.policy_state[item.key] = state
  end
  return { id = run.id, turn = run.turn, messages = run.messages, usage = run.usage, state = state }
end

local function decision(answer, second)
  if answer == nil or answer == true then return nil end
  if answer == false then return { action = "deny", reason = second } end
  if type(answer) == "string" then answer = { action = answer, reason = second } end
  if type(answer) ~= "table" or not actions[answer.action] then
    error("a policy answered something that is no decision: nil, true, false, \"allow\", \"deny\" and "
      .. "\"stop\" are, and a table { action, reason, arguments } with one of these words or \"rewrite\"", 0)
  end
  if answer.action == "allow" then return nil end
  local reason = answer.reason
  if reason ~= nil and type(reason) ~= "string" then
    answer = { action = answer.action, arguments = answer.arguments, reason = tostring(reason) }
  end
  return answer
end

-- What runs is a copy: the conversation keeps what the model said.
local function rewritten(call, arguments)
  local copy = {}
  for key, value in pairs(call) do copy[key] = value end
  copy.arguments = arguments
  return copy
end

--- The first decision on a turn that is not "allow", or nil.
function Policies:ask_turn(run)
  for _, item in ipairs(self.source.value) do
    local fn = item.policy.before_turn
    local decided = fn and decision(fn(view(run, item)))
    if decided then return decided end
  end
end

--- The call as the policies rewrote it, and the first decision that is not "allow", or nil.
function Policies:ask_call(call, run)
  for _, item in ipairs(self.source.value) do
    local fn = item.policy.before_call
    local decided = fn and decision(fn(call, view(run, item)))
    if decided and decided.action == "rewrite" then
      call = rewritten(call, decided.arguments)
    elseif decided then
      return call, decided
    end
  end
  return call
end

--- Tells every policy how a call was answered.
function Policies:tell(call, message, run)
  for _, item in ipairs(self.source.value) do
    if item.policy.after_call then item.policy.after_call(call, message, view(run, item)) end
  end
end

misuse.methods(Policies, "policies")

return policy
