-- Sandboxes as scripts see them.
local _, core = ...

local exec = require "barchan.exec"
local files = require "barchan.files"
local misuse = require "barchan.misuse"
local network = require "barchan.network"
local options = require "barchan.options"
local price = require "barchan.price"
local process = require "barchan.process"
local profile = require "barchan.profile"
local secrets = require "barchan.secrets"

local sandbox = { limits = profile.limits }

local MAX_SECONDS = 1000000000 -- that the core takes

local open = setmetatable({}, { __mode = "k" })

---@class barchan.Sandbox
---@field id string
---@field files table
local Sandbox = { __name = "barchan.sandbox" }
Sandbox.__index = Sandbox

local function wrap(handle, made_of)
  local self = setmetatable({
    handle = handle,
    price = made_of.price,
    limits = made_of.limits or {},
    max_cost_micros = made_of.max_cost_micros,
    detached = made_of.detached,
    network = made_of.network,
    watcher = not made_of.detached and network.watch(handle, made_of.network) or nil,
  }, Sandbox)
  self.id = handle:status().id
  open[self] = true
  self.files = files.new(handle)
  return self
end

function Sandbox:__tostring() return tostring(self.handle) end

-- A detached sandbox is only let go of.
function Sandbox:__close()
  if self.detached then self:detach() else self:terminate() end
end

-- What on_connect has to answer while this waits is answered by a task, which a wait outside of tasks would
-- not resume.
local function wait_for(self, handle)
  if not self.watcher then return handle:wait() end
  local ok, result, err = core.task.spawn(handle.wait, handle):wait()
  if not ok then error(result, 0) end
  return result, err
end

--- Runs a command and waits for its result. A string runs in /bin/sh; in a table the array part is
--- the command's words and the named keys are options: sh, cwd, env, stdin, timeout (seconds,
--- default 60), grace, output_limit (bytes kept per stream), detach.
--- Whatever the command does is in the result; nil, err means that it could not be asked for.
---@param command string|table
function Sandbox:exec(command, ...)
  local request = exec.request("exec", command, ...)
  local handle, err = self.handle:exec(request)
  if not handle then return nil, err end
  local result, failure = wait_for(self, handle)
  if not result then return nil, failure end
  return exec.wrap_result(result, request)
end

--- Runs a command and gives its output as it comes:
---   for stream, chunk in sbx:stream { "make", "-j4" } do io.write(chunk) end
--- The value itself has :result(), :write(data), :close_input(), :signal(n) and :cancel(). With
--- `stdin = true` its input stays open for :write. Throws the error when it could not be asked for, and the
--- loop when it could not be started, as iterators do.
---@param command string|table
function Sandbox:stream(command, ...)
  local given = command
  local open_input = type(command) == "table" and command.stdin == true
  if open_input then
    given = {}
    for key, value in pairs(command) do given[key] = value end
    given.stdin = nil
  end
  local request = exec.request("stream", given, ...)
  request.streaming = true
  request.input_streaming = open_input or nil
  local handle, err = self.handle:exec(request)
  if not handle then error(err, 0) end
  local stream = exec.new_stream(handle, request, open_input)
  return stream, nil, nil, stream
end

--- Starts a command and gives a handle that lives as long as it does: :read, :read_at, :output, :write,
--- :close_input, :signal, :resize, :kill, :wait(seconds), :running. Its output is kept, the last
--- `backlog` bytes of each stream (1 MiB by default), until it is read; it is never held up by that.
--- With pty = { cols, rows } it has a terminal. <close> kills it.
---@param command string|table as for exec, without output_limit; `detach` in a detached sandbox only
---@return barchan.Process? process
---@return table? err
function Sandbox:spawn(command, ...)
  local request = exec.spawn_request(command, ...)
  local handle, err = self.handle:spawn(request)
  if not handle then return nil, err end
  return process.new(handle, request)
end

--- The processes of its commands: a list of { pid, parent, threads, state, id, cpu, memory, command } (the
--- first 264), and how many there are. `id` is that of the handle it belongs to.
function Sandbox:processes() return self.handle:processes() end

--- Other lists (allow, deny, hosts) for connections from now on; see barchan.network.set.
function Sandbox:set_network(given) return network.set(self.handle, given) end

--- Another value for a secret, under the same placeholder, for requests from now on.
function Sandbox:set_secret(name, value)
  if type(name) ~= "string" then misuse.expected("set_secret", "the name of a secret", name) end
  if type(value) ~= "string" then misuse.throw("set_secret: a string expected, got a " .. type(value)) end
  if name:find("\0", 1, true) then misuse.throw "set_secret: a name without a NUL byte expected" end
  return self.handle:set_secret(name, value)
