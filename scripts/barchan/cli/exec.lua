-- barchan exec: one command in a fresh sandbox.
local _, core = ...

local args = require "barchan.cli.args"
local exec = require "barchan.exec"
local profile = require "barchan.cli.profile"
local sandbox = require "barchan.sandbox"
local tool = require "barchan.tool"
local ui = require "barchan.cli.ui"

local out = ui.out

local command = {
  summary = "run one command in a fresh sandbox",
  usage = [[
usage: barchan exec [OPTIONS] -- COMMAND [ARGUMENT…]

Runs a command in a fresh sandbox and passes its output on. The sandbox ends with the command.

  --template T   "host" (this machine's /usr, read-only; the default), a name of barchan template
                 list, or a root directory
  --timeout S    seconds until the command is killed (default: 60)
  --env K=V      a variable for the command; may be repeated
  --cwd D        working directory (default: /workspace)
  --mount S:T    shows the host's folder or file S at T, read-only; S:T:rw writable; S:T:cow as a copy that
                 may be written, and ends with the sandbox; may be repeated
  --limits L     what it may use: memory=64M,pids=50,cpus=0.5,disk=1G,files=1000,open_files=256,
                 output=10M,cpu_seconds=30,wall=60; some need control groups, see barchan doctor
]] .. profile.network_usage .. [[
  --best-effort  go on without layers of isolation that this machine lacks
  --stdin        pass standard input on to the command
  --json         print the result as one JSON object instead; output that is not UTF-8 is in base64, and
                 out_encoding or err_encoding says so

exit code: the command's own; 124 timeout; 137 killed by a limit; 125 Barchan failed; 126 not executable;
127 not found; 128+n killed by signal n (130: Ctrl-C); 2 wrong usage of barchan itself.
]],
}

local ENOENT = 2
local MAX_SECONDS = 7 * 24 * 3600 -- the longest lease
local EXIT_TIMEOUT, EXIT_FAILED, EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND = 124, 125, 126, 127
local EXIT_LIMIT = 128 + 9

local flags = profile.with_network {
  template = { type = "string" },
  timeout = { type = "seconds", positive = true },
  env = { type = "string", many = true },
  cwd = { type = "string" },
  limits = { type = "string" },
  mount = { type = "string", many = true },
  ["best-effort"] = { type = "flag" },
  stdin = { type = "flag" },
  json = { type = "flag" },
}

--- How the program ends after this command.
function command.exit_code(result)
  if result.exit_code then return result.exit_code end
  if result.reason == "signaled" then return 128 + result.signal end
  if result.reason == "timeout" then return EXIT_TIMEOUT end
  if result.reason == "spawn_failed" then
    local not_found = result.spawn_errno == ENOENT and not result.spawn_cwd
    return not_found and EXIT_NOT_FOUND or EXIT_NOT_EXECUTABLE
  end
  if exec.limit_words(result.reason) then return EXIT_LIMIT end
  return EXIT_FAILED
end

--- Says on standard error what the exit code alone does not; `typed` is what stood before the words.
function command.explain(result, words, timeout, typed)
  local name = words[1]
  for _, line in ipairs(exec.network_lines(result)) do
    io.stderr:write("barchan: ", ui.visible(line), "\n")
  end
  if result.reason == "timeout" then
    local wall = result.usage.wall
    local by = wall < timeout and "--limits wall" or "--timeout"
    io.stderr:write(("barchan: '%s' was killed after %.1f s; %s allows more\n"):format(name, wall, by))
  elseif result.reason == "spawn_failed" then
    if result.spawn_cwd then
      io.stderr:write(("barchan: cannot enter '%s': %s\n"):format(result.cwd, result.spawn_error))
      return
    end
    io.stderr:write(("barchan: cannot start '%s': %s\n"):format(name, result.spawn_error))
    if #words == 1 and name:find "[%s|;&<>]" then
      io.stderr:write(("barchan: for a line of shell: barchan %s -- sh -c '…'\n"):format(typed or "exec"))
    end
  elseif exec.limit_words(result.reason) then
    io.stderr:write("barchan: ", exec.limit_words(result.reason), "\n")
  elseif result.reason == "lost" then
    io.stderr:write("barchan: the sandbox ended while the command ran\n")
  end
end

-- Copies standard input to the command until either ends. What cannot be read fails the whole.
local function pump_input(command_input, state)
  while true do
    local chunk, err = core.host.read_stdin()
    if err then state.failed = "standard input: " .. tool.message(err) end
    if not chunk then break end
    if not command_input:write(chunk) then return end
  end
  command_input:close_input()
end

local BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

local function base64(bytes)
  local parts = {}
  for i = 1, #bytes, 3 do
    local a, b, c = bytes:byte(i, i + 2)
    local n = a << 16 | (b or 0) << 8 | (c or 0)
    local four = ""
    for shift = 18, 0, -6 do
      local digit = (n >> shift & 63) + 1
      four = four .. BASE64:sub(digit, digit)
    end
    parts[#parts + 1] = four
  end
  local text, missing = table.concat(parts), (3 - #bytes % 3) % 3
  return text:sub(1, #text - missing) .. ("="):rep(missing)
end

-- JSON has no bytes: output that is not UTF-8 is given in base64, and says so.
local function print_json(result)
  setmetatable(result, nil)
  for _, stream in ipairs { "out", "err" } do
    if not utf8.len(result[stream]) then
      result[stream], result[stream .. "_encoding"] = base64(result[stream]), "base64"
    end
  end
  out(core.json.encode(result), "\n")
end

-- Runs the command with standard input; what is kept of its output is the last of each stream.
local function held(sbx, request)
  local p <close> = assert(sbx:spawn(request))
  local state = {}
  local pump = core.task.spawn(pump_input, p, state)
  local result = p:wait()
  pump:cancel()
  for _, stream in ipairs { "out", "err" } do
    local parts, cursor, lost = {}, 0, 0
    repeat
      local bytes, next_cursor, dropped, ended = p:read_at(stream, cursor)
      parts[#parts + 1], cursor, lost = bytes, next_cursor, lost + dropped
    until ended
    result[stream], result[stream .. "_dropped"] = table.concat(parts), lost
  end
  return result, state
end

-- Runs the command and gives its output as it comes.
local function streamed(sbx, request, with_input)
  request.stdin = with_input or nil
  local stream = sbx:stream(request)
  local state = {}
  local pump = with_input and core.task.spawn(pump_input, stream, state)
  local function read() return stream.handle:read() end -- what could not be started is told by its result
  for name, chunk in read do
    if name == "out" then out(chunk) else ui.err(chunk) end
  end
  if pump then pump:cancel() end
  return assert(stream:result()), state
end

--- Runs a command in a sandbox as the flags say, passes its output on, and gives the exit code.
function command.run_in(sbx, given, argv, timeout, typed)
  local request = { timeout = timeout, cwd = given.cwd, env = profile.environment(given.env) }
  for i, word in ipairs(argv) do request[i] = word end
  local result, input
  if given.json and not given.stdin then
    result = assert(sbx:exec(request))
  elseif given.json then
    result, input = held(sbx, request)
  else
    result, input = streamed(sbx, request, given.stdin)
  end
  if given.json then print_json(result) else command.explain(result, argv, timeout, typed) end
  if input and input.failed then
    io.stderr:write("barchan: ", input.failed, "\n")
    return EXIT_FAILED
  end
  return command.exit_code(result)
end

--- --timeout, which is 60 s unless it is given.
function command.timeout(given)
  local timeout = given.timeout or 60
  if timeout > MAX_SECONDS then args.fail("--timeout is at most %d seconds", MAX_SECONDS) end
  return timeout
end

function command.main(words)
  local given, argv = args.parse(words, flags, true)
  if #argv == 0 then args.fail("a command is missing") end
  local timeout = command.timeout(given)
  local sbx, err = sandbox.create {
    template = given.template,
    lease = math.min(timeout + 60, MAX_SECONDS),
    limits = given.limits and profile.limits(given.limits),
    mounts = profile.mounts(given.mount),
    network = profile.network(given),
    best_effort = given["best-effort"],
  }
  if not sbx then
    io.stderr:write("barchan: ", tool.message(err), "\n")
    return EXIT_FAILED
  end
  local _ <close> = sbx
  return command.run_in(sbx, given, argv, timeout)
end

return command
