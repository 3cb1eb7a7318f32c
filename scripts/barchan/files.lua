-- The files of a sandbox. Paths are bytes, relative ones to /workspace. Each call returns its value,
-- or nil and an error whose code says what is wrong: not_found, is_a_directory, not_a_regular_file, …

local misuse = require "barchan.misuse"
local options = require "barchan.options"

local files = {}

local CHUNK_BYTES = 1024 * 1024

local Files = { __name = "barchan.files" }
Files.__index = Files

local function path_of(where, path)
  if type(path) ~= "string" then
    misuse.throw(("files:%s: a path expected, got %s"):format(where, type(path)))
  end
  return path
end

local function checked(where, given, spec)
  return options.check("files:" .. where, given or {}, spec)
end

local function check_range(where, opts, name, low, high)
  local value = opts[name]
  if value and (value < low or value > high) then
    misuse.throw(("files:%s: option '%s' must be from %d to %d"):format(where, name, low, high))
  end
end

--- The file's bytes; `offset` and `limit` (bytes) read a part. Also returns the file's whole size.
function Files:read(path, opts)
  opts = checked("read", opts, { offset = "integer", limit = "integer" })
  check_range("read", opts, "offset", 0, math.maxinteger)
  check_range("read", opts, "limit", 1, math.maxinteger)
  path_of("read", path)
  return self.handle:file { op = "read", path = path, offset = opts.offset, limit = opts.limit }
end

--- Writes a file atomically, creating its parents. `append` adds to the end instead; `mode` sets the
--- permission bits of a new file.
function Files:write(path, data, opts)
  opts = checked("write", opts, { append = "boolean", mode = "integer" })
  path_of("write", path)
  if type(data) ~= "string" then
    misuse.throw("files:write: the data must be a string, got " .. type(data))
  end
  check_range("write", opts, "mode", 1, 4095)
  local op = opts.append and "append" or "write"
  return self.handle:file { op = op, path = path, data = data, mode = opts.mode }
end

--- Entries below a directory, sorted: { path, type, size, mode, mtime, link_target }. `depth` levels
--- (default 1). The second result is true when there were more than could be listed.
function Files:list(path, opts)
  opts = checked("list", opts, { depth = "integer" })
  check_range("list", opts, "depth", 1, 64)
  return self.handle:file { op = "list", path = path_of("list", path or "."), depth = opts.depth }
end

--- One entry; a symlink is not followed.
function Files:stat(path) return self.handle:file { op = "stat", path = path_of("stat", path) } end

--- Makes a directory and its parents; an existing one is fine.
function Files:mkdir(path, opts)
  opts = checked("mkdir", opts, { mode = "integer" })
  check_range("mkdir", opts, "mode", 1, 4095)
  return self.handle:file { op = "mkdir", path = path_of("mkdir", path), mode = opts.mode }
end

--- Removes a file, a link or an empty directory; with `recursive` a whole tree.
function Files:remove(path, opts)
  opts = checked("remove", opts, { recursive = "boolean" })
  path_of("remove", path)
  return self.handle:file { op = "remove", path = path, recursive = opts.recursive }
end

function Files:rename(path, new_path)
  path_of("rename", path)
  return self.handle:file { op = "rename", path = path, new_path = path_of("rename", new_path) }
end

--- Whether there is something of this name.
function Files:exists(path)
  local entry, err = self.handle:file { op = "stat", path = path_of("exists", path) }
  if entry then return true end
  if err.code == "not_found" or err.code == "not_a_directory" then return false end
  return nil, err
end

local function source_of(source)
  if type(source) == "function" then return source end
  if io and io.type(source) == "file" then
    return function() return source:read(CHUNK_BYTES) end
  end
  misuse.throw("files:upload: an open file or a function that returns chunks expected, got "
    .. type(source))
end

--- Copies an open file (or what a function returns, chunk by chunk, nil at the end) into the
--- sandbox, with little memory. The file appears under its name only when it is whole.
function Files:upload(source, path, opts)
  opts = checked("upload", opts, { mode = "integer" })
  path_of("upload", path)
  check_range("upload", opts, "mode", 1, 4095)
  local next_chunk = source_of(source)
  local transfer <close>, err = self.handle:upload { path = path, mode = opts.mode }
  if not transfer then return nil, err end
  while true do
    local chunk, problem = next_chunk()
    if chunk == nil then
      if problem ~= nil then return nil, problem end
      return transfer:finish()
    end
    if type(chunk) ~= "string" then
      misuse.throw("files:upload: the source returned a " .. type(chunk) .. ", not a string")
    end
    local ok, failed = transfer:put(chunk)
    if not ok then return nil, failed end
  end
end

--- Copies a file out of the sandbox, with little memory: to an open file, or to a function that
--- takes each chunk. Returns how many bytes.
function Files:download(path, sink)
  path_of("download", path)
  local put = sink
  if io and io.type(sink) == "file" then
    put = function(chunk) assert(sink:write(chunk)) end
  elseif type(sink) ~= "function" then
    misuse.throw("files:download: an open file or a function expected, got " .. type(sink))
  end
  local transfer <close>, err = self.handle:download { path = path }
  if not transfer then return nil, err end
  local bytes = 0
  while true do
    local chunk, failed = transfer:next()
    if failed then return nil, failed end
    if not chunk then return bytes end
    put(chunk)
    bytes = bytes + #chunk
  end
end

misuse.methods(Files, "sandbox.files")

function files.new(handle) return setmetatable({ handle = handle }, Files) end

return files
