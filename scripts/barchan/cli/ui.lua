-- What a person sees of a run: text on standard output; tool calls, their outcomes and times on
-- standard error. A spinner on a terminal, plain lines otherwise; colours unless NO_COLOR is set.
local _, core = ...

local task = require "barchan.task"

local ui = {}

local EINTR = 4

local function put(file, name, ...)
  local ok, problem, code = file:write(...)
  if ok then ok, problem, code = file:flush() end
  if ok then return end
  if code == EINTR then
    error(core.util.error { code = "cancelled", message = "interrupted", retryable = false }, 0)
  end
  error(("cannot write standard %s: %s"):format(name, problem), 0)
end

--- Writes to standard output; a full disk or a closed descriptor ends the command with the reason.
function ui.out(...) put(io.stdout, "output", ...) end

--- The same for what a command has written to standard error. (What this program itself has to say is said
--- as well as that is possible.)
function ui.err(...) put(io.stderr, "error", ...) end

local FRAMES = { "⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏" }

-- Guest and model text goes to a terminal: control characters (but newline and tab), and characters
-- that reorder or hide text, are shown as escapes. Joiners and the marks of a direction stay: words
-- of many languages, and emoji, are written with them.
local function visible(text)
  text = core.util.utf8_repair(text)
  text = text:gsub("[%c]", function(c)
    if c == "\n" or c == "\t" then return c end
    return ("\\x%02x"):format(c:byte())
  end)
  for _, hidden in ipairs {
    "\xE2\x80[\x8B\xA8-\xAE]", -- a space of no width, separators, overrides of the direction
    "\xE2\x81[\xA0-\xAF]", -- isolates, invisible operators
    "\xC2[\x80-\x9F\xAD]", -- more control characters, the soft hyphen
    "\xE1\xA0\x8E", "\xEF\xBB\xBF", "\xEF\xBF[\xB9-\xBB]",
    "\xF3\xA0[\x80-\x87][\x80-\xBF]", -- tags and selectors: invisible letters
  } do
    text = text:gsub(hidden, function(c) return ("\\u{%x}"):format(utf8.codepoint(c)) end)
  end
  return text
end
ui.visible = visible

-- Into a file or a pipe goes what came.
local function shown(text, fd) return core.host.is_terminal(fd or 1) and visible(text) or text end
ui.shown = shown

-- What the library calls otherwise, for scripts and C.
local flags = {
  ["%(the option 'replace'%)"] = "(--replace)",
  ["allow plain http explicitly"] = "allow it by --allow-plain-http",
  ["they are made when asked for"] = "--links makes them",
}

--- A message of the library in the words of the command line.
function ui.flagged(text)
  for words, flag in pairs(flags) do text = text:gsub(words, flag) end
  return text
end

local Show = {}
Show.__index = Show

function Show:paint(code, text)
  if not self.colour then return text end
  return ("\27[%sm%s\27[0m"):format(code, text)
end

function Show:clear_spinner()
  if self.spinning then io.stderr:write("\r\27[K") end
  self.spinning = false
end

function Show:line(text)
  self:clear_spinner()
  if self.text_open then
    ui.out("\n")
    self.text_open = false
  end
  io.stderr:write(text, "\n")
end

local function one_line(text, limit)
  text = visible(text):gsub("%s+", " ")
  if utf8.len(text) and utf8.len(text) > limit then
    text = text:sub(1, utf8.offset(text, limit) - 1) .. "…"
  end
  return text
end

local function call_text(event)
  local arguments = event.arguments
  if type(arguments) ~= "table" then return tostring(arguments) end
  local only
  for _, value in pairs(arguments) do
    if only ~= nil then return core.json.encode(arguments) end
    only = value
  end
  return type(only) == "string" and only or core.json.encode(arguments)
end

local handlers = {}

function handlers.turn_started(self) self.waiting_since = core.util.now() end

function handlers.text_delta(self, event)
  self:clear_spinner()
  self.waiting_since = nil
  if not self.quiet then
    ui.out(shown(event.text))
    self.text_open = event.text:sub(-1) ~= "\n"
  end
