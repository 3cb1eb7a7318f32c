-- Commands that are held: `sbx:spawn`'s handle.
local _, core = ...

local exec = require "barchan.exec"
local misuse = require "barchan.misuse"

local process = {}

local MAX_SECONDS = 1000000000
local MAX_SIZE = 65535 -- columns or rows of a terminal

local function stream_of(where, stream)
  if stream == nil or stream == "out" or stream == "err" then return stream or "out" end
  misuse.expected(where, "\"out\" or \"err\"", stream)
end

---@class barchan.Process
---@field id integer its number in the sandbox, as in sbx:processes()
local Process = { __name = "barchan.process" }
Process.__index = Process

function Process:__tostring()
  local result = self.handle:result()
  return ("process %d (%s)"):format(self.id, result and result.reason or "running")
end

function Process:__close() self.handle:cancel() end

--- What a stream ("out" by default) has from a cursor on, without waiting: bytes, the next cursor, how
--- many bytes before these are no longer kept, and whether that was all.
---@param stream "out"|"err"?
---@param cursor integer? 0, the beginning, by default
function Process:read_at(stream, cursor)
  stream = stream_of("read_at", stream)
  local whole = cursor == nil and 0 or type(cursor) == "number" and math.tointeger(cursor)
  if not whole or whole < 0 then misuse.expected("read_at", "a cursor, as the last call gave it,", cursor) end
  return self.handle:read(stream, whole)
end

--- The next bytes of a stream, waiting for them: bytes and how many were lost before them (0), or
--- nothing at its end. This handle has one place in each stream; `read_at` leaves it alone.
---@param stream "out"|"err"?
---@return string? bytes
---@return integer|table|nil dropped_or_error
function Process:read(stream)
  stream = stream_of("read", stream)
  while true do
    local bytes, next_cursor, dropped, ended = self.handle:read(stream, self.cursor[stream])
    if not bytes then return nil, next_cursor end
    self.cursor[stream] = next_cursor
    if bytes ~= "" then return bytes, dropped end
    if ended then return nil end
    self.handle:wait()
  end
end

--- Both streams as they come: for stream, bytes, dropped in p:output() do … end
function Process:output()
  return function()
    while true do
      local all_ended = true
      for _, stream in ipairs { "out", "err" } do
        local bytes, next_cursor, dropped, ended = self.handle:read(stream, self.cursor[stream])
        if not bytes then error(next_cursor, 2) end
        self.cursor[stream] = next_cursor
        if bytes ~= "" then return stream, bytes, dropped end
        all_ended = all_ended and ended
      end
      if all_ended then return nil end
      self.handle:wait()
    end
  end
end

--- Writes all of `data` to its standard input, waiting while it is full.
function Process:write(data) return exec.write_all(self.handle, data) end

--- Ends its input; at a terminal, as Ctrl-D does.
function Process:close_input() return self.handle:close_input() end

---@param number integer
function Process:signal(number)
  exec.check_signal(number)
  return self.handle:signal(number)
end

local function check_size(what, value)
  local whole = type(value) == "number" and math.tointeger(value)
  if not whole or whole < 1 or whole > MAX_SIZE then
    misuse.expected("resize: " .. what, ("a whole number from 1 to %d"):format(MAX_SIZE), value)
  end
end

--- A new size for its terminal.
function Process:resize(columns, rows)
  check_size("columns", columns)
  check_size("rows", rows)
  return self.handle:resize(columns, rows)
end

--- Kills it and all that it has started. Its end follows.
function Process:kill() self.handle:cancel() end

function Process:running() return self.handle:result() == nil end

--- How it ended, waiting for that; nil when `seconds` are over before. Its output is not in the
--- result: it is read from the handle, before or after.
---@param seconds number?
function Process:wait(seconds)
  if seconds ~= nil and not (type(seconds) == "number" and seconds >= 0 and seconds <= MAX_SECONDS) then
    misuse.expected("wait", ("seconds, from 0 to %d,"):format(MAX_SECONDS), seconds)
  end
  local deadline = seconds and core.util.now() + seconds
  while true do
    local result = self.handle:result()
    if result then return exec.wrap_result(result, self.request) end
    local left = deadline and deadline - core.util.now()
    if left and left <= 0 then return nil end
    self.handle:wait(left)
  end
end

misuse.methods(Process, "process")

function process.new(handle, request)
  local cursor = { out = 0, err = 0 }
  return setmetatable({ handle = handle, request = request, id = handle:id(), cursor = cursor }, Process)
end

return process
