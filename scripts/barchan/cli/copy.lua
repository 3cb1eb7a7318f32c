-- barchan sandbox cp: files and folders into a detached sandbox, or out of it.
local _, core = ...

local args = require "barchan.cli.args"
local sandbox = require "barchan.sandbox"
local tool = require "barchan.tool"
local ui = require "barchan.cli.ui"

local EXIT_FAILED = 125
local MAX_DEPTH = 64 -- levels that one list of a sandbox's can have
local MAX_BYTES = 16 << 30 -- out of a sandbox: a file there may be all holes

local copied = 0

-- "sbx-…:path" -> id, path; "path" -> nil, path
local function split(word)
  local id, path = word:match "^(sbx%-%x+):(.*)$"
  if not id then return nil, word end
  return id, path == "" and "." or path
end

local function base_name(path) return path:match "([^/]+)/*$" or "." end

local function join(folder, name) return folder == "." and name or (folder:gsub("/+$", "")) .. "/" .. name end

local function note(what, path)
  io.stderr:write(("barchan: left out '%s': %s\n"):format(ui.visible(path), what))
end

-- ---- into the sandbox ----

local function upload(sbx, from, to, mode)
  local file <close> = assert(io.open(from, "rb"))
  assert(sbx.files:upload(file, to, { mode = mode ~= 0 and mode or nil }))
end

local function copy_in(sbx, from, to)
  local kind, mode = assert(core.tree.stat(from))
  if kind == "other" then error(("'%s' is neither a file nor a folder"):format(from), 0) end
  if kind == "file" then return upload(sbx, from, to, mode) end
  assert(sbx.files:mkdir(to, { mode = mode | 448 })) -- 0700: its owner there can fill it
  for _, entry in ipairs(assert(core.tree.list(from))) do
    local target = join(to, entry.path)
    if entry.kind == "folder" then
      assert(sbx.files:mkdir(target, { mode = entry.mode | 448 }))
    elseif entry.kind == "file" then
      upload(sbx, join(from, entry.path), target, entry.mode)
    else
      note("it is a link, or neither a file nor a folder", join(from, entry.path))
    end
  end
end

-- ---- out of it ----

local function download(sbx, from, root, to, mode)
  local file <close> = assert(root:file(to, mode))
  assert(sbx.files:download(from, function(chunk)
    copied = copied + #chunk
    if copied > MAX_BYTES then
      error(("more than %d GiB come out of the sandbox"):format(MAX_BYTES >> 30), 0)
    end
    assert(file:write(chunk))
  end))
  assert(file:commit())
end

local function copy_folder_out(sbx, from, to)
  local root <close> = assert(core.tree.root(to))
  local entries, more = sbx.files:list(from, { depth = MAX_DEPTH })
  if not entries then error(more, 0) end
  if more == true then error(("'%s' holds more than one list can tell: copy its parts"):format(from), 0) end
  for _, entry in ipairs(entries) do
    local below = entry.path
    if entry.type == "directory" then
      if select(2, below:gsub("/", "")) + 1 == MAX_DEPTH then
        error(("'%s' is deeper than one list can tell: copy its parts"):format(join(from, below)), 0)
      end
      assert(root:mkdir(below, entry.mode & 511))
    elseif entry.type == "file" then
      download(sbx, join(from, below), root, below, entry.mode & 511)
    else
      note("it is a " .. entry.type, join(from, below))
    end
  end
end

local function copy_out(sbx, from, to)
  local entry = assert(sbx.files:stat(from))
  if entry.type == "directory" then return copy_folder_out(sbx, from, to) end
  if entry.type ~= "file" then error(("'%s' is a %s"):format(ui.visible(from), entry.type), 0) end
  local folder, name = to:match "^(.*)/([^/]+)$"
  if folder == "" then folder = "/" end
  local kind = assert(core.tree.stat(folder or "."))
  if kind ~= "folder" then error(("'%s' is no folder"):format(folder), 0) end
  local root <close> = assert(core.tree.root(folder or "."))
  download(sbx, from, root, name or to, entry.mode & 511)
end

-- ---- both ----

-- Where each goes: below the target when that is a folder, or in its place.
local function targets(sources, to, is_folder)
  if #sources > 1 and not is_folder then error(("'%s' is no folder"):format(to), 0) end
  local list = {}
  for i, path in ipairs(sources) do
    local name = base_name(path)
    list[i] = is_folder and name ~= "." and name ~= ".." and join(to, name) or to
  end
  return list
end

local function is_folder_inside(sbx, path)
  local entry = sbx.files:stat(path)
  return entry ~= nil and entry.type == "directory"
end

local function copy_all(sbx, sources, to, inward)
  local is_folder
  if inward then is_folder = is_folder_inside(sbx, to) else is_folder = core.tree.stat(to) == "folder" end
  for i, target in ipairs(targets(sources, to, is_folder)) do
    if inward then copy_in(sbx, sources[i], target) else copy_out(sbx, sources[i], target) end
  end
end

-- The id that all sources, or the target, have in common.
local function read_words(words)
  if #words < 2 then args.fail("cp takes one or more sources and a target: ID:PATH is in a sandbox") end
  local sources = {}
  local to_id, to = split(table.remove(words))
  local from_id
  for i, word in ipairs(words) do
    local id, path = split(word)
    if i > 1 and id ~= from_id then args.fail("the sources are not all in one place") end
    from_id, sources[i] = id, path
  end
  if (to_id == nil) == (from_id == nil) then
    args.fail("one side is in a sandbox, as ID:PATH, the other is a path of this machine")
  end
  return to_id or from_id, sources, to, to_id ~= nil
end

return function(words)
  local id, sources, to, inward = read_words(words)
  local sbx <close>, err = sandbox.connect(id)
  local ok, problem = sbx ~= nil, err
  if sbx then ok, problem = pcall(copy_all, sbx, sources, to, inward) end
  if ok then return 0 end
  if tool.is_cancelled(problem) then error(problem, 0) end
  io.stderr:write("barchan: ", ui.visible(tool.message(problem)), "\n")
  return EXIT_FAILED
end
