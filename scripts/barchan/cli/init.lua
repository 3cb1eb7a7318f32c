-- The program `barchan`: each command is a file beside this one, with `summary`, `usage` and
-- `main(words)`, which returns the exit code.
local _, core = ...

local options = require "barchan.options"
local tool = require "barchan.tool"
local ui = require "barchan.cli.ui"

local out = ui.out

local cli = {}

local commands = {
  "ask", "docs", "doctor", "exec", "network", "run", "sandbox", "shell", "template", "tools",
}

local EXIT_USAGE, EXIT_FAILED = 2, 125

local function load_command(name) return require("barchan.cli." .. name) end

local function help()
  local lines = {
    "Barchan gives a language model a sandboxed computer as a tool.",
    "",
    "usage: barchan COMMAND [OPTIONS]",
    "",
  }
  for _, name in ipairs(commands) do
    lines[#lines + 1] = ("  %-8s %s"):format(name, load_command(name).summary)
  end
  lines[#lines + 1] = ""
  lines[#lines + 1] = "barchan COMMAND --help tells a command's options; barchan --version the version."
  return table.concat(lines, "\n") .. "\n"
end

local function is_command(name)
  for _, known in ipairs(commands) do
    if known == name then return true end
  end
  return false
end

-- What a command has passed on as it was given, and the library does not take: "its name: what is wrong",
-- with the command's line as the place.
local function misused(problem)
  return type(problem) == "string" and problem:match "^barchan/cli/[%w_/]+%.lua:%d+: ([%w_.:]+: .*)$"
end

local function run_command(name, words)
  local command = load_command(name)
  local ok, code = pcall(command.main, words)
  if ok then return code end
  if type(code) == "table" and code.help then
    out(command.usage)
    return 0
  end
  local usage = type(code) == "table" and code.usage or misused(code)
  if usage then
    local own = name .. ": "
    io.stderr:write("barchan ", usage:sub(1, #own) == own and usage or own .. usage, "\n")
    io.stderr:write(("barchan %s --help tells how it is used.\n"):format(name))
    return EXIT_USAGE
  end
  error(code, 0)
end

local function dispatch(words)
  local first = table.remove(words, 1)
  if first == nil then
    io.stderr:write(help())
    return EXIT_USAGE
  end
  if first == "help" and words[1] and is_command(words[1]) then return run_command(words[1], { "--help" }) end
  if first == "--help" or first == "-h" or first == "help" then
    out(help())
    return 0
  end
  if first == "--version" and words[1] then
    io.stderr:write(("barchan: --version takes no '%s'\n"):format(words[1]))
    return EXIT_USAGE
  elseif first == "--version" then
    out("barchan ", core.util.version, "\n")
    return 0
  end
  if is_command(first) then return run_command(first, words) end
  local is_option = first:sub(1, 1) == "-"
  local problem = is_option and options.unknown("option", first:match "^[^=]*", { "--help", "--version" })
    or options.unknown("command", first, commands)
  io.stderr:write("barchan: ", problem, "\n")
  return EXIT_USAGE
end

--- Called by the program with the words of the command line in `arg`; returns the exit code.
function cli.main()
  core.host.log = ui.log
  local words = { table.unpack(arg) }
  local ok, code = pcall(dispatch, words)
  if ok then return code end
  if tool.is_cancelled(code) or core.task.cancelled() then error(code, 0) end -- the program tells of a signal
  io.stderr:write("barchan: ", ui.flagged(tool.message(code)), "\n")
  return EXIT_FAILED
end

return cli
