-- Folders of the host in a sandbox: what is shown, what is copied on writing, its changes and applying them.
local lu = require "luaunit"
local barchan = require "barchan"

local T = {}

local support = require "reload_support"

local function sandbox(profile) return assert(barchan.sandbox(profile)) end

function T:test_mounts()
  local sbx <close> = sandbox { mounts = { { source = "/usr/share", target = "/mnt/share" } } }
  lu.assertEquals(assert(sbx:exec "test -d /mnt/share/zoneinfo -o -d /mnt/share/doc; echo $?").out, "0\n")
  lu.assertNotEquals(assert(sbx:exec "touch /mnt/share/x").exit_code, 0)
  lu.assertErrorMsgContains("did you mean 'target'", barchan.sandbox,
    { mounts = { { source = "/usr", tagret = "/mnt/x" } } })
  lu.assertErrorMsgContains("mode 'copy' is unknown; 'ro', 'rw' and 'cow' are", barchan.sandbox,
    { mounts = { { source = "/usr", target = "/mnt/x", mode = "copy" } } })
  lu.assertErrorMsgContains("source and target", barchan.sandbox, { mounts = { { source = "/usr" } } })
  local none, err = barchan.sandbox { mounts = { { source = "/usr", target = "/etc/x" } } }
  lu.assertNil(none)
  lu.assertStrContains(err.message, "must be /workspace")
end

function T:test_a_copied_mount()
  support.needs_copies()
  local copy <close> = sandbox { mounts = { { source = "/usr/share", target = "/mnt/share", mode = "cow" } } }
  lu.assertEquals(assert(copy:exec "echo x > /mnt/share/barchan-x; cat /mnt/share/barchan-x").out, "x\n")
  lu.assertNil(io and io.open "/usr/share/barchan-x")
end

function T:test_changes()
  support.needs_copies()
  local dir = support.dir()
  dir:write("a.txt", "alpha\n")
  dir:write("b.txt", "beta\n")
  dir:give()
  local sbx <close> = sandbox { mounts = { { source = dir.path, target = "/workspace", mode = "cow" } } }
  assert(sbx:exec "echo more >> a.txt; rm b.txt; mkdir d; ln -s a.txt d/link")
  local changes, more = assert(sbx:changes())
  lu.assertFalse(more)
  local lines = {}
  for i, c in ipairs(changes) do lines[i] = ("%s %s %s %d"):format(c.kind, c.type, c.path, c.size) end
  lu.assertEquals(lines[1], "modified file a.txt 11")
  lu.assertEquals(lines[2], "deleted file b.txt 5")
  lu.assertStrContains(lines[3], "added directory d")
  lu.assertEquals(changes[4].link_target, "a.txt")
  local none, err = sbx:changes "/mnt/other"
  lu.assertNil(none)
  lu.assertEquals(err.code, "invalid_argument")
  lu.assertErrorMsgContains("got table", sbx.changes, sbx, {})
  dir:remove()
end

function T:test_apply_changes()
  support.needs_copies()
  local dir = support.dir()
  dir:write("a.txt", "alpha\n")
  dir:write("b.txt", "beta\n")
  dir:give()
  local sbx <close> = sandbox { mounts = { { source = dir.path, target = "/workspace", mode = "cow" } } }
  assert(sbx:exec "echo more >> a.txt; rm b.txt; mkdir d; echo x > d/x; ln -s ../a.txt d/link")
  local plan = assert(sbx:apply_changes(dir.path, { dry_run = true }))
  lu.assertEquals({ plan.applied, plan.conflicts, plan.skipped, plan.bytes }, { 4, 0, 1, 0 })
  lu.assertEquals(dir:read "a.txt", "alpha\n")
  local done = assert(sbx:apply_changes(dir.path, { paths = { "a.txt", "./b.txt", "nope", "nope2/" } }))
  lu.assertEquals(done.unchanged, { "nope", "nope2" })
  lu.assertEquals({ done.applied, done.bytes }, { 2, 11 })
  lu.assertEquals(dir:read "a.txt", "alpha\nmore\n")
  lu.assertNil(dir:read "b.txt")
  lu.assertNil(dir:read "d/x")
  done = assert(sbx:apply_changes(dir.path, { links = true, target = "/workspace", timeout = 20 }))
  lu.assertEquals({ done.applied, done.skipped }, { 3, 0 })
  lu.assertEquals(dir:read "d/link", "alpha\nmore\n")
  assert(sbx:exec "echo mine > a.txt; ln -s /etc/passwd out")
  dir:write("a.txt", "theirs\n")
  local none, err = sbx:apply_changes(dir.path)
  lu.assertNil(none)
  lu.assertEquals(err.code, "conflict")
  lu.assertStrContains(err.message, "'a.txt': it was changed on the host")
  done = assert(sbx:apply_changes(dir.path, { on_conflict = "skip", links = true }))
  lu.assertEquals({ done.conflicts, done.skipped }, { 1, 1 })
  lu.assertEquals(done.entries[1], { path = "a.txt", kind = "modified", type = "file", outcome = "conflict",
    why = "it was changed on the host" })
  lu.assertStrContains(done.entries[2].why, "could lead out")
  lu.assertEquals(dir:read "a.txt", "theirs\n")
  assert(sbx:apply_changes(dir.path, { on_conflict = "overwrite" }))
  lu.assertEquals(dir:read "a.txt", "mine\n")
  dir:remove()
end

function T:test_apply_changes_to_what()
  local sbx <close> = sandbox()
  lu.assertErrorMsgContains("a folder expected, got nil", sbx.apply_changes, sbx)
  lu.assertErrorMsgContains("did you mean 'dry_run'", sbx.apply_changes, sbx, "/tmp", { dryrun = true })
  lu.assertErrorMsgContains('"skip" or "overwrite" expected', sbx.apply_changes, sbx, "/tmp",
    { on_conflict = "merge" })
  lu.assertErrorMsgContains("'max_bytes' must not be negative", sbx.apply_changes, sbx, "/tmp", { max_bytes = -1 })
  local none, err = sbx:apply_changes "/nowhere"
  lu.assertNil(none)
  lu.assertEquals(err.code, "not_found")
  lu.assertStrContains(err.message, "/nowhere")
end

function T:test_applying_is_given_up_with_its_task()
  local dir = support.dir()
  local sbx <close> = sandbox()
  assert(sbx:exec "head -c 200000000 /dev/zero > big")
  local task = barchan.spawn(function() return sbx:apply_changes(dir.path) end)
  local function begun() return support.sh_says("ls -A " .. dir.path):find "%.barchan%-" end
  support.eventually(function() return begun() or task:status() ~= "running" end, "it does not begin")
  task:cancel()
  support.eventually(function() return task:status() ~= "running" end, "the task ends")
  lu.assertEquals(select(2, task:wait()).code, "cancelled")
  support.eventually(function() return not dir:read "big" end, "nothing is left")
  assert(sbx:exec "rm big")
  lu.assertEquals(assert(sbx:apply_changes(dir.path)).applied, 0)
  dir:remove()
end

return { TestMounts = T }
