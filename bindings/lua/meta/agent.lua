---@meta

--- Agents: the loop. It asks the model, runs the tools that it calls, and goes on until it answers.
--- scripts/barchan/agent.lua is that loop, to be read and copied.

---@class barchan.AgentOptions
---@field model barchan.Model or a table with complete(self, options): see the topic model
---@field tools? barchan.Toolset|barchan.ToolsetOptions
---@field system? string
---@field max_steps? integer completions with tools; 16
---@field max_tokens? integer of one completion
---@field max_seconds? number of a run; what does not wait for anything is stopped a second later
---@field max_output_tokens? integer of a run
---@field policy? string|barchan.Policy|barchan.Policies|table see the topic policies
---@field on_event? fun(event: barchan.Event) every event of a run: see the topic events
---@field on_delta? fun(text: string) the answer as it arrives
---@field transcript? table from barchan.transcript.open
---@field effort? string as complete's
---@field cache? boolean as complete's
---@field stream? boolean
---@field extra? table

--- An agent. Runs of one are independent of each other.
---@param options barchan.AgentOptions
---@return barchan.Agent
function barchan.agent(options) end

---@class barchan.Agent
local Agent = {}

---@class barchan.AgentResult
---@field text string the last answer
---@field stop_reason string end_turn, stop_sequence, max_steps, max_tokens, refusal, content_filter, context_window, pause_turn, budget, denied, cancelled, error
---@field reason? string with denied: what the policy said
---@field error? barchan.Error with error and cancelled
---@field usage table
---@field cost? number US dollars; nil unless every turn's model has a price: see the topic prices
---@field messages table[] to go on from
---@field turns integer
---@field run_id string

--- Runs the agent on a prompt: text, a message, or messages to go on from. Always returns a result.
---@param prompt string|table
---@return barchan.AgentResult
function Agent:run(prompt) end

---@class barchan.transcripts
---@field VERSION integer of the format
local transcript = {}

--- Opens a record of runs for writing, to be given to an agent; a file that exists is refused unless `append`, which
--- goes on after its whole lines, or begins a missing one. What is no transcript is left as it is. One writer at a time.
---@param path string
---@param options? { append: boolean }
---@return table? writer with write(event) and close()
---@return barchan.Error? err
function transcript.open(path, options) end

--- The events of a record; a last line that a crash cut off is left out.
---@param path string
---@return table[]? events
---@return barchan.Error? err
function transcript.read(path) end
