-- Sandboxes as scripts see them.
local _, core = ...

local exec = require "barchan.exec"
local files = require "barchan.files"
local options = require "barchan.options"

local sandbox = {}

local open = setmetatable({}, { __mode = "k" })

local profile_spec = {
  template = "string",
  network = "string",
  lease = "number",
  limits = "table",
  env = "table",
  best_effort = "boolean",
  timeout = "number",
}

--- The limits that a profile may have, and the type of each.
sandbox.limits = {
  memory = "integer", -- bytes, of all commands and files together
  cpus = "number",    -- processors, of all commands together
  pids = "integer",   -- processes and threads, of all commands together
  disk = "integer",   -- bytes of everything writable
  files = "integer",
  open_files = "integer",  -- of each process
  output = "integer",      -- bytes written by each command
  cpu_seconds = "number",  -- of each command
  wall = "number",         -- seconds, of each command
}

local function check_limits(limits)
  options.check("sandbox: limits", limits, sandbox.limits, 4)
  for name, value in pairs(limits) do
    if value <= 0 then error(("sandbox: limits: option '%s' must be greater than 0"):format(name), 3) end
  end
end

---@class barchan.Sandbox
---@field files table
local Sandbox = { __name = "barchan.sandbox" }
Sandbox.__index = Sandbox

function Sandbox:__tostring() return tostring(self.handle) end

function Sandbox:__close() self.handle:terminate() end

--- Runs a command and waits for its result. A string runs in /bin/sh; in a table the array part is
--- the command's words and the named keys are options: sh, cwd, env, stdin, timeout (seconds,
--- default 60), grace, output_limit (bytes kept per stream), detach.
--- Whatever the command does is in the result; nil, err means that it could not be asked for.
---@param command string|table
function Sandbox:exec(command)
  local request = exec.request("exec", command)
  local handle, err = self.handle:exec(request)
  if not handle then return nil, err end
  local result, failure = handle:wait()
  if not result then return nil, failure end
  return exec.wrap_result(result)
end

--- Runs a command and gives its output as it comes:
---   for stream, chunk in sbx:stream { "make", "-j4" } do io.write(chunk) end
--- The value itself has :result(), :write(data), :close_input(), :signal(n) and :cancel(). With
--- `stdin = true` its input stays open for :write.
---@param command string|table
function Sandbox:stream(command)
  local given = command
  local open_input = type(command) == "table" and command.stdin == true
  if open_input then
    given = {}
    for key, value in pairs(command) do given[key] = value end
    given.stdin = nil
  end
  local request = exec.request("stream", given)
  request.streaming = true
  request.input_streaming = open_input or nil
  local handle, err = self.handle:exec(request)
  if not handle then error(err, 2) end
  local stream = exec.new_stream(handle, open_input)
  return stream, nil, nil, stream
end

--- id, state, end_reason, template, age, lease_left, running, layers
function Sandbox:status() return self.handle:status() end

--- What it has used so far, or had when it ended: wall, cpu, user, system (seconds); memory,
--- memory_peak, disk (bytes), memory_byte_seconds; bytes_in, bytes_out; execs; cpu_counted and
--- memory_counted tell whether the kernel counted the whole, or process 1 what it saw.
function Sandbox:usage() return self.handle:usage() end

--- Starts to end everything in it. Never waits; idempotent.
function Sandbox:terminate() self.handle:terminate() end

--- Creates a sandbox: template ("host" or a directory), network ("off"), lease (seconds, default
--- 1800), limits { memory, cpus, pids, disk, files, open_files, output, cpu_seconds, wall }, env,
--- best_effort, timeout (of the creation). What holds each limit is in status().layers.
---@return barchan.Sandbox? sandbox
---@return table? err
function sandbox.create(profile)
  profile = profile or {}
  options.check("sandbox", profile, profile_spec)
  if profile.network ~= nil and profile.network ~= "off" then
    error(("sandbox: option 'network': '%s' is not available; 'off' is"):format(profile.network), 2)
  end
  if profile.limits then check_limits(profile.limits) end
  local handle, err = core.sandbox.create(profile)
  if not handle then return nil, err end
  local self = setmetatable({ handle = handle }, Sandbox)
  open[self] = true
  self.files = files.new(handle)
  return self
end

--- The status of each sandbox that this Lua state has made and not dropped.
function sandbox.list()
  local list = {}
  for self in pairs(open) do list[#list + 1] = self:status() end
  table.sort(list, function(a, b) return a.id < b.id end)
  return list
end

return sandbox
