-- barchan run: a script of the user's, with the whole API.
local args = require "barchan.cli.args"
local tool = require "barchan.tool"

local command = {
  summary = "run a Lua script",
  usage = [[
usage: barchan run SCRIPT.lua [ARGUMENT…]

Runs a Lua script with the whole API: local barchan = require "barchan". The script gets the arguments
as `...` and in `arg`. `require` finds modules beside the script.

exit code: 0; 1 when the script fails; the number from 0 to 255 that the script returns, if it returns
one; 2 wrong usage; 128+n ended by signal n (130: Ctrl-C).
]],
}

function command.main(words)
  local _, rest = args.parse(words, {}, true)
  local path = table.remove(rest, 1)
  if not path then args.fail("a script is missing") end
  local chunk, problem = loadfile(path)
  if not chunk then
    io.stderr:write("barchan: ", problem, "\n")
    return 1
  end
  local dir = path:match("^(.*)/[^/]*$") or "."
  package.path = ("%s/?.lua;%s/?/init.lua"):format(dir, dir)
  arg = { [0] = path, table.unpack(rest) } -- luacheck: globals arg
  local ok, value = xpcall(chunk, function(err)
    if type(err) == "table" and err.code == "cancelled" then return err end
    return debug.traceback(tool.message(err), 2)
  end, table.unpack(rest))
  if ok and math.type(value) ~= "integer" then return 0 end
  if ok and value >= 0 and value <= 255 then return value end
  if ok then
    io.stderr:write(("barchan: the script returned %d; exit codes are 0 to 255\n"):format(value))
    return 1
  end
  if type(value) == "table" then error(value, 0) end
  io.stderr:write("barchan: ", value, "\n")
  return 1
end

return command
