---@meta

--- Detached sandboxes outlive the program that made them, with `detached = true` or by `barchan sandbox create`. Each
--- is held by a process of its own until it is terminated, its lease ends or that process dies, and is this user's
--- alone. `barchan sandbox list`, `exec`, `cp`, `logs`, `kill`, … are for a shell what this is for scripts.
---
--- What would be asked of the program that made it is refused: `secrets`, the network's `on_connect` and `on_event`, and
--- `max_cost_micros`.

--- Connects to a detached sandbox of this user, made with `detached = true` or by `barchan sandbox create`, and
--- held by a process of its own. Its methods are those of a sandbox of one's own, but `<close>` and the end of
--- the program only let go of it: what still runs for this handle is cancelled, but for commands started with
--- `detach`. Connecting never changes the lease.
---@param id string
---@return barchan.Sandbox? sandbox
---@return barchan.Error? err
function barchan.connect(id) end

--- The status of each detached sandbox of this user, or { id, error } of one that does not answer; and how many
--- stale entries, of holders that were killed, were removed.
---@return table[]?
---@return integer|barchan.Error removed
function barchan.detached() end

---@class barchan.Sandbox
local Sandbox = {}

--- Lets go of a detached sandbox, which lives on; `<close>` does it too. Of this handle only id and status() work
--- then; every other call is nil and an error whose code is "closed". barchan.connect(id) gives another handle.
function Sandbox:detach() end

--- Of a detached sandbox what its commands have printed, the last 1 MiB, in the order in which it came out: a
--- list of { command, stream, data } from a cursor on, the next cursor, and how many bytes before these are no
--- longer kept. Of a command whose output was kept by a limit that is the head and the tail. Ask again with the
--- next cursor until the list is empty. With `follow` it waits until there is something; when all has been told
--- and the sandbox has ended, that is the error "lost".
---@param cursor? integer 0, the beginning
---@param opts? { follow?: boolean } follow: wait until there is something; one call of a handle waits, a second one answers the first with an empty list
---@return table[]?
---@return integer|barchan.Error next_cursor
---@return integer dropped
function Sandbox:logs(cursor, opts) end
