-- barchan run: a script of the user's, with the whole API.
local args = require "barchan.cli.args"
local script = require "barchan.script"
local tool = require "barchan.tool"

local command = {
  summary = "run a Lua script",
  usage = [[
usage: barchan run [--watch] SCRIPT.lua [ARGUMENT…]

Runs a Lua script with the whole API: local barchan = require "barchan". The script gets the arguments
as `...` and in `arg`. `require` finds modules beside the script.

A script that returns a table with a function `turn` is a loop: open(state, ARGUMENT…) is called once,
turn(state) until it answers something that is not nil, close(state) at the end. With --watch, an edit
of a loop takes over at its next turn, and `state` is kept; a broken edit changes nothing, and one whose
first turn throws is taken back. What came of it is told on standard error.

exit code: 0; 1 when the script fails; the number from 0 to 255 that the script (or its last turn)
returns, if it returns one; 2 wrong usage; 128+n ended by signal n (130: Ctrl-C).
]],
}

local flags = { watch = { type = "flag" } }

-- What a script returned: a loop is run to its end.
local function finish(value, ...)
  if script.is_loop(value) then return script.run_loop(value, ...) end
  return value
end

local function tell(event)
  local what = event.type:gsub("_", " ")
  io.stderr:write("barchan: ", what, ": ", event.message or event.file, "\n")
end

-- What runs the script, given its arguments; or nil and what is wrong with it.
local function load_script(path)
  local chunk, problem = loadfile(path)
  if not chunk then return nil, problem end
  return function(...) return finish(chunk(...), ...) end
end

local function load_watched(path)
  local ok, made = pcall(script.create, { file = path, watch = true, on_event = tell })
  if ok then return function(...) return made:run(...) end end
  if tool.is_cancelled(made) then error(made, 0) end
  return nil, (tool.message(made):gsub("^[^ ]+: script: ", ""))
end

-- How the script came to where it failed, without how this program came to the script.
local function traceback(err)
  local text = debug.traceback(tool.message(err), 3)
  local own = debug.getinfo(1, "S").short_src
  text = text:sub(1, (text:find("\n\t" .. own, 1, true) or 0) - 1)
  return (text:gsub("\n\t%[C%]: in function 'xpcall'$", ""):gsub("\n\t%(%.%.%.tail calls%.%.%.%)$", ""))
end

local function exit_code(value)
  if math.type(value) ~= "integer" then return 0 end
  if value >= 0 and value <= 255 then return value end
  io.stderr:write(("barchan: the script returned %d; exit codes are 0 to 255\n"):format(value))
  return 1
end

function command.main(words)
  local given, rest = args.parse(words, flags, true)
  local path = table.remove(rest, 1)
  if not path then args.fail("a script is missing") end
  local dir = path:match("^(.*)/[^/]*$") or "."
  package.path = ("%s/?.lua;%s/?/init.lua"):format(dir, dir)
  arg = { [0] = path, table.unpack(rest) } -- luacheck: globals arg
  local main, problem = (given.watch and load_watched or load_script)(path)
  if not main then
    io.stderr:write("barchan: ", problem, "\n")
    return 1
  end
  local ok, value = xpcall(main, function(err)
    return tool.is_cancelled(err) and err or traceback(err)
  end, table.unpack(rest))
  if ok then return exit_code(value) end
  if type(value) == "table" then error(value, 0) end
  io.stderr:write("barchan: ", value, "\n")
  return 1
end

return command
