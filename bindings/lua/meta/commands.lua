---@meta

--- Commands of a sandbox: waited for (`exec`), with their output as it comes (`stream`), or held (`spawn`). What a
--- command does (exit 1, killed, timed out, out of memory) is in its result; `nil, err` means that it could not be
--- asked for.

---@class barchan.Sandbox see the topic sandbox
local Sandbox = {}

---@class barchan.ExecOptions: string[]
---@field sh? string a command for /bin/sh, in the place of words
---@field cwd? string working directory; /workspace
---@field env? table<string, string> more variables
---@field stdin? string|boolean what it reads; a stream's `true` keeps its input open for :write
---@field timeout? number|boolean seconds, more than 0; 60; false: none but the sandbox's lease
---@field grace? number seconds between SIGTERM and SIGKILL when its time is over; 2; 0: SIGKILL at once
---@field output_limit? integer bytes kept of each stream, half of them of its head, the others of its tail; 1 MiB; 0: none. What comes between is dropped and counted, and the command goes on: limits.output kills it. A stream gives all
---@field detach? boolean leave what it started running; in a detached sandbox it outlives the connection, too
---@field network? string "off": none for this command

--- Runs a command and waits: a string runs in /bin/sh, a table's list is the command's words and its named keys
--- are options: `sbx:exec { "wc", "-w", path, timeout = 10 }`.
---@param command string|barchan.ExecOptions
---@return barchan.ExecResult? result
---@return barchan.Error? err
function Sandbox:exec(command) end

--- Runs a command and gives its output as it comes: `for stream, chunk in sbx:stream "make" do … end`, where
--- stream is "out" or "err". Leaving the loop early is fine; closing the stream kills the command. How it ended is
--- told by stream:result(). A command that cannot be asked for is an error, which is thrown, as by all iterators; one
--- that could not be started throws where its output would begin ("not_found", "permission", …).
---@param command string|barchan.ExecOptions
---@return barchan.Stream stream
function Sandbox:stream(command) end

---@class barchan.SpawnOptions: string[]
---@field sh? string a command for /bin/sh, in the place of words
---@field cwd? string working directory; /workspace
---@field env? table<string, string> more variables
---@field stdin? string what it reads; without it its input stays open for :write
---@field timeout? number|boolean seconds, more than 0; without it, or with false, none but the sandbox's lease
---@field grace? number seconds between SIGTERM and SIGKILL when its time is over; 2; 0: SIGKILL at once
---@field pty? { cols: integer, rows: integer } a terminal of this size; 80 columns, 24 rows
---@field backlog? integer bytes kept of each stream, 1 at least, 256 MiB at most; 1 MiB
---@field detach? boolean in a detached sandbox: it outlives the connection
---@field network? string "off": none for this command

--- Starts a command and gives a handle that lives as long as it does. Its output is kept, the last `backlog` bytes
--- of each stream, until it is read; the command is never held up by that. `<close>` kills it.
---@param command string|barchan.SpawnOptions
---@return barchan.Process? process
---@return barchan.Error? err
function Sandbox:spawn(command) end

--- The rendering of a result for a model: how it ended, then out, then err, each labelled, never empty.
---@param result barchan.ExecResult
---@param options? { limit: integer } bytes of each stream; 16 KiB
---@return string
function barchan.render(result, options) end

---@class barchan.ExecResult how a command ended; tostring renders it for a model
---@field reason string "exited", "signaled", "timeout", "oom", "cancelled", "lost", "spawn_failed", …
---@field exit_code? integer when it exited
---@field signal? integer when a signal ended it
---@field out string standard output
---@field err string standard error
---@field out_dropped integer bytes missing in the middle of out
---@field err_dropped integer bytes missing in the middle of err
---@field out_head? integer of an out with bytes missing: how many stand before them
---@field err_head? integer likewise
---@field duration number seconds
---@field left_running integer processes that it left
---@field denied? barchan.Denied[] what the network refused meanwhile; nil when that is nothing
---@field unreached? barchan.Denied[] what it allowed and could not reach
---@field program? string of one that could not be started: its name
---@field cwd? string of one that could not be started: where it was to run
---@field spawn_error? string why it could not be started
---@field spawn_errno? integer the system's number for that
---@field spawn_cwd? boolean it was the working directory that could not be entered
---@field usage { wall: number, cpu: number, user: number, system: number, max_rss: integer }
local ExecResult = {}

--- Whether it exited with 0.
---@return boolean
function ExecResult:ok() end

---@class barchan.Process a command that is held
---@field id integer its number, as in sbx:processes()
local Process = {}

--- The next bytes of a stream, waiting for them, and how many were lost before them; nil at its end.
---@param stream? string "out" (default) or "err"
---@return string? bytes
---@return integer|barchan.Error|nil dropped
function Process:read(stream) end

--- What a stream has from a cursor on, without waiting: bytes, the next cursor, how many bytes before these are no
--- longer kept, and whether that was all.
---@param stream? string "out" (default) or "err"
---@param cursor? integer 0, the beginning
---@return string? bytes
---@return integer|barchan.Error next_cursor
---@return integer dropped
---@return boolean ended
function Process:read_at(stream, cursor) end

--- Both streams as they come: `for stream, bytes, dropped in p:output() do … end`. A command that could not be
--- started has none, as p:wait() tells.
---@return function
function Process:output() end

--- Writes all of `data` to its standard input, waiting while that is full.
---@param data string
---@return boolean?
---@return barchan.Error? err
function Process:write(data) end

--- Ends its input; at a terminal, as Ctrl-D does.
function Process:close_input() end

--- Sends a signal to its processes.
---@param number integer
function Process:signal(number) end

--- A new size for its terminal.
---@param columns integer
---@param rows integer
function Process:resize(columns, rows) end

--- Kills it and all that it has started.
function Process:kill() end

--- Whether it still runs.
---@return boolean
function Process:running() end

--- How it ended, waiting for that; nil when `seconds` are over before. Its output is read from the handle.
---@param seconds? number
---@return barchan.ExecResult?
function Process:wait(seconds) end

---@class barchan.Stream a command whose output is read as it comes; call it for the next chunk
local Stream = {}

--- How the command ended, once the stream has.
---@return barchan.ExecResult
function Stream:result() end

--- Writes all of `data` to its standard input, waiting while that is full.
---@param data string
---@return boolean?
---@return barchan.Error? err
function Stream:write(data) end

--- Ends its standard input.
function Stream:close_input() end

--- Sends a signal to its processes.
---@param number integer
function Stream:signal(number) end

--- Kills it; the result's reason is "cancelled".
function Stream:cancel() end
