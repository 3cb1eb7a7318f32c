-- The manual of the Lua API, made of its types (bindings/lua/meta): plain markdown, short enough to hand to a
-- model.
local _, core = ...

local docs = {}

local FOLDER = "meta/"
local FUNCTION = "^function ([%w_]+)([.:])([%w_]+)%((.-)%) end$"

-- ---- reading ----

-- A type and what follows it: it ends at a space outside brackets that no ':' or ',' precedes.
local function split_type(text)
  local depth = 0
  for at = 1, #text do
    local c = text:sub(at, at)
    if c:find "[({<%[]" then depth = depth + 1 end
    if c:find "[)}>%]]" then depth = depth - 1 end
    if c == " " and depth == 0 and not text:sub(at - 1, at - 1):find "[:,|]" then
      return text:sub(1, at - 1), text:sub(at + 1)
    end
  end
  return text, ""
end

local readers = {}

function readers.class(topic, rest)
  local head, text = rest:match "^(%S+:%s*%S+)%s*(.*)$"
  if not head then head, text = rest:match "^(%S+)%s*(.*)$" end
  local class = { kind = "class", name = head:match "^[^:]+", text = text, fields = {}, functions = {} }
  table.insert(topic.items, class)
  topic.class = class
end

function readers.field(topic, rest)
  local name, declared = rest:match "^(%S+)%s+(.*)$"
  local type_name, text = split_type(declared)
  table.insert(topic.class.fields, {
    name = name:gsub("%?$", ""), optional = name:find "%?$" ~= nil, type = type_name, text = text,
  })
end

function readers.param(topic, rest)
  local name, declared = rest:match "^(%S+)%s+(.*)$"
  local type_name, text = split_type(declared)
  table.insert(topic.params, { name = name, type = type_name, text = text })
end

function readers.returns(topic, rest)
  local type_name, text = split_type(rest)
  table.insert(topic.returns, { type = type_name, text = text })
end

readers["return"] = readers.returns
function readers.private(topic) topic.private = true end
function readers.meta() end
function readers.overload() end -- for editors: what may be called though it is a table

local function clear(topic) topic.text, topic.params, topic.returns, topic.private = {}, {}, {}, nil end

local function read_line(topic, line)
  local tag, rest = line:match "^%-%-%-@(%a+)%s*(.*)$"
  local owner, dot, name, args = line:match(FUNCTION)
  if tag then
    readers[tag](topic, rest)
  elseif line:match "^%-%-%-" then
    table.insert(topic.text, line:match "^%-%-%-%s?(.*)$")
  elseif owner then
    local item = {
      kind = "function", owner = topic.owners[owner] or owner, variable = owner, method = dot == ":",
      name = name, args = args, text = table.concat(topic.text, "\n"), params = topic.params,
      returns = topic.returns, private = topic.private,
    }
    table.insert(topic.items, item)
    clear(topic)
  elseif line:match "^local [%w_]+ = {}$" then
    topic.owners[line:match "^local ([%w_]+)"] = topic.class.name
  elseif line == "" and not topic.intro and #topic.text > 0 then
    topic.intro = table.concat(topic.text, "\n")
    clear(topic)
  end
end

--- The topics: { { name, intro, items = { class or function … } }, … }, by name but `barchan` first.
function docs.topics()
  local topics = {}
  for _, path in ipairs(core.scripts.list(FOLDER)) do
    local topic = { name = path:match "([^/]+)%.lua$", items = {}, owners = {} }
    clear(topic)
    for line in (core.scripts.text(path) .. "\n"):gmatch "(.-)\n" do read_line(topic, line) end
    table.insert(topics, topic.name == "barchan" and 1 or #topics + 1, topic)
  end
  return topics
end

-- ---- writing ----

local function returns_of(item)
  local list = {}
  for i, value in ipairs(item.returns) do
    list[i] = (value.type .. " " .. value.text):gsub("barchan%.", ""):gsub(" $", "")
  end
  return #list > 0 and " -> " .. table.concat(list, ", ") or ""
end

local function write_function(item, out)
  local name = item.variable .. (item.method and ":" or ".") .. item.name
  out(("### `%s(%s)%s`\n\n"):format(name, item.args, returns_of(item)))
  if item.text ~= "" then out(item.text, "\n\n") end
  local described = false
  for _, param in ipairs(item.params) do
    if param.text ~= "" then
      described = true
      out(("- `%s` (%s): %s\n"):format(param.name, param.type:gsub("barchan%.", ""), param.text))
    end
  end
  if described then out "\n" end
end

local function write_class(item, out)
  if item.text == "" and #item.fields == 0 then return end
  out(("### %s\n\n"):format(item.name:gsub("^barchan%.", "")))
  if item.text ~= "" then out(item.text, "\n\n") end
  for _, field in ipairs(item.fields) do
    local text = field.text ~= "" and ": " .. field.text or ""
    local name = field.optional and field.name .. "?" or field.name
    out(("- `%s` (%s)%s\n"):format(name, field.type:gsub("barchan%.", ""), text))
  end
  if #item.fields > 0 then out "\n" end
end

--- Writes a topic as markdown with `out`.
function docs.write(topic, out)
  out(("## %s\n\n%s\n\n"):format(topic.name, topic.intro or ""))
  for _, item in ipairs(topic.items) do
    if item.kind == "class" then
      write_class(item, out)
    elseif not item.private then
      write_function(item, out)
    end
  end
end

return docs
