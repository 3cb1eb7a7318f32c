---@meta

--- The module: `local barchan = require "barchan"`, the same in `barchan run`, in an engine and under stock
--- lua5.4. Times are seconds, sizes bytes.
---
--- What the scripts check throws, and names it: arguments of a wrong type, unknown options, numbers that make no sense
--- anywhere. The world failing returns `nil, err`, so that `assert(…)` keeps the error whole. So does a value that only
--- the library can judge (an address, a path, a size, a name, a message of a conversation): err.code is
--- "invalid_argument" then. Iterators throw either.

---@class barchan
---@field version string
---@field json barchan.json JSON that keeps integers, empty arrays and null; see the topic json
---@field templates barchan.templates files that sandboxes begin from; see the topic templates
---@field prices table<string, barchan.Price> what models cost, by "provider:name"; see the topic prices
---@field presets table<string, barchan.Preset> services by name; see the topic prices
---@field transcript barchan.transcripts records of runs; see the topic agent
---@field coroutine table a coroutine library that waits pass through; in engines it is `coroutine` itself
---@field host { tools: barchan.Tool[] } the tools that the host application has registered by now
local barchan = {}

---@class barchan.Error what went wrong, with a readable tostring
---@field code string "timeout", "not_found", "closed", "cancelled", "limit", …: names of `barchan_status`
---@field message string one line for people
---@field status? integer a provider's HTTP status
---@field provider_code? string a provider's own code
---@field request_id? string a provider's id of the request
---@field retryable boolean whether the same call may succeed later
---@field retry_after? number seconds that the peer asked us to wait
---@field where? string the operation
---@field os_error? integer the system's error number
---@field traceback? string where a script threw it

--- Seconds of a clock that only runs forward.
---@return number
function barchan.now() end

--- What this machine can isolate, by which means, and what to do about the rest. The rows `sandbox.…` are those of a
--- sandbox that is made for looking, with small limits of its own.
---@return { name: string, state: string, detail: string, remedy: string }[]?
---@return barchan.Error? err
function barchan.doctor() end

return barchan
