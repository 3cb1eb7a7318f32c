-- What never waits for anything that comes, and yet lets others run: no slice is long, and no wait tells that
-- the call is over. Each counts what it does; when its call has ended nothing may be counted any more.
local barchan = require "barchan"

local ticks = 0
local cases = {}

local function case(fn) cases[#cases + 1] = fn end
local function tick() ticks = ticks + 1 end
local function closer() return setmetatable({}, { __close = function() while true do end end }) end

case(function()
  while true do tick() coroutine.yield() end
end)

case(function()
  while true do tick() pcall(barchan.sleep, 0) coroutine.yield() end
end)

case(function() -- each ends, but for the one that it leaves
  local function chain() tick() barchan.spawn(chain) coroutine.yield() end
  chain()
  coroutine.yield()
  while true do pcall(barchan.sleep, 1) coroutine.yield() end
end)

case(function()
  local function pair()
    tick()
    for _ = 1, 2 do pcall(barchan.spawn, pair) end
    coroutine.yield()
  end
  pair()
  while true do coroutine.yield() end
end)

case(function() -- each with an end that takes as long as it may
  for _ = 1, 500 do
    barchan.spawn(function()
      local _ <close> = closer()
      while true do tick() coroutine.yield() end
    end)
  end
  while true do coroutine.yield() end
end)

case(function()
  for _ = 1, 500 do
    barchan.spawn(function() pcall(barchan.sleep, 60) while true do tick() end end)
  end
  barchan.sleep(60)
end)

return {
  count = function() return #cases end,
  run = function(i) return cases[i]() end,
  ticks = function() return ticks end,
  tool = function(i)
    local tools = barchan.toolset { { name = "restless", description = "", timeout = 0.2, run = cases[i] } }
    local message = tools:dispatch({ id = "1", name = "restless", arguments = {} })
    return { message.is_error, message.content }
  end,
}
