-- The same API under stock lua5.4 with barchan.so: outside tasks, in tasks, in coroutines of the
-- script's own, and at the end of the interpreter. Closes with luaunit's own report.
package.path = package.path .. ";/usr/share/lua/5.4/?.lua"
local lu = require "luaunit"
local barchan = require "barchan"

local T = {}

function T:test_nothing_but_the_module_is_added()
  lu.assertNil(rawget(_G, "barchan"))
  lu.assertEquals(print, print)
  lu.assertNotNil(string.dump) -- the interpreter's library is its own
end

function T:test_plain_calls_wait()
  local sbx <close> = assert(barchan.sandbox())
  lu.assertEquals(assert(sbx:exec { "echo", "hi" }).out, "hi\n")
  assert(sbx.files:write("a", "b"))
  lu.assertEquals(sbx.files:read "a", "b")
  local out = {}
  for _, chunk in sbx:stream "echo 1; echo 2" do out[#out + 1] = chunk end
  lu.assertEquals(table.concat(out), "1\n2\n")
end

function T:test_plain_waits_resume_no_task()
  local ran = false
  local t = barchan.spawn(function() ran = true end)
  barchan.sleep(0.02)
  lu.assertFalse(ran)
  t:wait()
  lu.assertTrue(ran)
end

function T:test_tasks_run_side_by_side()
  local sbx <close> = assert(barchan.sandbox())
  local fns = {}
  for i = 1, 4 do -- each ends when all have begun
    local command = "echo > b%d; until [ -e b1 -a -e b2 -a -e b3 -a -e b4 ]; do sleep 0.02; done; echo %d"
    fns[i] = function() return assert(sbx:exec(command:format(i, i))).out end
  end
  for i, outcome in ipairs(barchan.gather(fns)) do lu.assertEquals(outcome.value, i .. "\n") end
end

function T:test_coroutines_of_the_scripts_own()
  local sbx <close> = assert(barchan.sandbox())
  local co = coroutine.wrap(function() -- outside tasks they wait in place
    coroutine.yield(assert(sbx:exec { "echo", "one" }).out)
    return assert(sbx:exec { "echo", "two" }).out
  end)
  lu.assertEquals({ co(), co() }, { "one\n", "two\n" })
  local _, out = barchan.spawn(function() -- in a task, barchan.coroutine passes waits on
    return barchan.coroutine.wrap(function() return assert(sbx:exec { "echo", "three" }).out end)()
  end):wait()
  lu.assertEquals(out, "three\n")
end

function T:test_coroutines_of_the_stock_library_in_tasks_are_refused()
  local ok, err = barchan.spawn(function()
    return select(2, coroutine.resume(coroutine.create(function() barchan.sleep(0.01) end)))
  end):wait()
  lu.assertTrue(ok)
  lu.assertStrContains(err, "use barchan.coroutine")
end

function T:test_a_task_resumed_behind_the_schedulers_back()
  local thread
  local t = barchan.spawn(function() thread = coroutine.running() barchan.sleep(0.01) end)
  barchan.spawn(function() end):wait()
  local ok, err = coroutine.resume(thread)
  lu.assertFalse(ok)
  lu.assertStrContains(err, "something else than its task")
  lu.assertFalse((t:wait()))
end

function T:test_the_result_of_a_stream_that_nobody_reads()
  local sbx <close> = assert(barchan.sandbox())
  lu.assertEquals(sbx:stream("head -c 40000000 /dev/zero"):result().exit_code, 0)
end

function T:test_the_agent()
  local here = arg[0]:match "^(.*)/" or "."
  local sbx <close> = assert(barchan.sandbox())
  local model = assert(barchan.model { provider = "replay", replay = here .. "/../../examples/data/prime.jsonl" })
  local tools = barchan.toolset { "run_python", sandbox = sbx }
  local result = barchan.agent { model = model, tools = tools }:run "?"
  lu.assertEquals(result.stop_reason, "end_turn")
  lu.assertStrContains(result.messages[3].content, "7919")
end

function T:test_what_tools_log_goes_to_standard_error()
  local script = os.tmpname()
  local file = assert(io.open(script, "w"))
  file:write [[
    local tools = require "barchan".toolset { { name = "t", run = function(_, ctx) ctx.log("a", 1) return "x" end } }
    io.stdout:write(tools:dispatch { id = "1", name = "t", arguments = {} }.content, "\n")]]
  file:close()
  for redirect, expected in pairs { ["2>/dev/null"] = "x\n", ["2>&1 >/dev/null"] = "t:\ta\t1\n" } do
    local pipe = assert(io.popen(("lua5.4 %s %s"):format(script, redirect)))
    lu.assertEquals(pipe:read "a", expected)
    pipe:close()
  end
  os.remove(script)
end

function T:test_interrupt_ends_a_wait()
  local script = os.tmpname()
  local file = assert(io.open(script, "w"))
  file:write [[local b = require "barchan" io.stdout:write "ready\n" io.stdout:flush() b.sleep(60)]]
  file:close()
  local pipe = assert(io.popen(
    "exec 2>&1; said=$(mktemp); lua5.4 " .. script .. " > $said & pid=$!; until grep -q ready $said; do sleep 0.02; done;" ..
    " kill -INT $pid; wait $pid; echo code $?; rm $said"))
  local text = pipe:read "a"
  pipe:close()
  os.remove(script)
  lu.assertStrContains(text, "interrupted!")
  lu.assertStrContains(text, "code 1")
end

TestStock = T -- luacheck: globals TestStock

-- What is open when the interpreter ends must end with it: see the run of this file under valgrind
-- and the census of the sandbox tests.
left_open = barchan.sandbox() -- luacheck: globals left_open
barchan.spawn(function() barchan.sleep(60) end)

os.exit(lu.LuaUnit.run "--verbose", true)
