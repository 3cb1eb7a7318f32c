-- barchan sandbox changes and apply: what commands have changed in a copy-on-write mount, and taking it over.
local _, core = ...

local args = require "barchan.cli.args"
local tool = require "barchan.tool"
local ui = require "barchan.cli.ui"

local out = ui.out

local changes = {}

local EXIT_CONFLICT, EXIT_FAILED = 1, 125
local letters = { added = "A", modified = "M", deleted = "D" }

local function fail(err)
  io.stderr:write("barchan: ", ui.visible(tool.message(err)), "\n")
  return EXIT_FAILED
end

local function shown(entry) return ui.visible(entry.path) .. (entry.type == "directory" and "/" or "") end

--- `connect` gives the sandbox of an id, or nil, err.
function changes.list(words, connect)
  local given, rest = args.parse(words, { target = { type = "string" }, json = { type = "flag" } })
  if #rest > 1 then args.fail("one id expected, got '%s' too", rest[2]) end
  local sbx <close>, err = connect(rest[1])
  if not sbx then return fail(err) end
  local list, more = sbx:changes(given.target)
  if not list then return fail(more) end
  for _, change in ipairs(list) do
    out(given.json and core.json.encode(change) or letters[change.kind] .. " " .. shown(change), "\n")
  end
  if more then return fail "the list is not complete: there is more than could be looked at" end
  return 0
end

local apply_flags = {
  target = { type = "string" },
  ["on-conflict"] = { type = "string" },
  ["dry-run"] = { type = "flag" },
  links = { type = "flag" },
  json = { type = "flag" },
}
local conflict_words = { refuse = true, skip = true, overwrite = true }

local function tell(entry)
  local left = entry.outcome == "conflict" and "!" or "-"
  local why = entry.why and ": " .. ui.flagged(entry.why) or ""
  out(entry.outcome == "applied" and letters[entry.kind] or left, " ", shown(entry), why, "\n")
end

--- [OPTIONS] ID FOLDER [PATH…]
function changes.apply(words, connect)
  local given, rest = args.parse(words, apply_flags)
  local id, folder = table.remove(rest, 1), table.remove(rest, 1)
  local at_conflict = given["on-conflict"]
  if at_conflict and not conflict_words[at_conflict] then
    args.fail("--on-conflict takes refuse, skip or overwrite, got '%s'", at_conflict)
  end
  if id and not folder then args.fail "the folder that takes the changes is missing" end
  local sbx <close>, err = connect(id)
  if not sbx then return fail(err) end
  local result, refusal = sbx:apply_changes(folder, {
    target = given.target,
    paths = #rest > 0 and rest or nil,
    on_conflict = at_conflict,
    dry_run = given["dry-run"],
    links = given.links,
  })
  if not result then
    fail(refusal)
    return refusal.code == "conflict" and EXIT_CONFLICT or EXIT_FAILED
  end
  for _, entry in ipairs(result.entries) do
    if given.json then out(core.json.encode(entry), "\n") else tell(entry) end
  end
  local left = result.unchanged
  for _, path in ipairs(left) do -- most likely misspelt
    io.stderr:write("barchan: nothing has changed at '", ui.visible(path), "'\n")
  end
  return (result.conflicts > 0 or #left > 0) and EXIT_CONFLICT or 0
end

return changes
