---@meta

--- Templates: the files of a sandbox, kept under a name, from which others begin (`template = "name"`), and forks.
--- Kept is what is in /home/user, /workspace, /tmp and /var/tmp; not what the profile mounts, nor what commands have
--- changed in a copy-on-write mount. A sandbox that begins from a template shares its files copy-on-write.

---@class barchan.Template
---@field name string
---@field base string "host", or a directory: what it stands on
---@field note string how it was made
---@field created number seconds since 1970
---@field entries integer files, folders and links
---@field bytes integer
---@field left_out integer FIFOs, sockets and devices, which are not kept

---@class barchan.Sandbox see the topic sandbox
local Sandbox = {}

---@class barchan.SnapshotOptions
---@field replace? boolean take the place of a template of this name; sandboxes that have the old one keep it
---@field note? string kept with it
---@field timeout? number seconds without progress; 60

--- Makes a template of the sandbox's files; the sandbox lives on. Nothing may run in it: err.code is "busy"
--- otherwise, and the message names the processes. While it is taken, new commands and writes are "busy".
---@param name string a-z, 0-9, ".", "_" and "-"; not "host"
---@param opts? barchan.SnapshotOptions
---@return barchan.Template? template
---@return barchan.Error? err
function Sandbox:snapshot(name, opts) end

--- Makes `count` sandboxes that begin with the sandbox's files as they are now, all of them or none. Each has its
--- profile (template, mounts, env, limits, price) and a whole lease; they are this program's own, also when the
--- sandbox is a detached one. The files are copied once, and shared copy-on-write.
---@param count integer 1 to 64
---@return barchan.Sandbox[]? forks
---@return barchan.Error? err
function Sandbox:fork(count) end

---@class barchan.templates
local templates = {}

--- All of them, sorted by name, and how many leftovers of programs that were killed are gone now.
---@return barchan.Template[]? templates
---@return integer|barchan.Error removed
function templates.list() end

--- One of them; without it err.code is "not_found".
---@param name string
---@return barchan.Template? template
---@return barchan.Error? err
function templates.info(name) end

--- Removes one; "busy" while a sandbox uses it.
---@param name string
---@return boolean?
---@return barchan.Error? err
function templates.remove(name) end
