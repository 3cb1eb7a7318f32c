---@meta

--- What a sandbox can reach: `network = "off"` (default), `"restricted"` (the package registries that this machine's
--- pip, npm and apt are configured to use), `"open"` (any public host), or a table of entries. Programs inside need no
--- proxy settings. They reach hosts by name only; what is refused is told by an HTTP 403 or a TLS alert, and in the
--- result's `denied`; what is allowed and cannot be reached by a 502 or an alert, and in `unreached`. Addresses that
--- are not public are refused in every mode unless an entry names them.
---
--- A port that no entry names, 80 and 443 apart, just looks closed (connection refused): nothing can be told of it.
--- Write "host:port". The ports that are open to the outside cannot be listened at inside. 127.0.0.1 and localhost
--- are the sandbox's own; a server on this machine needs a name and both entries:
--- `{ hosts = { ["dev.example"] = "127.0.0.1" }, allow = { "dev.example:8000", "127.0.0.1:8000" } }`.

---@class barchan.NetworkOptions
---@field mode? string "allow" (default): what the entries name; "restricted": the registries, too; "open": all public hosts
---@field allow? string[] "api.example.com", "*.example.org:8443", "10.1.2.0/24:5432"; without a port 80 and 443
---@field deny? string[] likewise, without a port all; deny wins
---@field hosts? table<string, string> names that no name service knows, and their addresses
---@field max_connections? integer at a time, 256; further ones wait
---@field max_bytes? integer both ways, all connections together
---@field bytes_per_second? integer likewise
---@field on_connect? fun(host: string, port: integer): boolean asked once about each host that no entry names, at 80, 443 and the ports of the entries; it may wait as tasks do (barchan.sleep, a model, a sandbox; io.read holds up everything); not of a detached sandbox
---@field on_event? fun(event: barchan.NetworkEvent) called one after the other; what it waits for holds up further events and questions; not of a detached sandbox

---@class barchan.NetworkEvent
---@field type string "connected", "closed", "denied", "failed" or "secret"
---@field host string
---@field port integer
---@field rule string the entry that allowed it, or why not
---@field address? string that was connected to
---@field time number seconds since 1970
---@field bytes_sent integer
---@field bytes_received integer
---@field dropped? integer events that were not told before this one, because nobody took them

---@class barchan.Denied Connections that were refused, or did not come to be, while a command ran; a list's `more` counts those beyond it
---@field host string
---@field port integer
---@field rule string why
---@field tries integer
---@field time number of the last try, seconds since 1970

---@class barchan.NetworkHost What a sandbox did with a host; host "" stands for those beyond the first 1024
---@field host string
---@field connections integer
---@field denied integer
---@field failed integer
---@field bytes_sent integer
---@field bytes_received integer

---@class barchan.Sandbox
local Sandbox = {}

--- Other lists (`allow`, `deny`, `hosts`, `mode`) for connections that are made from now on; those that stand go on.
--- Caps and callbacks stay as they are, and so do answers of on_connect. Lists that need other ports or ranges of
--- addresses than the first ones are refused: nobody listens there. `{ allow = {} }` lists nothing: then on_connect
--- decides, or everything is refused.
---@param network string|barchan.NetworkOptions as the option `network` of a sandbox, but for "off", caps and callbacks
---@return true? done
---@return barchan.Error? err
function Sandbox:set_network(network) end

--- The hosts that a mode would allow now; `sources` has the file that each entry of this machine's registries is
--- `from`.
---@param network string|barchan.NetworkOptions as the option `network` of a sandbox
---@return { mode: string, allow: string[], deny: string[], sources: { entry: string, from: string }[], notes: string[] }?
---@return barchan.Error? err
function barchan.network(network) end
