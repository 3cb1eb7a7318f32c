-- What callers may ask for when they run a command, and how a result reads to a model.
local _, core = ...

local misuse = require "barchan.misuse"
local options = require "barchan.options"

local exec = {}

local DEFAULT_RENDER_LIMIT = 16 * 1024
local MAX_GRACE = 1000000000
local MAX_NETWORK_LINES = 8
local WORD = "word %d of the command"
local render_spec = { limit = "integer" }

local spec = {
  [1] = "string", -- argv
  sh = "string",
  cwd = "string",
  env = "table",
  stdin = "string",
  timeout = "number or boolean", -- seconds; false: none but the sandbox's lease
  grace = "number",
  output_limit = "integer", -- bytes kept of each stream
  detach = "boolean",
  network = "string", -- "off": this command has none
}

-- What spawn takes, too.
local spawn_spec = { pty = "table", backlog = "integer" }
for name, kind in pairs(spec) do spawn_spec[name] = kind end
spawn_spec.output_limit = nil

local pty_spec = { cols = "integer", rows = "integer" }

-- The mistake that is made most: sbx:exec("make", { timeout = 5 }).
local function only(where, ...)
  if select("#", ...) == 0 then return end
  misuse.throw(where .. ": one argument expected; options go into the table: { sh = \"…\", timeout = … }")
end

local function command_of(where, given)
  if type(given) == "string" then return { sh = given } end
  if type(given) == "table" then return given end
  misuse.expected(where, "a command (a line of shell, or a table of words and options)", given)
end

--- The options of `sbx:spawn`: a command as for exec, and pty = { cols, rows }, backlog.
function exec.spawn_request(given, ...)
  only("spawn", ...)
  given = command_of("spawn", given)
  options.check("spawn", given, spawn_spec, WORD)
  local command = {}
  for key, value in pairs(given) do
    if key ~= "pty" and key ~= "backlog" then command[key] = value end
  end
  local request = exec.request("spawn", command)
  request.backlog = given.backlog
  if given.backlog and given.backlog <= 0 then
    misuse.throw("spawn: option 'backlog' must be greater than 0")
  end
  if given.pty then
    options.check("spawn: pty", given.pty, pty_spec)
    request.pty_cols, request.pty_rows = given.pty.cols or 80, given.pty.rows or 24
    if request.pty_cols < 1 or request.pty_rows < 1 then
      misuse.throw("spawn: pty: a terminal has at least one column and one row")
    end
  end
  return request
end

--- The core's options from `sbx:exec`'s argument: a shell command, or a table whose array part is
--- argv (or whose `sh` is a shell command) and whose named keys are options.
function exec.request(where, given, ...)
  only(where, ...)
  given = command_of(where, given)
  options.check(where, given, spec, WORD)
  if given.timeout == 0 or given.timeout == true then
    misuse.throw(where .. ": option 'timeout': seconds greater than 0, or false for none, expected")
  end
  options.seconds(where, given, "timeout")
  if given.grace and not (given.grace >= 0 and given.grace <= MAX_GRACE) then
    misuse.throw(("%s: option 'grace': seconds from 0 to %d expected"):format(where, MAX_GRACE))
  end
  local words, last = 0, 0
  for key in pairs(given) do
    if math.type(key) == "integer" then words, last = words + 1, math.max(last, key) end
  end
  if (given.sh == nil) == (words == 0) then
    misuse.throw(where .. ": give either a command as a list of words or `sh`, a shell command")
  end
  if words ~= last then
    local hole = 1
    while given[hole] ~= nil do hole = hole + 1 end
    misuse.throw(("%s: the command has a hole: word %d is nil"):format(where, hole))
  end
  local argv = words > 0 and table.move(given, 1, words, 1, {}) or nil
  local limit = given.output_limit
  if limit and limit < 0 then misuse.throw(where .. ": option 'output_limit' must not be negative") end
  if given.network ~= nil and given.network ~= "off" then
    misuse.throw(where .. ": option 'network': \"off\" expected; what it may reach is the sandbox's to say")
  end
  if limit == 0 then limit = -1 end -- the core's way to say: keep nothing
  return {
    command = given.sh,
    argv = argv,
    cwd = given.cwd,
    env = given.env,
    input = given.stdin,
    timeout = given.timeout,
    grace = given.grace,
    out_limit = limit,
    err_limit = limit,
    detach = given.detach,
    network_off = given.network == "off",
  }
