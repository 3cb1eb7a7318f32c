-- The option `headers` of models, before a server on loopback that says what it got.
local lu = require "luaunit"
local barchan = require "barchan"
local byte_server = require "byte_server"

local T = {}

function T:test_they_arrive()
  local server <close> = byte_server()
  local model <close> = assert(barchan.model {
    provider = "openai", name = "m", api_key = "k", base_url = server.url .. "/chat",
    headers = { ["X-A"] = "v", ["X-Empty"] = "", ["x-b"] = "two words: \tü" },
  })
  local reply = assert(model:complete { messages = "hi", stream = false })
  local seen = assert(barchan.json.decode(reply.text))
  lu.assertEquals({ seen.headers["x-a"], seen.headers["x-empty"] }, { "v", "" })
  lu.assertStrContains(seen.headers["x-b"], "two words: \t")
end

function T:test_wrong_ones_are_refused()
  local function refused(message, headers)
    local function make() -- no tail call: it has a line here then
      return (barchan.model { provider = "openai", name = "m", api_key = "k", headers = headers })
    end
    lu.assertErrorMsgContains("test_headers.lua:", make)
    lu.assertErrorMsgContains("model: option 'headers'" .. message, make)
  end
  refused(": names and their values expected", { "A: b" })
  refused(": names and their values expected", { [true] = "b" })
  for _, name in ipairs { "", "a b", "a:", "a\r\nb", "\0", "ä", "a\n" } do
    refused((": %q cannot be the name"):format(name), { [name] = "v" })
  end
  for _, value in ipairs { 5, true, {}, print } do
    refused(": 'A': a string expected, got " .. type(value), { A = value })
  end
  for _, value in ipairs { "a\r\nB: c", "a\n", "\r", "a\0b", "\27[2J", "\127" } do
    refused(": the value of 'A' has a control character", { A = value })
  end
  refused(": 'a' is there twice", { A = "1", a = "2" })
  refused(": table expected, got string", "A: b")
end

return { TestHeaders = T }
