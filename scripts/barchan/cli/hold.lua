-- barchan sandbox hold: the holder of a detached sandbox, started by whoever creates one. It reads a profile
-- from standard input (the number of its bytes, a newline, JSON), answers one line, {"id": …} or
-- {"error": …, "code": …}, and, when a byte more says that the id has arrived, lives as long as the
-- sandbox does. The program has made it nobody's child by now.
local _, core = ...

local sandbox = require "barchan.sandbox"
local tool = require "barchan.tool"

local EXIT_FAILED = 125

local function read_profile()
  local text = ""
  local size, json
  repeat
    local chunk, err = core.host.read_stdin()
    if not chunk then error(err or "the profile ends too early: who starts this program?", 0) end
    text = text .. chunk
    size, json = text:match "^(%d+)\n(.*)$"
  until size and #json >= tonumber(size)
  return core.json.decode(json)
end

local function answer(value)
  local ok = io.stdout:write(core.json.encode(value), "\n")
  return ok and io.stdout:flush()
end

local function make()
  local profile = assert(read_profile())
  local sbx = assert(sandbox.create(profile))
  local hold = assert(sbx.handle:hold())
  return { sbx = sbx, hold = hold }
end

return function()
  local ok, made = pcall(make)
  if not ok then
    local code = type(made) == "table" and made.code or "invalid_argument"
    answer { error = type(made) == "table" and made.message or tool.message(made), code = code }
    return EXIT_FAILED
  end
  local _ <close> = made.sbx
  if not answer { id = made.sbx:status().id } or not core.host.read_stdin() then
    return EXIT_FAILED -- whoever wanted it is gone
  end
  io.stdout:close()
  made.hold:wait()
  return 0
end
