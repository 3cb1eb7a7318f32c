-- What never ends by itself, as hostile.lua has it; run with a short slice. Each must be stopped, or end by
-- itself, whatever it puts in the watchdog's way.
local barchan = require "barchan"

local cases = {}

local function case(name, codes, fn) cases[#cases + 1] = { name = name, codes = codes, fn = fn } end

local function forever() while true do end end
local function closer(fn) return setmetatable({}, { __close = fn or forever }) end
local function lying(n) return setmetatable({}, { __len = function() return n end }) end

-- ---- what is left to be closed ----

case("a closer after the stop", "timeout", function() local x <close> = closer() forever() end)

case("many closers", "timeout", function()
  local a <close> = closer()
  local b <close> = closer()
  local c <close> = closer()
  forever()
end)

case("a closer in a coroutine", "timeout", function()
  coroutine.wrap(function() local x <close> = closer() forever() end)()
end)

case("a closer in a coroutine that is resumed", "timeout", function()
  while true do
    coroutine.resume(coroutine.create(function() local x <close> = closer() forever() end))
  end
end)

case("a closer in a comparison", "timeout", function()
  table.sort({ 3, 2, 1 }, function() local x <close> = closer() forever() end)
end)

case("a closer in a comparison in a coroutine", "timeout", function()
  coroutine.wrap(function()
    table.sort({ 3, 2, 1 }, function() local x <close> = closer() forever() end)
  end)()
end)

case("a closer that is closed by hand", "timeout", function()
  while true do
    local co = coroutine.create(function() local x <close> = closer() coroutine.yield() end)
    coroutine.resume(co)
    coroutine.close(co)
  end
end)

case("a closer that closes", "timeout", function()
  local x <close> = closer(function() local y <close> = closer() forever() end)
  forever()
end)

case("a tool that closes for ever", "ok", function()
  local tools = barchan.toolset { {
    name = "t", description = "", run = function() local x <close> = closer() forever() end,
  } }
  return tools:dispatch({ id = "1", name = "t", arguments = {} }).is_error
end)

-- ---- what catches ----

case("a chain of pcalls", "timeout", function()
  local function f() while true do pcall(f) end end
  f()
end)

case("a chain of xpcalls", "timeout", function()
  local function f() while true do xpcall(f, function() forever() end) end end
  f()
end)

case("pcalls in coroutines", "timeout", function()
  local function f() while true do pcall(coroutine.wrap(function() pcall(f) end)) end end
  f()
end)

-- ---- loops in C ----

case("insert where the length lies", "script", function() table.insert(lying(1 << 40), 1, 0) end)
case("remove where the length lies", "script", function() table.remove(lying(1 << 40), 1) end)
case("sort where the length lies", "script", function() table.sort(lying(1 << 30), math.ult) end)
case("concat where the length lies", "script", function() return table.concat(lying(1 << 40)) end)
case("concat of a range", "script", function()
  return table.concat({}, "", math.mininteger, math.maxinteger)
end)
case("unpack where the length lies", "script", function() return table.unpack(lying(1 << 40)) end)
case("unpack of a range", "script", function() return table.unpack({}, math.mininteger, math.maxinteger) end)
case("a move of nothing", "script", function()
  table.move(setmetatable({}, { __index = {} }), 1, 1 << 26, 1, setmetatable({}, { __newindex = {} }))
end)

-- ---- few instructions that take long each ----

local function long() return ("x"):rep(4 << 20) end
local function many()
  local list = {}
  for i = 1, 200000 do list[i] = { i } end
  return list
end

case("collections", "timeout", function()
  local kept = many()
  while true do collectgarbage() end
  return kept
end)
case("texts of JSON", "timeout", function()
  local list = many()
  while true do barchan.json.encode(list) end
end)
case("values of JSON", "timeout", function()
  local text = barchan.json.encode(many())
  while true do barchan.json.decode(text) end
end)
case("concatenations", "timeout", function()
  local list = {}
  for i = 1, 500000 do list[i] = "x" end
  while true do table.concat(list) end
end)
case("moves", "timeout", function()
  local list = many()
  while true do table.move(list, 1, 1 << 20, 1, {}) end
end)
case("repetitions", "timeout", function() while true do ("x"):rep(1 << 22) end end)
case("letters", "timeout", function()
  local text = long()
  while true do text:upper():lower():reverse() end
end)
case("code points", "timeout", function()
  local text = long()
  while true do utf8.len(text) utf8.offset(text, -1, 1) end
end)

-- ---- patterns ----

case("a set that is large", "timeout", function()
  local set = "[" .. ("b"):rep(300000) .. "]*c"
  while true do string.find(("a"):rep(20000), set) end
end)

case("a reference that is long", "timeout", function()
  local s = ("a"):rep(200000)
  while true do string.find(s .. "b" .. s, "(a*)b%1c") end
end)

case("a frontier of a large set", "timeout", function()
  while true do string.find(("a"):rep(20000), "%f[" .. ("b"):rep(300000) .. "]") end
end)

-- ---- tasks ----

case("a flood of tasks", "no_memory timeout", function()
  for _ = 1, 1e7 do barchan.spawn(function() end) end
end)

case("a deep chain of tasks", "ok", function()
  local function nest(n)
    if n == 0 then return barchan.sleep(60) end
    return barchan.spawn(nest, n - 1):wait()
  end
  local t = barchan.spawn(nest, 3000)
  barchan.sleep(0.05)
  t:cancel()
  return true
end)

return {
  count = function() return #cases end,
  describe = function(i) return { cases[i].name, cases[i].codes } end,
  run = function(i) return cases[i].fn() end,
  alive = function()
    local total = 0
    for i = 1, 3 do total = total + barchan.gather({ function() return i end })[1].value end
    return total + 997
  end,
}
