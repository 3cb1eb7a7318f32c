-- barchan template: files that sandboxes begin from.
local _, core = ...

local args = require "barchan.cli.args"
local exec = require "barchan.cli.exec"
local options = require "barchan.options"
local profile = require "barchan.cli.profile"
local sandbox = require "barchan.sandbox"
local templates = require "barchan.templates"
local tool = require "barchan.tool"
local ui = require "barchan.cli.ui"

local out = ui.out

local command = {
  summary = "files that sandboxes begin from: build, list, show, rm",
  usage = [[
usage: barchan template build NAME [OPTIONS] --run COMMAND…  make one from what commands leave in a sandbox
       barchan template list [--json]                        this user's, as a table or one JSON object a line
       barchan template show NAME                            what it is, as JSON
       barchan template rm NAME…                             remove it; refused while a sandbox uses it

A template keeps what is in /home/user, /workspace, /tmp and /var/tmp of a sandbox; others begin with it:
barchan exec --template NAME. They share its files, and what they change is their own.

build:   --from T       what to begin from: "host" (default), another template, or a root directory
         --run C        a command for /bin/sh, run in /workspace; may be repeated, one after the other. Its
                        output is passed on; when it fails, so does the build, and nothing is kept
         --timeout S    seconds that each command may take (default: 3600)
         --env K=V      a variable for the commands, not kept; may be repeated
         --mount S:T    shows the host's folder or file S at T, as for barchan exec; it is not kept
         --limits L     what the build may use; see barchan exec --help
         --network M    what the commands may reach, with --allow, --deny, --host; see barchan network --help
         --best-effort  go on without layers of isolation that this machine lacks
         --replace      take the place of a template of this name

exit code: 0; of build that of the command that failed (124 timeout); 125 Barchan failed; 2 wrong usage.
]],
}

local EXIT_FAILED = 125
local MAX_LEASE = 7 * 24 * 3600
local MAX_NOTE = 4000

local function fail(err)
  io.stderr:write("barchan: ", ui.visible(tool.message(err)), "\n")
  return EXIT_FAILED
end

-- Where one of this name is looked at or removed: then what else a sandbox begins from, and how to make one,
-- is no help.
local function fail_on(err)
  if err.code ~= "not_found" then return fail(err) end
  return fail((err.message:gsub("; \"host\" and .*$", "")))
end

local function size(bytes)
  if bytes < 10 << 10 then return ("%d B"):format(bytes) end
  if bytes < 10 << 20 then return ("%.0f KiB"):format(bytes / (1 << 10)) end
  return ("%.0f MiB"):format(bytes / (1 << 20))
end

--- What was made, for people.
function command.tell(info)
  io.stderr:write(("barchan: template %s: %d files, folders and links, %s\n"):format(info.name, info.entries,
    size(info.bytes)))
  if info.left_out > 0 then
    io.stderr:write(("barchan: left out %d FIFOs, sockets or devices\n"):format(info.left_out))
  end
end

local actions = {}

local build_flags = profile.with_network {
  from = { type = "string" },
  run = { type = "string", many = true },
  timeout = { type = "seconds", positive = true },
  env = { type = "string", many = true },
  mount = { type = "string", many = true },
  limits = { type = "string" },
  ["best-effort"] = { type = "flag" },
  replace = { type = "flag" },
}

-- Before anything is run for it: whether the name can be given at the end.
local function check_name(name, replace)
  local found, err = templates.info(name)
  if found and not replace then
    return nil, ("there is a template '%s' already; --replace takes its place"):format(name)
  end
  local broken = err and err.code ~= "not_found"
  if broken and not (replace and err.code ~= "invalid_argument") then return nil, err end
  return true
end

-- Likewise whether its files can be kept: a fork's are, in the same place and for a moment.
local function check_place(sbx)
  local forks, err = sbx:fork(1)
  if not forks then return nil, (tool.message(err):gsub("^fork: ", "no template can be made: ")) end
  forks[1]:terminate()
  return true
end

local function run_all(sbx, given)
  local timeout = given.timeout or 3600
  for _, line in ipairs(given.run) do
    io.stderr:write("barchan: run ", ui.visible(line), "\n")
    local code = exec.run_in(sbx, { env = given.env }, { "/bin/sh", "-c", line }, timeout)
    if code ~= 0 then
      io.stderr:write(("barchan: this command failed with exit code %d; no template was made\n"):format(code))
      return code
    end
  end
  return 0
end

function actions.build(words)
  local given, rest = args.parse(words, build_flags)
  if #rest ~= 1 then args.fail("build takes one name") end
  if not given.run then args.fail("build needs --run: a command whose files are kept") end
  local timeout = given.timeout or 3600
  if timeout > MAX_LEASE / 2 then args.fail("--timeout is at most %d seconds", MAX_LEASE // 2) end
  local free, problem = check_name(rest[1], given.replace)
  if not free then return fail(problem) end
  local sbx <close>, err = sandbox.create {
    template = given.from,
    lease = math.min((timeout + 60) * #given.run, MAX_LEASE),
    limits = given.limits and profile.limits(given.limits),
    mounts = profile.mounts(given.mount),
    network = profile.network(given),
    best_effort = given["best-effort"],
  }
  if not sbx then return fail(err) end
  local kept, why = check_place(sbx)
  if not kept then return fail(why) end
  local code = run_all(sbx, given)
  if code ~= 0 then return code end
  local note = table.concat(given.run, "\n"):sub(1, MAX_NOTE)
  local info, refusal = sbx:snapshot(rest[1], { replace = given.replace, note = note })
  if not info then return fail(refusal) end
  command.tell(info)
  return 0
end

function actions.list(words)
  local given, rest = args.parse(words, { json = { type = "flag" } })
  if #rest > 0 then args.fail("list takes no '%s'", rest[1]) end
  local list, removed = templates.list()
  if not list then return fail(removed) end
  if removed > 0 then
    io.stderr:write(("barchan: removed what killed programs had left (%d)\n"):format(removed))
  end
  if not given.json and #list > 0 then
    out("NAME                  SIZE      FILES    MADE              FROM\n")
  end
  for _, info in ipairs(list) do
    if given.json then
      out(core.json.encode(info), "\n")
    else
      local made = os.date("%Y-%m-%d %H:%M", math.floor(info.created))
      out(("%-20s  %-8s  %-7d  %s  %s\n"):format(info.name, size(info.bytes), info.entries, made,
        ui.visible(info.base)))
    end
  end
  return 0
end

function actions.show(words)
  local _, rest = args.parse(words, {})
  if #rest ~= 1 then args.fail("show takes one name") end
  local info, err = templates.info(rest[1])
  if not info then return fail_on(err) end
  out(core.json.encode(info), "\n")
  return 0
end

function actions.rm(words)
  local _, names = args.parse(words, {})
  if #names == 0 then args.fail("the name of a template is missing; barchan template list shows them") end
  local code = 0
  for _, name in ipairs(names) do
    local ok, err = templates.remove(name)
    if not ok then code = fail_on(err) end
  end
  return code
end

function command.main(words)
  local name = table.remove(words, 1)
  if name == nil then args.fail("build, list, show or rm expected") end
  if name == "--help" or name == "-h" then error({ help = true }, 0) end
  if not actions[name] then
    args.fail("%s", options.unknown("command", name, options.sorted_keys(actions)))
  end
  return actions[name](words)
end

return command