end

--- id, state, end_reason, template, age, lease_left, running, layers
function Sandbox:status() return self.handle:status() end

--- What it has used so far, or had when it ended: wall, cpu, user, system (seconds); memory,
--- memory_peak, disk (bytes), memory_byte_seconds; bytes_in, bytes_out; execs; cpu_counted and
--- memory_counted tell whether the kernel counted the whole, or process 1 what it saw.
--- With a `price` in the profile: cost_micros, too. `network` is a list of { host, connections, denied,
--- failed, bytes_sent, bytes_received }, `connections` those that are open; both are nil once a detached
--- sandbox has ended, for its holder counted them.
function Sandbox:usage()
  local usage, err = self.handle:usage()
  if not usage then return nil, err end
  if self.price then usage.cost_micros = price.cost(self.price, self.limits, usage) end
  local hosts, connections = self.handle:network()
  if hosts then usage.network, usage.connections = core.json.array(hosts), connections end
  return usage
end

--- What commands have changed in a copy-on-write mount: a list, sorted by path, of { path, kind, type, size,
--- mode, mtime, link_target }, kind being "added", "modified" or "deleted". The second result is true when it
--- is not complete. `target` names the mount, unless there is only one; without one it is /workspace, where
--- everything is new.
---@param target string?
function Sandbox:changes(target)
  if target ~= nil and type(target) ~= "string" then
    misuse.throw("changes: the target of a mount expected, got " .. type(target))
  end
  return self.handle:file { op = "changes", path = target }
end

local apply_spec = {
  target = "string",
  paths = "table",
  on_conflict = "string", -- "refuse" (default), "skip" or "overwrite"
  dry_run = "boolean",
  links = "boolean",
  max_bytes = "integer",
  timeout = "number",
}
local conflict_words = { refuse = true, skip = true, overwrite = true }

local function check_paths(paths)
  for i, path in pairs(paths) do
    if math.type(i) ~= "integer" or type(path) ~= "string" then
      misuse.throw "apply_changes: option 'paths': a list of paths expected"
    end
  end
end

-- As changes are named; shells complete "src/", and "./src" is the same.
local function plain(path)
  path = path:gsub("^%./+(.)", "%1")
  return (path:gsub("(.)/+$", "%1"))
end

