-- barchan shell: a person at a terminal in a fresh sandbox.
local _, core = ...

local args = require "barchan.cli.args"
local profile = require "barchan.cli.profile"
local sandbox = require "barchan.sandbox"
local tool = require "barchan.tool"
local ui = require "barchan.cli.ui"

local command = {
  summary = "a shell in a fresh sandbox, at this terminal",
  usage = [==[
usage: barchan shell [OPTIONS] [-- COMMAND [ARGUMENT…]]

Runs a shell (bash, where the template has it, or sh), or another program, at a terminal in a fresh
sandbox. The sandbox ends with it.

  --template T   "host" (this machine's /usr, read-only; the default), a name of barchan template
                 list, or a root directory
  --lease S      seconds until the sandbox ends (default: 3600)
  --env K=V      a variable for the program; may be repeated
  --cwd D        working directory (default: /workspace)
  --mount S:T    shows the host's folder or file S at T, read-only; S:T:rw writable; S:T:cow as a copy that
                 may be written, and ends with the sandbox; may be repeated
  --limits L     what it may use: memory=64M,pids=50,…; see barchan exec --help
]==] .. profile.network_usage .. [==[
  --best-effort  go on without layers of isolation that this machine lacks

exit code: the program's own; 128+n killed by signal n; 125 Barchan failed; 2 wrong usage.
]==],
}

local EXIT_FAILED = 125
local DEFAULT_LEASE = 3600
local RESIZE_EVERY = 0.2 -- seconds; the library takes no signals, so the size is looked at

local flags = profile.with_network {
  template = { type = "string" },
  lease = { type = "seconds", positive = true },
  env = { type = "string", many = true },
  cwd = { type = "string" },
  limits = { type = "string" },
  mount = { type = "string", many = true },
  ["best-effort"] = { type = "flag" },
}

local function pump_keys(process)
  while true do
    local keys = core.host.read_stdin()
    if not keys then break end
    if not process:write(keys) then return end
  end
  process:close_input()
end

local function follow_size(process, terminal, columns, rows)
  while true do
    core.task.sleep(RESIZE_EVERY)
    local c, r = terminal:size()
    if c and (c ~= columns or r ~= rows) then
      columns, rows = c, r
      if not process:resize(columns, rows) then return end
    end
  end
end

local function exit_code(result)
  if result.exit_code then return result.exit_code end
  if result.signal then return 128 + result.signal end
  return EXIT_FAILED
end

local function fail(err)
  io.stderr:write("barchan: ", tool.message(err), "\n")
  return EXIT_FAILED
end

--- Runs a program at this terminal in the sandbox that `open` makes; gives the exit code.
function command.run_in(open, given, argv)
  local terminal <close> = core.sandbox.terminal()
  local columns, rows = terminal:size()
  if not columns then
    io.stderr:write("barchan: shell needs a terminal; barchan exec --stdin runs commands without one\n")
    return EXIT_FAILED
  end
  if #argv == 0 then argv = { "sh", "-c", "command -v bash >/dev/null && exec bash; exec sh" } end
  local env = profile.environment(given.env)
  env.TERM = env.TERM or core.util.getenv "TERM" or "dumb"
  local request = { cwd = given.cwd, env = env, pty = { cols = columns, rows = rows } }
  for i, word in ipairs(argv) do request[i] = word end
  local sbx, err = open()
  if not sbx then return fail(err) end
  local _ <close> = sbx
  local process, why = sbx:spawn(request)
  if not process then return fail(why) end
  local ok, raw_err = terminal:raw()
  if not ok then return fail(raw_err) end
  local keys = core.task.spawn(pump_keys, process)
  local size = core.task.spawn(follow_size, process, terminal, columns, rows)
  for _, bytes in process:output() do ui.out(bytes) end
  keys:cancel()
  size:cancel()
  local result = process:wait()
  terminal:restore()
  if result.reason == "spawn_failed" then
    io.stderr:write(("barchan: cannot start '%s': %s\n"):format(argv[1], result.spawn_error))
  elseif result.reason == "lost" then
    io.stderr:write("barchan: the sandbox ended: ", sbx:status().end_reason or "?", "\n")
  end
  return exit_code(result)
end

function command.main(words)
  local given, argv = args.parse(words, flags, true)
  return command.run_in(function()
    return sandbox.create {
      template = given.template,
      lease = given.lease or DEFAULT_LEASE,
      limits = given.limits and profile.limits(given.limits),
      mounts = profile.mounts(given.mount),
      network = profile.network(given),
      best_effort = given["best-effort"],
    }
  end, given, argv)
end

return command
