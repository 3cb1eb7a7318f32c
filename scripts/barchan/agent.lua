-- The default agent loop: ask the model, run the tools it calls, until it answers. Copy this file and
-- change it: everything it uses is public.
local messages = require "barchan.messages"
local model = require "barchan.model"
local misuse = require "barchan.misuse"
local options = require "barchan.options"
local policy = require "barchan.policy"
local task = require "barchan.task"
local tool = require "barchan.tool"
local toolset = require "barchan.toolset"
local util = require "barchan.util"

local agent = {}

local MAX_SECONDS = 1000000000 -- of one wait
local MAX_PAUSES = 5 -- a provider's own tool loop may ask to be continued, but not for ever
local WRAP_UP = "You have used all the steps that you had. Do not call tools any more: answer now "
  .. "with what you know, and say what is left undone."

local spec = {
  model = "table",
  tools = "table",
  system = "string",
  max_steps = "integer", -- completions with tools; default 16
  max_tokens = "integer", -- of one completion
  max_seconds = "number", -- of a run
  max_output_tokens = "integer", -- of a run
  policy = "string or table", -- a name, a policy, a list of them, or barchan.policies
  on_event = "function", -- (event): every event of the run
  on_delta = "function", -- (text): the answer as it arrives
  transcript = "table",
  stream = "boolean",
  effort = "string", -- how hard the model thinks: minimal, low, medium, high, xhigh, max
  cache = "boolean", -- what stays of the conversation; default: at the provider's own address
  extra = "table",
}

---@class barchan.Agent
local Agent = { __name = "barchan.agent" }
Agent.__index = Agent

--- An agent: model + tools + policy + limits. Runs are independent of each other.
---@return barchan.Agent
function agent.create(given)
  options.check("agent", given, spec)
  if given.model == nil then misuse.throw("agent: option 'model' is missing") end
  if type(given.model.complete) ~= "function" then
    misuse.throw("agent: option 'model': a model expected (barchan.model), or a table with complete")
  end
  if given.effort then model.check_effort("agent", given.effort) end
  local tools = given.tools
  if tools ~= nil and not toolset.is_toolset(tools) then tools = toolset.create(tools) end
  local self = {}
  for key, value in pairs(given) do self[key] = value end
  local ok, policies = pcall(policy.of, given.policy)
  if not ok then misuse.within("agent", policies) end
  self.model = model.of(given.model)
  self.policies = policies
  self.tools = tools
  self.max_steps = given.max_steps or 16
  if self.cache == nil then self.cache = given.model.at_home end
  for _, name in ipairs { "max_steps", "max_seconds", "max_output_tokens", "max_tokens" } do
    if self[name] and self[name] <= 0 then
      misuse.throw(("agent: option '%s' must be greater than 0"):format(name))
    end
  end
  if self.max_seconds and self.max_seconds > MAX_SECONDS then
    misuse.throw(("agent: option 'max_seconds' is at most %d; leave it out for no limit"):format(MAX_SECONDS))
  end
  return setmetatable(self, Agent)
end

-- ---- one run ----

local Run = {}
Run.__index = Run

function Run:emit(event)
  self.seq = self.seq + 1
  event.seq = self.seq
  event.time = util.wall_time()
  event.run_id = self.id
  event.turn = event.turn or self.turn
  util.emit(event)
  if self.agent.transcript then self.agent.transcript:write(event) end
  if self.agent.on_event then self.agent.on_event(event) end
end

local usage_fields = {
  "input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens",
}

function Run:count(usage)
  if type(usage) ~= "table" then return end
  for _, field in ipairs(usage_fields) do
    if math.type(usage[field]) == "integer" and usage[field] >= 0 then
      self.usage[field] = (self.usage[field] or 0) + usage[field]
    end
  end
end

