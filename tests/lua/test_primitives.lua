-- What the other suites leave out: primitives that only the program's commands use, and options one by one.
local lu = require "luaunit"
local barchan = require "barchan"
local support = require "reload_support"

local T = {}

local core = support.core()

function T:test_what_an_engine_without_a_host_answers()
  local script = require "barchan.script"
  lu.assertEquals({ core.host.functions(), core.host.script_path(), core.host.tools() }, { nil, nil, {} })
  lu.assertEquals(require("barchan.tool").host_tools(), {})
  lu.assertErrorMsgContains("the host has no tool 'x'", core.host.call_tool, "x", {})
  lu.assertErrorMsgContains("table expected", core.host.set_functions, 1)
  local _, err = pcall(script.reload)
  lu.assertStrContains(err.message, "no script file is loaded")
  lu.assertErrorMsgContains("a loop script returns a table", script.run)
  core.host.set_functions { turn = function(state) state.n = (state.n or 0) + 1 return state.n == 2 and "two" or nil end }
  lu.assertEquals(script.run(), "two")
  lu.assertTrue(script.is_loop(core.host.functions()))
  lu.assertEquals(script.run_loop { turn = function() return 1, 2 end }, 1)
end

function T:test_the_terminal_input_and_environment()
  lu.assertIsBoolean(core.host.is_terminal(0))
  local t <close> = barchan.spawn(function() return core.host.read_stdin() end)
  barchan.sleep(0)
  lu.assertNotNil(t:status())
  lu.assertNil(core.util.getenv "HOME")
  lu.assertTrue(#core.util.libraries() > 3)
  lu.assertTrue(#core.model.environment() > 1)
  local chosen = require("barchan.model").default()
  lu.assertTrue(chosen == nil or chosen:find ":" ~= nil)
  lu.assertFalse(core.task.cancelled())
  lu.assertTrue(#assert(barchan.doctor()) > 3)
end

function T:test_scripts()
  local dir = support.dir()
  dir:write("a.lua", "return { word = require 'b' }")
  dir:write("b.lua", "return 'neighbour'")
  local modules = require "barchan.modules"
  local set = modules.read(dir.path)
  lu.assertEquals(set:load("a").word, "neighbour")
  lu.assertEquals(set:source "a", "return { word = require 'b' }\0return 'neighbour'")
  lu.assertEquals(set:place(), dir.path .. "/a.lua")
  local unloaded = modules.read(dir.path)
  unloaded:note_required()
  lu.assertEquals(unloaded.required, { b = true })
  lu.assertErrorMsgContains("", modules.fail, "x.lua", "wrong")
  lu.assertEquals(core.scripts.load_file(dir.path .. "/b.lua")(), "neighbour")
  local chunk, problem = core.scripts.load_file(dir.path .. "/none.lua")
  lu.assertEquals({ chunk, problem.code }, { nil, "not_found" })
  package.path = dir.path .. "/?.lua;" .. package.path
  require "b"
  local taken = core.scripts.exchange_modules {}
  lu.assertEquals({ taken.b, package.loaded.b }, { "neighbour", nil })
  core.scripts.exchange_modules(taken)
  lu.assertEquals(package.loaded.b, "neighbour")
  package.loaded.b = nil
  package.path = package.path:gsub("^[^;]*;", "")
  dir:remove()
end

function T:test_declarations_for_each_provider()
  local tools = barchan.toolset { "exec" }:declarations()
  for _, format in ipairs { "neutral", "anthropic", "openai", "responses", "gemini", "mcp" } do
    lu.assertStrContains(assert(core.model.render_tools(format, tools)), '"exec"')
  end
end

function T:test_coroutines()
  local co = barchan.coroutine
  lu.assertTrue(co.isyieldable())
  local thread = co.create(function() co.yield(co.isyieldable(), co.running()) end)
  lu.assertEquals({ co.resume(thread) }, { true, true, thread, false })
  lu.assertEquals({ co.status(thread), co.close(thread), co.status(thread) }, { "suspended", true, "dead" })
end

function T:test_a_stream_is_signalled_fed_and_cancelled()
  local sbx <close> = assert(barchan.sandbox { best_effort = true, limits = { cpus = 1, files = 1000, open_files = 500 } })
  local stream = sbx:stream { "cat", stdin = true, cwd = "/tmp", env = { A = "1" }, timeout = 30, grace = 1,
    output_limit = 1000, detach = false }
  assert(stream:write "fed")
  stream:close_input()
  lu.assertEquals({ stream() }, { "out", "fed" })
  lu.assertEquals(stream:result().exit_code, 0)
  stream = sbx:stream { "cat", stdin = "given" }
  lu.assertEquals({ stream() }, { "out", "given" })
  stream = sbx:stream { "sleep", "60", stdin = true }
  stream:signal(15)
  lu.assertEquals(stream:result().signal, 15)
  stream = sbx:stream "sleep 60"
  stream:cancel()
  lu.assertEquals(stream:result().reason, "cancelled")
  local r = assert(sbx:exec { sh = "sleep 60 > /dev/null 2>&1 & echo $!", detach = true, grace = 0.1 })
  lu.assertEquals(r.exit_code, 0)
  lu.assertEquals(assert(sbx:exec("kill -0 " .. r.out)).exit_code, 0) -- it runs on
  assert(sbx.files:mkdir("closed", { mode = 448 }))
  lu.assertEquals(sbx.files:stat("closed").mode & 511, 448)
  lu.assertIsTable(barchan.toolset({}):bind { sandbox = sbx })
end

function T:test_a_held_command_is_fed_resized_and_signalled()
  local sbx <close> = assert(barchan.sandbox())
  local p <close> = assert(sbx:spawn { sh = "read x; echo $x; stty size; sleep 60", pty = { cols = 80, rows = 24 },
    cwd = "/tmp", env = { A = "1" }, grace = 0.1, timeout = 30, backlog = 4096 })
  assert(p:resize(100, 30))
  assert(p:write "fed\n")
  support.eventually(function() return p:read_at("out", 0):find "30 100" end, "no size")
  p:signal(9)
  lu.assertEquals({ p:wait(20).reason, p:running() }, { "signaled", false })
  local reader = assert(sbx:spawn "sleep 0.2; wc -c")
  assert(reader:write(("x"):rep(1 << 20))) -- more than there is room for: it waits
  reader:close_input()
  lu.assertEquals(reader:wait(20).exit_code, 0)
  lu.assertStrContains(reader:read(), "1048576")
  do local _ <close> = reader.handle end
end

function T:test_the_terminal_of_the_program()
  local terminal <close> = core.sandbox.terminal()
  local columns, rows_or_err = terminal:size()
  lu.assertTrue(columns == nil and rows_or_err.message ~= nil or columns > 0)
  if core.host.is_terminal(0) then return end -- it is somebody's: leave it as it is
  lu.assertNil((terminal:raw()))
  terminal:restore()
end

function T:test_options_of_models()
  local model = assert(barchan.model {
    provider = "openai", name = "m", base_url = "http://127.0.0.1:1", allow_plain_http = true, use_key = true,
    headers = { ["x-a"] = "b" }, max_tokens = 5, connect_timeout = 1, idle_timeout = 1, timeout = 1, stream = false,
    max_retries = 0, max_retry_wait = 1,
  })
  local reply, err = model:complete {
    { barchan.user "q" }, max_tokens = 1, temperature = 0, stop = { "x" }, parallel_tool_calls = false,
    extra = { seed = 1 },
  }
  lu.assertEquals({ reply, err.code }, { nil, "network" })
  local completion = assert(model.handle:start({ messages = { barchan.user "q" } }, false))
  completion:cancel()
end

function T:test_options_of_agents_reach_the_model()
  local asked
  local function complete(_, request)
    asked = request
    request.on_event("text", "hi")
    return { role = "assistant", text = "hi", tool_calls = {}, stop_reason = "end_turn" }
  end
  local shown = ""
  local agent = barchan.agent {
    model = { complete = complete }, system = "s", max_tokens = 7, stream = false, extra = { a = 1 }, effort = "low",
    cache = true, on_delta = function(text) shown = shown .. text end,
  }
  lu.assertEquals(agent:run("q").text, "hi")
  lu.assertEquals(shown, "hi")
  lu.assertEquals({ asked.system, asked.max_tokens, asked.stream, asked.extra, asked.effort, asked.cache },
    { "s", 7, false, { a = 1 }, "low", true })
end

function T:test_small_things()
  lu.assertEquals(require("barchan.cjson").new().encode { 1 }, "[1]")
  lu.assertNil(require("barchan.exec").limit_words "exited")
  local entries = { a = 1 }
  local checked = require("barchan.options").checked(entries, function(_, value) assert(value == 2, "no two") end)
  checked.a = 2
  lu.assertErrorMsgContains("no two", function() checked.a = 3 end)
  lu.assertEquals({ entries.a, checked.a, pairs(checked)(entries) }, { 2, 2, "a", 2 })
end

function T:test_the_topics_of_the_manual()
  local docs = require "barchan.docs"
  local text = {}
  for _, topic in ipairs(docs.topics()) do docs.write(topic, function(...) text[#text + 1] = table.concat { ... } end) end
  lu.assertStrContains(table.concat(text), "### `Sandbox:exec(command) -> ExecResult? result, Error? err`")
end

function T:test_a_watch_on_policies()
  local dir = support.dir()
  dir:write("p.lua", "return { before_turn = print }")
  local events = {}
  local policies = barchan.policies { dir = dir.path, watch = true, on_event = function(e) events[#events + 1] = e.type end }
  local t <close> = barchan.spawn(function()
    policies:wait_change()
    policies:refresh()
  end)
  barchan.sleep(0)
  dir:write("p.lua", "return { before_turn = type }")
  support.eventually(function() return #events > 0 end, "no event")
  lu.assertEquals(t:status(), "done")
  lu.assertEquals(events, { "policies_reloaded" })
  dir:remove()
end

return { TestPrimitives = T }
