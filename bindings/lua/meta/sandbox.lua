---@meta

--- Sandboxes: isolated computers with files, processes and a network profile. One lives for a conversation;
--- `<close>` ends it. What runs in one is the topic commands; its files are the topic files.

---@class barchan.SandboxOptions
---@field template? string "host" (default) shows this machine's /usr; or a snapshot's name, or a root directory
---@field network? string|barchan.NetworkOptions "off" (default), or as in the topic network
---@field lease? number seconds that it may live, more than 0, at most 7 days; 1800
---@field limits? barchan.Limits what its commands may use
---@field env? table<string, string> variables of every command
---@field best_effort? boolean go on without layers that this machine lacks
---@field timeout? number seconds that creating it may take, more than 0; 30
---@field on_lease_end? string "terminate" (default) or "pause"
---@field idle_timeout? number seconds without a command, file operation or question until it ends, more than 0; without it never
---@field mounts? { source: string, target: string, mode: string }[] folders and files of the host; at most 16; source: absolute; target: /workspace, /home/user, a path below them, or one below /mnt, /tmp, /var/tmp or /run, none below another's; mode "ro" (default), "rw", or "cow": copy-on-write, what is written stays in the sandbox
---@field secrets? barchan.SecretOptions[] see the topic secrets; not with `detached`
---@field price? { cpu_hour: number, vcpu_hour: number, gib_hour: number } what it costs
---@field max_cost_micros? number with a price: millionths that it may cost; not with `detached`
---@field detached? boolean it outlives this program, and takes no secrets, on_connect, on_event or max_cost_micros: see the topic detached

---@class barchan.Limits each is greater than 0; without one its default holds. status().layers tells what holds each
---@field memory? integer bytes of all commands together, files included, 8 MiB at least; no limit
---@field disk? integer bytes of all that is writable, 1 MiB at least, and less than memory; 1 GiB, or half of memory if that is less
---@field files? integer that exist at a time, at most 16 Mi; disk / 4096 + 1024
---@field cpus? number processors, all commands together, 0.01 to 4096; no limit
---@field pids? integer processes and threads, all commands together, at most 1024; 1024
---@field open_files? integer of each process, 16 to 65536; 65536, or as many as this machine lets a process have, of which 1024 at first
---@field output? integer bytes that each command may write, out and err together; one that writes more is killed ("output"); no limit
---@field cpu_seconds? number of processor time of each command with all that it starts, at most 7 days; no limit
---@field wall? number seconds of each command, at most 7 days: a longer timeout is cut to it; no limit

--- Creates a sandbox.
---@param options? barchan.SandboxOptions
---@return barchan.Sandbox? sandbox
---@return barchan.Error? err
function barchan.sandbox(options) end

--- The status of each sandbox that this Lua state has made and not dropped.
---@return table[]
function barchan.sandboxes() end

---@class barchan.Sandbox
---@field id string as in status()
---@field files barchan.Files its files; see the topic files
local Sandbox = {}

--- The processes of its commands: a list of { pid, parent, threads, state, id, cpu, memory, command } (the first
--- 264), and how many there are.
---@return table[]?
---@return integer|barchan.Error count
function Sandbox:processes() end

--- id, state, end_reason (once it has ended), template, age, lease_left, running, layers (what holds, by which means).
---@return table
function Sandbox:status() end

--- What it has used: wall, cpu, user, system (seconds); memory, memory_peak, disk (bytes); memory_byte_seconds;
--- bytes_in, bytes_out; execs; cpu_counted, memory_counted (whether the kernel counted the whole, or process 1 what it
--- saw); cost_micros with a price; network: a list of NetworkHost; connections: those that
--- are open. The last two are nil once a detached sandbox has ended.
---@return table?
---@return barchan.Error? err
function Sandbox:usage() end

--- Has every process stand still. The lease runs on, the time of commands does not.
---@return boolean?
---@return barchan.Error? err
function Sandbox:pause() end

--- Lets them go on.
---@return boolean?
---@return barchan.Error? err
function Sandbox:resume() end

--- Adds seconds, more than 0, to the lease, of which at most 7 days may be left then.
---@param seconds number
---@return boolean?
---@return barchan.Error? err
function Sandbox:extend(seconds) end

--- Starts to end everything in it. Never waits; idempotent; `<close>` does it too, unless it is detached.
function Sandbox:terminate() end