end

function handlers.restart(self) self:line(self:paint("33", "the answer begins again")) end

function handlers.retry(self, event)
  self:line(self:paint("33", ("asking again in %.1f s: %s"):format(event.wait, visible(event.message))))
end

function handlers.fallback(self, event)
  local text = ("asking %s instead of %s: %s"):format(event.to, event.from, event.message)
  self:line(self:paint("33", visible(text)))
end

function handlers.model_reply(self) self.waiting_since = nil end

function handlers.tool_call(self, event)
  self.waiting_since = core.util.now()
  self:line(self:paint("36", "> " .. visible(event.name)) .. " " .. one_line(call_text(event), 100))
end

function handlers.tool_result(self, event)
  self.waiting_since = nil
  local content = type(event.content) == "string" and event.content or core.json.encode(event.content)
  local text = one_line(content, 100)
  local mark = event.is_error and self:paint("31", "  failed") or self:paint("32", "  done")
  self:line(("%s in %.2f s: %s"):format(mark, event.seconds, text))
end

-- What came of an edit: tools, policies or the script itself.
local function reloaded(self, event)
  local parts = {}
  for _, what in ipairs { "added", "changed", "removed" } do
    if event[what] and #event[what] > 0 then
      parts[#parts + 1] = what .. " " .. table.concat(event[what], ", ")
    end
  end
  local text = #parts > 0 and ": " .. table.concat(parts, "; ") or ""
  self:line(self:paint("33", event.type:gsub("_", " ")) .. visible(text))
end

local function reload_failed(self, event)
  self:line(self:paint("31", "edit refused, what was there stays: ") .. visible(event.message))
end

function handlers.policy_failed(self, event)
  self:line(self:paint("31", "a policy failed: ") .. visible(event.message))
end

for _, what in ipairs { "tools", "policies", "script" } do
  handlers[what .. "_reloaded"] = reloaded
  handlers[what .. "_reload_failed"] = reload_failed
end

function handlers.run_finished(self, event)
  self.waiting_since = nil
  self:clear_spinner()
  if self.text_open then ui.out("\n") end
  self.text_open = false
  if event.stop_reason ~= "end_turn" and event.stop_reason ~= "stop_sequence" then
    local why = event.error and event.error.message or event.reason
    why = why and ": " .. visible(why) or ""
    self:line(self:paint("33", "stopped: " .. visible(event.stop_reason)) .. why)
  end
end

--- Takes the events of a run.
function Show:event(event)
  local handler = handlers[event.type]
  if handler then handler(self, event) end
end

-- The spinner turns while a model or a tool is waited for.
function Show:spin()
  local frame = 0
  while true do
    task.sleep(0.1)
    if self.waiting_since and not self.text_open then
      frame = frame % #FRAMES + 1
      local seconds = core.util.now() - self.waiting_since
      io.stderr:write(("\r%s %.1f s\27[K"):format(FRAMES[frame], seconds))
      self.spinning = true
    end
  end
end

local current -- what shows a run now

--- What tools log: lines of standard error, between those of the run.
function ui.log(...)
  local words = table.pack(...)
  for i = 1, words.n do words[i] = tostring(words[i]) end
  local text = shown(table.concat(words, "\t"), 2)
  if current then current:line(text) else io.stderr:write(text, "\n") end
end

--- `terminal`: whether standard error is one.
function ui.new(terminal)
  local self = setmetatable({}, Show)
  local no_color = core.util.getenv "NO_COLOR"
  self.terminal = terminal and core.util.getenv "TERM" ~= "dumb"
  self.colour = self.terminal and (no_color == nil or no_color == "")
  if self.terminal then self.spinner = task.spawn(self.spin, self) end
  current = self
  return self
end

function Show:close()
  current = nil
  if self.spinner then self.spinner:cancel() end
  self:clear_spinner()
end

Show.__close = Show.close

return ui
