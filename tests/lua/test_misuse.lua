-- Wrong arguments: each error begins with the line of the script that gave them, and names the public call.
local lu = require "luaunit"
local barchan = require "barchan"
local misuse = require "barchan.misuse"
local support = require "reload_support"

local T = {}

local sbx, process, stream, dir

function T:setUp()
  dir = support.dir()
  dir:write("loop.lua", "return { turn = print }")
  sbx = assert(barchan.sandbox())
  process = assert(sbx:spawn "cat")
  stream = sbx:stream { "cat", stdin = true }
end

function T:tearDown()
  sbx:terminate()
  dir:remove()
end

-- What `fn` throws must begin with a line of this file, once, and go on with `message`.
local function refused(message, fn)
  local ok, problem = pcall(fn)
  lu.assertFalse(ok, message)
  problem = tostring(problem)
  local place, rest = problem:match "^([^:]*test_%w+%.lua:%d+): (.*)$"
  lu.assertNotNil(place, problem)
  lu.assertNil(rest:find("%.lua:%d+:"), problem)
  lu.assertEquals(rest:sub(1, #message), message)
end

function T:test_methods_called_with_a_point()
  for what, object in pairs(support.objects(dir, sbx)) do
    local count = 0
    for name, method in pairs(debug.getmetatable(object).__index) do
      if type(method) == "function" and not name:find "^__" then
        local message = ("%s: call it with ':', as %s:%s(…)"):format(name, what, name)
        for _, wrong in ipairs { {}, "x", print } do refused(message, function() method(wrong) end) end
        refused(message, function() method() end)
        count = count + 1
      end
    end
    lu.assertTrue(count > 0, what)
  end
end

-- A list of { what is said, function }, whose call is no tail call: it has a line here then.
local function all_refused(cases)
  for _, case in ipairs(cases) do
    refused(case[1], case[2])
  end
end

function T:test_arguments_of_functions()
  local got = " expected, got nil"
  all_refused {
    { "gather: a list of functions" .. got, function() return (barchan.gather(nil)) end },
    { "gather: a list of functions expected, got function", function() return (barchan.gather(print)) end },
    { "render: a result of sandbox:exec" .. got, function() return (barchan.render()) end },
    { "render: a result of sandbox:exec expected, got \"x\"", function() return (barchan.render "x") end },
    { "render: a result of sandbox:exec expected; its ", function() return (barchan.render {}) end },
    { "render: a result of sandbox:exec expected; its ", function() return (barchan.render(sbx)) end },
    { "tool_result: a tool call { id, name, arguments }" .. got,
      function() return (barchan.tool_result()) end },
    { "tool_result: a tool call { id, name, arguments } expected, got \"x\"",
      function() return (barchan.tool_result("x", "y")) end },
    { "tool_result: the call's name: a string" .. got,
      function() return (barchan.tool_result({ id = "1" }, "y")) end },
    { "tool_result: text or a list of parts expected, got 5",
      function() return (barchan.tool_result({ id = "1", name = "f" }, 5)) end },
    { "user: part 1: type: \"text\" or \"image\" expected, got \"txt\"",
      function() return (barchan.user { { type = "txt" } }) end },
    { "user: part 1: text: a string" .. got, function() return (barchan.user { { type = "text" } }) end },
    { "user: part 1: data: a string" .. got,
      function() return (barchan.user { { type = "image", media_type = "image/png" } }) end },
    { "user: the list of parts is empty", function() return (barchan.user {}) end },
    { "user: a list of parts expected; it has the key 'text'",
      function() return (barchan.user { text = "x" }) end },
    { "recorded: a path" .. got, function() return (barchan.recorded()) end },
    { "transcript.open: a path" .. got, function() return (barchan.transcript.open()) end },
    { "transcript.read: a path expected, got 5", function() return (barchan.transcript.read(5)) end },
    { "network: option 'network'", function() return (barchan.network()) end },
    { "network: 'opn' is unknown", function() return (barchan.network "opn") end },
    { "toolset: unknown tool 'nope'",
      function() return (barchan.agent { model = support.replaying "x", tools = { "nope" } }) end },
    { "toolset: tool 'x': run: a function", function() return (barchan.toolset { { name = "x" } }) end },
    { "toolset: option 'sandbox': a sandbox expected",
      function() return (barchan.toolset { sandbox = {} }) end },
    { "policies: policy: unknown option 'x'",
      function() return (barchan.policies { { before_turn = print, x = 1 } }) end },
    { "connect: the id of a sandbox expected", function() return (barchan.connect()) end },
  }
end

function T:test_arguments_of_methods()
  local tools = barchan.toolset {}
  local writer = assert(barchan.transcript.open(dir.path .. "/run.jsonl"))
  local task = barchan.spawn(function() end)
  all_refused {
    { "wait: seconds, from 0 to 1000000000, expected, got \"x\"", function() return (process:wait "x") end },
    { "wait: seconds, from 0 to 1000000000, expected, got -1", function() return (process:wait(-1)) end },
    { "signal: a signal's number from 1 to 64, like 15 for SIGTERM, expected, got \"TERM\"",
      function() return (process:signal "TERM") end },
    { "signal: a signal's number", function() return (stream:signal(99)) end },
    { "read: \"out\" or \"err\" expected, got \"x\"", function() return (process:read "x") end },
    { "read_at: \"out\" or \"err\" expected, got 5", function() return (process:read_at(5)) end },
    { "read_at: a cursor", function() return (process:read_at("out", -1)) end },
    { "resize: columns: a whole number from 1 to 65535 expected, got nil",
      function() return (process:resize()) end },
    { "resize: rows: a whole number from 1 to 65535 expected, got \"x\"",
      function() return (process:resize(80, "x")) end },
    { "write: a string expected, got nil", function() return (process:write()) end },
    { "exec: a command (a line of shell, or a table of words and options) expected, got 5",
      function() return (sbx:exec(5)) end },
    { "spawn: a command", function() return (sbx:spawn()) end },
    { "exec: option 'timeout' must be greater than 0",
      function() return (sbx:exec { "ls", timeout = -1 }) end },
    { "exec: option 'grace'", function() return (sbx:exec { "ls", grace = -1 }) end },
    { "exec: option 'env': a table of NAME", function() return (sbx:exec { "ls", env = { "A=5" } }) end },
    { "apply_changes: option 'timeout' must be greater than 0",
      function() return (sbx:apply_changes("/tmp", { timeout = -1 })) end },
    { "apply_changes: option 'paths': a list of paths",
      function() return (sbx:apply_changes("/tmp", { paths = { 5 } })) end },
    { "snapshot: option 'timeout' must be", function() return (sbx:snapshot("x", { timeout = 0 })) end },
    { "set_secret: the name of a secret", function() return (sbx:set_secret()) end },
    { "set_secret: a string expected, got a nil", function() return (sbx:set_secret "A") end },
    { "set_network: 'opn' is unknown", function() return (sbx:set_network "opn") end },
    { "set_network: unknown option 'alow'", function() return (sbx:set_network { alow = {} }) end },
    { "set_network: \"off\" is for new sandboxes", function() return (sbx:set_network "off") end },
    { "extend: seconds, greater than 0", function() return (sbx:extend "x") end },
    { "answer: a model's reply expected, got nil", function() return (tools:answer()) end },
    { "answer: the list of messages", function() return (tools:answer {}) end },
    { "answer: the reply's tool_calls: a list",
      function() return (tools:answer({ tool_calls = "x" }, {})) end },
    { "answer: the call's id: a string",
      function() return (tools:answer({ invalid_tool_calls = { {} } }, {})) end },
    { "stamp: a model's reply", function() return (tools:stamp()) end },
    { "dispatch: a tool call", function() return (tools:dispatch()) end },
    { "bind: option 'sandbox': a sandbox", function() return (tools:bind { sandbox = {} }) end },
    { "wait: a task is waited for without an argument", function() return (task:wait(5)) end },
    { "write: an event, a table, expected, got nil", function() return (writer:write()) end },
    { "write: an event, a table, expected, got 5", function() return (writer:write(5)) end },
  }
  writer:close()
  writer:close()
  refused("write: the transcript is closed", function() writer:write { type = "x" } end)
end

function T:test_options_of_sandboxes_and_models()
  local above, zero = " must be greater than 0", { lease = 0, idle_timeout = 0, timeout = 0 }
  local cases = {}
  for name in pairs(zero) do
    for _, value in ipairs { 0, -5, 0 / 0 } do
      cases[#cases + 1] = { ("sandbox: option '%s'%s"):format(name, above), function()
        return (barchan.sandbox { [name] = value })
      end }
      cases[#cases + 1] = { ("sandbox: option '%s'%s"):format(name, above), function()
        return (barchan.sandbox { [name] = value, detached = true })
      end }
    end
  end
  local function of(said, options)
    cases[#cases + 1] = { "sandbox: " .. said, function() return (barchan.sandbox(options)) end }
  end
  of("option 'on_lease_end': \"terminate\" or \"pause\" expected, got \"pauze\"", { on_lease_end = "pauze" })
  of("option 'env': a table of NAME = \"value\" expected", { env = { "A=5" } })
  of("option 'env': 'A=B' cannot be", { env = { ["A=B"] = "5" } })
  of("network: 'opn' is unknown", { network = "opn" })
  of("limits: option 'memory'" .. above, { limits = { memory = 0 } })
  of("option 'max_bytes' must not be negative", { network = { max_bytes = -1 } })
  of("price: option 'cpu_hour' must not be negative", { price = { cpu_hour = -1 } })
  of("price: unknown option 'cpu'", { price = { cpu = 1 } })
  of("mounts[1]: source and target are needed", { mounts = { {} } })
  of("secrets[1]: option 'name' is missing", { secrets = { {} } })
  of("network: option 'allow': a list", { network = { allow = { a = 1 } } })
  for name, said in pairs {
    timeout = above, idle_timeout = above, max_retries = " is at least 0", max_tokens = " is at least 1",
  } do
    cases[#cases + 1] = { ("model: option '%s'%s"):format(name, said), function()
      return (barchan.model { provider = "openai", name = "m", api_key = "k", [name] = -1 })
    end }
  end
  all_refused(cases)
end

function T:test_an_ended_sandbox_answers_a_stream_as_any_call()
  sbx:terminate()
  for _, ask in ipairs { sbx.exec, sbx.spawn } do
    local none, err = ask(sbx, "true")
    lu.assertEquals({ none, err.code }, { nil, "closed" })
  end
  local ok, err = pcall(sbx.stream, sbx, "true") -- an iterator throws it
  lu.assertEquals({ ok, err.code }, { false, "closed" })
end

function T:test_the_place_is_the_first_line_outside()
  local here = debug.getinfo(1, "l").currentline
  local _, problem = pcall(function()
    return { barchan.gather { function() end, 5 } }
  end)
  lu.assertStrContains(problem, ("test_misuse.lua:%d: gather: "):format(here + 2))
  -- Called by C, the line that has C call it.
  _, problem = pcall(barchan.gather, 5)
  lu.assertStrContains(problem, ("test_misuse.lua:%d: gather: "):format(here + 6))
  -- A tool of somebody else is such a line, too.
  local tools = barchan.toolset { { name = "t", description = "", run = function() misuse.expected("t", "x", 5) end } }
  local message = tools:dispatch { id = "1", name = "t", arguments = {} }
  lu.assertStrContains(message.content, ("test_misuse.lua:%d: t: x expected, got 5"):format(here + 9))
end

return { TestMisuse = T }
