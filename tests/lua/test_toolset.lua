local lu = require "luaunit"
local barchan = require "barchan"
local coverage = require "coverage"
local support = require "reload_support"

local T = {}

local function toolset(...)
  return barchan.toolset { ... }
end

local function add_tool(fn)
  return {
    name = "add", description = "Adds.",
    parameters = {
      type = "object",
      properties = { a = { type = "integer" }, b = { type = "integer" } },
      required = { "a", "b" },
    },
    run = fn or function(args) return tostring(args.a + args.b) end,
  }
end

local function call(tools, arguments, name)
  return tools:dispatch { id = "call_1", name = name or "add", arguments = arguments }
end

function T:test_dispatch_answers_with_a_paired_tool_message()
  lu.assertEquals(call(toolset(add_tool()), { a = 2, b = 3 }), {
    role = "tool", tool_call_id = "call_1", name = "add", content = "5", is_error = false,
  })
end

function T:test_what_a_tool_logs_goes_to_standard_error()
  local written = {}
  local real <const> = io.stderr
  -- luacheck: push ignore io
  io.stderr = { write = function(_, ...) written[#written + 1] = table.concat { ... } end }
  local content = call(toolset(add_tool(function(_, ctx)
    ctx.log("got", nil, 5)
    return "x"
  end)), { a = 1, b = 2 }).content
  io.stderr = real
  -- luacheck: pop
  lu.assertEquals({ content, written }, { "x", { "add:\tgot\tnil\t5\n" } })
end

function T:test_what_the_model_gets_wrong_is_answered_not_thrown()
  local ran = false
  local tools = toolset(add_tool(function() ran = true end))
  local message = call(tools, { a = 2 })
  lu.assertTrue(message.is_error)
  lu.assertStrContains(message.content, "b: is missing")
  lu.assertStrContains(message.content, '"required":["a","b"]')
  message = call(tools, { a = 2, b = "3" })
  lu.assertStrContains(message.content, "b: integer expected, got string")
  message = call(tools, {}, "subtract")
  lu.assertTrue(message.is_error)
  lu.assertStrContains(message.content, "There is no tool 'subtract'. The tools are: add.")
  message = call(tools, "a=2")
  lu.assertStrContains(message.content, "must be a JSON object")
  message = call(tools, {}, ("x"):rep(100000))
  lu.assertTrue(#message.content < 400)
  lu.assertFalse(ran)
end

function T:test_what_a_tool_may_return()
  local function answer(...)
    local results = table.pack(...)
    local message = call(toolset(add_tool(function() return table.unpack(results, 1, results.n) end)), { a = 1, b = 2 })
    return message.content, message.is_error
  end
  lu.assertEquals({ answer "text" }, { "text", false })
  lu.assertEquals({ answer { 1, 2 } }, { "[1,2]", false })
  lu.assertEquals({ answer(42) }, { "42", false })
  lu.assertEquals({ answer() }, { "(no output)", false })
  lu.assertEquals({ answer(nil, { code = "not_found", message = "no file" }) }, { "no file (not_found)", true })
  lu.assertEquals({ answer(barchan.result { text = "bad", is_error = true }) }, { "bad", true })
  local content, is_error = answer(barchan.result { text = "t", images = { { media_type = "image/png", data = "AA==" } } })
  lu.assertEquals(content, { { type = "text", text = "t" }, { type = "image", media_type = "image/png", data = "AA==" } })
  lu.assertFalse(is_error)
  content, is_error = answer(barchan.result { images = { {} } })
  lu.assertTrue(is_error)
  lu.assertStrContains(content, "image 1")
  content, is_error = answer(print)
  lu.assertTrue(is_error)
  lu.assertStrContains(content, "not JSON")
  lu.assertEquals({ answer "a\xff" }, { "a\u{FFFD}", false })
end

function T:test_long_results_are_cut_with_a_notice()
  local message = call(toolset(add_tool(function() return ("é"):rep(100000) end)), { a = 1, b = 2 })
  lu.assertTrue(#message.content < 66000)
  lu.assertStrContains(message.content, "bytes left out")
  lu.assertNotNil(utf8.len(message.content))
end

function T:test_a_tool_that_throws_is_an_error_result_without_a_traceback()
  local message = call(toolset(add_tool(function() error("it broke", 0) end)), { a = 1, b = 2 })
  lu.assertTrue(message.is_error)
  lu.assertEquals(message.content, "it broke")
end

function T:test_a_table_that_a_tool_throws_is_told_by_its_fields()
  local function said(err)
    local thrown = call(toolset(add_tool(function() error(err) end)), { a = 1, b = 2 })
    local returned = call(toolset(add_tool(function() return nil, err end)), { a = 1, b = 2 })
    lu.assertEquals({ thrown.is_error, returned.is_error, returned.content }, { true, true, thrown.content })
    return thrown.content
  end
  lu.assertEquals(said { message = "no such file", path = "x" }, "no such file")
  lu.assertEquals(said { message = "no such file", code = "not_found" }, "no such file (not_found)")
  lu.assertEquals(said { reason = "quota" }, '{"reason":"quota"}')
  lu.assertEquals(said { message = { "a", "b" } }, '{"message":["a","b"]}')
  lu.assertEquals(said { 1, 2 }, "[1,2]")
  lu.assertEquals(said(setmetatable({}, { __tostring = function() return "its own words" end })), "its own words")
  lu.assertEquals(said(setmetatable({}, { __tostring = function() return "reg: 0xff" end })), "reg: 0xff")
  local Class = {}
  lu.assertEquals(said(setmetatable({ reason = "quota" }, Class)), '{"reason":"quota"}')
  lu.assertEquals(said(setmetatable({}, Class)), "an error that is a table without a message")
  lu.assertEquals(said {}, "an error that is a table without a message")
  lu.assertEquals(said { print }, "an error that is a table without a message")
  lu.assertEquals(said(print), "an error that is a function without a message")
end

function T:test_a_toolset_without_a_sandbox_says_so()
  local message = call(barchan.toolset { "exec" }, { command = "ls" }, "exec")
  lu.assertTrue(message.is_error)
  lu.assertStrContains(message.content, "this toolset has no sandbox")
end

function T:test_a_tools_timeout()
  local tools = toolset {
    name = "slow", description = "", timeout = 0.05, run = function() barchan.sleep(60) end,
  }
  local message = call(tools, {}, "slow")
  lu.assertTrue(message.is_error)
  lu.assertStrContains(message.content, "stopped after 0.05 s")
  lu.assertErrorMsgContains("timeout: seconds", toolset, { name = "x", run = print, timeout = 0 })
end

function T:test_a_tool_that_does_not_wait_is_stopped_too()
  local ends = false
  local tools = toolset {
    name = "busy", description = "", timeout = 0.05, run = function()
      local _ <close> = setmetatable({}, { __close = function()
        local sum = 0
        for i = 1, 20000 do sum = sum + i end
        ends = sum > 0
      end })
      local co = coroutine.wrap(function() while true do pcall(string.rep, "x", 9) end end)
      barchan.spawn(function() barchan.sleep(0) end)
      co()
    end,
  }
  local message
  coverage.without(function() message = call(tools, {}, "busy") end)
  lu.assertTrue(message.is_error)
  lu.assertStrContains(message.content, "it ran past its time without waiting for anything")
  lu.assertTrue(ends)
  lu.assertEquals(call(toolset { name = "t", run = function() return "next" end }, {}, "t").content, "next")
end

function T:test_what_a_tool_throws_is_bounded_and_read_in_its_time()
  local message = call(toolset(add_tool(function() error(("x"):rep(1000000), 0) end)), { a = 1, b = 2 })
  lu.assertTrue(message.is_error)
  lu.assertTrue(#message.content < 66000)
  local odd = setmetatable({}, { __tostring = function() while true do pcall(string.rep, "x", 9) end end })
  for _, run in ipairs { function() error(odd) end, function() return nil, odd end } do
    coverage.without(function()
      message = call(toolset { name = "odd", timeout = 0.05, run = run }, {}, "odd")
    end)
    lu.assertEquals({ message.is_error, message.content }, { true, "an error whose text cannot be read" })
  end
end

function T:test_answers_to_wrong_calls_are_bounded()
  local tools = toolset { name = "t", description = "", run = print,
    parameters = { type = "object", properties = {}, additionalProperties = false } }
  lu.assertTrue(#call(tools, { [("k"):rep(1000000)] = 1 }, "t").content < 6000)
  lu.assertStrContains(call(tools, barchan.json.decode "[]", "t").content, "must be a JSON object")
end

function T:test_what_stands_around_a_call()
  local ran, asked = {}, {}
  local tools = barchan.toolset {
    { name = "exec", run = function() ran[#ran + 1] = "exec" end },
    { name = "add", run = function(args) ran[#ran + 1] = "add" return args.a end },
  }
  local reply = {
    tool_calls = { { id = "1", name = "exec", arguments = {} }, { id = "2", name = "add", arguments = { a = 5 } } },
    invalid_tool_calls = { { id = "3", name = "add", error = "cut off" } },
  }
  local function turn(around)
    local list = {}
    ran, asked = {}, {}
    lu.assertEquals({ tools:answer(reply, list, around), #list }, { 3, 3 })
    return list
  end
  local list = {}
  support.example("tools", "answer", { barchan = barchan, tools = tools, reply = reply, messages = list })()
  lu.assertEquals({ ran, list[1].content, list[2].content }, { { "add" }, "not run: not allowed", "5" })
  lu.assertStrContains(list[3].content, "was not run: cut off")
  turn(function(_, run, may_run) asked[#asked + 1] = may_run return run() end)
  lu.assertEquals(asked, { true, true, false })
  list = turn(function(asks, run) return run { id = asks.id, name = "add", arguments = { a = 7 } } end)
  lu.assertEquals({ ran, list[1].content, list[2].content }, { { "add", "add" }, "7", "7" })
  for _, around in ipairs { function() end, function(_, run) run() end } do
    list = turn(around)
    table.sort(ran)
    lu.assertEquals({ ran, list[2].content }, { { "add", "exec" }, "5" }) -- once each
  end
  list = turn(function() return "a text" end)
  lu.assertEquals({ ran, list[1].is_error }, { {}, true })
  lu.assertStrContains(list[1].content, "a message expected, got \"a text\"")
end

function T:test_what_a_model_marked_invalid_never_runs()
  local ran = false
  local list = {}
  toolset(add_tool(function() ran = true end)):answer({
    invalid_tool_calls = { { id = "1", name = "add", arguments = { a = 1, b = 2 } } },
  }, list)
  lu.assertFalse(ran)
  lu.assertTrue(list[1].is_error)
end

function T:test_errors_of_odd_kinds()
  local odd = setmetatable({}, { __tostring = function() error "no text" end })
  for _, err in ipairs { odd, 42, true, print } do
    lu.assertTrue(call(toolset(add_tool(function() error(err) end)), { a = 1, b = 2 }).is_error)
  end
end

function T:test_answer_keeps_order_and_answers_every_call()
  local tools = toolset({
    name = "wait", description = "", run = function(args, ctx)
      barchan.sleep(args.s)
      if args.fail then error "failed" end
      return ctx.call_id
    end,
  })
  local list = {}
  local n = tools:answer({
    tool_calls = {
      { id = "1", name = "wait", arguments = { s = 0.05 } },
      { id = "2", name = "wait", arguments = { s = 0.0, fail = true } },
      { id = "3", name = "wait", arguments = { s = 0.01 } },
    },
    invalid_tool_calls = { { id = "4", name = "wait", arguments_text = "{", error = "not JSON at byte 1" } },
  }, list)
  lu.assertEquals(n, 4)
  local ids, contents = {}, {}
  for i, message in ipairs(list) do ids[i], contents[i] = message.tool_call_id, message.content end
  lu.assertEquals(ids, { "1", "2", "3", "4" })
  lu.assertEquals({ contents[1], contents[3] }, { "1", "3" })
  lu.assertTrue(list[2].is_error)
  lu.assertTrue(list[4].is_error)
  lu.assertStrContains(contents[4], "not JSON at byte 1")
end

-- invalid calls say where they stood; replies of old transcripts do not, and theirs come last.
function T:test_answers_stand_in_the_order_of_the_turn()
  local tools = toolset { name = "t", description = "", run = function(_, ctx) return ctx.call_id end }
  local function ids_of(positions)
    local list, ids = {}, {}
    local invalid = {}
    for i, id in ipairs { "c", "d", "f" } do
      invalid[i] = { id = id, name = "t", arguments_text = "{", error = "e", position = positions[i] }
    end
    tools:answer({
      tool_calls = { { id = "e", name = "t", arguments = {} }, { id = "g", name = "t", arguments = {} } },
      invalid_tool_calls = invalid,
    }, list)
    for i, message in ipairs(list) do ids[i] = message.tool_call_id end
    return table.concat(ids)
  end
  lu.assertEquals(ids_of { 0, 1, 3 }, "cdefg")
  lu.assertEquals(ids_of {}, "egcdf")
  lu.assertEquals(#ids_of { -5, 1e300, "x" }, 5)
end

function T:test_sequential_tools_run_alone_and_in_order()
  local log, running, most = {}, 0, 0
  local function tool_named(name, sequential)
    return { name = name, description = "", sequential = sequential, run = function(_, ctx)
      running = running + 1
      most = math.max(most, running)
      log[#log + 1] = "+" .. ctx.call_id
      barchan.sleep(0.01)
      running = running - 1
      log[#log + 1] = "-" .. ctx.call_id
      if ctx.call_id == "3" then error "fails" end
    end }
  end
  local tools = toolset(tool_named "look", tool_named("change", true))
  local names = { "look", "look", "change", "change", "look" }
  local calls, list = {}, {}
  for i, name in ipairs(names) do calls[i] = { id = tostring(i), name = name, arguments = {} } end
  lu.assertEquals(tools:answer({ tool_calls = calls }, list), 5)
  lu.assertEquals(table.concat(log, " ", 5), "+3 -3 +4 -4 +5 -5")
  lu.assertEquals(most, 2) -- the first two, side by side
  lu.assertEquals(list[3].is_error, true)
  lu.assertErrorMsgContains("sequential", toolset, { name = "x", run = print, sequential = 1 })
end

function T:test_what_the_model_writes_it_can_run_in_the_same_turn()
  local sbx <close> = assert(barchan.sandbox())
  local tools = barchan.toolset { "write_file", "exec", sandbox = sbx }
  for _ = 1, 5 do
    local list = {}
    tools:answer({ tool_calls = {
      { id = "1", name = "write_file", arguments = { path = "p.sh", content = "echo ran" } },
      { id = "2", name = "exec", arguments = { command = "sh p.sh; rm p.sh" } },
    } }, list)
    lu.assertStrContains(list[2].content, "ran")
    lu.assertStrContains(list[2].content, "exit_code: 0")
  end
end

function T:test_state_belongs_to_the_binding_and_the_tool()
  local counter = { name = "count", description = "", run = function(_, ctx)
    ctx.state.n = (ctx.state.n or 0) + 1
    return tostring(ctx.state.n)
  end }
  local one = toolset(counter)
  local two = one:bind {}
  call(one, {}, "count")
  lu.assertEquals(call(one, {}, "count").content, "2")
  lu.assertEquals(call(two, {}, "count").content, "1")
end

function T:test_declarations_are_in_a_fixed_order()
  local tools = barchan.toolset { "write_file", add_tool(), "exec" }
  local names = {}
  for i, d in ipairs(tools:declarations()) do
    names[i] = d.name
    lu.assertNil(d.run)
  end
  lu.assertEquals(names, { "write_file", "add", "exec" })
end

function T:test_bad_definitions_say_what_is_wrong()
  local function refused(definition, text)
    lu.assertErrorMsgContains(text, barchan.toolset, { definition })
  end
  refused({ name = "a b", run = print }, "name:")
  refused({ name = ("x"):rep(65), run = print }, "name:")
  refused({ name = "a" }, "run: a function expected")
  refused({ name = "a", run = print, parameters = { type = "array" } }, 'its type must be "object"')
  refused({ name = "a", run = print, desciption = "" }, "did you mean 'description'")
  lu.assertErrorMsgContains("two tools have the name 'add'", toolset, add_tool(), add_tool())
  lu.assertErrorMsgContains("did you mean 'run_python'", toolset, "run_pyton")
end

function T:test_tool_files_of_a_directory()
  local dir = os.tmpname()
  os.remove(dir)
  assert(os.execute("mkdir -p " .. dir))
  local function write(name, text)
    local file = assert(io.open(dir .. "/" .. name, "w"))
    file:write(text)
    file:close()
  end
  write("one.lua", 'return { name = "one", description = "1", run = function() return "one" end }')
  write("more.lua", 'return { { name = "two", run = print }, { name = "three", run = print } }')
  write(".#one.lua", "this is an editor's lock file")
  write("notes.txt", "not Lua")
  local tools = barchan.toolset { "exec", dir = dir }
  lu.assertEquals(tools:names(), { "two", "three", "one", "exec" })
  lu.assertEquals(call(tools, {}, "one").content, "one")
  write("one.lua", "return {")
  lu.assertErrorMsgContains("one.lua:1:", barchan.toolset, { dir = dir })
  write("one.lua", "\27Lua")
  lu.assertErrorMsgContains("binary", barchan.toolset, { dir = dir })
  write("one.lua", "return 7")
  lu.assertErrorMsgContains("returns a tool or a list of tools", barchan.toolset, { dir = dir })
  os.execute("rm -r " .. dir)
  lu.assertErrorMsgContains("No such file", barchan.toolset, { dir = dir })
end

return { TestToolset = T }
