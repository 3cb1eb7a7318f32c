-- barchan doctor: what this machine can do, and the remedy for what it lacks.
local _, core = ...

local args = require "barchan.cli.args"
local ui = require "barchan.cli.ui"

local out = ui.out

local command = {
  summary = "tell what this machine can do and what is missing",
  usage = [[
usage: barchan doctor [--json]

Lists what sandboxes use of this machine (kernel, namespaces, control groups, seccomp, Landlock, …) and
which layers a new one has, the libraries, and which keys for models are set (never their values). For
each missing thing it prints the remedy; "-" marks what is only told. The layers are those of a sandbox that
is made for the check, with small limits of its own.

exit code: 0 when a sandbox can be created, 1 when something needed is missing.
]],
}

-- The limits that the rows after it name are those of the sandbox that was made for looking.
local function note_probe(rows)
  for i, row in ipairs(rows) do
    if row.name == "sandbox" then
      table.insert(rows, i + 1, {
        name = "sandbox.probe", state = "info",
        detail = "made for this check, with small limits of its own: what follows are not the defaults",
      })
      return
    end
  end
end

local function other_rows(rows)
  for _, library in ipairs(core.util.libraries()) do
    rows[#rows + 1] = { name = library.name, state = "info", detail = library.version }
  end
  local told = {}
  for _, known in ipairs(core.model.environment()) do
    if not told[known.key] then
      local detail = core.util.has_key(known.key) and "set" or "not set"
      rows[#rows + 1] = { name = known.key, state = "info", detail = detail }
      if core.util.getenv(known.base_url) then
        rows[#rows + 1] = { name = known.base_url, state = "info", detail = "set" }
      end
      told[known.key] = true
    end
  end
end

local marks = { ok = "ok", missing = "MISSING", info = "-" }

function command.main(words)
  local given, rest = args.parse(words, { json = { type = "flag" } })
  if #rest > 0 then args.fail("unexpected argument '%s'", rest[1]) end
  local rows, err = core.sandbox.doctor()
  if not rows then error(err, 0) end
  note_probe(rows)
  other_rows(rows)
  local missing = 0
  for _, row in ipairs(rows) do
    if row.state == "missing" then missing = missing + 1 end
  end
  if given.json then
    out(core.json.encode(rows), "\n")
    return missing > 0 and 1 or 0
  end
  for _, row in ipairs(rows) do
    out(("%-8s %-30s %s\n"):format(marks[row.state] or row.state, row.name, row.detail or ""))
    if (row.remedy or "") ~= "" then
      out((" "):rep(9), "remedy: ", row.remedy, "\n")
    end
  end
  return missing > 0 and 1 or 0
end

return command
