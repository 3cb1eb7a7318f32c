---@meta

--- Models: a provider, a name, options. Keys come from the environment (ANTHROPIC_API_KEY, OPENAI_API_KEY, …) and go to
--- the provider's own address only; the library gives none to Lua. (A script can read the environment by `os.getenv`,
--- which the safe library has not.) `replay` plays recorded turns, without a key.
---
--- A model may be written in Lua: its provider is a table with a function `complete(request, emit)`, which returns a
--- reply, or nil and an error { code, message }. What it throws, and a reply that is none, is thrown on. Requests and
--- replies are copied, as over a wire: they are JSON, without what a metatable adds.
---
---     local echo = assert(barchan.model { name = "echo", provider = {
---       complete = function(request, emit)
---         local last = request.messages[#request.messages]
---         if type(last.content) ~= "string" then return nil, { code = "invalid_argument", message = "text only" } end
---         for word in last.content:gmatch "%S+%s*" do emit("text", word) end
---         return { text = last.content, usage = { output_tokens = #last.content } }
---       end,
---     } })
---     print(assert(echo:complete "hello there").text)
---
--- An agent also takes a plain table with a method: complete(self, options) gets what model:complete takes, `tools` as a
--- toolset and `on_event` in the place of emit, and may hand it on to another model's complete. The same checks hold.

---@class barchan.ModelOptions
---@field provider? string|barchan.Provider "anthropic", "openai", "openai-responses", "gemini", "replay", a preset's name (see the topic prices); or a model written in Lua
---@field name? string of the model
---@field replay? string the transcript that provider "replay" plays; of another, the recording to play
---@field record? string a new file: all that goes over the wire, without the key, to be played later
---@field api_key? string in the place of the environment's
---@field base_url? string another address, or a compatible server
---@field use_key? boolean with base_url: send the environment's key there
---@field headers? table<string, string> more headers of each request: { ["X-Name"] = "value" }; none that frame it, as Host
---@field allow_plain_http? boolean let base_url be http beyond this machine
---@field max_tokens? integer of one answer, 1 at least
---@field connect_timeout? number seconds, more than 0; 15
---@field idle_timeout? number seconds without a byte, more than 0; 120
---@field timeout? number seconds of one completion, retries and their waits included, more than 0; 600
---@field max_retries? integer of a request that failed in passing; 2; 0: none
---@field max_retry_wait? number seconds, the longest wait that a server may ask for; 60; 0: none
---@field extra? table<string, any> members added to every request; those of the request's own `extra` win
---@field stream? boolean default of complete's

---@class barchan.Provider a model that is written in Lua
---@field complete fun(request: barchan.Request, emit: barchan.Emit): barchan.Reply?, barchan.Error? may wait; its own tasks end with it

---@class barchan.Request what it is asked; checked, as one that goes over HTTP is
---@field messages table[] the conversation: { role = "user", content }, replies, { role = "tool", tool_call_id, name, content, is_error }; content is text or a list of parts
---@field stream boolean whether text is wanted as it arrives
---@field system? string
---@field tools? table[] { name, description, parameters }, … that it may call
---@field tool_choice? string|table "auto", "any", "none" or { name = … }
---@field parallel_tool_calls? boolean
---@field max_tokens? integer
---@field temperature? number
---@field stop? string[]
---@field effort? string
---@field schema? table JSON Schema of the answer, which is checked by it
---@field cache? boolean
---@field extra? table

---@class barchan.Emit emit(kind, data): what it says while it works, for on_delta and on_event
---@overload fun(kind: string, data: any)
---@field text string more of the answer's text; the reply has it whole
---@field reasoning string more of the readable thinking
---@field tool_call string the name of a call that has begun
---@field restart? string what was shown is void
---@field retry table { attempt = the coming one, wait = seconds, error, code }: asks again
---@field fallback table { from, to, error, code }: asks another model

--- A model, ready to complete.
---@param options barchan.ModelOptions
---@return barchan.Model? model
---@return barchan.Error? err
function barchan.model(options) end

--- The options of a model that plays this file: a recording names its provider, model and address itself, anything
--- else is taken for a transcript. `barchan.model(assert(barchan.recorded(path)))`
---@param path string
---@return barchan.ModelOptions? options
---@return barchan.Error? err
function barchan.recorded(path) end

--- A model that asks the first of several that can answer: the next one when one fails in a way that another may
--- not, which is told as the event "fallback". When none answers, the error says how each failed; its code is the last one's.
---@param models barchan.Model[]
---@return barchan.Model
function barchan.fallback(models) end

--- A user message: text, or a list of parts { type = "text" | "image", … }.
---@param content string|table[]
---@return table message
function barchan.user(content) end

--- The message that answers one tool call.
---@param call barchan.Call
---@param content string|table[]
---@param is_error? boolean
---@return table message
function barchan.tool_result(call, content, is_error) end

---@class barchan.Model
---@field provider string
---@field name? string
local Model = {}

---@class barchan.CompleteOptions
---@field messages string|table[] the conversation
---@field tools? barchan.Toolset|table[] what the model may call
---@field system? string
---@field tool_choice? string|table "auto", "any", "none" or { name = … }
---@field parallel_tool_calls? boolean
---@field max_tokens? integer
---@field temperature? number
---@field stop? string[]
---@field effort? string how hard it thinks: minimal, low, medium, high, xhigh, max
---@field schema? table JSON Schema of the answer; reply.output is its value
---@field cache? boolean have what stays the same of the conversation cached
---@field extra? table merged into the provider's request
---@field stream? boolean
---@field on_delta? fun(text: string) the answer's text as it arrives
---@field on_event? fun(kind: string, data: any) text, reasoning, tool_call, restart; retry and fallback with a table: see Emit
---@field max? integer turns only: how many; 8

---@class barchan.Call
---@field id string
---@field name string
---@field arguments table

---@class barchan.Reply the assistant message, to be appended as it is; of a model written in Lua all may be missing, and others are errors
---@field role string "assistant"
---@field text string "" when missing
---@field reasoning? string
---@field refusal? string
---@field tool_calls barchan.Call[] only calls that may be run; no two of one id
---@field invalid_tool_calls? table[] calls that could not be read; answer them too
---@field stop_reason string "end_turn", "tool_use", "max_tokens", "stop_sequence", "refusal", "content_filter", "pause_turn", "context_window", "error"; when missing "tool_use" with calls, else "end_turn"
---@field usage table input_tokens (without cached ones), output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens
---@field cost? number US dollars; when missing by barchan.prices, and nil where there is no price
---@field raw_stop_reason? string the provider's own word
---@field model? string as the provider names it; `id` and `request_id` likewise
---@field id? string
---@field request_id? string
---@field raw? table the provider's own turn, sent back to it while the reply is unedited
---@field output? any with `schema`: the answer's value
---@field output_error? string with `schema`: why there is none

--- Completes one turn.
---@param options string|barchan.CompleteOptions
---@return barchan.Reply? reply
---@return barchan.Error? err
function Model:complete(options) end

--- Loops over turns: each reply is appended to the list `messages`, or to one that begins with that text, and the
--- loop's body answers its calls: `for reply, messages in model:turns { messages = "…", tools = tools } do
--- tools:answer(reply, messages) end`. Ends after a reply without calls, or `max` turns.
---@param options string|barchan.CompleteOptions
---@return fun(): barchan.Reply?, table[]? next
function Model:turns(options) end
