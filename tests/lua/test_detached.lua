-- Detached sandboxes through the Lua API, held by the program that runs this.
local lu = require "luaunit"
local barchan = require "barchan"
local support = require "reload_support"

local T = {}

local core = support.core()

local function listed(id)
  for _, status in ipairs((assert(barchan.detached()))) do
    if status.id == id then return status end
  end
end

local function kill(sbx)
  sbx:terminate()
  assert(sbx:usage()) -- the last count comes when nothing runs any more
end

function T:test_its_network()
  local sbx <close> = assert(barchan.sandbox { detached = true, lease = 300, network = { allow = { "a.example" } } })
  local r = assert(sbx:exec { "bash", "-c", "exec 3<>/dev/tcp/b.example/80; printf 'GET / HTTP/1.0\r\n\r\n' >&3; cat <&3" })
  lu.assertEquals({ r.denied[1].host, r.denied[1].port }, { "b.example", 80 })
  lu.assertNil(assert(sbx:exec "true").denied)
  local usage = assert(sbx:usage())
  lu.assertEquals({ usage.connections, usage.network[1].host, usage.network[1].denied }, { 0, "b.example", 1 })
  kill(sbx)
  lu.assertNil(assert(sbx:usage()).network) -- its holder has counted, and is gone
end

function T:test_it_outlives_its_handle()
  local id
  do
    local sbx <close> = assert(barchan.sandbox { detached = true, lease = 300, env = { WHO = "profile" } })
    id = sbx:status().id
    lu.assertEquals(assert(sbx:exec "echo $WHO; echo kept > file").out, "profile\n")
  end
  local status = listed(id)
  lu.assertEquals({ status.state, status.template, status.running }, { "ready", "host", 0 })
  lu.assertTrue(status.lease_left > 200 and status.lease_left <= 300)
  local sbx = assert(barchan.connect(id))
  lu.assertEquals(assert(sbx.files:read "file"), "kept\n")
  lu.assertTrue(sbx:status().layers.seccomp ~= nil)
  assert(sbx:extend(100))
  lu.assertTrue(sbx:status().lease_left > 300)
  local other <close> = assert(barchan.connect(id))
  lu.assertTrue(other:status().lease_left > 300)
  assert(sbx:pause())
  assert(other:usage())
  lu.assertEquals(other:status().state, "paused")
  assert(other:resume())
  lu.assertEquals(assert(sbx:usage()).execs, 1)
  kill(sbx)
  lu.assertNil(listed(id))
  support.eventually(function() return other:status().state == "ended" end, "it was not told")
  lu.assertEquals(other:status().end_reason, "terminated")
  local none, err = barchan.connect(id)
  lu.assertNil(none)
  lu.assertEquals(err.code, "not_found")
end

function T:test_what_was_let_go_of_says_so()
  local sbx = assert(barchan.sandbox { detached = true, lease = 300 })
  local id, files = sbx.id, sbx.files
  lu.assertEquals(id, sbx:status().id)
  sbx:detach()
  sbx:detach()
  lu.assertEquals({ sbx.id, sbx:status().id, sbx:status().state, sbx:status().end_reason }, { id, id, "ended", "detached" })
  lu.assertStrContains(tostring(sbx), id)
  local arguments = {
    exec = { "true" }, stream = { "true" }, spawn = { "true" }, apply_changes = { "/tmp" }, snapshot = { "x" },
    fork = { 1 }, extend = { 5 }, set_network = { "open" }, set_secret = { "A", ("x"):rep(20) },
  }
  local methods, silent = debug.getmetatable(sbx).__index, { detach = true, status = true }
  for name, method in pairs(methods) do
    if type(method) == "function" and not name:find "^__" and not silent[name] then
      local ok, none, err = pcall(method, sbx, table.unpack(arguments[name] or {}))
      if not ok then none, err = nil, none end
      lu.assertEquals({ ok, none, err and err.code }, { name ~= "stream", nil, "closed" }, name)
      lu.assertStrContains(err.message, ("barchan.connect(%q)"):format(id))
    end
  end
  local none, err = files:read "x"
  lu.assertEquals({ none, err.code }, { nil, "closed" })
  local again = assert(barchan.connect(id))
  assert(again:exec "true")
  kill(again)
end

function T:test_what_was_printed()
  local sbx <close> = assert(barchan.sandbox { detached = true })
  assert(sbx:exec "echo one")
  for _ in sbx:stream "echo two >&2" do end
  local entries, cursor, dropped = assert(sbx:logs())
  lu.assertEquals(entries, {
    { command = 1, stream = "out", data = "one\n" }, { command = 2, stream = "err", data = "two\n" },
  })
  lu.assertEquals({ cursor, dropped }, { 8, 0 })
  lu.assertEquals(assert(sbx:logs(cursor)), {})
  lu.assertErrorMsgContains("a cursor", sbx.logs, sbx, "x")
  local own <close> = assert(barchan.sandbox())
  local none, err = own:logs()
  lu.assertNil(none)
  lu.assertEquals(err.code, "unsupported")
  kill(sbx)
end

