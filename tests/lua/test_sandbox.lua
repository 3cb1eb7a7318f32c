-- Sandboxes through the Lua API, for real.
local lu = require "luaunit"
local barchan = require "barchan"

local T = {}


local function sandbox(profile) return assert(barchan.sandbox(profile)) end

function T:test_a_command_and_its_result()
  local sbx <close> = sandbox()
  local r = assert(sbx:exec { "sh", "-c", "echo out; echo err >&2; exit 3" })
  lu.assertEquals({ r.reason, r.exit_code, r.out, r.err }, { "exited", 3, "out\n", "err\n" })
  lu.assertEquals({ r.out_dropped, r.err_dropped, r.left_running }, { 0, 0, 0 })
  lu.assertFalse(r:ok())
  lu.assertTrue(r.duration > 0 and r.usage.cpu >= 0)
  lu.assertEquals(tostring(r), "exit_code: 3\nout:\nout\nerr:\nerr")
  lu.assertEquals(assert(sbx:exec "echo $((6 * 7)) | tr 4 5").out, "52\n")
end

function T:test_what_could_not_be_started_is_named()
  local sbx <close> = sandbox()
  lu.assertEquals(tostring(assert(sbx:exec { "nosuch", "-x" })):match "^[^\n]*",
    "could not be started: 'nosuch': No such file or directory")
  lu.assertStrContains(tostring(assert(sbx:exec { "echo hi | wc" })), "give one string")
  lu.assertStrContains(tostring(assert(sbx:exec { "true", cwd = "/nope" })), "the working directory '/nope'")
  local p = assert(sbx:spawn { "nosuch" })
  lu.assertStrContains(tostring(assert(p:wait())), "'nosuch'")
end

function T:test_options_beside_the_command_are_refused()
  local sbx <close> = sandbox()
  for _, name in ipairs { "exec", "stream", "spawn" } do
    lu.assertErrorMsgContains("options go into the table", sbx[name], sbx, "sleep 1", { timeout = 0.2 })
  end
end

function T:test_a_task_that_is_cancelled_in_a_write_ends_the_command()
  local sbx <close> = sandbox()
  local task = barchan.spawn(function()
    local stream = sbx:stream { "sleep", "50", stdin = true }
    while stream:write(("q"):rep(100000)) do end
  end)
  barchan.sleep(0.1)
  lu.assertEquals(sbx:status().running, 1)
  task:cancel()
  task:wait()
  for _ = 1, 200 do
    if sbx:status().running == 0 then break end
    barchan.sleep(0.02)
  end
  lu.assertEquals(sbx:status().running, 0)
end

function T:test_options_reach_the_command()
  local sbx <close> = sandbox { env = { FROM_PROFILE = "p" } }
  local r = assert(sbx:exec {
    sh = "pwd; echo $MODE $FROM_PROFILE; cat", cwd = "/tmp", env = { MODE = "fast" }, stdin = "in\0put",
  })
  lu.assertEquals(r.out, "/tmp\nfast p\nin\0put")
  r = assert(sbx:exec { "env" })
  lu.assertNotStrContains(r.out, "MODE=")
  lu.assertStrContains(r.out, "BARCHAN=1")
  lu.assertStrContains(r.out, "HOME=/home/user")
end

function T:test_every_way_to_end()
  local sbx <close> = sandbox()
  local r = assert(sbx:exec { "sh", "-c", "kill -9 $$" })
  lu.assertEquals({ r.reason, r.signal, r.exit_code }, { "signaled", 9, nil })
  r = assert(sbx:exec { sh = "echo before; sleep 100", timeout = 0.2 })
  lu.assertEquals({ r.reason, r.out }, { "timeout", "before\n" })
  r = assert(sbx:exec { "no-such-program" })
  lu.assertEquals({ r.reason, r.spawn_error }, { "spawn_failed", "No such file or directory" })
  r = assert(sbx:exec { "true", cwd = "/no/such" })
  lu.assertEquals({ r.reason, r.spawn_cwd }, { "spawn_failed", true })
end

