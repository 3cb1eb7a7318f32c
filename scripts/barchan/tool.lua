-- A tool: name, description, parameters, run. What it returns becomes one tool result.
local _, core = ...

local exec = require "barchan.exec"
local misuse = require "barchan.misuse"
local options = require "barchan.options"
local schema = require "barchan.schema"
local util = require "barchan.util"

local tool = {}

local MAX_NAME = 64
-- A result goes into a context window: this is about 16,000 tokens.
local MAX_TEXT_BYTES = 64 * 1024

local definition_spec = {
  name = "string",
  description = "string",
  parameters = "table",
  run = "function",
  timeout = "number",
  sequential = "boolean",
}

local Result = { __name = "barchan.result" }
Result.__index = Result

--- What a tool may return when a string is not enough.
---@param fields { text: string?, images: { media_type: string, data: string }[]?, is_error: boolean? }
function tool.result(fields)
  options.check("result", fields, { text = "string", images = "table", is_error = "boolean" })
  return setmetatable(fields, Result)
end

--- Checks a definition; returns it, or throws what is wrong with it.
---@param definition table
function tool.check(definition)
  if type(definition) ~= "table" then
    misuse.throw("tool: a table expected, got " .. type(definition))
  end
  local name = definition.name
  if type(name) ~= "string" or not name:match("^[%w_-]+$") or #name > MAX_NAME then
    misuse.throw(("tool: name: 1 to %d letters, digits, '_' and '-' expected, got '%s'")
      :format(MAX_NAME, tostring(name)))
  end
  options.check(("tool '%s'"):format(name), definition, definition_spec)
  if definition.parameters == nil then
    definition.parameters = { type = "object", properties = {} }
  end
  local ok, problem = schema.is_parameters(definition.parameters)
  if not ok then misuse.throw(("tool '%s': parameters: %s"):format(name, problem)) end
  if definition.timeout and not (definition.timeout > 0 and definition.timeout < 1e9) then
    misuse.throw(("tool '%s': timeout: seconds greater than 0 expected"):format(name))
  end
  if type(definition.run) ~= "function" then
    misuse.throw(("tool '%s': run: a function expected, got %s"):format(name, type(definition.run)))
  end
  return definition
end

--- What the model is told of a tool.
function tool.declaration(definition)
  return {
    name = definition.name,
    description = definition.description,
    parameters = definition.parameters,
  }
end

-- At most `limit` bytes of valid UTF-8, with what is missing in the middle counted.
local function cap(text, limit)
  limit = limit or MAX_TEXT_BYTES
  text = core.util.utf8_repair(text)
  if #text <= limit then return text end
  local half = limit // 2
  local head, tail = core.util.utf8_head(text, half), core.util.utf8_tail(text, half)
  local missing = #text - #head - #tail
  return ("%s\n[… %d bytes left out …]\n%s"):format(head, missing, tail)
end

tool.cap = cap

local function image_parts(result)
  local parts = core.json.array {}
  if result.text and result.text ~= "" then
    parts[1] = { type = "text", text = cap(result.text) }
  end
  for i, image in ipairs(result.images) do
    if type(image) ~= "table" or type(image.media_type) ~= "string" or type(image.data) ~= "string" then
      return nil, ("image %d needs media_type and data (base64)"):format(i)
    end
    parts[#parts + 1] = { type = "image", media_type = image.media_type, data = image.data }
  end
  return parts
end

--- Turns what a tool's run returned into content and is_error, by one rule for all tools.
---@return string|table content
---@return boolean is_error
function tool.content(value, err)
  if getmetatable(value) == Result then
    if value.images and #value.images > 0 then
      local parts, problem = image_parts(value)
      if not parts then return "the tool returned a bad image: " .. problem, true end
      return parts, value.is_error or false
    end
    return cap(value.text or ""), value.is_error or false
  end
  if exec.is_result(value) then return cap(exec.render(value)), false end
  if value == nil and err ~= nil then return cap(tool.message(err)), true end
  if value == nil then return "(no output)", false end
  if type(value) == "string" then return value == "" and "(no output)" or cap(value), false end
  local text, problem = util.encode(value)
  if not text then return "the tool returned something that is not JSON: " .. problem, true end
  return cap(text), false
end

--- Whether an error says that the task was cancelled: it must be let through.
function tool.is_cancelled(err) return type(err) == "table" and rawget(err, "code") == "cancelled" end

local function without_traceback(text) return (text:gsub("\nstack traceback:.*", "")) end

--- The text of an error that is a string, or a table as the library's own are; nil of any other, whose text
--- may be code.
function tool.plain_message(err)
  if type(err) == "string" then return without_traceback(err) end
  if type(err) ~= "table" then return nil end
  local message, code = rawget(err, "message"), rawget(err, "code")
  if type(code) ~= "string" then code = nil end
  if type(message) == "string" then return code and ("%s (%s)"):format(message, code) or message end
  return message == nil and code and "error " .. code or nil
end

local function has_own_text(err, text)
  local meta = getmetatable(err)
  if type(meta) == "table" then return rawget(meta, "__tostring") ~= nil end
  return not text:find "^[^\n]*: 0x%x+$" -- a guess, where the metatable is hidden
end

-- Of a value that has no text of its own a table's fields are told instead of its address; the traceback
-- among them is the library's.
local function described(err, text)
  if has_own_text(err, text) then return without_traceback(text) end
  local fields = {}
  for key, value in pairs(type(err) == "table" and err or {}) do fields[key] = value end
  fields.traceback = nil
  return next(fields) ~= nil and util.encode(fields)
    or ("an error that is a %s without a message"):format(type(err))
end

--- One line for an error of any kind, without its traceback: models need the message.
function tool.message(err)
  local plain = tool.plain_message(err)
  if plain then return plain end
  local ok, text = pcall(tostring, err)
  return ok and described(err, text) or "an error whose text cannot be read"
end

--- The tools that the host application registered, ready for a toolset.
function tool.host_tools()
  local list = {}
  for i, declared in ipairs(core.host.tools()) do
    list[i] = {
      name = declared.name,
      description = declared.description,
      parameters = core.json.decode(declared.parameters),
      run = function(args)
        local text, is_error = core.host.call_tool(declared.name, args)
        return tool.result { text = text, is_error = is_error }
      end,
    }
  end
  return list
end

return tool