function T:test_what_is_printed_is_followed_to_the_end()
  local sbx <close> = assert(barchan.sandbox { detached = true })
  local other <close> = assert(barchan.connect(sbx:status().id))
  local told, answers, why = {}, 0, nil
  local follower = barchan.spawn(function()
    local cursor = 0
    while true do
      local entries, next_cursor = other:logs(cursor, { follow = true })
      if not entries then
        why = next_cursor
        return
      end
      answers = answers + 1
      lu.assertNotEquals(entries, {}) -- it has waited
      for _, entry in ipairs(entries) do told[#told + 1] = entry.data end
      cursor = next_cursor
    end
  end)
  barchan.sleep(0.05)
  lu.assertEquals(answers, 0)
  assert(sbx:exec { sh = "head -c 200000 /dev/zero; echo last", output_limit = 1 << 20 })
  kill(sbx)
  follower:wait()
  local text = table.concat(told)
  lu.assertEquals({ #text, text:sub(-5) }, { 200005, "last\n" })
  lu.assertTrue(answers > 1)
  lu.assertEquals(why.code, "lost")
  lu.assertErrorMsgContains("follow", sbx.logs, sbx, 0, { follow = 1 })
end

function T:test_changes_are_applied_over_a_connection()
  support.needs_copies()
  local dir = support.dir()
  dir:write("a.txt", "alpha\n")
  dir:give()
  local made <close> = assert(barchan.sandbox {
    detached = true, mounts = { { source = dir.path, target = "/mnt/src", mode = "cow" } },
  })
  assert(made:exec "echo more >> /mnt/src/a.txt; echo new > /mnt/src/b.txt")
  local sbx = assert(barchan.connect(made:status().id))
  local changes = assert(sbx:changes())
  lu.assertEquals({ #changes, changes[1].path, changes[1].kind, changes[2].path }, { 2, "a.txt", "modified", "b.txt" })
  lu.assertEquals(assert(sbx:apply_changes(dir.path)).applied, 2)
  lu.assertEquals(dir:read "a.txt", "alpha\nmore\n")
  dir:write("a.txt", "theirs\n")
  assert(sbx:exec "echo mine > /mnt/src/a.txt")
  local none, err = sbx:apply_changes(dir.path)
  lu.assertNil(none)
  lu.assertEquals(err.code, "conflict")
  kill(sbx)
  dir:remove()
end

function T:test_commands_that_live_on()
  local sbx = assert(barchan.sandbox { detached = true })
  local id = sbx:status().id
  local process = assert(sbx:spawn { sh = "while :; do echo x > alive; sleep 0.01; done", detach = true, stdin = "",
    timeout = false })
  lu.assertTrue(process:running())
  support.eventually(function() return sbx.files:exists "alive" end, "it did not start")
  sbx:detach()
  sbx = assert(barchan.connect(id))
  assert(sbx.files:remove "alive")
  support.eventually(function() return sbx.files:exists "alive" end, "it did not live on")
  kill(sbx)
  local own <close> = assert(barchan.sandbox())
  lu.assertErrorMsgContains("not a detached one", own.detach, own)
  local none, err = own:spawn { "true", detach = true }
  lu.assertNil(none)
  lu.assertStrContains(err.message, "detached sandbox")
end

function T:test_what_is_refused()
  lu.assertErrorMsgContains("the id of a sandbox expected", barchan.connect)
  local none, err = barchan.connect "../x"
  lu.assertNil(none)
  lu.assertEquals(err.code, "invalid_argument")
  none, err = barchan.sandbox { detached = true, template = "/no/such/root" }
  lu.assertNil(none)
  lu.assertStrContains(err.message, "/no/such/root")
  lu.assertErrorMsgContains("max_cost_micros", barchan.sandbox,
    { detached = true, price = { cpu_hour = 1 }, max_cost_micros = 5, limits = { cpus = 1 } })
end

-- A program may hold its own: others connect by its id.
function T:test_holding_one_oneself()
  local sbx = assert(barchan.sandbox())
  local hold = assert(sbx.handle:hold())
  local other <close> = assert(barchan.connect(sbx:status().id))
  lu.assertEquals(assert(other:exec "echo here").out, "here\n")
  local again, err = sbx.handle:hold()
  lu.assertNil(again)
  lu.assertEquals(err.code, "busy")
  other:terminate()
  hold:wait()
  lu.assertEquals(sbx:status().end_reason, "terminated")
end

-- What the program's `sandbox cp` is made of: names from a sandbox cannot leave the folder.
function T:test_writing_below_a_folder()
  local dir = support.dir()
  local root <close> = assert(core.tree.root(dir.path .. "/new"))
  assert(root:mkdir("a", 493))
  assert(root:mkdir("a", 493))
  do
    local file <close> = assert(root:file("a/whole", 384))
    assert(file:write "text")
    local lost <close> = assert(root:file("a/half", 420))
    assert(lost:write "te")
    lu.assertEquals(#assert(core.tree.list(dir.path .. "/new/a")), 2) -- neither has its name yet
    assert(file:commit())
  end
  lu.assertEquals(core.tree.list(dir.path), {
    { path = "new", kind = "folder", mode = 493 }, { path = "new/a", kind = "folder", mode = 493 },
    { path = "new/a/whole", kind = "file", mode = 384 },
  })
  lu.assertEquals({ core.tree.stat(dir.path .. "/new/a/whole") }, { "file", 384 })
  support.sh("ln -s %s %s/new/link; ln -s a/whole %s/new/to_file", dir.path, dir.path, dir.path)
  for _, path in ipairs { "../x", "/x", "a/../x", "", "a/", "a//x", ".", "link/x", "none/x" } do
    local file, err = root:file(path, 420)
    lu.assertNil(file, path)
    lu.assertNotNil(err.code)
    lu.assertNil((root:mkdir(path, 493)), path)
  end
  do -- a link is replaced, not written through
    local file <close> = assert(root:file("to_file", 420))
    assert(file:write "new")
    assert(file:commit())
  end
  lu.assertEquals(assert(io.open(dir.path .. "/new/a/whole")):read "a", "text")
  root:close()
  lu.assertErrorMsgContains("closed", root.file, root, "x", 420)
  lu.assertNil((core.tree.list(dir.path .. "/none")))
  lu.assertNil((core.tree.stat(dir.path .. "/none")))
  lu.assertNil((core.tree.root(dir.path .. "/none/none")))
  dir:remove()
end

return { TestDetached = T }
