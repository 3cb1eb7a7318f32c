-- The server of tests/support/byte_server.py: `url` is its address, and <close> ends it.
local support = require "reload_support"

local here = arg[0]:match "^(.*)/" or "."

local Server = {}
Server.__index = Server

function Server:__close()
  self.pipe:close() -- the end of its input ends it
  os.remove(self.path)
end

return function()
  local path = os.tmpname()
  local pipe = assert(io.popen(("exec python3 %s/../support/byte_server.py > %s"):format(here, path), "w"))
  local self = setmetatable({ pipe = pipe, path = path }, Server)
  support.eventually(function()
    local file = assert(io.open(path))
    self.port = file:read "l"
    file:close()
    return self.port
  end, "the server did not start")
  self.url = "http://127.0.0.1:" .. self.port
  return self
end
