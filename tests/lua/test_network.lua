-- What a sandbox can reach, through the Lua API. How connections live is tested in
-- tests/integration/sandbox_network*_test.c.
local lu = require "luaunit"
local barchan = require "barchan"
local support = require "reload_support"

local T = {}

-- Refused before anything is resolved, so that these tests need no server.
local GET = "bash -c 'exec 3<>/dev/tcp/%s/80; printf \"GET / HTTP/1.1\\r\\nHost: %s\\r\\n\\r\\n\" >&3; cat <&3'"
local function get(sbx, host, options)
  options = options or {}
  options.sh = GET:format(host, host)
  return assert(sbx:exec(options))
end

function T:test_a_refusal_is_in_the_result_and_its_rendering()
  local sbx <close> = assert(barchan.sandbox { network = { allow = { "other.example:8080" }, bytes_per_second = 1 << 20 } })
  local r = get(sbx, "api.example")
  lu.assertStrContains(r.out, "403 Forbidden")
  lu.assertEquals(#r.denied, 1)
  local denied = r.denied[1]
  lu.assertEquals({ denied.host, denied.port, denied.tries }, { "api.example", 80, 1 })
  lu.assertStrContains(denied.rule, "not in the allow-list")
  lu.assertTrue(denied.time > 1.7e9)
  lu.assertStrContains(tostring(r), "\nnetwork: api.example:80 was refused: not in the allow-list\nout:")
  local usage = assert(sbx:usage())
  lu.assertEquals(usage.connections, 0)
  lu.assertEquals({ usage.network[1].host, usage.network[1].denied }, { "api.example", 1 })
  lu.assertNil(assert(sbx:exec "true").denied)
end

function T:test_a_failure_is_in_the_result_and_its_rendering()
  local sbx <close> = assert(barchan.sandbox { network = { allow = { "gone.invalid" } } })
  local r = get(sbx, "gone.invalid")
  lu.assertNil(r.denied)
  lu.assertEquals(#r.unreached, 1)
  local failure = r.unreached[1]
  lu.assertEquals({ failure.host, failure.port, failure.tries }, { "gone.invalid", 80, 1 })
  lu.assertStrContains(failure.rule, "look up the name: ")
  lu.assertTrue(failure.time > 1.7e9)
  lu.assertStrContains(tostring(r), "\nnetwork: gone.invalid:80 could not be reached: look up the name: ")
  lu.assertNil(assert(sbx:exec "true").unreached)
end

function T:test_other_lists()
  local sbx <close> = assert(barchan.sandbox { network = { allow = { "other.example:8080" } } })
  lu.assertStrContains(get(sbx, "api.example").out, "not in the allow-list")
  assert(sbx:set_network { allow = { "other.example:8080", "api.example", "*.more.example" }, deny = { "api.example" } })
  lu.assertStrContains(get(sbx, "api.example").out, "deny: api.example")
  lu.assertStrContains(get(sbx, "a.more.example").out, "502 Bad Gateway") -- allowed, and nowhere
  local done, err = sbx:set_network { allow = { "other.example:9090" } }
  lu.assertNil(done)
  lu.assertEquals(err.code, "unsupported")
  lu.assertStrContains(err.message, "port 9090")
  done, err = sbx:set_network { max_bytes = 5 }
  lu.assertNil(done)
  lu.assertStrContains(err.message, "caps and callbacks stay")
  lu.assertErrorMsgContains("{ allow = {} } lists nothing", function() sbx:set_network "off" end)
  lu.assertErrorMsgContains("a mode or a table expected, got nil", function() sbx:set_network() end)
  lu.assertErrorMsgContains("a mode or a table expected, got 5", function() sbx:set_network(5) end)
  lu.assertErrorMsgContains("a mode or a table expected, got true", barchan.network, true)
  lu.assertErrorMsgContains("is unknown", function() sbx:set_network "some" end)
  lu.assertStrContains(get(sbx, "api.example").out, "deny: api.example")
end

function T:test_off_has_no_names_and_no_refusals()
  for _, profile in ipairs { {}, { network = "off" } } do
    local sbx <close> = assert(barchan.sandbox(profile))
    local r = get(sbx, "api.example")
    lu.assertEquals(r.out, "")
    lu.assertNil(r.denied)
    lu.assertEquals(barchan.json.encode(assert(sbx:usage()).network), "[]")
  end
end

function T:test_a_command_can_be_without()
  local sbx <close> = assert(barchan.sandbox { network = { allow = { "a.example" } } })
  local r = get(sbx, "b.example", { network = "off" })
  lu.assertEquals(r.out, "")
  lu.assertNil(r.denied)
  lu.assertStrContains(get(sbx, "b.example").out, "403")
  lu.assertErrorMsgContains("\"off\" expected", sbx.exec, sbx, { "true", network = "open" })
  local all = {}
  for _, chunk in sbx:stream { sh = GET:format("c.example", "c.example"), network = "off" } do all[#all + 1] = chunk end
  lu.assertNotStrContains(table.concat(all), "403")
end

function T:test_questions_and_events()
  local asked, events = {}, {}
  local sbx <close> = assert(barchan.sandbox { network = {
    allow = { "127.0.0.1:1" },
    hosts = { ["yes.example"] = "127.0.0.1" },
    on_connect = function(host, port)
      asked[#asked + 1] = host .. ":" .. port
      barchan.sleep(0.01) -- it may wait
      return host == "yes.example"
    end,
    on_event = function(event) events[#events + 1] = event end,
  } })
  -- Allowed when asked, but then its address is a private one.
  lu.assertStrContains(get(sbx, "yes.example").denied[1].rule, "loopback address 127.0.0.1 of yes.example")
  lu.assertStrContains(get(sbx, "no.example").denied[1].rule, "refused when asked")
  lu.assertStrContains(get(sbx, "no.example").out, "403")
  lu.assertEquals(asked, { "yes.example:80", "no.example:80" })
  for _ = 1, 100 do
    if #events == 3 then break end
    barchan.sleep(0.02)
  end
  lu.assertEquals(#events, 3)
  lu.assertEquals({ events[1].type, events[1].host, events[1].port }, { "denied", "yes.example", 80 })
end

function T:test_a_closed_handle_has_no_news()
  local sbx = assert(barchan.sandbox { network = { allow = { "a.example" } } })
  local handle = sbx.handle
  sbx = nil -- luacheck: ignore
  collectgarbage() -- or the list of sandboxes would have one that is closed
  local news = handle:network_object()
  local waiter = barchan.spawn(function() return news:news() end)
  barchan.spawn(function() handle:close() end)
  lu.assertEquals({ waiter:wait() }, { true })
  lu.assertNil(news:answer(1, true)) -- of nobody's question
end

function T:test_questions_outlive_the_task_that_made_the_sandbox()
  local asked = {}
  local made, sbx = barchan.spawn(function()
    return barchan.sandbox { network = { on_connect = function(host) asked[1] = host return false end } }
  end):wait()
  lu.assertTrue(made)
  lu.assertStrContains(get(sbx, "a.example").denied[1].rule, "refused when asked")
  lu.assertEquals(asked, { "a.example" })
  sbx:terminate()
end

function T:test_a_sandbox_that_is_watched_can_be_collected()
  collectgarbage()
  local before = #barchan.sandboxes()
  do
    local sbx = assert(barchan.sandbox { network = { on_event = print } })
    lu.assertNotNil(sbx)
    lu.assertEquals(#barchan.sandboxes(), before + 1)
  end
  barchan.sleep(0) -- its watcher begins to wait
  collectgarbage()
  collectgarbage()
  lu.assertEquals(#barchan.sandboxes(), before)
end

function T:test_a_question_that_fails_is_a_no()
  local sbx <close> = assert(barchan.sandbox { network = { on_connect = function() error "oh" end } })
  lu.assertStrContains(get(sbx, "a.example").denied[1].rule, "refused when asked")
end

-- Of a __tostring that throws, too: the sandbox's events go on.
function T:test_a_callback_that_fails_oddly_holds_nothing_up()
  local odd, told = setmetatable({}, { __tostring = function() error "no" end }), 0
  local sbx <close> = assert(barchan.sandbox { network = {
    on_connect = function() error(odd) end, on_event = function() told = told + 1 error(odd) end } })
  get(sbx, "a.example")
  get(sbx, "b.example")
  lu.assertTrue(told >= 2)
  support.core().host.warn "this line stands in the log of the tests" -- for the coverage: events are told unhooked
end

function T:test_questions_of_two_tasks()
  local outcomes = barchan.gather {
    function()
      local sbx <close> = assert(barchan.sandbox { network = { on_connect = function() return false end } })
      return #get(sbx, "a.example").denied
    end,
    function()
      local sbx <close> = assert(barchan.sandbox { network = { on_connect = function() return false end } })
      return #get(sbx, "b.example").denied
    end,
  }
  lu.assertEquals({ outcomes[1].value, outcomes[2].value }, { 1, 1 })
end

function T:test_forks_have_the_network_too()
  local asked = {}
  local sbx = assert(barchan.sandbox { network = {
    deny = { "denied.example" },
    on_connect = function(host) asked[#asked + 1] = host return false end,
  } })
  local forks = assert(sbx:fork(2))
  sbx.handle:close() -- what is asked is asked of the forks' own handles
  sbx = nil -- luacheck: ignore
  collectgarbage()
  for i, fork in ipairs(forks) do
    lu.assertStrContains(get(fork, "denied.example").denied[1].rule, "deny: denied.example")
    lu.assertStrContains(get(fork, "a.example").denied[1].rule, "refused when asked")
    lu.assertEquals(#asked, i)
    fork:terminate()
  end
end

function T:test_bad_options_say_what_to_do()
  local function bad(network, words) lu.assertErrorMsgContains(words, barchan.sandbox, { network = network }) end
  bad("on", "'on' is unknown")
  bad("api.example.com", "{ allow = { \"api.example.com\" } }")
  bad({ mode = "off" }, "mode 'off' is unknown")
  bad({ alow = {} }, "did you mean 'allow'")
  bad({ allow = { a = 1 } }, "a list of entries")
  bad({ deny = "x" }, "table expected")
  bad({ max_bytes = -1 }, "must not be negative")
  bad({ on_connect = true }, "function expected")
  lu.assertErrorMsgContains("not for a detached sandbox", barchan.sandbox,
    { detached = true, network = { on_event = print } })
  local none, err = barchan.sandbox { network = { allow = { "https://a.example/x" } } }
  lu.assertNil(none)
  lu.assertStrContains(tostring(err), "network: allow entry 1, 'https://a.example/x'")
  none, err = barchan.sandbox { network = { max_connections = 1 << 20 } }
  lu.assertNil(none)
  lu.assertStrContains(tostring(err), "max_connections is at most")
end

function T:test_describe()
  local list = assert(barchan.network { allow = { "B.example", "*.a.example:8443" }, deny = { "x.a.example" } })
  lu.assertEquals(list.mode, "allow")
  lu.assertEquals(#list.allow, 2)
  lu.assertEquals(list.deny, { "x.a.example" })
  lu.assertEquals(list.sources, {})
  lu.assertErrorMsgContains("\"off\" has no list", barchan.network, "off")
  local none, err = barchan.network { allow = { "*" } }
  lu.assertNil(none)
  lu.assertStrContains(err.message, "'*'")
end

return { TestNetwork = T }
