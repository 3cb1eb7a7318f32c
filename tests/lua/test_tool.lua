local lu = require "luaunit"
local barchan = require "barchan"

local T = {}

-- Results as the core makes them.
local function result(fields)
  local r = { reason = "exited", exit_code = 0, out = "", err = "", out_dropped = 0, err_dropped = 0, duration = 1.25 }
  for key, value in pairs(fields) do r[key] = value end
  if fields.exit_code == false then r.exit_code = nil end
  return r
end

function T:test_every_part_is_labelled_and_never_empty()
  lu.assertEquals(barchan.render(result { out = "7919\n" }), "exit_code: 0\nout:\n7919\nerr: (empty)")
  lu.assertEquals(barchan.render(result { exit_code = 1, err = "boom" }), "exit_code: 1\nout: (empty)\nerr:\nboom")
end

function T:test_every_way_to_end_is_said()
  local function first(fields)
    fields.exit_code = false
    return barchan.render(result(fields)):match("^[^\n]*")
  end
  lu.assertEquals(first { reason = "signaled", signal = 9 }, "killed by signal 9 (SIGKILL)")
  lu.assertEquals(first { reason = "signaled", signal = 40 }, "killed by signal 40")
  lu.assertStrContains(first { reason = "timeout" }, "timeout: killed after 1.2 s")
  lu.assertEquals(first { reason = "spawn_failed", spawn_error = "No such file or directory" },
    "could not be started: No such file or directory")
  lu.assertStrContains(first { reason = "spawn_failed", spawn_cwd = true, spawn_error = "x" }, "working directory")
  lu.assertStrContains(first { reason = "lost" }, "lost")
  lu.assertStrContains(first { reason = "oom" }, "memory limit")
  lu.assertEquals(first { reason = "cancelled" }, "cancelled")
end

function T:test_what_is_missing_is_counted_exactly()
  local text = barchan.render(result { out = "headtail", out_dropped = 1000, out_head = 4 })
  lu.assertStrContains(text, "out:\nhead\n[… 1000 bytes left out …]\ntail")
  text = barchan.render(result { out = ("a"):rep(50) .. ("b"):rep(50) }, { limit = 10 })
  lu.assertStrContains(text, "aaaaa\n[… 90 bytes left out …]\nbbbbb")
  text = barchan.render(result { out = ("a"):rep(50) .. ("b"):rep(50), out_dropped = 7, out_head = 50 }, { limit = 10 })
  lu.assertStrContains(text, "[… 97 bytes left out …]")
end

function T:test_text_is_valid_utf8_and_cut_between_characters()
  local text = barchan.render(result { out = ("😀"):rep(100) }, { limit = 10 })
  lu.assertNotNil(utf8.len(text))
  lu.assertStrContains(text, "😀\n[… 392 bytes left out …]\n😀")
  lu.assertNotNil(utf8.len(barchan.render(result { out = "\xff\xfe\x80" })))
end

return { TestTool = T }
