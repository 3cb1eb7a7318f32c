--- Barchan: sandboxes, models, tools and agents. This module is the whole public API for Lua;
--- each part is a file beside this one.
local _, core = ...

local agent = require "barchan.agent"
local exec = require "barchan.exec"
local fallback = require "barchan.fallback"
local messages = require "barchan.messages"
local misuse = require "barchan.misuse"
local model = require "barchan.model"
local network = require "barchan.network"
local policy = require "barchan.policy"
local presets = require "barchan.presets"
local prices = require "barchan.prices"
local sandbox = require "barchan.sandbox"
local script = require "barchan.script"
local task = require "barchan.task"
local templates = require "barchan.templates"
local tool = require "barchan.tool"
local toolset = require "barchan.toolset"
local transcript = require "barchan.transcript"

local barchan = {
  version = core.util.version,
  json = core.json,

  -- sandboxes and what runs in them
  sandbox = sandbox.create, -- { template, network, lease, … } -> sandbox | nil, err
  connect = sandbox.connect, -- (id of a detached sandbox) -> sandbox | nil, err
  detached = sandbox.detached, -- () -> the status of each detached sandbox of this user
  sandboxes = sandbox.list, -- () -> the status of each
  templates = templates, -- list, info, remove: the snapshots of this user that sandboxes begin from
  render = exec.render, -- (exec result, { limit }) -> text for a model
  network = network.describe, -- (network option) -> { mode, allow, deny, sources, notes } | nil, err
  doctor = core.sandbox.doctor, -- () -> list of { name, state, detail, remedy } | nil, err

  -- models and conversations
  model = model.create, -- { provider, name, … } -> model | nil, err
  recorded = model.recorded, -- (path) -> options of the model that plays the file
  prices = prices, -- "provider:name" -> what a million tokens cost; to add to
  presets = presets, -- name -> how a service is asked; to add to
  fallback = fallback, -- { model, … } -> a model that asks the next one when one cannot answer
  user = messages.user, -- (text | parts) -> message
  tool_result = messages.tool_result, -- (call, content, is_error) -> message

  -- tools and agents
  tool = tool.check, -- (definition) -> definition, or throws what is wrong with it
  result = tool.result, -- { text, images, is_error } -> what a tool may return
  toolset = toolset.create, -- { "run_python", …, dir = …, sandbox = … } -> toolset
  agent = agent.create, -- { model, tools, system, max_steps, … } -> agent
  policies = policy.create, -- { "no_repeats", …, dir = …, watch = … } -> policies
  script = script.create, -- { file, watch } -> a loop of one's own that may be edited while it runs
  transcript = transcript, -- open, read

  -- tasks
  spawn = task.spawn, -- (fn, …) -> task
  gather = task.gather, -- { fn, … } -> { { ok, … }, … }
  sleep = task.sleep, -- (seconds)
  now = core.util.now, -- () -> seconds of a clock that only runs forward
  coroutine = core.task.coroutine, -- a coroutine library that waits pass through

  -- `host.tools`: the tools that the host application has registered by now
  host = setmetatable({}, {
    __index = function(_, key) return key == "tools" and tool.host_tools() or nil end,
  }),
}

misuse.publish(barchan)
misuse.publish(templates)
misuse.publish(transcript)

return barchan
