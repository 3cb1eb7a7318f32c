-- Secrets through the Lua API. What servers get is tested in tests/integration/sandbox_secret_test.c.
local lu = require "luaunit"
local barchan = require "barchan"

local T = {}

local VALUE = "s3cr3t-marker-0123456789"

local function secret(changes)
  local one = { name = "TOKEN", from = function() return VALUE end, hosts = { "api.example" } }
  for key, value in pairs(changes or {}) do one[key] = value end
  return one
end

local function create(changes, network)
  return barchan.sandbox { network = network or { allow = { "api.example" } }, secrets = { secret(changes) } }
end

function T:test_commands_have_a_placeholder()
  local sbx <close> = assert(create())
  local r = assert(sbx:exec "env")
  lu.assertStrMatches(r.out:match "TOKEN=([^\n]*)", "barchan%-secret%-" .. ("%x"):rep(32))
  lu.assertStrContains(r.out, "SSL_CERT_FILE=/run/barchan/ca-bundle.pem")
  lu.assertNotStrContains(r.out, VALUE)
  lu.assertEquals(assert(sbx:exec "grep -c BEGIN /run/barchan/ca.pem").out, "1\n")
  local before = r.out:match "TOKEN=([^\n]*)"
  lu.assertTrue(sbx:set_secret("TOKEN", "another-value-0123456789"))
  lu.assertEquals(assert(sbx:exec "echo $TOKEN").out, before .. "\n")
  local none, err = sbx:set_secret("OTHER", "another-value-0123456789")
  lu.assertNil(none)
  lu.assertEquals(err.code, "not_found")
  none, err = sbx:set_secret("TOKEN", "short-marker")
  lu.assertNil(none)
  lu.assertStrContains(err.message, "12 bytes; a secret has from 16")
  lu.assertNotStrContains(err.message, "marker")
end

function T:test_where_values_come_from()
  assert(create { from = "env:PATH" }):terminate()
  local none, err = create { from = "env:NO_SUCH_VARIABLE" }
  lu.assertNil(none)
  lu.assertEquals(err.message, "create sandbox: secret TOKEN: the variable NO_SUCH_VARIABLE is not set")
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  assert(file:write(VALUE, "\n"))
  file:close()
  assert(create { from = "file:" .. path }):terminate()
  file = assert(io.open(path, "w"))
  assert(file:write(("x"):rep(5000)))
  file:close()
  none, err = create { from = "file:" .. path }
  os.remove(path)
  lu.assertNil(none)
  lu.assertStrContains(err.message, "4097 bytes")
  none, err = create { from = "file:/nowhere/token" }
  lu.assertNil(none)
  lu.assertStrContains(err.message, "secret TOKEN:")
  lu.assertNil((create { from = "file:/dev/zero" }))
  assert(create { format = "Token {}", user = "robot", methods = { "GET" }, paths = { "/repos" } }):terminate()
  lu.assertErrorMsgContains("gave a nil", create, { from = function() end })
  lu.assertErrorMsgContains("oh", create, { from = function() error "oh" end })
end

function T:test_profiles_that_are_refused()
  local function refused(changes, words, network)
    local none, err = create(changes, network)
    lu.assertNil(none)
    lu.assertStrContains(err.message, words)
    lu.assertNotStrContains(tostring(err), "marker")
  end
  refused({ hosts = {} }, "at least one host")
  refused({ hosts = { "*.example" } }, "wildcard")
  refused({ hosts = { "other.example" } }, "the network refuses its host other.example:443 (not in the allow-list")
  refused({ from = function() return "short-marker" end }, "from 16 to 4096")
  refused({ format = "Token" }, "one \"{}\"")
  refused({ user = "a:b" }, "without a colon")
  refused({ paths = { "repos" } }, "'repos' is none: a path as in \"/repos\"")
  refused({ methods = { "get" } }, "'get' is none: capitals as in \"GET\"")
  refused({ methods = { "G ET" } }, "'G ET' is none")
  refused({ header = "Host" }, "header 'Host'")
  refused({ ca_file = "/nowhere.pem" }, "/nowhere.pem")
  refused(nil, "it is off", "off")
end

function T:test_bad_options_say_what_to_do()
  local function bad(changes, words) lu.assertErrorMsgContains(words, create, changes) end
  bad({ host = "x" }, "did you mean 'hosts'")
  bad({ from = "marker-value-0123456789" }, "\"env:NAME\", \"file:/path\" or a function expected")
  bad({ hosts = { a = "x" } }, "a list like { \"api.example.com\" }")
  bad({ methods = { 1 } }, "a list like { \"GET\" }")
  bad({ on_guest_authorization = "keep" }, "\"strip\" or \"refuse\" expected")
  local ok, message = pcall(create, { from = "marker-value-0123456789" })
  lu.assertFalse(ok)
  lu.assertNotStrContains(tostring(message), "marker")
  lu.assertErrorMsgContains("option 'name' is missing", barchan.sandbox, { secrets = { {} } })
  lu.assertErrorMsgContains("a list of", barchan.sandbox, { secrets = { name = "x" } })
  lu.assertErrorMsgContains("not for a detached sandbox", barchan.sandbox,
    { detached = true, network = { allow = { "api.example" } }, secrets = { secret() } })
  local many = {}
  for i = 1, 17 do many[i] = secret { name = "T" .. i } end
  lu.assertErrorMsgContains("at most 16", barchan.sandbox, { network = { allow = { "api.example" } }, secrets = many })
end

return { TestSecrets = T }