end

-- What a result's words call the command and the place it was to run in.
local function named(request)
  return request.command and "/bin/sh" or request.argv[1], request.cwd or "/workspace"
end

local MAX_SIGNAL = 64

--- What `signal` of a stream and of a process takes.
function exec.check_signal(number)
  local whole = type(number) == "number" and math.tointeger(number)
  if not whole or whole < 1 or whole > MAX_SIGNAL then
    misuse.expected("signal", "a signal's number from 1 to 64, like 15 for SIGTERM,", number)
  end
end

local signal_names = {
  [1] = "SIGHUP", [2] = "SIGINT", [3] = "SIGQUIT", [4] = "SIGILL", [5] = "SIGTRAP", [6] = "SIGABRT",
  [7] = "SIGBUS", [8] = "SIGFPE", [9] = "SIGKILL", [10] = "SIGUSR1", [11] = "SIGSEGV",
  [12] = "SIGUSR2", [13] = "SIGPIPE", [14] = "SIGALRM", [15] = "SIGTERM", [24] = "SIGXCPU",
  [25] = "SIGXFSZ", [31] = "SIGSYS",
}

local limit_words = {
  oom = "out of memory: the sandbox's memory limit was reached",
  pids = "failed: the sandbox's limit of processes was reached",
  disk_full = "failed: the sandbox's disk is full, or has as many files as it may",
  cpu_time = "killed: its limit of processor time was reached",
  output = "killed: it wrote more than its limit of output",
}

--- What a limit that was reached says about itself; nil for other reasons.
function exec.limit_words(reason) return limit_words[reason] end

--- One line that says how the command ended.
function exec.outcome(result)
  local reason = result.reason
  if reason == "exited" then return "exit_code: " .. result.exit_code end
  if reason == "signaled" then
    local name = signal_names[result.signal]
    return ("killed by signal %d%s"):format(result.signal, name and " (" .. name .. ")" or "")
  end
  if reason == "timeout" then
    return ("timeout: killed after %.1f s; the output so far follows"):format(result.duration)
  end
  if reason == "spawn_failed" then
    local name = result.spawn_cwd and result.cwd or result.program
    local what = result.spawn_cwd and "the working directory " or ""
    if name then what = ("%s'%s': "):format(what, name) end
    local shell = not result.spawn_cwd and name and name:find "[%s|;&<>]"
    return ("could not be started: %s%s%s"):format(what, result.spawn_error,
      shell and "; for a line of shell give one string" or "")
  end
  if limit_words[reason] then
    local code = result.exit_code and (" (exit code %d)"):format(result.exit_code) or ""
    return limit_words[reason] .. code
  end
  if reason == "lost" then return "lost: the sandbox ended while the command ran" end
  return reason
end

-- One stream with its label. What a cap left out, here or in the guest, is said where it is missing.
local function render_stream(label, bytes, dropped, head_len, limit)
  if #bytes == 0 and dropped == 0 then return label .. ": (empty)" end
  local head, tail = bytes, ""
  if dropped > 0 then head, tail = bytes:sub(1, head_len), bytes:sub(head_len + 1) end
  if #bytes > limit then
    local whole = head .. tail
    local half = limit // 2
    head, tail = core.util.utf8_head(whole, half), core.util.utf8_tail(whole, limit - half)
    dropped = dropped + #whole - #head - #tail
  end
  local text = head
  if dropped > 0 then text = ("%s\n[… %d bytes left out …]\n%s"):format(head, dropped, tail) end
  return label .. ":\n" .. (core.util.utf8_repair(text):gsub("\n$", ""))
end

