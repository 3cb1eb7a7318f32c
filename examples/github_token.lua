-- A token that commands use and never have.
--   GITHUB_TOKEN=... GITHUB_API=<the API's host> barchan run examples/github_token.lua
-- Without these it shows the same with a token and a host that do not exist.
local barchan = require "barchan"

local host = os.getenv "GITHUB_API" or "api.github.example"

local function made_up() return "not-a-token-0123456789" end

local sbx <close> = assert(barchan.sandbox {
  network = {
    allow = { host }, -- a secret is no permission to connect
    on_event = function(event) print(("event: %s %s: %s"):format(event.type, event.host, event.rule)) end,
  },
  secrets = {
    {
      name = "GITHUB_TOKEN",
      from = os.getenv "GITHUB_TOKEN" and "env:GITHUB_TOKEN" or made_up, -- "env:" is never read into Lua
      hosts = { host },
      header = "Authorization",
      format = "Bearer {}",
      methods = { "GET" }, -- what commands may do with it
      paths = { "/user", "/repos" },
    },
  },
})

-- What a command, a file, or a model sees: a placeholder that is worth nothing elsewhere.
print("in the sandbox: " .. assert(sbx:exec "env | grep ^GITHUB_TOKEN=").out)

-- What the server gets: the token, over TLS that was verified, if method and path are allowed.
local get = [[curl -sS -m 20 -H "Authorization: Bearer $GITHUB_TOKEN" "https://$API/user"]]
local r = assert(sbx:exec { sh = get, env = { API = host } })
print(r:ok() and r.out or "not reached: " .. r.err)
