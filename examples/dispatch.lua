-- Tools without a model: calls dispatched by name, as a model would send them.
--   barchan run examples/dispatch.lua
local barchan = require "barchan"

local sbx <close> = assert(barchan.sandbox { template = "host", network = "off" })
local tools = barchan.toolset { "exec", "read_file", "write_file", "list_files", sandbox = sbx }

print("declared: " .. table.concat(tools:names(), ", "))

-- What a model sends is a name and a JSON object.
local function call(id, name, arguments)
  local message = tools:dispatch { id = id, name = name, arguments = barchan.json.decode(arguments) }
  print(("\n%s %s\n%s%s"):format(name, arguments, message.is_error and "ERROR " or "", message.content))
  return message
end

call("call_1", "write_file", [[{"path":"notes/haiku.txt","content":"a moon made of sand\n"}]])
call("call_2", "list_files", [[{"depth":2}]])
call("call_3", "exec", [[{"command":"wc -w notes/haiku.txt"}]])
call("call_4", "read_file", [[{"path":"notes/haiku.txt"}]])

-- What a model gets wrong is answered, not thrown.
local wrong = call("call_5", "read_file", [[{"file":"notes/haiku.txt"}]])
assert(wrong.is_error)
