local lu = require "luaunit"
local options = require "barchan.options"

local T = {}

function T:test_a_close_word_is_suggested()
  lu.assertEquals(options.closest("timout", { "timeout", "cwd" }), "timeout")
  lu.assertEquals(options.closest("exce", { "exec", "run" }), "exec")
  lu.assertNil(options.closest("xyzzy", { "timeout", "cwd" }))
  lu.assertEquals(options.closest(("t"):rep(10000), { "t" }), nil)
end

function T:test_unknown_keys_are_errors_with_a_suggestion()
  lu.assertErrorMsgContains("unknown option 'timout'; did you mean 'timeout'?", options.check, "exec",
    { timout = 1 }, { timeout = "number" })
  lu.assertErrorMsgContains("there is: cwd, timeout", options.check, "exec", { zzzzzz = 1 },
    { timeout = "number", cwd = "string" })
end

function T:test_wrong_types_name_the_option()
  lu.assertErrorMsgContains("option 'timeout': number expected, got string", options.check, "exec",
    { timeout = "1" }, { timeout = "number" })
  lu.assertErrorMsgContains("integer expected", options.check, "x", { n = 1.5 }, { n = "integer" })
  lu.assertErrorMsgContains("a table of options expected", options.check, "x", 7, {})
end

function T:test_what_fits_passes()
  local given = { "a", "b", n = 3, flag = false }
  lu.assertIs(options.check("x", given, { [1] = "string", n = "integer", flag = "boolean" }), given)
  options.check("x", { t = false }, { t = "number or boolean" })
end

function T:test_a_float_that_is_whole_is_an_integer()
  options.check("x", { n = 64 * 2^20 }, { n = "integer" })
  local sbx <close> = assert(require "barchan".sandbox { limits = { memory = 64 * 2^20 } })
  lu.assertEquals(sbx:status().state, "ready")
end

function T:test_no_name_is_cut_at_a_nul_byte()
  local barchan = require "barchan"
  local sbx <close> = assert(barchan.sandbox())
  for what, refused in pairs {
    remove = function() barchan.templates.remove "no-such\0template" end,
    info = function() barchan.templates.info "host\0template" end,
    connect = function() barchan.connect "sbx-0123456789abcdef\0x" end,
    set_secret = function() sbx:set_secret("TOKEN\0x", "0123456789abcdefgh") end,
    toolset = function() barchan.toolset { dir = "/usr\0x" } end,
  } do
    local ok, problem = pcall(refused)
    lu.assertFalse(ok, what)
    lu.assertStrContains(tostring(problem), "without a NUL byte", false, what)
  end
end

function T:test_what_stands_in_a_list_is_no_option()
  local barchan = require "barchan"
  local sbx <close> = assert(barchan.sandbox())
  for text, fn in pairs {
    ["exec: word 2 of the command: string expected, got number"] = function() sbx:exec { "echo", 5 } end,
    ["spawn: word 1 of the command: string expected, got table"] = function() sbx:spawn { {} } end,
    ["stream: word 3 of the command: string expected, got boolean"] = function() sbx:stream { "a", "b", true } end,
    ["toolset: entry 1: string or table expected, got number"] = function() barchan.toolset { 5 } end,
    ["result: unknown option '1'"] = function() barchan.result { "text" } end,
  } do
    lu.assertErrorMsgContains(text, fn)
  end
end

-- Each names the option and the line of the script that gave it.
function T:test_options_that_could_do_nothing_are_errors()
  local barchan = require "barchan"
  local own = assert(barchan.model { provider = { complete = print } })
  local cases = {
    ["option 'replay' is missing"] = function() local m = barchan.model { provider = "replay" } return m end,
    ["'api_key' is for models over HTTP; this one is a replay"] = function()
      local m = barchan.model { provider = "replay", replay = "x", api_key = "k" }
      return m
    end,
    ["options 'replay' and 'record' exclude each other"] = function()
      local m = barchan.model { provider = "anthropic", name = "m", replay = "x", record = "y" }
      return m
    end,
    ["'base_url' is for models over HTTP; this one is a function"] = function()
      local m = barchan.model { provider = { complete = print }, base_url = "x" }
      return m
    end,
    ["'mounts': a list of"] = function()
      local sbx = barchan.sandbox { mounts = { source = "/tmp", target = "/mnt/x" } }
      return sbx
    end,
    ["unknown option 'limt'"] = function() local text = barchan.render({}, { limt = 3 }) return text end,
    ["unknown option 'apend'"] = function()
      local writer = barchan.transcript.open("/nowhere/run.jsonl", { apend = true })
      return writer
    end,
    ["'max_seconds' is at most"] = function()
      local agent = barchan.agent { model = own, max_seconds = 2e9 }
      return agent
    end,
  }
  for message, fn in pairs(cases) do
    lu.assertErrorMsgContains(message, fn)
    lu.assertErrorMsgContains("test_options.lua:", fn)
  end
end

return { TestOptions = T }
