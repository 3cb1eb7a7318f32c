-- Transcripts: the JSONL record of a run, enough to resume or replay it. The first line is
-- { type = "transcript", version = 1, … }; the others are the run's events. `model_reply` events
-- carry the whole reply, which is what the replay provider plays.
local _, core = ...

local misuse = require "barchan.misuse"
local options = require "barchan.options"

local transcript = { VERSION = 1 }

local open_spec = { append = "boolean" }

local Writer = { __name = "barchan.transcript" }
Writer.__index = Writer

local function failure(message)
  return core.util.error { code = "io", message = message, retryable = false }
end

local function check_path(where, path)
  if type(path) ~= "string" then misuse.expected(where, "a path", path) end
  if path:find("\0", 1, true) then misuse.throw(where .. ": a path without a NUL byte expected") end
end

-- Whether these are the words of a transcript's first line, of a version that is known here.
local function check_header(event, path)
  if type(event) ~= "table" or event.type ~= "transcript" then
    return nil, failure(("transcript: '%s' does not begin with a transcript line"):format(path))
  end
  if event.version ~= transcript.VERSION then
    return nil, failure(("transcript: '%s' has version %s; this program reads %d")
      :format(path, tostring(event.version), transcript.VERSION))
  end
  return true
end

local function header()
  return core.json.encode {
    type = "transcript",
    version = transcript.VERSION,
    barchan = core.util.version,
    time = core.util.wall_time(),
  } .. "\n"
end

local function create(path)
  local ok, err = core.host.create_file(path)
  if ok then return header() end
  if err.code == "exists" then
    err.message = ("transcript: '%s' exists; choose another name or remove it"):format(path)
  end
  return nil, err
end

-- Looks whether lines may follow those of the file. Returns what is to be written before them: the
-- header of an empty one, the missing end of a line that is whole but for that. Only what a crash
-- cut off in the middle of a line of a transcript is removed.
local function continue(path)
  local ok, err = core.host.check_file(path)
  if not ok and err.code == "not_found" then return create(path) end
  if not ok then return nil, err end
  local file, problem = io.open(path, "r")
  if not file then return nil, failure("transcript: " .. problem) end
  local first, last = nil, nil
  for line in file:lines "L" do
    first, last = first or line, line
  end
  file:close()
  if not first then return header() end
  ok, err = check_header(core.json.decode(first), path)
  if not ok then return nil, err end
  if last:sub(-1) == "\n" then return "" end
  if type(core.json.decode(last)) == "table" then return "\n" end
  ok, err = core.host.cut_line(path)
  if not ok then return nil, err end
  return ""
end

local function put(self, text)
  local ok, problem = self.file:write(text)
  if ok then ok, problem = self.file:flush() end
  if not ok then error(("transcript: cannot write '%s': %s"):format(self.path, problem), 0) end
end

--- Opens a transcript for writing; an existing file is refused unless `append`, which goes on after
--- its whole lines: what is no transcript is refused and left as it is. One writer at a time.
---@return table? writer
---@return table? err
function transcript.open(path, opts)
  check_path("transcript.open", path)
  if opts ~= nil then options.check("transcript", opts, open_spec) end
  if not io then return nil, failure "transcript: this engine has no files" end
  local before, err = (opts and opts.append and continue or create)(path)
  if not before then return nil, err end
  local file, problem = io.open(path, "a")
  if not file then return nil, failure("transcript: " .. problem) end
  local self = setmetatable({ file = file, path = path }, Writer)
  put(self, before)
  return self
end

--- Writes one event, whole, at once.
function Writer:write(event)
  if type(event) ~= "table" then misuse.expected("write", "an event, a table,", event) end
  if not self.file then misuse.throw "write: the transcript is closed" end
  local line = core.json.encode(event)
  put(self, line .. "\n")
end

function Writer:close()
  if self.file then self.file:close() end
  self.file = nil
end

misuse.methods(Writer, "writer")
Writer.__close = Writer.close

--- The events of a transcript. A last line that was cut off by a crash is left out.
---@return table[]? events
---@return table? err
function transcript.read(path)
  check_path("transcript.read", path)
  if not io then return nil, failure "transcript: this engine has no files" end
  local regular, why = core.host.check_file(path) -- a FIFO would wait for its writer
  if not regular then return nil, why end
  local file, problem = io.open(path, "r")
  if not file then return nil, failure("transcript: " .. problem) end
  local events, number = {}, 0
  for line in file:lines() do
    number = number + 1
    if line:find "%S" then
      local event, err = core.json.decode(line)
      if err or type(event) ~= "table" then
        if file:read(0) == nil then break end
        file:close()
        local reason = err and err.message or "not an object"
        return nil, failure(("transcript: %s:%d: %s"):format(path, number, reason))
      end
      events[#events + 1] = event
    end
  end
  file:close()
  local ok, err = check_header(events[1], path)
  if not ok then return nil, err end
  return events
end

return transcript
