---@meta

--- Tools: what a model may call. A tool file returns one or a list of them; `dir` takes in every file of a
--- directory, and with `watch` an edit takes effect at the model's next turn, a broken one changes nothing, and a
--- call in flight finishes on the version that it began with.

---@class barchan.Tool
---@field name string 1 to 64 letters, digits, _ and -
---@field description? string for the model: when to use it, what to check in its answer
---@field parameters? table JSON Schema whose type is object; arguments that do not fit are answered, not run. pattern and format are told to the model and not checked
---@field run fun(args: table, ctx: barchan.ToolContext): any a string, an exec result, barchan.result or a table. The model gets 64 KiB of text at most: the head, the tail, and how many bytes are left out between; of an exec result 16 KiB of each stream
---@field timeout? number seconds; a tool that does not wait for anything is stopped a second later
---@field sequential? boolean not beside other calls of the same turn

---@class barchan.ToolContext
---@field sandbox barchan.Sandbox
---@field call_id string
---@field state table the tool's own in this binding; outlives reloads
---@field log fun(...) a line for people, never for the model: standard error in the program and under lua5.4, the application's print in its engine
---@field cancelled fun(): boolean

--- Checks a tool; throws what is wrong with it.
---@param tool barchan.Tool
---@return barchan.Tool
function barchan.tool(tool) end

--- What a tool returns when a string is not enough.
---@param fields { text: string?, images: { media_type: string, data: string }[]?, is_error: boolean? }
---@return table
function barchan.result(fields) end

---@class barchan.ToolsetOptions: (string|barchan.Tool)[]
---@field dir? string|string[] directories of tool files; a later one wins
---@field watch? boolean take in edits of them
---@field sandbox? barchan.Sandbox what the tools work in
---@field on_event? fun(event: barchan.Event) tools_reloaded, tools_reload_failed: see the topic events

--- Tools by the names of built-in ones, as tables, and from directories.
---@param options barchan.ToolsetOptions
---@return barchan.Toolset
function barchan.toolset(options) end

---@class barchan.Toolset
local Toolset = {}

--- What a model is told: name, description, parameters of each.
---@return table[]
function Toolset:declarations() end

---@return string[]
function Toolset:names() end

--- Runs one call; the message that answers it. Never throws for what the model sent.
---@param call barchan.Call
---@return table message
function Toolset:dispatch(call) end

--- Answers every call of a reply, in parallel, appending one message per call in order; how many there were. `around`
--- stands around each call, for consent, a log, or other arguments. It is a task of its own and returns the message that
--- answers the call: that of run(), or of run(changed) with another call of the same id; or, without running it,
--- barchan.tool_result(call, "why not", true). When it returns nothing, run() answers. may_run is false for a call that could not
--- be read (reply.invalid_tool_calls): run() says so to the model then.
---
---     tools:answer(reply, messages, function(call, run, may_run)
---       if may_run and call.name == "exec" then return barchan.tool_result(call, "not run: not allowed", true) end
---       return run()
---     end)
---@param reply barchan.Reply
---@param messages table[]
---@param around? fun(call: barchan.Call, run: (fun(changed?: barchan.Call): table), may_run: boolean): table? in the place of run()
---@return integer
function Toolset:answer(reply, messages, around) end

--- The same tools for another conversation, with its own sandbox and state. Directories are watched once for all.
---@param options { sandbox: barchan.Sandbox? } sandbox: what the tools work in; without one they have none
---@return barchan.Toolset
function Toolset:bind(options) end

--- Takes in edits of a watched directory now; agents and models do it before each turn. Whether something changed.
---@param emit? fun(event: table)
---@return boolean
function Toolset:refresh(emit) end

--- Waits until something may have changed in the directories.
function Toolset:wait_change() end

--- Remembers which version of the tools a reply's calls were made against; models do it.
---@param reply barchan.Reply
function Toolset:stamp(reply) end
