local lu = require "luaunit"
local barchan = require "barchan"

local T = {}

function T:test_spawn_and_wait()
  local t = barchan.spawn(function(a, b) return a + b, nil, "third" end, 2, 3)
  local results = table.pack(t:wait())
  lu.assertEquals(results, { true, 5, nil, "third", n = 4 })
  lu.assertEquals(table.pack(t:wait()), results) -- once more, later
  lu.assertEquals(t:status(), "done")
end

function T:test_an_error_keeps_its_kind_and_tells_where()
  local t = barchan.spawn(function() error { code = "mine", message = "m" } end)
  local ok, err = t:wait()
  lu.assertFalse(ok)
  lu.assertEquals(err.code, "mine")
  ok, err = barchan.spawn(function() error "plain" end):wait()
  lu.assertFalse(ok)
  lu.assertStrContains(err, "plain")
  lu.assertStrContains(err, "traceback")
end

function T:test_waits_run_side_by_side()
  local order, start = {}, barchan.now()
  local outcomes = barchan.gather {
    function() barchan.sleep(0.10) order[#order + 1] = "slow" return 1 end,
    function() barchan.sleep(0.02) order[#order + 1] = "fast" return 2 end,
    function() error "broken" end,
  }
  lu.assertEquals(order, { "fast", "slow" })
  lu.assertEquals(outcomes[1].value, 1)
  lu.assertEquals(outcomes[2].value, 2)
  lu.assertFalse(outcomes[3].ok)
  lu.assertStrContains(outcomes[3].error, "broken")
  lu.assertTrue(barchan.now() - start < 5)
end

function T:test_cancel_throws_at_the_wait_is_sticky_and_runs_close()
  local closed, seen = 0, {}
  local t = barchan.spawn(function()
    local guard <close> = setmetatable({}, { __close = function() closed = closed + 1 end })
    for i = 1, 3 do
      local ok, err = pcall(barchan.sleep, 60)
      seen[i] = { ok, err.code }
    end
    barchan.sleep(60)
    seen.never = guard
  end)
  barchan.sleep(0.01)
  t:cancel()
  local ok, err = t:wait()
  lu.assertFalse(ok)
  lu.assertEquals(err.code, "cancelled")
  lu.assertEquals(seen, { { false, "cancelled" }, { false, "cancelled" }, { false, "cancelled" } })
  lu.assertEquals(closed, 1)
end

function T:test_cancel_reaches_children_and_the_end_of_a_parent_cancels_them()
  local reached = {}
  local function child(name)
    return function()
      local guard <close> = setmetatable({}, { __close = function() reached[name] = true end })
      barchan.sleep(60)
      return guard
    end
  end
  local parent = barchan.spawn(function() barchan.gather { child "a", child "b" } end)
  barchan.sleep(0.01)
  parent:cancel()
  parent:wait()
  barchan.sleep(0.01)
  lu.assertEquals(reached, { a = true, b = true })

  local orphan
  barchan.spawn(function() orphan = barchan.spawn(child "c") barchan.sleep(0.01) end):wait()
  lu.assertFalse((orphan:wait()))
  lu.assertTrue(reached.c)
end

function T:test_waits_pass_through_coroutines_of_the_scripts_own()
  local other = 0
  local t = barchan.spawn(function() while other < 3 do other = other + 1 barchan.sleep(0.001) end end)
  local co = coroutine.wrap(function(a)
    barchan.sleep(0.02)
    local b = coroutine.yield(a * 2)
    barchan.sleep(0.001)
    return b .. "!"
  end)
  lu.assertEquals(co(21), 42)
  lu.assertEquals(co "x", "x!")
  t:wait()
  lu.assertEquals(other, 3)
  local inner = coroutine.create(function() barchan.sleep(0.001) error "inner" end)
  local ok, err = coroutine.resume(inner)
  lu.assertFalse(ok)
  lu.assertStrContains(err, "inner")
  lu.assertErrorMsgContains("dead coroutine", coroutine.wrap(function() end) and function()
    local w = coroutine.wrap(function() end)
    w()
    w()
  end)
end

function T:test_a_wait_where_lua_cannot_yield_is_a_named_error()
  lu.assertErrorMsgContains("cannot wait here", string.gsub, "x", "x", function() barchan.sleep(0.01) end)
  lu.assertErrorMsgContains("cannot wait here", table.sort, { 2, 1 }, function() barchan.sleep(0.01) end)
  lu.assertErrorMsgContains("cannot wait here", string.gsub, "x", "x", function()
    coroutine.wrap(function() barchan.sleep(0.01) end)()
  end)
  barchan.sleep(0.001) -- and the task goes on
end

function T:test_waits_pass_through_pcall_metamethods_and_iterators()
  local t = setmetatable({}, { __index = function(_, key) barchan.sleep(0.001) return key end })
  lu.assertEquals(t.a, "a")
  lu.assertTrue(pcall(barchan.sleep, 0.001))
  local n = 0
  for i in function(_, i) barchan.sleep(0.001) i = (i or 0) + 1 return i < 4 and i or nil end do n = i end
  lu.assertEquals(n, 3)
end

function T:test_a_plain_yield_of_a_task_gives_others_a_turn()
  local log = {}
  local a = barchan.spawn(function() for i = 1, 3 do log[#log + 1] = "a" .. i coroutine.yield() end end)
  local b = barchan.spawn(function() for i = 1, 3 do log[#log + 1] = "b" .. i coroutine.yield() end end)
  a:wait()
  b:wait()
  lu.assertEquals(log, { "a1", "b1", "a2", "b2", "a3", "b3" })
end

function T:test_a_task_cannot_wait_for_itself()
  local t
  t = barchan.spawn(function() return pcall(t.wait, t) end)
  local _, ok, err = t:wait()
  lu.assertFalse(ok)
  lu.assertStrContains(err, "itself")
end

function T:test_a_wait_belongs_to_its_task()
  local co = coroutine.create(function() barchan.sleep(0.05) return "done" end)
  local owner = barchan.spawn(function() return coroutine.resume(co) end)
  barchan.sleep(0.01)
  local function refused(thread)
    local ok, problem = coroutine.resume(thread)
    lu.assertFalse(ok)
    lu.assertStrContains(problem, "only its task can")
  end
  refused(co)
  lu.assertErrorMsgContains("cancel its task", coroutine.close, co)
  local thief = barchan.spawn(function() return coroutine.resume(co) end)
  local ran, resumed = thief:wait()
  lu.assertEquals({ ran, resumed }, { true, false })
  lu.assertEquals({ owner:wait() }, { true, true, "done" })
  local thread
  local t = barchan.spawn(function() thread = coroutine.running() barchan.sleep(0.02) return "mine" end)
  barchan.sleep(0.005)
  refused(thread)
  lu.assertErrorMsgContains("cancel its task", coroutine.close, thread)
  lu.assertEquals({ t:wait() }, { true, "mine" })
end

function T:test_a_task_that_ends_amid_a_wait_of_a_coroutine_leaves_nothing()
  for _ = 1, 50 do
    local co = coroutine.create(function() barchan.sleep(0.01) end)
    local t = barchan.spawn(function() coroutine.resume(co) end)
    barchan.sleep(0.001)
    t:cancel()
    t:wait()
    co = nil
    collectgarbage()
  end
  barchan.sleep(0.02)
end

function T:test_the_metatables_of_c_are_locked()
  local json = barchan.json
  local t = barchan.spawn(function() end)
  local _, err = barchan.model { replay = "/no/such" }
  for _, value in ipairs { t, json.array(), json.decode "[]", err } do
    lu.assertEquals(getmetatable(value), "locked")
  end
end

function T:test_finalizers_cannot_upset_an_encoding()
  local json = barchan.json
  for _ = 1, 200 do
    local target = {}
    for i = 1, 30 do target["k" .. i] = i end
    setmetatable({}, { __gc = function() for i = 31, 200 do target["k" .. i] = i end end })
    pcall(json.encode, target)
  end
end

function T:test_results_with_holes()
  local outcomes = barchan.gather { function() return nil, 3, nil, nil end }
  lu.assertEquals(outcomes[1], { nil, 3, nil, nil, n = 4, ok = true, value = nil })
end

function T:test_many_tasks()
  local count, fns = 0, {}
  for i = 1, 2000 do fns[i] = function() barchan.sleep(0.001) count = count + 1 end end
  barchan.gather(fns)
  lu.assertEquals(count, 2000)
end

function T:test_bad_arguments_throw()
  lu.assertErrorMsgContains("function expected", barchan.spawn, 7)
  lu.assertErrorMsgContains("seconds", barchan.sleep, -1)
  lu.assertErrorMsgContains("seconds", barchan.sleep, 0 / 0)
  lu.assertErrorMsgContains("item 2", barchan.gather, { print, 2 })
  lu.assertErrorMsgContains("the key 'a'", barchan.gather, { a = print })
end

return { TestTask = T }
