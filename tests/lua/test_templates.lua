-- Templates from snapshots, and forks, through the Lua API.
local lu = require "luaunit"
local barchan = require "barchan"
local support = require "reload_support"

local T = {}

local NAME = ("lua-test-%d"):format(math.random(1 << 30))

local function sandbox(profile) return assert(barchan.sandbox(profile)) end

local function ended(sbx)
  sbx:terminate()
  assert(sbx:usage()) -- the last count comes when nothing runs any more
end

local function remove() barchan.templates.remove(NAME) end

function T:setUp() support.needs_copies() end

function T:tearDown() remove() end

function T:test_snapshot()
  local sbx <close> = sandbox()
  assert(sbx:exec "echo text > file; mkdir d; echo home > ~/file")
  local info = assert(sbx:snapshot(NAME, { note = "a note" }))
  lu.assertEquals({ info.name, info.base, info.note, info.entries, info.bytes, info.left_out },
    { NAME, "host", "a note", 7, 10, 0 })
  lu.assertAlmostEquals(info.created, os.time(), 60)
  lu.assertEquals(assert(barchan.templates.info(NAME)), info)
  local found
  for _, one in ipairs((assert(barchan.templates.list()))) do
    if one.name == NAME then found = one end
  end
  lu.assertEquals(found, info)
  local other <close> = sandbox { template = NAME }
  lu.assertEquals(other:status().template, NAME)
  lu.assertEquals(assert(other:exec "cat file ~/file; echo new > file; ls").out, "text\nhome\nd\nfile\n")
  local changes = assert(other:changes())
  lu.assertEquals({ #changes, changes[1].path, changes[1].kind }, { 1, "file", "modified" })
  lu.assertEquals(assert(sbx:exec "cat file").out, "text\n")
  local none, err = barchan.templates.remove(NAME)
  lu.assertNil(none)
  lu.assertEquals(err.code, "busy")
  lu.assertStrContains(err.message, "in use by 1 sandbox")
  none, err = sbx:snapshot(NAME)
  lu.assertNil(none)
  lu.assertEquals(err.code, "exists")
  ended(other)
  assert(sbx:exec "rm file")
  lu.assertEquals(assert(sbx:snapshot(NAME, { replace = true, timeout = 30 })).entries, 6)
  lu.assertTrue(barchan.templates.remove(NAME))
  none, err = barchan.templates.info(NAME)
  lu.assertNil(none)
  lu.assertEquals(err.code, "not_found")
end

function T:test_what_runs()
  local sbx <close> = sandbox()
  local p <close> = assert(sbx:spawn { "sh", "-c", "echo ready; read -r something" })
  p:read()
  local none, err = sbx:snapshot(NAME)
  lu.assertNil(none)
  lu.assertEquals({ err.code, err.where }, { "busy", "sandbox.snapshot" })
  lu.assertStrMatches(err.message, "snapshot: 1 process runs: %d+ .*something")
  none, err = sbx:fork(2)
  lu.assertNil(none)
  lu.assertStrMatches(err.message, "fork: 1 process runs: %d+ .*something")
  p:kill()
  p:wait()
  support.eventually(function() return sbx:snapshot(NAME) end, "it never was quiet")
end

function T:test_fork()
  local sbx <close> = sandbox {
    env = { WHO = "all" }, limits = { disk = 8 << 20, pids = 100 }, lease = 500,
    price = { cpu_hour = 0.1 },
  }
  assert(sbx:exec "echo common > file")
  local forks = assert(sbx:fork(3))
  lu.assertEquals(#forks, 3)
  for i, fork in ipairs(forks) do
    lu.assertEquals(fork:status().template, "host")
    lu.assertTrue(fork:status().lease_left > 490)
    lu.assertEquals(assert(fork:exec(("echo $WHO; cat file; echo %d >> file"):format(i))).out, "all\ncommon\n")
    lu.assertNotNil(assert(fork:usage()).cost_micros)
  end
  for i, fork in ipairs(forks) do
    lu.assertEquals(assert(fork:exec "cat file").out, ("common\n%d\n"):format(i))
    lu.assertNotEquals(assert(fork:exec "head -c 9000000 /dev/zero > big").exit_code, 0)
  end
  lu.assertEquals(assert(sbx:exec "cat file").out, "common\n")
  local again <close> = assert(forks[1]:fork(1))[1]
  lu.assertEquals(assert(again:exec "cat file").out, "common\n1\n")
  for _, fork in ipairs(forks) do ended(fork) end
  lu.assertEquals(assert(again:exec "cat file").out, "common\n1\n")
end

function T:test_cancelled()
  local sbx <close> = sandbox()
  assert(sbx:exec "head -c 50000000 /dev/zero > big")
  local task = barchan.spawn(function() return sbx:snapshot(NAME) end)
  local forking = barchan.spawn(function() barchan.sleep(0.001) return sbx:fork(2) end)
  barchan.sleep(0)
  task:cancel()
  forking:cancel()
  task:wait()
  forking:wait()
  lu.assertNil((barchan.templates.info(NAME)))
  support.eventually(function() return sbx:exec "true" end, "it still is being taken")
end

function T:test_detached()
  local sbx <close> = sandbox { detached = true, lease = 300, env = { WHO = "held" } }
  assert(sbx:exec "echo text > file")
  lu.assertEquals(assert(sbx:snapshot(NAME)).bytes, 5)
  local second <close> = sandbox { detached = true, lease = 300, template = NAME }
  lu.assertEquals(assert(second:exec "cat file; echo more > file2").out, "text\n")
  local forks = assert(second:fork(2))
  lu.assertEquals(assert(forks[2]:exec "cat file file2").out, "text\nmore\n")
  ended(second)
  ended(sbx)
  for _, fork in ipairs(forks) do ended(fork) end
end

function T:test_bad_arguments()
  local sbx <close> = sandbox()
  lu.assertErrorMsgContains("a name expected", sbx.snapshot, sbx)
  lu.assertErrorMsgContains("did you mean 'replace'", sbx.snapshot, sbx, "x", { replce = true })
  lu.assertErrorMsgContains("1 to 64", sbx.fork, sbx, 65)
  lu.assertErrorMsgContains("1 to 64", sbx.fork, sbx)
  lu.assertErrorMsgContains("the name of a template expected", barchan.templates.info)
  lu.assertErrorMsgContains("the name of a template expected", barchan.templates.remove, 1)
  local none, err = sbx:snapshot "host"
  lu.assertNil(none)
  lu.assertEquals(err.code, "invalid_argument")
  none, err = barchan.sandbox { template = NAME }
  lu.assertNil(none)
  lu.assertEquals(err.code, "not_found")
  lu.assertStrContains(err.message, "barchan template build")
end

return { TestTemplates = T }
