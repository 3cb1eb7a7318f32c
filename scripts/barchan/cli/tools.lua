-- barchan tools: what tools there are, as a model would see them; and calling one by hand.
local _, core = ...

local args = require "barchan.cli.args"
local built_in = require "barchan.built_in"
local sandbox = require "barchan.sandbox"
local tool = require "barchan.tool"
local toolset = require "barchan.toolset"
local ui = require "barchan.cli.ui"

local out = ui.out

local command = {
  summary = "list, call, check or watch tools",
  usage = [[
usage: barchan tools list [--dir DIR]… [--format neutral|anthropic|openai|responses|gemini|mcp]
       barchan tools call NAME JSON [--dir DIR]… [--template T] [--best-effort]
       barchan tools check DIR…
       barchan tools watch DIR…

`list` prints the built-in tools, and those of DIR, as a model would be told of them. `call` runs one in
a fresh sandbox, as a model's call would, and prints what the model would get. `check` loads the tool
files of directories and says what is wrong with each of them. `watch` shows live what a model would see while
they are edited, until it is interrupted.

exit code: 0; 1 when the answer of call is an error, or check found a fault.
]],
}

local flags = {
  dir = { type = "string", many = true },
  format = { type = "string" },
  template = { type = "string" },
  ["best-effort"] = { type = "flag" },
}

local function all_tools(dirs, sbx)
  local given = built_in.names "tools"
  given.dir, given.sandbox = dirs, sbx
  local ok, tools = pcall(toolset.create, given)
  if not ok then args.refused("toolset", tools) end
  return tools
end

local function list(given, rest)
  if #rest > 0 then args.fail("list: unexpected argument '%s'; --dir names a directory", rest[1]) end
  local tools = all_tools(given.dir)
  if not given.format then
    for _, declared in ipairs(tools:declarations()) do
      local text = (declared.description or ""):gsub("%s+", " ")
      local first = text:match "^.-[.!?]%f[ ]" or text -- the first sentence
      out(("%-14s %s\n"):format(declared.name, first))
    end
    return 0
  end
  local text, err = core.model.render_tools(given.format, tools:declarations())
  if not text then args.fail("%s", tool.message(err)) end
  out(text, "\n")
  return 0
end

local function call(given, rest)
  local name, json = rest[1], rest[2] or "{}"
  if #rest > 2 then args.fail("call: unexpected argument '%s'", rest[3]) end
  if not name then args.fail("call: the tool's name is missing") end
  local arguments, problem = core.json.decode(json)
  if problem then args.fail("call: the arguments are not JSON: %s", problem.message) end
  local sbx, err = sandbox.create { template = given.template, best_effort = given["best-effort"] }
  if not sbx then error(err, 0) end
  local _ <close> = sbx
  local message = all_tools(given.dir, sbx):dispatch { id = "call", name = name, arguments = arguments }
  local content = message.content
  if type(content) ~= "string" then content = core.json.encode(content) end
  out(ui.shown(content), "\n")
  return message.is_error and 1 or 0
end

-- Whether it says its file first, as compilers do.
local function is_placed(fault, dirs)
  for _, dir in ipairs(dirs) do
    local folder = dir:gsub("/*$", "/")
    if fault:sub(1, #folder) == folder then return true end
  end
  return false
end

local function check(dirs)
  if #dirs == 0 then args.fail("check: a directory is missing") end
  local taken, faults = toolset.check(dirs)
  for _, fault in ipairs(faults) do
    io.stderr:write(is_placed(fault, dirs) and "" or "barchan: ", ui.shown(fault, 2), "\n")
  end
  if #faults > 0 then return 1 end
  out(("%d tools: %s\n"):format(#taken.order, table.concat(taken.order, ", ")))
  return 0
end

local function show_change(event)
  if event.type == "tools_reload_failed" then
    out(ui.shown("refused, the old set stays: " .. event.message), "\n")
    return
  end
  local changed = false
  for _, kind in ipairs { "added", "changed", "removed" } do
    if #event[kind] > 0 then
      out(kind, ": ", table.concat(event[kind], ", "), "\n")
      changed = true
    end
  end
  if not changed then out "good again, and as it was\n" end
end

local function watch(dirs)
  if #dirs == 0 then args.fail("watch: a directory is missing") end
  local ok, tools = pcall(toolset.create, { dir = dirs, watch = true, on_event = show_change })
  if not ok then args.refused("toolset", tools) end
  out("tools: ", table.concat(tools:names(), ", "), "\n")
  while true do
    tools:wait_change()
    tools:refresh()
  end
end

function command.main(words)
  local given, rest = args.parse(words, flags)
  local what = table.remove(rest, 1)
  if what == "check" then return check(rest) end
  if what == "watch" then return watch(rest) end
  if what == "list" then return list(given, rest) end
  if what == "call" then return call(given, rest) end
  args.fail("list, call, check or watch expected, got '%s'", what or "nothing")
end

return command
