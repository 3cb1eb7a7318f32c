-- barchan network: what a sandbox could reach, and who says so.
local _, core = ...

local args = require "barchan.cli.args"
local network = require "barchan.network"
local profile = require "barchan.cli.profile"
local tool = require "barchan.tool"
local ui = require "barchan.cli.ui"

local out = ui.out

local command = {
  summary = "tell what a network profile lets a sandbox reach",
  usage = [[
usage: barchan network [OPTIONS] [MODE]

Prints the hosts that a sandbox of this MODE could reach now, and where each comes from. Nothing is
created, run or connected to.

  restricted     the package registries that pip, npm and apt of this machine are configured to use: read
                 from their configuration, or from their own sources where that names none. The default,
                 unless --allow stands without a MODE: then only those entries
  open           any public host, on ports 22, 80, 443, 8080, 8443, 9418
  allow=A,B      these hosts
  off            none

  --allow E      also this: HOST[:PORT], *.HOST[:PORT] (names below HOST, not HOST), an address or a range
                 10.1.2.0/24[:PORT], [fd00::1]:PORT; without a port 80 and 443; may be repeated
  --deny E       never this, whatever else says; without a port on all; may be repeated
  --json         as one JSON object: mode, allow, deny, sources, notes

  --host N=A     the name N has the address A; may be repeated

Private, loopback, link-local and metadata addresses are refused in every mode, whatever name leads there,
unless an entry names that address or its range. Other ports than those of the entries, 80 and 443 look
closed. localhost is the sandbox's own; to reach a server on this machine:
--host dev.example=127.0.0.1 --allow dev.example:8000 --allow 127.0.0.1:8000

exit code: 0; 1 when nothing can be reached; 125 Barchan failed; 2 wrong usage.
]],
}

local EXIT_NONE, EXIT_FAILED = 1, 125

local flags = profile.with_network { json = { type = "flag" } }
flags.network = nil -- it is the word

-- Where an entry comes from: the package manager's file, or the command line.
local function origins(list)
  local from = {}
  for _, source in ipairs(list.sources) do from[source.entry] = source.from end
  return from
end

local function show(list)
  local from, width = origins(list), 0
  for _, entry in ipairs(list.allow) do width = math.max(width, math.min(#entry, 40)) end
  if list.mode == "open" then out "any public host on ports 22, 80, 443, 8080, 8443, 9418\n" end
  for _, entry in ipairs(list.allow) do
    out(("%-" .. width .. "s  %s\n"):format(ui.visible(entry), ui.visible(from[entry] or "command line")))
  end
  for _, entry in ipairs(list.deny) do out("never ", ui.visible(entry), "\n") end
  for _, note in ipairs(list.notes or {}) do io.stderr:write("barchan: ", ui.visible(note), "\n") end
end

function command.main(words)
  local given, rest = args.parse(words, flags)
  if #rest > 1 then args.fail("one mode expected, got '%s' too", rest[2]) end
  given.network = rest[1] or (not given.allow and "restricted" or nil)
  local wanted = profile.network(given)
  if wanted == "off" then
    if given.json then out(core.json.encode { mode = "off" }, "\n") end
    return EXIT_NONE
  end
  local list, err = network.describe(wanted)
  if not list then
    io.stderr:write("barchan: ", tool.message(err), "\n")
    return EXIT_FAILED
  end
  if given.json then out(core.json.encode(list), "\n") else show(list) end
  return (list.mode == "open" or #list.allow > 0) and 0 or EXIT_NONE
end

return command
