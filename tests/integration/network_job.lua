-- Runs one command in a sandbox with a network, as a host's script would. Reads from standard input
-- JSON { network, command, files, env, timeout }; writes JSON { code, out, err, denied, network }.
local barchan = require "barchan"
local job = assert(barchan.json.decode(io.read "a"))

local sbx <close> = assert(barchan.sandbox { network = job.network, env = job.env })
for path, text in pairs(job.files or {}) do assert(sbx.files:write(path, text)) end
local result = assert(sbx:exec { sh = job.command, timeout = job.timeout or 60, output_limit = 1 << 20 })
io.write(barchan.json.encode {
  code = result.exit_code,
  reason = result.reason,
  out = result.out,
  err = result.err,
  denied = result.denied, -- absent: none
  network = assert(sbx:usage()).network,
})
