-- A model that goes round in circles is told so, and stopped when it goes on: the same call again and
-- again, with nothing else between.
local barchan = require "barchan"

local DENY_AT, STOP_AT = 3, 6

return {
  before_call = function(call, run)
    local key = call.name .. " " .. barchan.json.encode(call.arguments)
    local state = run.state
    state.times = state.last == key and state.times + 1 or 1
    state.last = key
    if state.times >= STOP_AT then return "stop", "the same call was made again and again" end
    if state.times >= DENY_AT then
      return "deny", "this very call was made before, and its answer will not change; try something else"
    end
  end,
}
