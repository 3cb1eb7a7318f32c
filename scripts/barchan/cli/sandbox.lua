-- barchan sandbox: detached sandboxes, which outlive the command that makes them.
local _, core = ...

local args = require "barchan.cli.args"
local changes = require "barchan.cli.changes"
local copy = require "barchan.cli.copy"
local exec = require "barchan.cli.exec"
local options = require "barchan.options"
local profile = require "barchan.cli.profile"
local sandbox = require "barchan.sandbox"
local shell = require "barchan.cli.shell"
local template = require "barchan.cli.template"
local tool = require "barchan.tool"
local ui = require "barchan.cli.ui"

local out = ui.out

local command = {
  summary = "sandboxes that outlive this command: create, list, exec, cp, logs, …",
  usage = [[
usage: barchan sandbox create [OPTIONS]                 make one and print its id
       barchan sandbox list [--json]                    this user's, as a table or one JSON object a line
       barchan sandbox show ID                          what it is, and which layers hold it, as JSON
       barchan sandbox exec [OPTIONS] ID -- COMMAND…    run a command in it
       barchan sandbox shell [OPTIONS] ID [-- COMMAND…] a shell in it, at this terminal
       barchan sandbox cp [ID:]PATH… [ID:]PATH          copy files and folders in or out
       barchan sandbox changes [OPTIONS] ID             what commands have changed in a copy-on-write mount
       barchan sandbox apply [OPTIONS] ID FOLDER [PATH…] write that onto a folder of the host
       barchan sandbox snapshot [--replace] ID NAME     keep its files as a template
       barchan sandbox logs [--follow] [--json] ID      what its commands have printed
       barchan sandbox usage ID                         what it has used, as JSON
       barchan sandbox extend ID SECONDS                add to its lease
       barchan sandbox pause|resume ID                  have everything in it stand still, go on
       barchan sandbox kill ID…                         end it; waits until nothing runs any more

A detached sandbox is held by a process of its own and lives until it is killed, its lease ends or that
process dies. Connecting to it never changes its lease.

create:  --template T   "host" (this machine's /usr, read-only; the default), a name of barchan template
                        list, or a root directory
         --lease S      seconds until it ends (default: 1800)
         --idle S       seconds without a command, file operation or question until it ends
         --on-lease-end terminate (default), or pause: sandbox extend, then resume, to go on
         --env K=V      a variable for every command; may be repeated
         --mount S:T    shows the host's folder or file S at T, read-only; S:T:rw writable, S:T:cow
                        copy-on-write; may be repeated
         --limits L     what it may use: memory=64M,pids=50,…; see barchan exec --help
         --network M    off (default), restricted, open or allow=A,B; --allow E, --deny E, --host N=A:
                        see barchan network --help
         --best-effort  go on without layers of isolation that this machine lacks
         Secrets (not for detached sandboxes), questions of the network, and forks are for Lua and C only:
         barchan docs secrets, network, templates.

exec:    --timeout, --env, --cwd, --stdin, --json and the exit code are those of barchan exec. When this
         command ends, the command in the sandbox is cancelled, but with
         --detach       it starts, and runs on by itself (without a timeout, unless one is given);
                        its output is in the logs

shell:   --env and --cwd as in barchan shell.

cp:      a folder is copied with all that is in it, into PATH if that is a folder, else as PATH. Links in it,
         which could lead out, and what is neither file nor folder are left out, and told. On the host
         permission bits are kept as far as the umask allows, and those of a file that is replaced; owners
         and times are not. Out of a sandbox at most 64 levels and 16 GiB.

changes: A added, M modified, D deleted; --target T names the mount if there are several, --json

apply:   FOLDER may be the mount's source. With PATHs only those; one at which nothing has changed is told,
         with exit code 1. What the host has changed meanwhile is a conflict: exit code 1, and nothing is
         applied, but with
         --on-conflict  skip (the others are applied) or overwrite; refuse is the default
         --dry-run      only tell what would happen: A, M, D as above, ! a conflict, - left out
         --links        make symbolic links that stay in the folder, too; --target and --json as above

logs:    the last 1 MiB that commands wrote, in the order in which it came out of the sandbox, for as long
         as that lives; err goes to standard error. Of exec --json, whose output is kept by a limit, that
         is its head and tail.
         --follow       go on until the sandbox ends
         --json         one JSON object a line: command (from 1), stream, data

exit code: 0; 125 Barchan failed; 2 wrong usage; of exec and shell as theirs.
]],
}

local EXIT_FAILED = 125
local START_PATIENCE = 0.3 -- seconds in which a command that cannot be started says so

local function fail(err)
  io.stderr:write("barchan: ", ui.flagged(tool.message(err)), "\n")
  return EXIT_FAILED
end

local function connect(id)
  if id == nil then args.fail("the id of a sandbox is missing; barchan sandbox list shows them") end
  return sandbox.connect(id)
end

-- One id and nothing else.
local function connect_only(words)
  if #words > 1 then args.fail("one id expected, got '%s' too", words[2]) end
  return connect(words[1])
end

local actions = {}

local create_flags = profile.with_network {
  template = { type = "string" },
  lease = { type = "seconds", positive = true },
  idle = { type = "seconds", positive = true },
  ["on-lease-end"] = { type = "string" },
  env = { type = "string", many = true },
  mount = { type = "string", many = true },
  limits = { type = "string" },
  ["best-effort"] = { type = "flag" },
}

function actions.create(words)
  local given, rest = args.parse(words, create_flags)
  if #rest > 0 then args.fail("create takes no '%s'", rest[1]) end
  local at_end = given["on-lease-end"]
  if at_end and at_end ~= "terminate" and at_end ~= "pause" then
    args.fail("--on-lease-end takes terminate or pause, got '%s'", at_end)
  end
  local sbx <close>, err = sandbox.create {
    detached = true,
    template = given.template,
    lease = given.lease,
    idle_timeout = given.idle,
    on_lease_end = at_end,
    env = given.env and profile.environment(given.env),
    mounts = profile.mounts(given.mount),
    limits = given.limits and profile.limits(given.limits),
    network = profile.network(given),
    best_effort = given["best-effort"],
  }
  if not sbx then return fail(err) end
  local told, problem = pcall(out, sbx:status().id, "\n")
  if told then return 0 end
  sbx:terminate() -- nobody would know of it
  error(problem, 0)
end

local function duration(seconds)
  if seconds < 120 then return ("%.0f s"):format(seconds) end
  if seconds < 7200 then return ("%.0f min"):format(seconds / 60) end
  return ("%.1f h"):format(seconds / 3600)
end

function actions.list(words)
  local given, rest = args.parse(words, { json = { type = "flag" } })
  if #rest > 0 then args.fail("list takes no '%s'", rest[1]) end
  local list, removed = sandbox.detached()
  if not list then return fail(removed) end
  if removed > 0 then
    io.stderr:write(("barchan: removed what killed holders had left (%d)\n"):format(removed))
  end
  if not given.json and #list > 0 then
    out("ID                    STATE    AGE       LEASE     RUNNING  TEMPLATE\n")
  end
  for _, status in ipairs(list) do
    if given.json then
      if status.error then status.error = tool.message(status.error) end
      out(core.json.encode(status), "\n")
    elseif status.error then
      out(("%s  %s\n"):format(status.id, ui.visible(tool.message(status.error))))
    else
      out(("%s  %-8s %-9s %-9s %-8d %s\n"):format(status.id, status.state, duration(status.age),
        duration(status.lease_left), status.running, ui.visible(status.template)))
    end
  end
  return 0
end

local exec_flags = {
  timeout = { type = "seconds", positive = true },
  env = { type = "string", many = true },
  cwd = { type = "string" },
  stdin = { type = "flag" },
  json = { type = "flag" },
  detach = { type = "flag" },
}

-- [OPTIONS] ID [--] COMMAND…
local function parse_command(words, flags)
  local given, rest = args.parse(words, flags, true)
  local id = table.remove(rest, 1)
  if rest[1] == "--" then
    table.remove(rest, 1)
  elseif rest[1] and rest[1]:sub(1, 1) == "-" then
    args.fail("options come before the id; '--' comes before a command that begins with '-'")
  end
  return given, id, rest
end

-- Leaves the command running, unless it could not be started.
local function start(sbx, given, argv, typed)
  local request = { detach = true, stdin = "", cwd = given.cwd, timeout = given.timeout or false,
    env = profile.environment(given.env) }
  for i, word in ipairs(argv) do request[i] = word end
  local process, err = sbx:spawn(request)
  if not process then return fail(err) end
  local result = process:wait(START_PATIENCE)
  if result and result.reason == "spawn_failed" then
    exec.explain(result, argv, nil, typed)
    return exec.exit_code(result)
  end
  sbx:detach() -- before the process handle goes, which would end it
  return 0
end

function actions.exec(words)
  local given, id, argv = parse_command(words, exec_flags)
  if given.detach and (given.stdin or given.json) then
    args.fail("--detach goes without --stdin and --json")
  end
  local timeout = exec.timeout(given)
  if id and #argv == 0 then args.fail("a command is missing") end
  local sbx <close>, err = connect(id)
  if not sbx then return fail(err) end
  local typed = "sandbox exec " .. id
  if given.detach then return start(sbx, given, argv, typed) end
  return exec.run_in(sbx, given, argv, timeout, typed)
end

function actions.shell(words)
  local given, id, argv = parse_command(words, { env = exec_flags.env, cwd = exec_flags.cwd })
  if not id then return connect(nil) end
  return shell.run_in(function() return connect(id) end, given, argv)
end

function actions.cp(words)
  local _, paths = args.parse(words, {})
  return copy(paths)
end

function actions.changes(words) return changes.list(words, connect) end

function actions.apply(words) return changes.apply(words, connect) end

local function show_logs(entries, as_json)
  for _, entry in ipairs(entries) do
    if as_json then
      entry.data = core.util.utf8_repair(entry.data)
      out(core.json.encode(entry), "\n")
    elseif entry.stream == "out" then
      out(entry.data)
    else
      ui.err(entry.data)
    end
  end
end

-- Ends that nobody asked for.
local BROKEN = { host_gone = true, crashed = true, protocol_error = true, oom = true }

function actions.logs(words)
  local given, rest = args.parse(words, { follow = { type = "flag" }, json = { type = "flag" } })
  local sbx <close>, err = connect_only(rest)
  if not sbx then return fail(err) end
  local cursor, lost, told = 0, 0, 0
  while true do
    local entries, next_cursor, dropped = sbx:logs(cursor, { follow = given.follow })
    lost = lost + (dropped or 0)
    if lost > 0 and (not entries or not given.follow or os.time() > told) then -- not each of many
      told = os.time()
      local where = given.follow and "in between" or "before these"
      io.stderr:write(("barchan: %d bytes %s are no longer kept\n"):format(lost, where))
      lost = 0
    end
    if not entries then
      local ended = given.follow and sbx:status().end_reason
      if ended and not BROKEN[ended] then return 0 end
      return fail(next_cursor)
    end
    show_logs(entries, given.json)
    cursor = next_cursor
    if #entries == 0 and not given.follow then return 0 end
  end
end

function actions.snapshot(words)
  local given, rest = args.parse(words, { replace = { type = "flag" } })
  if #rest ~= 2 then args.fail("snapshot takes an id and the name of a template") end
  local sbx <close>, err = connect(rest[1])
  if not sbx then return fail(err) end
  local info, refusal = sbx:snapshot(rest[2], { replace = given.replace, note = "of " .. rest[1] })
  if not info then return fail(refusal) end
  template.tell(info)
  return 0
end

function actions.show(words)
  local _, rest = args.parse(words, {})
  local sbx <close>, err = connect_only(rest)
  if not sbx then return fail(err) end
  out(core.json.encode(sbx:status()), "\n")
  return 0
end

function actions.usage(words)
  local _, rest = args.parse(words, {})
  local sbx <close>, err = connect_only(rest)
  if not sbx then return fail(err) end
  out(core.json.encode(assert(sbx:usage())), "\n")
  return 0
end

function actions.extend(words)
  local seconds = tonumber(words[2]) -- before options are looked for: "-5" would be one
  if seconds and not (seconds > 0 and seconds < 1e9) then
    args.fail("extend takes more than 0 seconds and less than 1000000000, got '%s'", words[2])
  end
  local _, rest = args.parse(words, {})
  if #rest ~= 2 or not seconds then args.fail("extend takes an id and a number of seconds") end
  local sbx <close>, err = connect(rest[1])
  if not sbx then return fail(err) end
  local ok, refusal = sbx:extend(seconds)
  if ok then ok, refusal = sbx:usage() end -- answered when the lease is
  return ok and 0 or fail(refusal)
end

for _, name in ipairs { "pause", "resume" } do
  actions[name] = function(words)
    local _, rest = args.parse(words, {})
    local sbx <close>, err = connect_only(rest)
    if not sbx then return fail(err) end
    local ok, refusal = sbx[name](sbx)
    return ok and 0 or fail(refusal)
  end
end

function actions.kill(words)
  local _, ids = args.parse(words, {})
  if #ids == 0 then connect(nil) end
  local code = 0
  for _, id in ipairs(ids) do
    local sbx <close>, err = connect(id)
    if sbx then
      sbx:terminate()
      sbx:usage() -- the last count comes when nothing runs any more
    else
      code = fail(err)
    end
  end
  return code
end

function command.main(words)
  local name = table.remove(words, 1)
  if name == "hold" then return require "barchan.cli.hold" () end
  if name == nil then
    args.fail("create, list, show, exec, shell, cp, changes, apply, snapshot, logs, usage, extend, pause, "
      .. "resume or kill expected")
  end
  if name == "--help" or name == "-h" then error({ help = true }, 0) end
  if not actions[name] then
    args.fail("%s", options.unknown("command", name, options.sorted_keys(actions)))
  end
  return actions[name](words)
end

return command
