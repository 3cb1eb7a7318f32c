-- Messages are plain tables, as the provider-neutral model of barchan/model.h says.
local misuse = require "barchan.misuse"

local messages = {}

--- A user message. `content` is text, or a list of parts:
--- { type = "text", text = … } or { type = "image", media_type = "image/png", data = base64 }.
---@param content string|table[]
function messages.user(content)
  if type(content) ~= "string" and type(content) ~= "table" then
    misuse.throw("user: text or a list of parts expected, got " .. type(content))
  end
  return { role = "user", content = content }
end

--- The answer to one tool call.
---@param call { id: string, name: string }
---@param content string|table[]
---@param is_error boolean?
function messages.tool_result(call, content, is_error)
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