-- What the network profile refused, or did not reach, while the command ran: programs often hide it.
local function add_network(lines, list, what, others)
  if not list then return end
  for i = 1, math.min(#list, MAX_NETWORK_LINES) do
    local one = list[i]
    lines[#lines + 1] = ("network: %s:%d %s: %s"):format(one.host, one.port, what, one.rule)
  end
  local more = math.max(#list - MAX_NETWORK_LINES, 0) + (list.more or 0)
  if more > 0 then lines[#lines + 1] = ("network: %d more %s"):format(more, others) end
end

--- What the network refused and what could not be reached, a line each: programs often hide it.
function exec.network_lines(result)
  local lines = {}
  add_network(lines, result.denied, "was refused", "refusals")
  add_network(lines, result.unreached, "could not be reached", "failures")
  return lines
end

-- One of sbx:exec, or a table like it.
local function check_result(result)
  if type(result) ~= "table" then misuse.expected("render", "a result of sandbox:exec", result) end
  for _, field in ipairs {
    { "reason", "string" }, { "out", "string" }, { "err", "string" }, { "out_dropped", "number" },
    { "err_dropped", "number" }, { "exit_code", "number", "exited" }, { "duration", "number", "timeout" },
  } do
    local name, kind, only_of = table.unpack(field)
    if type(result[name]) ~= kind and (not only_of or only_of == result.reason) then
      misuse.throw(("render: a result of sandbox:exec expected; its %s is %s"):format(name,
        result[name] == nil and "missing" or "no " .. kind))
    end
  end
end

--- The standard rendering of a result for a model: how it ended, then out, then err.
---@param result table
---@param opts { limit: integer }? bytes of each stream, 16 KiB by default
function exec.render(result, opts)
  if opts ~= nil then options.check("render", opts, render_spec) end
  check_result(result)
  local limit = opts and opts.limit or DEFAULT_RENDER_LIMIT
  local lines = {
    table.concat({ exec.outcome(result), table.unpack(exec.network_lines(result)) }, "\n"),
    render_stream("out", result.out, result.out_dropped, result.out_head or 0, limit),
    render_stream("err", result.err, result.err_dropped, result.err_head or 0, limit),
  }
  return table.concat(lines, "\n")
end

local Result = { __name = "barchan.exec_result" }
Result.__index = Result

function Result:__tostring() return exec.render(self) end

--- True when the command exited with 0.
function Result:ok() return self.reason == "exited" and self.exit_code == 0 end

misuse.methods(Result, "result")

--- The core's result of a request, as scripts see it.
function exec.wrap_result(result, request)
  if result.reason == "spawn_failed" then result.program, result.cwd = named(request) end
  return setmetatable(result, Result)
end

function exec.is_result(value) return getmetatable(value) == Result end

--- Writes all of `data` to a command's standard input, waiting while it is full.
function exec.write_all(handle, data)
  if type(data) ~= "string" then misuse.expected("write", "a string", data) end
  local from = 1
  while from <= #data do
    local taken, err = handle:write_some(data, from)
    if not taken then return nil, err end
    if taken == 0 then handle:wait_drain() end
    from = from + taken
  end
  return true
end

local Stream = { __name = "barchan.stream" }
Stream.__index = Stream

local ENOENT, EACCES = 2, 13
local spawn_codes = { [ENOENT] = "not_found", [EACCES] = "permission" }

-- At the end of the output: a loop over it has no other way to know that there was no command.
local function throw_failure(stream)
  local result, err = stream:result()
  if not result then error(err, 0) end
  if result.reason ~= "spawn_failed" then return end
  error(core.util.error {
    code = spawn_codes[result.spawn_errno] or "io", retryable = false, os_error = result.spawn_errno,
    message = "stream: " .. exec.outcome(result),
  }, 0)
end

function Stream:__call()
  local name, chunk = self.handle:read()
  if name == nil then throw_failure(self) end
  return name, chunk
end

function Stream:__close() self.handle:cancel() end

--- How the command ended, once the stream has.
function Stream:result()
  local result, err = self.handle:wait()
  if not result then return nil, err end
  return exec.wrap_result(result, self.request)
end

--- Signals, input and cancellation of a running command.
function Stream:cancel() self.handle:cancel() end

function Stream:signal(number)
  exec.check_signal(number)
  return self.handle:signal(number)
end

--- Writes all of `data` to the command's standard input, waiting while it is full.
function Stream:write(data)
  if not self.input_open then
    misuse.throw("write: the command's input is not open: start the stream with stdin = true")
  end
  return exec.write_all(self.handle, data)
end

function Stream:close_input()
  self.input_open = false
  return self.handle:close_input()
end

misuse.methods(Stream, "stream")

function exec.new_stream(handle, request, input_open)
  return setmetatable({ handle = handle, request = request, input_open = input_open }, Stream)
end

return exec