function T:test_limits()
  local sbx <close> = sandbox { limits = { memory = 64 << 20, output = 100000, cpu_seconds = 5.5, wall = 20 } }
  local layers = sbx:status().layers
  lu.assertStrContains(layers.memory, "67108864 bytes, by ")
  lu.assertStrContains(layers.cpu_time, "5500 ms")
  local r = assert(sbx:exec { "python3", "-c", "x = 'a' * 10**9" })
  lu.assertEquals(r.reason, "oom")
  lu.assertStrContains(tostring(r), "out of memory: the sandbox's memory limit was reached")
  r = assert(sbx:exec { "yes" })
  lu.assertEquals({ r.reason, r.exit_code }, { "output", nil })
  r = assert(sbx:exec { sh = "head -c 40000000 /dev/zero > big" })
  lu.assertEquals({ r.reason, r.exit_code }, { "disk_full", 1 })
  lu.assertStrContains(tostring(r), "disk is full")
  lu.assertEquals(assert(sbx:exec "echo next").out, "next\n")
end

function T:test_lease_pause_and_idle()
  local sbx <close> = sandbox { lease = 100 }
  assert(sbx:extend(50))
  lu.assertTrue(sbx:status().lease_left > 140)
  local _, err = sbx:extend(8 * 24 * 3600)
  lu.assertStrContains(err.message, "7 days")
  lu.assertErrorMsgContains("extend", sbx.extend, sbx, 0)
  assert(sbx:pause())
  lu.assertEquals(sbx:status().state, "paused")
  local r, why = sbx:exec "true"
  lu.assertNil(r)
  lu.assertStrContains(why.message, "resume it first")
  assert(sbx:resume())
  lu.assertEquals(assert(sbx:exec "echo on").out, "on\n")

  local idle <close> = sandbox { idle_timeout = 0.3 }
  local deadline = barchan.now() + 20
  while idle:status().state ~= "ended" and barchan.now() < deadline do barchan.sleep(0.02) end
  lu.assertEquals(idle:status().end_reason, "idle")

  local held <close> = sandbox { lease = 0.3, on_lease_end = "pause" }
  while held:status().state ~= "paused" and barchan.now() < deadline do barchan.sleep(0.02) end
  lu.assertEquals(held:status().state, "paused")
  assert(held:extend(60))
  assert(held:resume())
  lu.assertEquals(assert(held:exec "echo on").out, "on\n")
  lu.assertErrorMsgContains("on_lease_end", barchan.sandbox, { on_lease_end = "stop" })
end

function T:test_price()
  local hour = { cpu_hour = 3.6, vcpu_hour = 3.6, gib_hour = 7.2 }
  local _, err = barchan.sandbox { price = hour, max_cost_micros = 1000 }
  lu.assertEquals(err.code, "limit")
  lu.assertStrContains(err.message, "limits.cpus is missing")
  _, err = barchan.sandbox { price = { gib_hour = 7.2 }, max_cost_micros = 1000, lease = 10,
    limits = { memory = 1 << 29 } }
  lu.assertStrContains(err.message, "could cost 10000 micros") -- half a GiB for 10 s, 2000 micros a GiB and second
  lu.assertErrorMsgContains("needs 'price'", barchan.sandbox, { max_cost_micros = 1 })
  lu.assertErrorMsgContains("did you mean 'cpu_hour'", barchan.sandbox, { price = { cpu_houer = 1 } })

  local sbx <close> = sandbox { price = { gib_hour = 7.2 }, max_cost_micros = 20000, lease = 10,
    limits = { memory = 1 << 29 } }
  assert(sbx:exec { "sleep", "0.2" })
  local usage = assert(sbx:usage())
  lu.assertAlmostEquals(usage.cost_micros, usage.wall * 1000, 1)
  assert(sbx:extend(5))
  _, err = sbx:extend(10)
  lu.assertEquals(err.code, "limit")
  lu.assertStrContains(err.message, "max_cost_micros is 20000")
end

