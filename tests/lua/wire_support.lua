-- What models send, taken from recordings of requests that nobody answers; and turns that are played.
local lu = require "luaunit"
local barchan = require "barchan"

local wire = {}

-- Nothing listens on that port.
wire.BASE_URL = "http://127.0.0.1:9/v1"

function wire.read(path)
  local file = assert(io.open(path))
  local text = file:read "a"
  file:close()
  return text
end

local function model_of(provider, options)
  local given = { provider = provider, name = "m", base_url = wire.BASE_URL, max_retries = 0 }
  for name, value in pairs(options) do given[name] = value end
  return assert(barchan.model(given))
end

-- The two lines of the recording of one request.
local function record(provider, request, options)
  local path = os.tmpname()
  os.remove(path)
  local given = { record = path }
  for name, value in pairs(options or {}) do given[name] = value end
  local reply, err = model_of(provider, given):complete(request)
  lu.assertNil(reply)
  lu.assertEquals(err.code, "network", tostring(err))
  local header, exchange = wire.read(path):match "^(.-\n)(.-)\n$"
  os.remove(path)
  return header, barchan.json.decode(exchange)
end

--- The body of a request as it goes over the wire: decoded, and its text.
function wire.body_of(provider, request, options)
  local _, exchange = record(provider, request, options)
  return barchan.json.decode(exchange.request), exchange.request
end

--- The reply of a model whose server answers this body.
function wire.reply_of(provider, request, body)
  local header, exchange = record(provider, request)
  exchange["end"], exchange.error, exchange.status, exchange.body = "complete", nil, 200, body
  exchange.headers = { ["content-type"] = "application/json" }
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  file:write(header, barchan.json.encode(exchange), "\n")
  file:close()
  local reply = assert(model_of(provider, { replay = path }):complete(request))
  os.remove(path)
  return reply
end

return wire
