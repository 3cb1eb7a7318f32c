-- What callers may ask for when they run a command, and how a result reads to a model.
local _, core = ...

local options = require "barchan.options"

local exec = {}

local DEFAULT_RENDER_LIMIT = 16 * 1024

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
}

--- The core's options from `sbx:exec`'s argument: a shell command, or a table whose array part is
--- argv (or whose `sh` is a shell command) and whose named keys are options.
function exec.request(where, given)
  if type(given) == "string" then given = { sh = given } end
  options.check(where, given, spec)
  if (given.sh == nil) == (given[1] == nil) then
    error(where .. ": give either a command as a list of words or `sh`, a shell command", 3)
  end
  local argv
  if given[1] ~= nil then
    argv = {}
    for i, word in ipairs(given) do argv[i] = word end
  end
  return {
    command = given.sh,
    argv = argv,
    cwd = given.cwd,
    env = given.env,
    input = given.stdin,
    timeout = given.timeout,
    grace = given.grace,
    out_limit = given.output_limit,
    err_limit = given.output_limit,
    detach = given.detach,
  }
end

local signal_names = {
  [1] = "SIGHUP", [2] = "SIGINT", [3] = "SIGQUIT", [4] = "SIGILL", [5] = "SIGTRAP", [6] = "SIGABRT",
  [7] = "SIGBUS", [8] = "SIGFPE", [9] = "SIGKILL", [10] = "SIGUSR1", [11] = "SIGSEGV",
  [12] = "SIGUSR2", [13] = "SIGPIPE", [14] = "SIGALRM", [15] = "SIGTERM", [24] = "SIGXCPU",
  [25] = "SIGXFSZ", [31] = "SIGSYS",
}

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
    local what = result.spawn_cwd and "the working directory: " or ""
    return ("could not be started: %s%s"):format(what, result.spawn_error)
  end
  if reason == "oom" then return "killed: the sandbox's memory limit was reached" end
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

--- The standard rendering of a result for a model: how it ended, then out, then err.
---@param result table
---@param opts { limit: integer }? bytes of each stream, 16 KiB by default
function exec.render(result, opts)
  local limit = opts and opts.limit or DEFAULT_RENDER_LIMIT
  local lines = {
    exec.outcome(result),
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

function exec.wrap_result(result) return setmetatable(result, Result) end

function exec.is_result(value) return getmetatable(value) == Result end

local Stream = { __name = "barchan.stream" }
Stream.__index = Stream

function Stream:__call() return self.handle:read() end

function Stream:__close() self.handle:cancel() end

--- How the command ended, once the stream has.
function Stream:result()
  local result, err = self.handle:wait()
  if not result then return nil, err end
  return exec.wrap_result(result)
end

--- Signals, input and cancellation of a running command.
function Stream:cancel() self.handle:cancel() end

function Stream:signal(number) return self.handle:signal(number) end

--- Writes all of `data` to the command's standard input, waiting while it is full.
function Stream:write(data)
  local from = 1
  while from <= #data do
    local taken, err = self.handle:write_some(data, from)
    if not taken then return nil, err end
    if taken == 0 then self.handle:wait_drain() end
    from = from + taken
  end
  return true
end

function Stream:close_input() return self.handle:close_input() end

function exec.new_stream(handle) return setmetatable({ handle = handle }, Stream) end

return exec
