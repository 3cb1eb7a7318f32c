-- Defaults and bounds that the manual states of sandboxes, commands and files.
local lu = require "luaunit"
local barchan = require "barchan"
local support = require "reload_support"

local T = {}

local MIB = 1 << 20

local function refused(message, limits)
  local none, err = barchan.sandbox { best_effort = true, limits = limits }
  lu.assertNil(none)
  lu.assertEquals(err.code, "invalid_argument")
  lu.assertStrContains(err.message, message)
end

function T:test_bounds_of_limits()
  refused("memory", { memory = 8 * MIB - 1 })
  refused("disk", { disk = MIB - 1 })
  refused("disk must be less than memory", { memory = 64 * MIB, disk = 64 * MIB })
  refused("files", { files = 16 * MIB + 1 })
  refused("cpus", { cpus = 0.009 })
  refused("cpus", { cpus = 4097 })
  refused("pids", { pids = 1025 })
  refused("open_files", { open_files = 15 })
  refused("open_files", { open_files = 65537 })
  refused("processor time", { cpu_seconds = 7 * 24 * 3600 + 1 })
  refused("time of a command", { wall = 7 * 24 * 3600 + 1 })
end

-- What only the library can judge does not throw.
function T:test_what_the_library_judges_is_an_answer()
  local sbx <close> = assert(barchan.sandbox())
  local replay = support.replaying "hi"
  local network = { allow = { "api.example.com" } }
  for what, call in pairs {
    lease = function() return barchan.sandbox { lease = 1e9 } end,
    address = function() return barchan.sandbox { network = { allow = { "https://a.com" } } } end,
    path = function() return barchan.sandbox { mounts = { { source = "x", target = "/workspace" } } } end,
    secret = function()
      local secret = { name = "A", from = function() return "short" end, hosts = network.allow }
      return barchan.sandbox { network = network, secrets = { secret } }
    end,
    name = function() return sbx:snapshot "Bad Name" end,
    id = function() return barchan.connect "nosuch" end,
    provider = function() return barchan.model { provider = "antropic" } end,
    message = function() return replay:complete { messages = { { role = "usr", content = "x" } } } end,
  } do
    local none, err = call()
    lu.assertNil(none, what)
    lu.assertEquals(err.code, "invalid_argument", what)
  end
end

local function storage(options)
  local sbx <close> = assert(barchan.sandbox(options))
  local bytes = assert(sbx:exec "df -P -k /workspace | tail -n 1").out:match "%d+"
  local files = assert(sbx:exec "df -P -i /workspace | tail -n 1").out:match "%s(%d+)"
  local open = assert(sbx:exec "ulimit -Sn; ulimit -Hn").out
  return math.tointeger(bytes) * 1024, math.tointeger(files), open
end

function T:test_defaults_of_limits()
  local disk, files, open = storage()
  local soft, hard = open:match "^(%d+)\n(%d+)\n$"
  lu.assertEquals({ disk, soft }, { 1024 * MIB, "1024" })
  lu.assertTrue(tonumber(hard) >= 1024 and tonumber(hard) <= 65536, hard) -- the machine may allow less
  lu.assertTrue(math.abs(files - (1024 * MIB // 4096 + 1024)) < 100, files)
  disk = storage { best_effort = true, limits = { memory = 64 * MIB } }
  lu.assertEquals(disk, 32 * MIB)
end

function T:test_output_that_is_kept()
  local sbx <close> = assert(barchan.sandbox { best_effort = true, limits = { output = 1000 } })
  local r = assert(sbx:exec { "printf", "0123456789", output_limit = 4 })
  lu.assertEquals({ r.out, r.out_dropped, r.exit_code }, { "0189", 6, 0 })
  r = assert(sbx:exec { "printf", "0123456789", output_limit = 0 })
  lu.assertEquals({ r.out, r.out_dropped, r.exit_code }, { "", 10, 0 })
  r = assert(sbx:exec "head -c 100000 /dev/zero")
  lu.assertEquals({ r.reason, r:ok() }, { "output", false })
  local own <close> = assert(barchan.sandbox())
  r = assert(own:exec "head -c 1048577 /dev/zero")
  lu.assertEquals({ #r.out, r.out_dropped }, { MIB, 1 })
end

function T:test_parts_of_files()
  local sbx <close> = assert(barchan.sandbox())
  assert(sbx.files:write("f", "0123456789"))
  local function read(options) return table.pack(sbx.files:read("f", options)) end
  lu.assertEquals(read { offset = 8 }, { "89", 10, n = 2 })
  lu.assertEquals(read { limit = 2 }, { "01", 10, n = 2 })
  lu.assertEquals(read { offset = 100 }, { "", 10, n = 2 })
  assert(sbx:exec "truncate -s 65M f")
  local none, err = sbx.files:read "f"
  lu.assertEquals({ none, err.code }, { nil, "limit" })
  local size = 0
  lu.assertEquals(assert(sbx.files:download("f", function(chunk) size = size + #chunk end)), 65 * MIB)
  lu.assertEquals(size, 65 * MIB)
end

function T:test_targets_of_mounts()
  local function made(target)
    local sbx <close>, err = barchan.sandbox { mounts = { { source = "/usr/share", target = target } } }
    return sbx ~= nil, err
  end
  for _, target in ipairs { "/workspace/a", "/home/user/a", "/mnt/a", "/tmp/a", "/var/tmp/a", "/run/a" } do
    lu.assertTrue(made(target), target)
  end
  for _, target in ipairs { "/", "/usr", "/etc/a", "/home/a", "/opt/a", "a" } do lu.assertFalse(made(target), target) end
end

function T:test_outcomes_of_gather()
  local outcomes = barchan.gather { function() return 1, nil, 3 end, function() error { code = "mine" } end }
  lu.assertEquals(outcomes[1], { 1, nil, 3, n = 3, ok = true, value = 1 })
  lu.assertEquals({ outcomes[2].ok, outcomes[2].error.code }, { false, "mine" })
end

return { TestStated = T }
