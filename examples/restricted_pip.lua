-- A package from the registry that this machine's own pip uses, in a sandbox that reaches nothing else:
--   barchan run examples/restricted_pip.lua [PACKAGE [ENTRY …]]
-- An ENTRY is one more that may be reached, as the address of a mirror in a private network: 10.1.2.3:443.
local barchan = require "barchan"

local package = arg[1] or "six"
local sbx <close> = assert(barchan.sandbox {
  network = {
    mode = "restricted",
    allow = table.move(arg, 2, #arg, 1, {}),
    on_event = function(event) print(event.type, event.host, event.port, event.rule) end,
  },
  -- A sandbox sees nothing of this machine's settings.
  env = { PIP_INDEX_URL = os.getenv "PIP_INDEX_URL", PIP_TRUSTED_HOST = os.getenv "PIP_TRUSTED_HOST" },
})
local install = "pip install --break-system-packages --no-cache-dir --ignore-installed --no-deps --retries 0 "
local r = assert(sbx:exec { sh = install .. package, timeout = 120 })
print(r)
for _, host in ipairs(assert(sbx:usage()).network) do
  print(host.host, host.bytes_received .. " bytes received")
end
-- Anything else is refused, and the result says so.
print(assert(sbx:exec "curl -sS https://elsewhere.example/"))
os.exit(r:ok() and 0 or 1)