-- One completion. `choice` is "none" for the wrap-up turn.
function Run:complete(choice)
  local a = self.agent
  self.turn = self.turn + 1
  self:emit { type = "turn_started" }
  local tools = a.tools
  if tools then tools:refresh(self.tell) end
  local reply, err = a.model:complete {
    messages = self.messages,
    tools = tools,
    system = a.system,
    tool_choice = choice,
    max_tokens = a.max_tokens,
    stream = a.stream,
    effort = a.effort,
    cache = a.cache,
    extra = a.extra,
    on_event = function(kind, data)
      if kind == "retry" then
        self:emit { type = "retry", attempt = data.attempt, wait = data.wait, code = data.code,
          message = data.error }
      elseif kind == "fallback" then
        self:emit { type = "fallback", from = data.from, to = data.to, code = data.code,
          message = data.error }
      else
        self:emit { type = kind == "restart" and "restart" or kind .. "_delta", text = data }
      end
      if kind == "text" and a.on_delta then a.on_delta(data) end
    end,
  }
  if not reply then return nil, err end
  self.messages[#self.messages + 1] = reply
  self.text = reply.text ~= "" and reply.text or self.text
  self:count(reply.usage or {})
  self.cost = self.cost and reply.cost and self.cost + reply.cost
  self:emit { type = "model_reply", reply = reply }
  return reply
end

-- The call as policies have it, and what they decided. One that throws has denied the call.
function Run:ask_policies(call)
  local policies = self.agent.policies
  local ok, new, decided = pcall(policies.ask_call, policies, call, self)
  if ok then return new, decided end
  if tool.is_cancelled(new) then error(new, 0) end
  self:emit { type = "policy_failed", message = tool.message(new) }
  return call, { action = "deny", reason = "the policy failed: " .. tool.message(new) }
end

-- Runs one call under the policies; returns the tool message.
function Run:call(call, run_call, may_run)
  local started = util.now()
  local decided
  if may_run then call, decided = self:ask_policies(call) end
  self.open[call.id] = { call = call, started = started }
  self:emit {
    type = "tool_call", call_id = call.id, name = call.name,
    arguments = call.arguments or call.arguments_text,
  }
  local message
  if decided then
    local reason = decided.reason or "the policy does not allow it"
    message = messages.tool_result(call, "not run: denied: " .. reason, true)
    if decided.action == "stop" and not self.stopped then
      self.stopped, self.reason = "denied", reason
    end
  else
    message = run_call(call)
  end
  self:answered(call, message, util.now() - started)
  local ok, problem = pcall(self.agent.policies.tell, self.agent.policies, call, message, self)
  if not ok then self:emit { type = "policy_failed", message = tool.message(problem) } end
  return message
end

function Run:answered(call, message, seconds)
  self.open[call.id] = nil
  self:emit {
    type = "tool_result", call_id = call.id, name = call.name, content = message.content,
    is_error = message.is_error, seconds = seconds,
  }
end

-- Answers what the last turn called and nobody has answered, so that the conversation can go on.
function Run:pair_up(reason)
  local at = #self.messages
  while at > 0 and self.messages[at].role == "tool" do at = at - 1 end
  local reply = self.messages[at]
  if not reply or reply.role ~= "assistant" then return end
  local answered = {}
  for i = at + 1, #self.messages do answered[self.messages[i].tool_call_id] = true end
  for _, call in ipairs(toolset.calls_of(reply)) do
    if not answered[call.id] then
      local message = messages.tool_result(call, "not run: " .. reason, true)
      self.messages[#self.messages + 1] = message
    end
  end
  for _, open in pairs(self.open) do
    local message = messages.tool_result(open.call, "not finished: " .. reason, true)
    pcall(self.answered, self, open.call, message, util.now() - open.started)
  end
end

-- Why the run must end before another completion, or nil.
function Run:limit()
  local a = self.agent
  a.policies:refresh(self.tell)
  if self.stopped then return self.stopped end
  if self.ends and util.now() >= self.ends then return "budget" end
  local used = self.usage.output_tokens or 0
  if a.max_output_tokens and used >= a.max_output_tokens then return "budget" end
  local decided = a.policies:ask_turn(self)
  if decided then
    self.reason = decided.reason or "the policy does not allow it"
    return "denied"
  end
end

-- After `max_steps` the model gets one turn without tools, so that the work is not lost.
function Run:wrap_up()
  self.messages[#self.messages + 1] = messages.user(WRAP_UP)
  local reply, err = self:complete "none"
  if not reply then return "error", err end
  self:answer(reply) -- a model may call tools all the same: keep the conversation paired
  return "max_steps"
end

function Run:answer(reply)
  if #toolset.calls_of(reply) == 0 then return 0 end
  local tools = self.agent.tools or toolset.create {}
  return tools:answer(reply, self.messages, function(call, run_call, may_run)
    if self.closing then return messages.tool_result(call, "not run: no steps are left", true) end
    return self:call(call, run_call, may_run)
  end)
end

-- What the loop does with a reply: nil to go on, or the stop reason.
function Run:judge(reply)
  local reason = reply.stop_reason
  if reason == "pause_turn" then
    self:answer(reply)
    self.pauses = self.pauses + 1
    if self.pauses > MAX_PAUSES then return "pause_turn" end
    return nil
  end
  local answered = self:answer(reply)
  if reason == "tool_use" or reason == "end_turn" or reason == "stop_sequence" then
    return answered == 0 and (reason == "tool_use" and "end_turn" or reason) or nil
  end
  return reason -- max_tokens, refusal, content_filter, context_window, error
end

function Run:loop()
  for _ = 1, self.agent.max_steps do
    local limited = self:limit()
    if limited then return limited end
    local reply, err = self:complete()
    if not reply then return "error", err end
    local stop = self:judge(reply)
    if stop then return stop end
  end
  local limited = self:limit()
  if limited then return limited end
  self.closing = true
  return self:wrap_up()
end

-- Runs the loop as a task that is cancelled when its time is over.
local function within(seconds, run)
  if not seconds then return run:loop() end
  run.ends = util.now() + seconds
  local t <close> = task.spawn_within(seconds, run.loop, run)
  local _ <close> = task.spawn(function()
    task.sleep(seconds)
    run.timed_out = true
    t:cancel()
  end)
  local outcome = table.pack(t:wait())
  if outcome[1] then return outcome[2], outcome[3] end
  local why = outcome[2]
  -- Something that ran past it without waiting, which nobody could cancel, has been stopped.
  local stopped = type(why) == "table" and rawget(why, "code") == "timeout"
  if stopped and util.now() >= run.ends then return "budget" end
  error(why, 0)
end

function Run:result(stop_reason, err)
  return {
    text = self.text,
    stop_reason = stop_reason,
    reason = stop_reason == "denied" and self.reason or nil,
    error = err,
    usage = self.usage,
    cost = self.cost,
    messages = self.messages,
    turns = self.turn,
    run_id = self.id,
  }
end

local function error_fields(err)
  if err == nil then return nil end
  if type(err) ~= "table" then return { message = tool.message(err) } end
  return { code = err.code, message = tool.message(err), status = err.status,
    request_id = err.request_id, retryable = err.retryable }
end

function Run:finish(stop_reason, err)
  if self.finished then return end
  self.finished = true
  self:pair_up(stop_reason)
  -- The end is told even when what listens has failed before.
  pcall(self.emit, self, {
    type = "run_finished", stop_reason = stop_reason, error = error_fields(err), text = self.text,
    reason = stop_reason == "denied" and self.reason or nil, usage = self.usage, cost = self.cost,
  })
end

--- Runs the agent on a prompt (text, a message, or a list of messages to go on from). Always returns
--- a result: { text, stop_reason, reason, error, usage, cost, messages, turns, run_id }. `cost` is in
--- dollars, nil when a price is not known (barchan.prices). stop_reason is one of
--- end_turn, stop_sequence, max_steps, max_tokens, refusal, content_filter, context_window,
--- pause_turn, budget, denied, cancelled, error; `error` is set with error and cancelled,
--- `reason` with denied: what the policy said.
---@param prompt string|table
---@return table result
function Agent:run(prompt)
  if type(prompt) ~= "string" and type(prompt) ~= "table" then
    misuse.throw("run: a prompt expected: text, a message or a list of messages; got " .. type(prompt))
  end
  local list = {}
  for i, message in ipairs(messages.list(prompt)) do
    if type(message) ~= "table" then misuse.expected(("run: message %d"):format(i), "a table", message) end
    list[i] = message
  end
  local run = setmetatable({
    open = {}, agent = self, messages = list, id = util.random_id "run-", seq = 0, turn = 0, pauses = 0,
    text = "", usage = { input_tokens = 0, output_tokens = 0 }, cost = 0, policy_state = {},
  }, Run)
  run.tell = function(event) run:emit(event) end
  -- Told exactly once, also when the task is closed under the run.
  local _ <close> = setmetatable({}, { __close = function() run:finish("cancelled") end })
  local ok, stop_reason, err = pcall(function()
    run:emit {
      type = "run_started", model = tostring(self.model), messages = list, system = self.system,
      tools = self.tools and self.tools:declarations() or nil,
    }
    return within(self.max_seconds, run)
  end)
  if not ok then
    stop_reason, err = "error", stop_reason
    if err == nil then err = "nil was thrown" end
  end
  if type(err) == "table" and err.code == "cancelled" then
    stop_reason = run.timed_out and "budget" or "cancelled"
    if run.timed_out then err = nil end
  end
  run:finish(stop_reason, err)
  return run:result(stop_reason, err)
end

misuse.methods(Agent, "agent")

return agent
