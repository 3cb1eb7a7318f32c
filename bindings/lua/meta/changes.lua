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
---@field link_target? string

---@class barchan.Sandbox see the topic sandbox
local Sandbox = {}

--- What commands have changed in a copy-on-write mount, sorted by path; true when the list is not complete. The parts
--- of a folder that is new or gone are listed one by one. `target` names the mount, unless there is only one; in a
--- sandbox without one it is /workspace, where everything is new that its template has not. A picture of a moment only while nothing runs.
---@param target? string
---@return barchan.Change[]? changes
---@return boolean|barchan.Error more
function Sandbox:changes(target) end

---@class barchan.ApplyOptions
---@field target? string of the mount, unless there is only one
---@field paths? string[] only these and what is below them
---@field on_conflict? string "refuse" (default): nothing is applied; "skip": the others are; "overwrite"
---@field dry_run? boolean only say what would happen; a conflict is no error then
---@field links? boolean make symbolic links that stay in the folder; otherwise they are skipped
---@field max_bytes? integer of all files together; the sandbox's disk limit
---@field timeout? number seconds without progress, more than 0; 60

---@class barchan.Applied
---@field applied integer how many
---@field conflicts integer
---@field skipped integer
---@field bytes integer written
---@field unchanged string[] those of the option `paths` at and below which nothing has changed
---@field entries { path: string, kind: string, type: string, outcome: string, why: string? }[] outcome "applied", "conflict" or "skipped"

--- Writes the changes onto a folder of the host, which may be the mount's source. What was changed there since the
--- sandbox was made is a conflict: by default nothing is applied and err.code is "conflict"; no link in the folder is
--- followed, and nothing outside of it is touched. Files, folders and, with `links`, links are made, never FIFOs,
--- sockets, devices or set-uid programs. Where it fails on the way (`max_bytes`, a full disk) each file is as before
--- or as in the sandbox, and calling again goes on. It is the model's work all the same: look at it before you run it, and at
--- names such as .git, whose hooks other programs run.
---@param dest string
---@param options? barchan.ApplyOptions
---@return barchan.Applied? result
---@return barchan.Error? err
function Sandbox:apply_changes(dest, options) end
