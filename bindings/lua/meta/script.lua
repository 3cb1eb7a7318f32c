---@meta

--- Loop scripts: a loop of one's own that may be edited while a conversation goes on. The file returns
--- `{ open = function(state, …), turn = function(state), close = function(state) }`: open once, turn again and
--- again until it answers something that is not nil. All that must outlive an edit is kept in `state`. An edit takes
--- over between two turns; when its first turn throws, `state` is put back and the version before goes on.
--- `barchan run [--watch] loop.lua` runs one, and a C host by `barchan_engine_call(engine, "barchan.script:run", …)`.

---@class barchan.ScriptOptions
---@field file string path of the script; what it requires from its directory reloads with it
---@field watch? boolean take in edits at the next turn
---@field on_event? fun(event: barchan.Event) script_reloaded, script_reload_failed, script_rolled_back: see the topic events

--- A loop script from a file.
---@param options barchan.ScriptOptions
---@return barchan.Script
function barchan.script(options) end

---@class barchan.Script
local Script = {}

--- Runs the loop to its end; what its last turn returned.
---@param ... any for open
---@return any ...
function Script:run(...) end

--- Takes in an edit now; run does it between turns.
---@param emit? fun(event: table)
---@return boolean
function Script:refresh(emit) end

---@private
function Script:current() end

---@private
function Script:restore(good, bad) end

---@private
function Script:tell(event) end
