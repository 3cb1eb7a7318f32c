---@meta

--- Files of a sandbox, by `sandbox.files`. Paths are relative to /workspace; links resolve inside the sandbox,
--- with its rights. Every function returns `nil, err` when it fails.

---@class barchan.Files
local Files = {}

--- A file's bytes, or a part of them, and the whole file's size. At most 64 MiB at a time: err.code is "limit" for
--- more; download has no such limit.
---@param path string
---@param options? { offset: integer, limit: integer } offset: bytes before the part, 0; beyond the end the part is empty; limit: bytes at most, 1 at least; to the end
---@return string? bytes
---@return integer|barchan.Error size
function Files:read(path, options) end

--- Writes a file atomically, creating its parents; `append` adds to its end, `mode` sets a new file's permissions.
---@param path string
---@param data string
---@param options? { append: boolean, mode: integer }
---@return boolean?
---@return barchan.Error? err
function Files:write(path, data, options) end

--- The entries below a directory, sorted, `depth` levels of them (1); true when there were too many.
---@param path? string
---@param options? { depth: integer }
---@return { path: string, type: string, size: integer, mode: integer, mtime: number, link_target: string? }[]?
---@return boolean|barchan.Error more
function Files:list(path, options) end

--- One entry; a symbolic link is not followed.
---@param path string
---@return table?
---@return barchan.Error? err
function Files:stat(path) end

--- Whether there is something of this name.
---@param path string
---@return boolean?
---@return barchan.Error? err
function Files:exists(path) end

--- Makes a directory and its parents; one that exists is fine.
---@param path string
---@param options? { mode: integer }
---@return boolean?
---@return barchan.Error? err
function Files:mkdir(path, options) end

--- Removes a file, a link or an empty directory; with `recursive` a whole tree.
---@param path string
---@param options? { recursive: boolean }
---@return boolean?
---@return barchan.Error? err
function Files:remove(path, options) end

--- Gives a file or directory another name.
---@param path string
---@param new_path string
---@return boolean?
---@return barchan.Error? err
function Files:rename(path, new_path) end

--- Copies into the sandbox what is read from an open file (io.open, not its name), or what a function returns chunk by
--- chunk (nil at the end). The file appears under its name when it is whole.
---@param source file*|fun(): string? an open file, or a function
---@param path string
---@param options? { mode: integer }
---@return boolean?
---@return barchan.Error? err
function Files:upload(source, path, options) end

--- Copies a file out, to an open file or to a function that takes each chunk; how many bytes.
---@param path string
---@param sink file*|fun(chunk: string) an open file, or a function
---@return integer?
---@return barchan.Error? err
function Files:download(path, sink) end
