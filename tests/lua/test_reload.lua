-- Hot reload of tool directories: real files, real edits, the runtime's own inotify.
local lu = require "luaunit"
local barchan = require "barchan"

local T = {}

local dir

local function path(name) return dir .. "/" .. name end

local function write(name, text)
  local file = assert(io.open(path(name), "w"))
  file:write(text)
  file:close()
end

local function tool_text(name, answer, extra)
  return ('%s\nreturn { name = "%s", description = "%s", run = function() return "%s" end }')
    :format(extra or "", name, answer, answer)
end

local function sh(format, ...) assert(os.execute(format:format(...))) end

function T:setUp()
  dir = os.tmpname()
  os.remove(dir)
  sh("mkdir -m 755 %s", dir)
  write("one.lua", tool_text("one", "first"))
end

function T:tearDown() sh("chmod -R u+rwx %s; rm -rf %s", dir, dir) end

-- A watched toolset, and a function that waits for the next event.
local function watched(options)
  local events = {}
  options = options or {}
  options.dir, options.watch = options.dir or dir, true
  options.on_event = function(event) -- as it is told: nothing may be added later
    local copy = {}
    for key, value in pairs(event) do copy[key] = value end
    events[#events + 1] = copy
  end
  local tools = barchan.toolset(options)
  local function next_event()
    local _ <close> = barchan.spawn(function()
      while #events == 0 do
        tools:wait_change()
        tools:refresh()
      end
    end)
    local deadline = barchan.now() + 20
    while #events == 0 and barchan.now() < deadline do barchan.sleep(0.02) end
    lu.assertTrue(#events > 0, "no event came")
    return table.remove(events, 1)
  end
  local function quiet() -- nothing comes of what was just done
    barchan.sleep(0.5)
    tools:refresh()
    lu.assertEquals(events, {})
  end
  return tools, next_event, quiet
end

local function answer(tools, name) return tools:dispatch({ id = "1", name = name or "one", arguments = {} }).content end

function T:test_an_edit_takes_effect_and_says_what_changed()
  local tools, next_event = watched()
  lu.assertEquals(answer(tools), "first")
  write("one.lua", tool_text("one", "second"))
  write("two.lua", tool_text("two", "new"))
  local event = next_event()
  lu.assertEquals({ event.type, event.added, event.changed, event.removed }, { "tools_reloaded", { "two" }, { "one" }, {} })
  lu.assertAlmostEquals(event.time, os.time(), 60)
  lu.assertEquals({ answer(tools), answer(tools, "two") }, { "second", "new" })
  os.remove(path "one.lua")
  event = next_event()
  lu.assertEquals({ event.added, event.changed, event.removed }, { {}, {}, { "one" } })
  lu.assertStrContains(answer(tools), "There is no tool 'one'. The tools are: two.")
end

function T:test_a_broken_edit_changes_nothing_and_is_told_with_its_place()
  local tools, next_event, quiet = watched()
  local bad = {
    { "return {", "one.lua:1:" },
    { "\n\nerror 'at the top'", "one.lua:3:", "at the top" },
    { "return 7", "one.lua", "returns a tool or a list of tools" },
    { "return { { name = 'a', description = '', run = print }, 5 }", "one.lua", "table" },
    { "return { name = 'a b', run = print }", "one.lua", "name:" },
    { "return { name = 'one' }", "one.lua", "run: a function expected" },
    { "return { { name = 'one', run = print }, { name = 'one', run = print } }", "one.lua", "defined in" },
    { "return { name = 'one', run = print, parameters = { type = 'string' } }", "one.lua", "object" },
    { "while true do end", "one.lua", "without waiting" },
    { "require('barchan').sleep(1e6)", "one.lua", "did not end within 3 s" },
    { "while true do pcall(function() while true do end end) end", "one.lua", "without waiting" },
    { "\27Lua", "one.lua", "binary" },
  }
  for _, case in ipairs(bad) do
    write("one.lua", case[1])
    local event = next_event()
    lu.assertEquals(event.type, "tools_reload_failed", case[1])
    lu.assertAlmostEquals(event.time, os.time(), 60)
    lu.assertStrContains(event.message, case[2])
    lu.assertStrContains(event.message, case[3] or "")
    lu.assertEquals(answer(tools), "first")
  end
  write("one.lua", bad[#bad][1])
  quiet() -- the same fault is told once
  write("one.lua", tool_text("one", "mended"))
  lu.assertEquals(next_event().type, "tools_reloaded")
  lu.assertEquals(answer(tools), "mended")
end

function T:test_a_check_goes_on_after_a_fault()
  local toolset = require "barchan.toolset"
  local found, faults = toolset.check { dir }
  lu.assertEquals({ found.order, faults }, { { "one" }, {} })
  write("a.lua", "local h = require 'helper'\nerror 'oh'")
  write("b.lua", "return {")
  write("c.lua", "return require 'b'")
  write("helper.lua", "return { help = print }")
  found, faults = toolset.check { dir, path "none" }
  lu.assertEquals({ found.order, #faults }, { { "one" }, 3 })
  for i, start in ipairs { path "a.lua" .. ":2: oh", path "b.lua" .. ":1: ", "find '" .. path "none" } do
    lu.assertEquals(faults[i]:sub(1, #start), start)
  end
end

function T:test_every_truncation_of_a_good_file_keeps_the_old_version()
  local good = tool_text("one", "later", "local x = { 1, 'a' } -- comment")
  local toolset = require "barchan.toolset"
  for n = 0, #good - 1 do
    write("one.lua", good:sub(1, n))
    local taken, problem = toolset.snapshot { dir }
    lu.assertNil(taken, n)
    lu.assertStrContains(problem.file, "one.lua")
  end
end

function T:test_a_call_in_flight_and_a_call_declared_before_run_their_version()
  write("one.lua", 'local b = require "barchan"\nreturn { name = "one", description = "", run = function() '
    .. 'b.sleep(1) return "old" end }')
  local tools, next_event = watched()
  local before = { id = "1", name = "one", arguments = {} }
  tools:stamp { tool_calls = { before } }
  local running = barchan.spawn(function() return answer(tools) end)
  barchan.sleep(0.05)
  write("one.lua", tool_text("one", "new"))
  next_event()
  lu.assertEquals(answer(tools), "new")
  lu.assertEquals({ running:wait() }, { true, "old" })
  lu.assertEquals(tools:dispatch(before).content, "old")
end

function T:test_state_survives_and_bindings_see_one_reload()
  local text = 'return { name = "one", description = "%s", run = function(_, ctx) ctx.state.n = (ctx.state.n or 0) + 1 '
    .. 'return "%s" .. ctx.state.n end }'
  write("one.lua", text:format("a", "a"))
  local tools, next_event = watched()
  local other = tools:bind {}
  lu.assertEquals({ answer(tools), answer(tools), answer(other) }, { "a1", "a2", "a1" })
  write("one.lua", text:format("b", "b"))
  next_event()
  lu.assertEquals({ answer(tools), answer(other) }, { "b3", "b2" })
end

function T:test_helpers_reload_with_their_snapshot()
  write("helper.lua", 'return { word = "old" }')
  write("one.lua", 'local h = require "helper" return { name = "one", description = "", run = function() return h.word end }')
  write("two.lua", 'local h = require "helper" return { name = "two", description = "", run = function() return h end }')
  local tools, next_event = watched()
  lu.assertEquals(answer(tools), "old")
  write("helper.lua", 'return { word = "new" }')
  lu.assertEquals(next_event().changed, { "one", "two" })
  lu.assertEquals(answer(tools), "new")
  write("helper.lua", 'require "one"')
  lu.assertStrContains(next_event().message, "requires itself")
  lu.assertEquals(answer(tools), "new")
  lu.assertNil(package.loaded.helper)
end

function T:test_scratch_environment()
  write("one.lua", tool_text("one", "first", "leaked = 1; string = nil"))
  local tools = watched()
  lu.assertEquals(answer(tools), "first")
  lu.assertNil(rawget(_G, "leaked"))
  lu.assertNotNil(string)
end

function T:test_editors_habits()
  local tools, next_event, quiet = watched()
  write(".one.lua.swp", "x")
  write("one.lua~", "x")
  write("4913", "x")
  write(".#one.lua", "x")
  quiet()
  write("one.lua.new", tool_text("one", "renamed"))
  os.rename(path "one.lua.new", path "one.lua") -- atomic rename
  next_event()
  lu.assertEquals(answer(tools), "renamed")
  sh("cp -p %s %s && touch -d '2001-01-01' %s", path "one.lua", path "copy", path "one.lua") -- the clock goes backwards
  quiet()
  local text = tool_text("one", "RENAMED") -- same size, same time
  write("one.lua", text)
  sh("touch -d '2001-01-01' %s", path "one.lua")
  next_event()
  lu.assertEquals(answer(tools), "RENAMED")
  local file = assert(io.open(path "one.lua", "w")) -- a slow writer
  for piece in tool_text("one", "in pieces"):gmatch "..?.?.?.?" do
    file:write(piece)
    file:flush()
    barchan.sleep(0.01)
  end
  file:close()
  local event = next_event()
  while event.type ~= "tools_reloaded" do event = next_event() end
  lu.assertEquals(answer(tools), "in pieces")
end

function T:test_a_directory_that_is_deleted_or_replaced()
  local tools, next_event = watched()
  sh("mv %s %s.old", dir, dir)
  lu.assertEquals(next_event().type, "tools_reload_failed")
  lu.assertEquals(answer(tools), "first")
  sh("mkdir -m 755 %s", dir)
  write("one.lua", tool_text("one", "replaced"))
  local event = next_event()
  while event.type ~= "tools_reloaded" do event = next_event() end
  lu.assertEquals(answer(tools), "replaced")
  write("one.lua", tool_text("one", "and watched"))
  next_event()
  lu.assertEquals(answer(tools), "and watched")
  sh("rm -r %s.old", dir)
end

function T:test_a_storm_of_edits_ends_in_the_last_version()
  local tools, next_event = watched()
  for i = 1, 500 do write("one.lua", tool_text("one", "edit " .. i)) end
  while answer(tools) ~= "edit 500" do lu.assertEquals(next_event().type, "tools_reloaded") end
end

function T:test_events_that_the_kernel_drops_lose_no_edit()
  local tools, next_event = watched()
  local file <close> = assert(io.open "/proc/sys/fs/inotify/max_queued_events")
  local most = math.min(file:read "n", 50000)
  for i = 1, most // 2 + 100 do write(i % 2 == 0 and "a.tmp" or "b.tmp", "x") end -- two events each
  write("one.lua", tool_text("one", "after"))
  while answer(tools) ~= "after" do next_event() end
end

function T:test_what_others_could_write_is_refused_with_the_reason()
  local function refused(text) lu.assertErrorMsgContains(text, barchan.toolset, { dir = dir }) end
  sh("chmod 666 %s", path "one.lua")
  refused "can be written by others (mode 0666); run: chmod go-w"
  sh("chmod 644 %s; chmod 777 %s", path "one.lua", dir)
  refused "can be written by others (mode 0777)"
  sh("chmod 755 %s", dir)
  sh("mkdir %s; chmod 777 %s; cp %s %s; mkdir %s/in", path "open", path "open", path "one.lua", path "open", path "open")
  lu.assertErrorMsgContains("open' can be written by others", barchan.toolset, { dir = path "open/in" })
  sh("rm -r %s; ln -s /etc/passwd %s", path "open", path "link.lua")
  refused "is a symbolic link"
  sh("rm %s; mkfifo %s", path "link.lua", path "fifo.lua")
  refused "is not a file"
  sh("rm %s; mkdir %s", path "fifo.lua", path "dir.lua")
  refused "is not a file"
  sh("rmdir %s; head -c 2000000 /dev/zero > %s", path "dir.lua", path "big.lua")
  refused "is larger than 1024 KiB"
  os.remove(path "big.lua")
  lu.assertEquals(answer(barchan.toolset { dir = dir }), "first")
end

function T:test_an_edit_of_this_moment_is_waited_for()
  local tools = barchan.toolset { dir = dir, watch = true }
  for i = 1, 3 do
    write("one.lua", tool_text("one", "now " .. i))
    tools:refresh(function() end) -- as before a turn
    lu.assertEquals(answer(tools), "now " .. i)
  end
end

function T:test_later_directories_win()
  local second = os.tmpname()
  os.remove(second)
  sh("mkdir -m 755 %s", second)
  local function write_second(text)
    local file = assert(io.open(second .. "/x.lua", "w"))
    file:write(text)
    file:close()
  end
  write_second(tool_text("one", "overridden"))
  local tools, next_event = watched { dir = { dir, second } }
  lu.assertEquals(answer(tools), "overridden")
  os.remove(second .. "/x.lua")
  next_event()
  lu.assertEquals(answer(tools), "first")
  sh("rm -r %s", second)
end

function T:test_the_model_sees_new_declarations_at_its_next_turn()
  local transcript = os.tmpname()
  local file = assert(io.open(transcript, "w"))
  local call = '{"type":"model_reply","reply":{"role":"assistant","text":"","tool_calls":[{"id":"%d","name":"edit",'
    .. '"arguments":{}}],"stop_reason":"tool_use"}}\n'
  file:write('{"type":"transcript","version":1}\n', call:format(1), call:format(2),
    '{"type":"model_reply","reply":{"role":"assistant","text":"done","tool_calls":[],"stop_reason":"end_turn"}}\n')
  file:close()
  local edits = 0
  local edit = { name = "edit", description = "", run = function()
    edits = edits + 1
    write("one.lua", edits == 1 and tool_text("one", "second") or "return {")
    barchan.sleep(0.6)
    return "edited"
  end }
  local kinds = {}
  barchan.agent {
    model = assert(barchan.model { provider = "replay", replay = transcript }),
    tools = barchan.toolset { edit, dir = dir, watch = true },
    on_event = function(event) kinds[#kinds + 1] = event.type:match "^tools_.*" or nil end,
  }:run "q"
  os.remove(transcript)
  lu.assertEquals(kinds, { "tools_reloaded", "tools_reload_failed" })
end

return { TestReload = T }
