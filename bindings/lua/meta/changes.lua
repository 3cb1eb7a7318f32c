---@meta

--- Changes that commands make in a folder of the host which a sandbox shows copy-on-write
--- (`mounts = { { source = …, target = "/workspace", mode = "cow" } }`): the host's folder stays as it is.

---@class barchan.Change a name that commands have changed
---@field path string relative to the mount
---@field kind string "added", "modified" (contents, rights, type) or "deleted"
---@field type string "file", "directory", "symlink", "fifo", "socket", "device"; of what was deleted, as it was
---@field size integer
---@field mode integer
---@field mtime number
---@field link_target string?

---@class barchan.Sandbox see the topic sandbox
local Sandbox = {}

--- What commands have changed in a copy-on-write mount, sorted by path; true when the list is not complete. The parts
--- of a folder that is new or gone are listed one by one. `target` names the mount, unless there is only one; in a
--- sandbox without one it is /workspace, where everything is new. A picture of a moment only while nothing runs.
---@param target? string
---@return barchan.Change[]? changes
---@return boolean|barchan.Error more
function Sandbox:changes(target) end