function T:test_spawn()
  local sbx <close> = sandbox()
  local p = assert(sbx:spawn "echo one; echo problem >&2; read x; echo got $x; exit 3")
  lu.assertEquals({ p:read() }, { "one\n", 0 })
  lu.assertTrue(p:running())
  lu.assertNil(p:wait(0.01))
  assert(p:write("it\n"))
  lu.assertEquals(p:read(), "got it\n")
  lu.assertNil(p:read())
  lu.assertEquals({ p:read "err" }, { "problem\n", 0 })
  local r = assert(p:wait())
  lu.assertEquals({ r.reason, r.exit_code }, { "exited", 3 })
  lu.assertEquals({ p:read_at("out", 0) }, { "one\ngot it\n", 11, 0, true })
  local _, err = p:write "x"
  lu.assertStrContains(err.message, "has ended")
  lu.assertStrContains(tostring(p), "(exited)")

  local late = assert(sbx:spawn { "seq", "100000", backlog = 10000 })
  assert(late:wait())
  local bytes, dropped = late:read()
  lu.assertEquals(#bytes, 10000)
  lu.assertEquals(dropped, 588895 - 10000)

  local both = {}
  for stream, chunk in assert(sbx:spawn "echo o; echo e >&2"):output() do both[stream] = (both[stream] or "") .. chunk end
  lu.assertEquals(both, { out = "o\n", err = "e\n" })

  local killed = assert(sbx:spawn { "sleep", "100" })
  local deadline = barchan.now() + 20
  local list, total
  repeat -- it is started by a process of its own
    list, total = sbx:processes()
  until total == 1 and list[1].command == "sleep 100" or barchan.now() > deadline
  lu.assertEquals({ total, #list, list[1].id, list[1].command }, { 1, 1, killed.id, "sleep 100" })
  killed:kill()
  lu.assertEquals(killed:wait().reason, "cancelled")

  local term = assert(sbx:spawn { "sh", "-c", "stty size; cat", pty = { cols = 90, rows = 30 } })
  lu.assertEquals(term:read(), "30 90\r\n")
  term:close_input()
  lu.assertEquals(term:wait().exit_code, 0)

  lu.assertErrorMsgContains("did you mean 'cols'", sbx.spawn, sbx, { "x", pty = { col = 1 } })
  lu.assertErrorMsgContains("unknown option 'output_limit'", sbx.spawn, sbx, { "x", output_limit = 5 })
end

function T:test_usage()
  local sbx <close> = sandbox()
  assert(sbx:exec { "cat", stdin = "12345" })
  sbx.files:write("f", ("x"):rep(100000))
  local u = assert(sbx:usage())
  lu.assertEquals({ u.execs, u.bytes_in, u.bytes_out }, { 1, 100005, 5 })
  lu.assertTrue(u.disk >= 100000 and u.wall > 0 and u.cpu == u.user + u.system)
  lu.assertIsBoolean(u.cpu_counted)
  lu.assertIsBoolean(u.memory_counted)
  sbx:terminate()
  local last = assert(sbx:usage())
  lu.assertEquals({ last.execs, last.disk }, { 1, 0 })
  lu.assertTrue(last.cpu >= u.cpu)
end

function T:test_limits_are_checked()
  lu.assertErrorMsgContains("did you mean 'memory'", barchan.sandbox, { limits = { memry = 1 } })
  lu.assertErrorMsgContains("'pids' must be greater", barchan.sandbox, { limits = { pids = 0 } })
  lu.assertErrorMsgContains("integer expected", barchan.sandbox, { limits = { memory = "64M" } })
  for name, most in pairs { pids = 1024, open_files = 65536, cpus = 4096, wall = 604800, cpu_seconds = 604800 } do
    local whole = name == "pids" or name == "open_files"
    for _, value in ipairs { most + (whole and 1 or 0.001), 1 << 52 } do
      local sbx, err = barchan.sandbox { limits = { [name] = value } }
      lu.assertNil(sbx)
      lu.assertStrContains(err.message, ("the most is %d"):format(whole and most or most * 1000))
    end
  end
  local sbx <close> = sandbox { limits = { open_files = 65536, wall = 604800, cpu_seconds = 604800 } }
  lu.assertEquals(sbx:status().state, "ready")
end

function T:test_output_caps_keep_head_and_tail_and_count_the_rest()
  local sbx <close> = sandbox()
  local r = assert(sbx:exec { sh = "printf HEAD; head -c 1000000 /dev/zero; printf TAIL; exit 4", output_limit = 1000 })
  lu.assertEquals(#r.out + r.out_dropped, 1000008)
  lu.assertTrue(#r.out <= 1000)
  lu.assertEquals({ r.out:sub(1, 4), r.out:sub(-4), r.exit_code }, { "HEAD", "TAIL", 4 })
end

function T:test_streaming()
  local sbx <close> = sandbox()
  local out, err = {}, {}
  local stream = sbx:stream { "sh", "-c", "for i in 1 2 3; do echo $i; echo e$i >&2; done; exit 5" }
  for name, chunk in stream do table.insert(name == "out" and out or err, chunk) end
  lu.assertEquals({ table.concat(out), table.concat(err) }, { "1\n2\n3\n", "e1\ne2\ne3\n" })
  lu.assertEquals(stream:result().exit_code, 5)
end

function T:test_a_stream_of_what_cannot_be_started_is_not_empty()
  local sbx <close> = sandbox()
  for text, case in pairs {
    ["stream: could not be started: 'no-such-program': No such file or directory"] = { "not_found", { "no-such-program" } },
    ["'/etc/passwd': Permission denied"] = { "permission", { "/etc/passwd" } },
    ["the working directory '/no/such'"] = { "not_found", { "true", cwd = "/no/such" } },
  } do
    local stream = sbx:stream(case[2])
    local ok, err = pcall(function() for _ in stream do lu.fail "it has no output" end end)
    lu.assertEquals({ ok, err.code }, { false, case[1] })
    lu.assertStrContains(err.message, text)
    lu.assertEquals(stream:result().reason, "spawn_failed")
  end
  for _ in sbx:stream "no-such-program" do end -- the shell could be, and tells itself
end

function T:test_leaving_a_stream_early_kills_the_command()
  local sbx <close> = sandbox()
  local function first_chunk()
    for _, chunk in sbx:stream "while :; do echo x; done" do
      if chunk ~= "" then return chunk end
    end
  end
  lu.assertStrContains(first_chunk(), "x")
  local deadline = barchan.now() + 10
  while sbx:status().running > 0 and barchan.now() < deadline do barchan.sleep(0.01) end
  lu.assertEquals(sbx:status().running, 0)
end

function T:test_a_slow_reader_holds_the_writer_back_and_gets_every_byte()
  local sbx <close> = sandbox()
  local total = 0
  for _, chunk in sbx:stream "head -c 5000000 /dev/zero" do
    total = total + #chunk
    if total < 300000 then barchan.sleep(0.01) end
  end
  lu.assertEquals(total, 5000000)
end

function T:test_streaming_input()
  local sbx <close> = sandbox()
  local stream = sbx:stream { "cat", stdin = true }
  local data = ("0123456789abcdef"):rep(65536) -- more than any window
  local writer = barchan.spawn(function()
    assert(stream:write(data))
    stream:close_input()
  end)
  local parts = {}
  for _, chunk in stream do parts[#parts + 1] = chunk end
  writer:wait()
  lu.assertTrue(table.concat(parts) == data)
  lu.assertEquals(stream:result().exit_code, 0)
end

function T:test_execs_run_side_by_side()
  local sbx <close> = sandbox()
  local fns = {}
  for i = 1, 8 do -- each ends when all have begun
    local command = "echo > b%d; until [ $(ls b? | wc -l) = 8 ]; do sleep 0.02; done; echo %d"
    fns[i] = function() return assert(sbx:exec(command:format(i, i))).out end
  end
  for i, outcome in ipairs(barchan.gather(fns)) do lu.assertEquals(outcome.value, i .. "\n") end
end

function T:test_cancelling_a_task_kills_its_command_and_leaves_the_sandbox()
  local sbx <close> = sandbox()
  local t = barchan.spawn(function() return sbx:exec { "sleep", "1234" } end)
  barchan.sleep(0.1)
  t:cancel()
  lu.assertFalse((t:wait()))
  barchan.sleep(0.1)
  local r = assert(sbx:exec "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 'sleep 123[4]'; true")
  lu.assertEquals(r.out, "0\n")
end

function T:test_lifecycle()
  local sbx = sandbox { lease = 60 }
  local status = sbx:status()
  lu.assertEquals({ status.state, status.template, status.running }, { "ready", "host", 0 })
  lu.assertStrMatches(status.id, "sbx%-%x+")
  lu.assertTrue(status.lease_left > 50 and status.lease_left <= 60)
  lu.assertTrue(next(status.layers) ~= nil)
  lu.assertTrue(#barchan.sandboxes() >= 1)
  sbx:terminate()
  sbx:terminate()
  local r, err = sbx:exec "true"
  lu.assertNil(r)
  lu.assertEquals(err.code, "closed")
  lu.assertEquals({ sbx:status().state, sbx:status().end_reason }, { "ended", "terminated" })
end

function T:test_bad_calls_say_what_to_do()
  local sbx <close> = sandbox()
  lu.assertErrorMsgContains("did you mean 'timeout'", sbx.exec, sbx, { "ls", timout = 1 })
  lu.assertErrorMsgContains("give either", sbx.exec, sbx, {})
  lu.assertErrorMsgContains("give either", sbx.exec, sbx, { "ls", sh = "ls" })
  lu.assertErrorMsgContains("NUL", sbx.exec, sbx, { "a\0b" })
  lu.assertErrorMsgContains("a hole: word 2 is nil", sbx.exec, sbx, { "echo", nil, "x" })
  lu.assertErrorMsgContains("give either", sbx.exec, sbx, { sh = "ls", [2] = "x" })
  lu.assertErrorMsgContains("greater than 0", sbx.exec, sbx, { "ls", timeout = 0 })
  local _, message = pcall(function() return (sbx:exec { "sleep", 5 }) end)
  lu.assertStrContains(message, "test_sandbox.lua") -- the script's place, not ours
  lu.assertErrorMsgContains("must not be negative", sbx.exec, sbx, { "ls", output_limit = -1 })
  lu.assertErrorMsgContains("'disk' must be greater", barchan.sandbox, { limits = { disk = -1 } })
  lu.assertErrorMsgContains("'mode' must be from", sbx.files.write, sbx.files, "x", "y", { mode = -1 })
  lu.assertErrorMsgContains("'depth' must be from", sbx.files.list, sbx.files, ".", { depth = 1 << 40 })
  local stream <close> = sbx:stream "cat"
  lu.assertErrorMsgContains("start the stream with stdin = true", stream.write, stream, "x")
  local open <close> = sbx:stream { "cat", stdin = true }
  lu.assertErrorMsgContains("a string expected", open.write, open, 5)
  lu.assertErrorMsgContains("NUL", sbx.exec, sbx, { "ls", env = { A = "x\0y" } })
  lu.assertErrorMsgContains("option 'timeout': at most", barchan.sandbox, { timeout = 3e6 })
  lu.assertErrorMsgContains("a variable's name", sbx.exec, sbx, { "ls", env = { ["A=B"] = "1" } })
  lu.assertErrorMsgContains("did you mean 'template'", barchan.sandbox, { tempalte = "host" })
  local none, err = barchan.sandbox { template = "/no/such/root" }
  lu.assertNil(none)
  lu.assertStrContains(tostring(err), "/no/such/root")
end

function T:test_files()
  local sbx <close> = sandbox()
  local f = sbx.files
  local bytes = "a\0b\xff\n"
  assert(f:write("deep/er/x.bin", bytes))
  lu.assertEquals(f:read "deep/er/x.bin", bytes)
  lu.assertEquals(f:read "/workspace/deep/er/x.bin", bytes)
  lu.assertEquals({ f:read("deep/er/x.bin", { offset = 1, limit = 2 }) }, { "\0b", 5 })
  assert(f:write("deep/er/x.bin", "more", { append = true }))
  lu.assertEquals(f:read "deep/er/x.bin", bytes .. "more")
  local entries = assert(f:list("deep", { depth = 2 }))
  lu.assertEquals({ entries[1].path, entries[1].type, entries[2].path, entries[2].size }, { "er", "directory", "er/x.bin", 9 })
  lu.assertEquals(f:stat("deep/er/x.bin").type, "file")
  assert(f:rename("deep/er/x.bin", "y"))
  lu.assertEquals({ f:exists "y", f:exists "deep/er/x.bin", f:exists "y/z" }, { true, false, false })
  assert(f:mkdir "d/e")
  lu.assertEquals(select(2, f:remove "d").code, "not_empty")
  assert(f:remove("d", { recursive = true }))
  assert(f:write("run.sh", "#!/bin/sh\necho ran", { mode = 493 }))
  lu.assertEquals(assert(sbx:exec { "./run.sh" }).out, "ran\n")
end

function T:test_file_errors_are_precise()
  local sbx <close> = sandbox()
  local function code(...) return select(2, ...).code end
  local f = sbx.files
  assert(sbx:exec "mkfifo fifo; mkdir dir; ln -s /nowhere dangling; ln -s loop loop")
  lu.assertEquals(code(f:read "absent"), "not_found")
  lu.assertEquals(code(f:read "dir"), "is_a_directory")
  lu.assertEquals(code(f:read "fifo"), "not_a_regular_file")
  lu.assertEquals(code(f:read "dangling"), "not_found")
  lu.assertEquals(code(f:write("dir", "x")), "is_a_directory")
  lu.assertEquals(code(f:list "absent"), "not_found")
  lu.assertEquals(code(f:write("/usr/x", "x")), "permission")
  lu.assertErrorMsgContains("a path expected", f.read, f, 7)
end

function T:test_upload_and_download()
  local sbx <close> = sandbox()
  local chunk, left = ("x"):rep(1000000), 5
  assert(sbx.files:upload(function()
    left = left - 1
    return left >= 0 and chunk or nil
  end, "big"))
  local total = 0
  lu.assertEquals(sbx.files:download("big", function(part) total = total + #part end), 5000000)
  lu.assertEquals(total, 5000000)
  lu.assertFalse(sbx.files:exists "big.barchan-part")
end

function T:test_a_failing_upload_leaves_nothing_and_says_why()
  local sbx <close> = sandbox()
  local function part_is_gone() lu.assertEquals(#assert(sbx.files:list ".") , 0) end
  local none, err = sbx.files:upload(assert(io.open "/tmp"), "x")
  lu.assertNil(none)
  lu.assertStrContains(tostring(err), "Is a directory")
  part_is_gone()
  lu.assertErrorMsgContains("the source returned a number", sbx.files.upload, sbx.files, function() return 5 end, "x")
  part_is_gone()
  lu.assertErrorMsgContains("broken source", sbx.files.upload, sbx.files, function() error "broken source" end, "x")
  part_is_gone()
end

function T:test_the_result_of_a_stream_that_nobody_reads()
  local sbx <close> = sandbox()
  lu.assertEquals(sbx:stream("head -c 40000000 /dev/zero; exit 3"):result().exit_code, 3)
end

function T:test_the_built_in_tools()
  local sbx <close> = sandbox()
  local tools = barchan.toolset { "exec", "read_file", "write_file", "list_files", "run_python", sandbox = sbx }
  local function call(name, arguments)
    local message = tools:dispatch { id = "1", name = name, arguments = arguments }
    return message.content, message.is_error
  end
  lu.assertEquals({ call("write_file", { path = "a/b.txt", content = "hello" }) }, { "5 bytes written to a/b.txt", false })
  lu.assertEquals(call("read_file", { path = "a/b.txt" }), "a/b.txt: 5 bytes, of which 5 from byte 0:\nhello")
  lu.assertStrContains(call("list_files", { depth = 2 }), "a/b.txt")
  lu.assertEquals(call("exec", { command = "cat a/b.txt" }), "exit_code: 0\nout:\nhello\nerr: (empty)")
  lu.assertEquals(call("run_python", { code = "print(sum(range(10)))" }), "exit_code: 0\nout:\n45\nerr: (empty)")
  local text, is_error = call("read_file", { path = "nothing" })
  lu.assertTrue(is_error)
  lu.assertStrContains(text, "not_found")
  lu.assertStrContains(call("read_file", { path = "a/b.txt", offset = 1e300 }), "offset: integer expected")
  text = call("run_python", { code = "def f():\n  raise ValueError('é')\nf()" })
  lu.assertStrContains(text, "exit_code: 1")
  lu.assertStrContains(text, "ValueError: é")
end

return { TestSandbox = T }
