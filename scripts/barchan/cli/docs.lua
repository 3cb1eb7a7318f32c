-- barchan docs: the manual of the Lua API.
local args = require "barchan.cli.args"
local docs = require "barchan.docs"
local options = require "barchan.options"
local ui = require "barchan.cli.ui"

local out = ui.out

local command = {
  summary = "the manual of the Lua API",
  usage = [[
usage: barchan docs [TOPIC…]
       barchan docs --all

Prints what the Lua API has, as markdown; without a topic, the list of them. A topic is short enough to
hand to a model.

exit code: 0; 2 wrong usage.
]],
}

local function list(topics)
  for _, topic in ipairs(topics) do
    local first = topic.intro:gsub("\n", " "):match "^(.-[^.]%.)%s" or topic.intro:gsub("\n", " ")
    out(("%-10s %s\n"):format(topic.name, first))
  end
  return 0
end

function command.main(words)
  local given, wanted = args.parse(words, { all = { type = "flag" } })
  local topics, names, by_name = docs.topics(), {}, {}
  for i, topic in ipairs(topics) do
    names[i], by_name[topic.name] = topic.name, topic
  end
  if given.all and #wanted > 0 then args.fail("--all takes no topic") end
  if given.all then wanted = names end
  if #wanted == 0 then return list(topics) end
  for _, name in ipairs(wanted) do
    if not by_name[name] then args.fail("%s", options.unknown("topic", name, names)) end
  end
  for _, name in ipairs(wanted) do docs.write(by_name[name], out) end
  return 0
end

return command