-- Which of these paths have no change at or below them.
local function unchanged(paths, entries)
  local left = {}
  for _, path in ipairs(paths) do
    local found = false
    for _, entry in ipairs(entries) do
      found = found or entry.path == path or entry.path:sub(1, #path + 1) == path .. "/"
    end
    if not found then left[#left + 1] = path end
  end
  return left
end

--- Writes the changes of a copy-on-write mount onto the host's folder `dest`, which may be the mount's
--- source: { applied, conflicts, skipped, bytes, entries = { { path, kind, type, outcome, why }, … } }. What
--- somebody has changed on the host meanwhile is a conflict: then nothing is applied, and err.code is
--- "conflict", unless on_conflict says otherwise. `paths` applies a part, and `unchanged` of the result are
--- those with nothing to apply; `dry_run` says what would happen.
---@param dest string
function Sandbox:apply_changes(dest, opts)
  if type(dest) ~= "string" then misuse.throw("apply_changes: a folder expected, got " .. type(dest)) end
  opts = options.check("apply_changes", opts or {}, apply_spec)
  options.seconds("apply_changes", opts, "timeout")
  if opts.max_bytes and opts.max_bytes < 0 then
    misuse.throw "apply_changes: option 'max_bytes' must not be negative"
  end
  check_paths(opts.paths or {})
  if opts.on_conflict and not conflict_words[opts.on_conflict] then
    misuse.throw("apply_changes: option 'on_conflict': \"refuse\", \"skip\" or \"overwrite\" expected")
  end
  local request = { dest = dest }
  for name, value in pairs(opts) do request[name] = value end
  if opts.paths then
    request.paths = {}
    for i, path in ipairs(opts.paths) do request.paths[i] = plain(path) end
  end
  local result, err = self.handle:apply(request)
  if not result then return nil, err end
  result.unchanged = unchanged(request.paths or {}, result.entries)
  return result
end

local snapshot_spec = { replace = "boolean", note = "string", timeout = "number" }

--- Keeps what is in /home/user, /workspace, /tmp and /var/tmp as a template, from which other sandboxes
--- begin (`template = name`): { name, base, note, created, entries, bytes, left_out }. Nothing may run in it:
--- err.code is "busy" otherwise, and the message names the processes. What is mounted is not part of it.
---@param name string
function Sandbox:snapshot(name, opts)
  if type(name) ~= "string" then misuse.throw("snapshot: a name expected, got " .. type(name)) end
  opts = options.check("snapshot", opts or {}, snapshot_spec)
  options.seconds("snapshot", opts, "timeout")
  local request = { name = name }
  for key, value in pairs(opts) do request[key] = value end
  return self.handle:snapshot(request)
end

--- Makes `count` sandboxes, 1 to 64, that begin with this one's files as they are now and share them
--- copy-on-write; all, or nil, err. Each has this one's profile, and a lease of its own. This one lives on;
--- nothing may run in it.
---@param count integer
---@return barchan.Sandbox[]? forks
---@return table? err
function Sandbox:fork(count)
  if math.type(count) ~= "integer" or count < 1 or count > 64 then
    misuse.throw("fork: how many sandboxes, 1 to 64, expected")
  end
  local handles, err = self.handle:fork(count)
  if not handles then return nil, err end
  local forks = {}
  for i, handle in ipairs(handles) do
    local made_of = { price = self.price, limits = self.limits, max_cost_micros = self.max_cost_micros,
      network = self.network }
    forks[i] = wrap(handle, made_of)
  end
  return forks
end

--- Has every process stand still (:resume lets them go on). The lease runs on, commands' time does not.
function Sandbox:pause() return self.handle:pause() end

function Sandbox:resume() return self.handle:resume() end

--- Adds seconds to the lease: to what is left, or from now on when it is over and has paused. Refused
--- where max_cost_micros could be passed.
---@param seconds number
function Sandbox:extend(seconds)
  if type(seconds) ~= "number" or not (seconds > 0 and seconds <= MAX_SECONDS) then
    misuse.expected("extend", ("seconds, greater than 0, at most %d,"):format(MAX_SECONDS), seconds)
  end
  if self.max_cost_micros then
    local usage, err = self:usage()
    if not usage then return nil, err end
    local lease_left = self:status().lease_left + seconds
    local most = usage.cost_micros + price.most(self.price, self.limits, lease_left)
    if most > self.max_cost_micros then
      return nil, price.refusal(("extend: %g s more could bring its cost to %.0f micros; "
        .. "max_cost_micros is %.0f"):format(seconds, most, self.max_cost_micros))
    end
  end
  return self.handle:extend(seconds)
end

--- Starts to end everything in it. Never waits; idempotent.
function Sandbox:terminate()
  local _, err = self.handle:terminate()
  if self.watcher then self.watcher:cancel() end
  if err then return nil, err end -- it was let go of, and is not this handle's to end
end

-- What stands for the handle of a sandbox that was let go of: only its last status is known.
local function gone(status)
  local id = tostring(status.id)
  local function refuse()
    return nil, core.util.error {
      code = "closed", retryable = false,
      message = ("this handle has let go of the sandbox, which lives on: barchan.connect(%q) gives another")
        :format(id),
    }
  end
  status.state, status.end_reason, status.running = "ended", "detached", 0
  local function last_status()
    local copy = {}
    for key, value in pairs(status) do copy[key] = value end
    return copy
  end
  return setmetatable({ status = last_status }, {
    __index = function() return refuse end,
    __tostring = function() return ("sandbox %s (detached)"):format(id) end,
  })
end

--- Lets go of a detached sandbox, which lives on; so does `<close>`. Commands that run for this handle are
--- cancelled but for those with `detach`.
function Sandbox:detach()
  if not self.detached then
    misuse.throw("detach: this sandbox is not a detached one: it ends with its program")
  end
  if not open[self] then return end
  open[self] = nil
  local status = self.handle:status() or {}
  self.handle:close()
  self.handle = gone(status)
  self.files.handle = self.handle
end

local logs_spec = { follow = "boolean" }

--- Of a detached sandbox what its commands have printed, the last 1 MiB of it, from a cursor on: a list of
--- { command, stream, data }, the next cursor, and how many bytes before these are no longer kept. The list
--- is empty when there is no more. With `follow` it waits until there is more, and the end of the sandbox is
--- the error "lost".
---@param cursor integer? 0, the beginning, by default
---@param opts { follow: boolean? }?
function Sandbox:logs(cursor, opts)
  opts = options.check("logs", opts or {}, logs_spec)
  if cursor ~= nil and (math.type(cursor) ~= "integer" or cursor < 0) then
    misuse.throw("logs: a cursor, as the last call gave it, expected")
  end
  return self.handle:logs(cursor, opts.follow)
end

misuse.methods(Sandbox, "sandbox")

-- The holder makes the sandbox, as this module does there; then it is connected to like any other.
local function create_detached(asked)
  local given = {}
  for key, value in pairs(asked) do given[key] = value end
  given.detached, given.price = nil, nil
  local err
  given.network, err = network.resolved(given.network)
  if err then return nil, err end
  local json = next(given) and core.json.encode(given) or "{}"
  local id, claim = core.sandbox.detached_create(json, asked.timeout)
  if not id then return nil, claim end
  local _ <close> = claim -- a sandbox that nobody can be told of is none
  local handle, problem = core.sandbox.connect(id)
  if not handle then return nil, problem end
  local kept, lost = claim:keep()
  if not kept then
    handle:close()
    return nil, lost
  end
  return handle
end

-- As the core reads it.
local function core_profile(asked, mode, rules)
  local given = {}
  for key, value in pairs(asked) do given[key] = value end
  given.network, given.network_rules = mode, rules
  if asked.secrets then given.secrets = secrets.resolve(asked.secrets) end
  return given
end

--- Creates a sandbox: template ("host", a snapshot's name, or a directory), network (see below), lease
--- (seconds, default 1800), limits { memory, cpus, pids, disk, files, open_files, output, cpu_seconds,
--- wall }, env, best_effort, timeout (of the creation), on_lease_end ("terminate" or "pause"), idle_timeout
--- (seconds), mounts { { source, target, mode = "ro" | "rw" | "cow" }, … } of the host's folders and files
--- (cow: copy-on-write, what is written stays in the sandbox),
--- price { cpu_hour, vcpu_hour, gib_hour } and max_cost_micros. What holds each limit is in status().layers.
--- network is "off" (default), "restricted" (this machine's package registries), "open" (public hosts) or a
--- table: mode ("allow" by default, "restricted", "open"), allow and deny (lists of "host:port", "*.host",
--- "10.1.2.0/24:5432"), hosts { name = address }, max_connections, max_bytes, bytes_per_second,
--- on_connect(host, port) -> whether a host that no entry speaks of may be reached, on_event(event).
--- secrets: a list of { name, from = "env:NAME" | "file:/path" | function, hosts, header, format, user,
--- methods, paths, ca_file, on_guest_authorization }: commands get a placeholder in the variable `name`,
--- servers the value.
--- With detached = true it outlives this program, held by a process of its own (see sandbox.connect).
---@return barchan.Sandbox? sandbox
---@return table? err
function sandbox.create(given)
  given = given or {}
  local mode, rules, refusal = profile.check(given)
  if not mode then return nil, refusal end
  local handle, err
  if given.detached then
    handle, err = create_detached(given)
  else
    handle, err = core.sandbox.create(core_profile(given, mode, rules))
  end
  if not handle then return nil, err end
  return wrap(handle, given)
end

--- Connects to a detached sandbox of this user: the same methods, but <close> and the end of the program let
--- go of it; :terminate() ends it for all. Connecting never changes its lease.
---@param id string
---@return barchan.Sandbox? sandbox
---@return table? err
function sandbox.connect(id)
  if type(id) ~= "string" then misuse.throw("connect: the id of a sandbox expected, got " .. type(id)) end
  local handle, err = core.sandbox.connect(id)
  if not handle then return nil, err end
  return wrap(handle, { detached = true })
end

-- How long each may take to say how it is.
local LIST_TIMEOUT = 3

local function look_at(id)
  local handle <close>, err = core.sandbox.connect(id, LIST_TIMEOUT)
  if handle then return handle:status() end
  if err.code == "not_found" then return nil end -- it has just ended
  return { id = id, error = err }
end

--- This user's detached sandboxes: the status of each, or { id, error } of one that does not answer. What
--- killed holders have left is removed; the second result is how many there were.
function sandbox.detached()
  local ids, removed = core.sandbox.detached_ids()
  if not ids then return nil, removed end
  local tasks, list = {}, {}
  for i, id in ipairs(ids) do tasks[i] = core.task.spawn(look_at, id) end
  for _, task in ipairs(tasks) do
    local ok, status = task:wait()
    if not ok then error(status, 0) end
    list[#list + 1] = status
  end
  return list, removed
end

--- The status of each sandbox that this Lua state has made and not dropped.
function sandbox.list()
  local list = {}
  for self in pairs(open) do list[#list + 1] = self:status() end
  table.sort(list, function(a, b) return a.id < b.id end)
  return list
end

return sandbox
