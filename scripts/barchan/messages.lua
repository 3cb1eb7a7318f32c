-- Messages are plain tables, as the provider-neutral model of barchan/model.h says.
local misuse = require "barchan.misuse"

local messages = {}

local part_fields = { text = { "text" }, image = { "media_type", "data" } }

-- Text, or a list of parts, which may have to be one at least.
local function check_content(where, content, least)
  if type(content) == "string" then return end
  if type(content) ~= "table" then misuse.expected(where, "text or a list of parts", content) end
  local count = #content
  for key in pairs(content) do
    if math.type(key) ~= "integer" or key < 1 or key > count then
      misuse.throw(("%s: a list of parts expected; it has the key '%s'"):format(where, tostring(key)))
    end
  end
  if count < least then misuse.throw(where .. ": the list of parts is empty") end
  for i, part in ipairs(content) do
    local here = ("%s: part %d"):format(where, i)
    if type(part) ~= "table" then misuse.expected(here, "a table { type, … }", part) end
    local fields = part_fields[part.type]
    if not fields then misuse.expected(here .. ": type", "\"text\" or \"image\"", part.type) end
    for _, name in ipairs(fields) do
      if type(part[name]) ~= "string" then misuse.expected(here .. ": " .. name, "a string", part[name]) end
    end
  end
end

--- A user message. `content` is text, or a list of parts:
--- { type = "text", text = … } or { type = "image", media_type = "image/png", data = base64 }.
---@param content string|table[]
function messages.user(content)
  check_content("user", content, 1)
  return { role = "user", content = content }
end

--- What every call of a reply has, whatever else is wrong with it.
function messages.check_call(where, call)
  if type(call) ~= "table" then misuse.expected(where, "a tool call { id, name, arguments }", call) end
  for _, name in ipairs { "id", "name" } do
    if type(call[name]) ~= "string" then
      misuse.expected(("%s: the call's %s"):format(where, name), "a string", call[name])
    end
  end
end

--- The answer to one tool call.
---@param call { id: string, name: string }
---@param content string|table[]
---@param is_error boolean?
function messages.tool_result(call, content, is_error)
  messages.check_call("tool_result", call)
  check_content("tool_result", content, 0)
  return {
    role = "tool",
    tool_call_id = call.id,
    name = call.name,
    content = content,
    is_error = is_error and true or false,
  }
end

--- A list of messages from what callers may give: a list, one message, or the user's text.
function messages.list(given)
  if type(given) == "string" then return { messages.user(given) } end
  if type(given) == "table" and given.role then return { given } end
  return given
end

return messages
