-- Policies: functions that are asked around each turn and each tool call. A policy is a table with
-- any of
--   before_turn(state)            -> nil, or { action = "stop", reason = … }
--   before_call(call, state)      -> nil, or { action = "deny" | "stop", reason = … },
--                                    or { action = "rewrite", arguments = {…} }
--   after_call(call, message, state)
-- `true` and "allow" mean nil; `false` and "deny" mean deny. The first that does not allow decides.

local options = require "barchan.options"

local policy = {}

local spec = { before_turn = "function", before_call = "function", after_call = "function" }
local actions = { allow = true, deny = true, stop = true, rewrite = true }

--- A list of policies from one policy, a list, or nil.
function policy.list(given)
  if given == nil then return {} end
  local list = given[1] ~= nil and given or { given }
  for _, item in ipairs(list) do options.check("policy", item, spec) end
  return list
end

local function decision(answer, second)
  if answer == nil or answer == true then return nil end
  if answer == false then return { action = "deny", reason = second } end
  if type(answer) == "string" then answer = { action = answer, reason = second } end
  if type(answer) ~= "table" or not actions[answer.action] then
    error("a policy answered something that is no decision: allow, deny, stop and rewrite are", 0)
  end
  if answer.action == "allow" then return nil end
  return answer
end

--- The first decision on a turn that is not "allow", or nil.
function policy.ask_turn(list, state)
  for _, item in ipairs(list) do
    local decided = item.before_turn and decision(item.before_turn(state))
    if decided then return decided end
  end
end

-- What runs is a copy: the conversation keeps what the model said.
local function rewritten(call, arguments)
  local copy = {}
  for key, value in pairs(call) do copy[key] = value end
  copy.arguments = arguments
  return copy
end

--- The call as the policies rewrote it, and the first decision that is not "allow", or nil.
function policy.ask_call(list, call, state)
  for _, item in ipairs(list) do
    local decided = item.before_call and decision(item.before_call(call, state))
    if decided and decided.action == "rewrite" then
      call = rewritten(call, decided.arguments)
    elseif decided then
      return call, decided
    end
  end
  return call
end

--- Tells every policy what happened.
function policy.tell(list, name, ...)
  for _, item in ipairs(list) do
    if item[name] then item[name](...) end
  end
end

return policy
