-- Files that move in pieces while others touch them, for real.
local lu = require "luaunit"
local barchan = require "barchan"

local T = {}

local function code(_, err) return err and err.code end

-- A source of `count` chunks of `size` bytes, told apart by their letters.
local function chunks(count, size, between)
  local n = 0
  return function()
    n = n + 1
    if between then between(n) end
    return n <= count and string.char(96 + n % 26):rep(size) or nil
  end
end

local function sandbox(t)
  t.sbx = assert(barchan.sandbox())
  return t.sbx, t.sbx.files
end

function T:tearDown()
  if self.sbx then self.sbx:terminate() end
end

function T:test_removing_everything_meanwhile_harms_nothing()
  local sbx, files = sandbox(self)
  assert(files:upload(chunks(10, 1000, function(n)
    if n == 6 then assert(sbx:exec "rm -rf ./* ./.[a-z]*") end
  end), "data"))
  lu.assertEquals(#assert(files:read "data"), 10000)
end

function T:test_two_uploads_to_one_name_are_both_whole()
  local _, files = sandbox(self)
  local function one(letter)
    return function()
      local n = 0
      return assert(files:upload(function()
        barchan.sleep(0.001)
        n = n + 1
        return n <= 50 and letter:rep(1000) or nil
      end, "same"))
    end
  end
  for _, outcome in ipairs(barchan.gather { one "a", one "b" }) do lu.assertTrue(outcome.ok) end
  local data = assert(files:read "same")
  lu.assertEquals(#data, 50000)
  lu.assertEquals(data, data:sub(1, 1):rep(50000))
end

function T:test_targets_that_are_no_files()
  local sbx, files = sandbox(self)
  assert(sbx:exec "echo mine > x.barchan-part; ln -s x.barchan-part link; mkfifo fifo; mkdir dir")
  lu.assertEquals(code(files:upload(chunks(3, 10), "link")), "is_a_symlink")
  lu.assertEquals(code(files:upload(chunks(3, 10), "fifo")), "not_a_regular_file")
  lu.assertEquals(code(files:upload(chunks(3, 10), "dir")), "is_a_directory")
  lu.assertEquals(code(files:upload(chunks(3, 10), "/usr/x")), "permission")
  assert(files:upload(chunks(1, 10), "x"))
  lu.assertEquals(files:read "x.barchan-part", "mine\n")
  lu.assertEquals(code(files:download("fifo", function() end)), "not_a_regular_file")
  lu.assertEquals(code(files:download("absent", function() end)), "not_found")
end

function T:test_any_name_and_mode()
  local sbx, files = sandbox(self)
  local long = ("n"):rep(255)
  assert(files:upload(chunks(2, 10), "deep/er/" .. long, { mode = 384 }))
  lu.assertEquals(#assert(files:read("deep/er/" .. long)), 20)
  lu.assertEquals(assert(files:stat("deep/er/" .. long)).mode & 511, 384)
  assert(files:upload(function() end, "empty"))
  lu.assertEquals(files:read "empty", "")
  lu.assertEquals(files:download("empty", error), 0)
  lu.assertEquals(assert(sbx:exec "ls -A").out, "deep\nempty\n")
end

function T:test_the_end_of_the_sandbox_is_an_error()
  local sbx, files = sandbox(self)
  lu.assertEquals(code(files:upload(chunks(3, 10, function(n)
    if n == 2 then sbx:terminate() end
  end), "late")), "lost")
end

function T:test_a_cancelled_upload_is_no_file()
  local _, files = sandbox(self)
  local task = barchan.spawn(function()
    files:upload(chunks(10, 1000, function(n) if n == 3 then barchan.sleep(60) end end), "half")
  end)
  barchan.sleep(0.05)
  task:cancel()
  task:wait()
  lu.assertEquals(assert(files:list "."), {})
end

function T:test_a_replaced_file_comes_out_as_one()
  local sbx, files = sandbox(self)
  assert(sbx:exec "head -c 3145728 /dev/zero | tr '\\0' A > dl; head -c 3145728 /dev/zero | tr '\\0' B > new")
  local parts = {}
  lu.assertEquals(files:download("dl", function(part)
    if #parts == 0 then assert(files:rename("new", "dl")) end
    parts[#parts + 1] = part
  end), 3145728)
  lu.assertEquals(table.concat(parts), ("A"):rep(3145728))
end

function T:test_a_slow_taker_holds_the_file_back()
  local sbx, files = sandbox(self)
  assert(sbx:exec "head -c 4000000 /dev/zero > big")
  local most, total = 0, 0
  lu.assertEquals(files:download("big", function(part)
    if total == 0 then barchan.sleep(0.2) end
    most, total = math.max(most, #part), total + #part
  end), 4000000)
  lu.assertEquals(total, 4000000)
  lu.assertTrue(most <= 600000, most)
end

function T:test_a_full_storage_is_said()
  local sbx = assert(barchan.sandbox { limits = { disk = 1 << 20 } })
  self.sbx = sbx
  local n = 0
  lu.assertEquals(code(sbx.files:upload(function()
    n = n + 1
    return n <= 100 and ("x"):rep(100000) or nil
  end, "big")), "no_space")
  lu.assertEquals(assert(sbx.files:list "."), {})
end

return { TestFiles = T }
