-- Transcripts: the JSONL record of a run, enough to resume or replay it. The first line is
-- { type = "transcript", version = 1, … }; the others are the run's events. `model_reply` events
-- carry the whole reply, which is what the replay provider plays.
local _, core = ...

local options = require "barchan.options"

local transcript = { VERSION = 1 }

local open_spec = { append = "boolean" }

local Writer = { __name = "barchan.transcript" }
Writer.__index = Writer

local function failure(message)
  return core.util.error { code = "io", message = message, retryable = false }
end

--- Opens a transcript for writing; an existing file is refused unless `append`, which removes a last
--- line that was cut off.
---@return table? writer
---@return table? err
function transcript.open(path, opts)
  if opts ~= nil then options.check("transcript", opts, open_spec) end
  if not io then return nil, failure "transcript: this engine has no files" end
  local append = opts and opts.append
  local ok, err = core.host.prepare_file(path, append)
  if not ok then
    if err.code == "exists" then
      err.message = ("transcript: '%s' exists; choose another name or remove it"):format(path)
    end
    return nil, err
  end
  local file, problem = io.open(path, "a")
  if not file then return nil, failure("transcript: " .. problem) end
  local self = setmetatable({ file = file, path = path }, Writer)
  if not append then
    self:write {
      type = "transcript",
      version = transcript.VERSION,
      barchan = core.util.version,
      time = core.util.wall_time(),
    }
  end
  return self
end

--- Writes one event, whole, at once.
function Writer:write(event)
  local ok, problem = self.file:write(core.json.encode(event), "\n")
  if ok then ok, problem = self.file:flush() end
  if not ok then error(("transcript: cannot write '%s': %s"):format(self.path, problem), 0) end
end

function Writer:close()
  if self.file then self.file:close() end
  self.file = nil
end

Writer.__close = Writer.close

--- The events of a transcript. A last line that was cut off by a crash is left out.
---@return table[]? events
---@return table? err
function transcript.read(path)
  if not io then return nil, failure "transcript: this engine has no files" end
  local file, problem = io.open(path, "r")
  if not file then return nil, failure("transcript: " .. problem) end
  local events, number = {}, 0
  for line in file:lines() do
    number = number + 1
    local event, err = core.json.decode(line)
    if err or type(event) ~= "table" then
      if file:read(0) == nil then break end
      file:close()
      local reason = err and err.message or "not an object"
      return nil, failure(("transcript: %s:%d: %s"):format(path, number, reason))
    end
    events[#events + 1] = event
  end
  file:close()
  local first = events[1]
  if not first or first.type ~= "transcript" then
    return nil, failure(("transcript: '%s' does not begin with a transcript line"):format(path))
  end
  if first.version ~= transcript.VERSION then
    return nil, failure(("transcript: '%s' has version %s; this program reads %d")
      :format(path, tostring(first.version), transcript.VERSION))
  end
  return events
end

return transcript
