---@meta

--- Secrets: commands use them, and never have them. A command sees a placeholder in the variable `name` and sends it
--- as it would send the secret; for the secret's hosts this library stands in the middle of TLS, verifies the real
--- server, and puts the value into the header. Not in URLs, bodies, other headers, plain HTTP or for other hosts.
--- Answers have the value, and its base64 forms, replaced by '*'. The network must allow the hosts.
---
---     local sbx <close> = assert(barchan.sandbox {
---       network = { allow = { "api.example.com" } },
---       secrets = { { name = "API_TOKEN", from = "env:API_TOKEN", hosts = { "api.example.com" } } },
---     })
---     sbx:exec [[curl -H "Authorization: Bearer $API_TOKEN" https://api.example.com/user]]
---
--- What a server shows in another form (hexadecimal, in pieces) or keeps and shows elsewhere is not held back: name
--- methods and paths that do not. Events of the type "secret" tell each use and each attempt that was none. Detached
--- sandboxes have no secrets: they would have to be handed to another process.

---@class barchan.SecretOptions
---@field name string the variable that commands find the placeholder in
---@field from string|fun(): string "env:NAME" or "file:/path", which the library reads and does not give to Lua; or a function that gives it
---@field hosts string[] "api.example.com" or "api.example.com:8443", exactly
---@field header? string "Authorization"
---@field format? string "Bearer {}"; with `user` "Basic {}"
---@field user? string "{}" is the base64 form of user:value; commands send any user name with the placeholder
---@field methods? string[] "GET", …; all
---@field paths? string[] "/repos": that and what is below it; all
---@field ca_file? string certificates (PEM) to verify the server with, instead of this machine's
---@field on_guest_authorization? string what commands send there of their own is taken out: "strip" (default); "refuse": answered with 403

---@class barchan.Sandbox
local Sandbox = {}

--- Another value for a secret, under the same placeholder, for requests from now on. The last seven are still taken
--- out of answers.
---@param name string
---@param value string 16 bytes at least
---@return true? done
---@return barchan.Error? err
function Sandbox:set_secret(name, value) end
