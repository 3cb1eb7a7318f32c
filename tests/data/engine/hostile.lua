-- What a hostile script tries, by name: the codes that it may end with, and the attempt. "ok" is a call that
-- returns (true when it found nothing to misuse).
local barchan = require "barchan"

local cases = {}

local function case(name, codes, fn) cases[#cases + 1] = { name = name, codes = codes, fn = fn } end

-- ---- memory ----

case("a growing table", "no_memory", function()
  local t = {}
  while true do t[#t + 1] = t end
end)

case("many closures", "no_memory", function()
  local t = {}
  while true do
    local n = #t
    t[n + 1] = function() return n end
  end
end)

case("many strings", "no_memory", function()
  local t = {}
  for i = 1, math.huge do t[i] = "string " .. i end
end)

case("one long string", "no_memory", function()
  local s = "x"
  while true do s = s .. s end
end)

case("a long concatenation", "no_memory", function()
  local t = {}
  for i = 1, 1000 do t[i] = ("x"):rep(1 << 20) end
  return table.concat(t)
end)

case("a long format", "no_memory script", function() return ("%s"):rep(1000):format(("x"):rep(1 << 20)) end)

case("many coroutines", "no_memory", function()
  local t = {}
  while true do
    t[#t + 1] = coroutine.create(function() coroutine.yield() end)
    coroutine.resume(t[#t])
  end
end)

case("many tasks", "no_memory", function()
  local t = {}
  while true do t[#t + 1] = barchan.spawn(function() barchan.sleep(60) end) end
end)

case("many tasks that wait for one", "ok", function()
  local first = barchan.spawn(function() barchan.sleep(60) end)
  local all = barchan.spawn(function()
    for _ = 1, 10000 do barchan.spawn(function() first:wait() end) end
    barchan.sleep(0.05)
  end)
  return all:wait() and first:status() == "running"
end)

case("a deep chain of tasks", "ok", function()
  local depth = 0
  local function down()
    depth = depth + 1
    barchan.spawn(down)
    barchan.sleep(60)
  end
  local t = barchan.spawn(down)
  while depth < 5000 do barchan.sleep(0) end
  t:cancel()
  return t:wait() == false
end)

case("a wide unpack", "script no_memory", function() return select("#", table.unpack({}, 1, 1 << 28)) end)

case("a wide byte", "script no_memory", function() return select("#", ("x"):rep(1 << 24):byte(1, -1)) end)

case("many upvalues", "script", function()
  local lines = {}
  for i = 1, 300 do lines[i] = ("local v%d = %d"):format(i, i) end
  assert(load(table.concat(lines, "\n")))
end)

case("a chunk with many constants", "ok", function()
  local parts = {}
  for i = 1, 70000 do parts[i] = tostring(i) .. ".5" end
  return #load("return {" .. table.concat(parts, ",") .. "}")() == 70000
end)

case("a memory error in a handler", "no_memory script", function()
  local ok, err = xpcall(function() local s = "x" while true do s = s .. s end end,
    function() local s = "y" while true do s = s .. s end end)
  assert(ok, err)
end)

case("memory that a caught error has freed", "ok", function()
  for _ = 1, 5 do
    pcall(function() local t = {} while true do t[#t + 1] = ("x"):rep(1000) .. #t end end)
  end
  collectgarbage()
  return #("x"):rep(1 << 20) == 1 << 20
end)

-- ---- stacks ----

case("deep recursion", "script no_memory", function()
  local function f() return 1 + f() end
  return f()
end)

case("recursion through pcall", "ok", function()
  local function f() return pcall(f) end
  f()
  return true
end)

case("recursion through coroutines", "ok", function()
  local function f() return pcall(coroutine.wrap(f)) end
  f()
  return true
end)

case("recursion through resume", "ok", function()
  local function f() return coroutine.resume(coroutine.create(f)) end
  f()
  return true
end)

case("recursion through gsub", "ok", function()
  local function f() return (("x"):gsub("x", f)) end
  return not pcall(f)
end)

case("recursion through gmatch and sort", "ok", function()
  local function f() table.sort({ 1, 2, 3 }, f) return true end
  return not pcall(f)
end)

for _, event in ipairs { "__index", "__concat", "__eq", "__lt", "__call", "__len", "__add", "__unm" } do
  case("recursion through " .. event, "ok", function()
    local t, u = {}, {}
    local meta = {}
    local function again()
      if event == "__index" then return t.x end
      if event == "__concat" then return t .. "" end
      if event == "__eq" then return t == u end
      if event == "__lt" then return t < u end
      if event == "__call" then return t() end
      if event == "__len" then return 1 + #t end
      if event == "__add" then return t + 1 end
      return -t
    end
    meta[event] = function() return (again()) end
    setmetatable(t, meta)
    setmetatable(u, meta)
    return not pcall(again)
  end)
end

case("recursion through tostring", "ok", function()
  local t = setmetatable({}, { __tostring = function(self) return tostring(self) end })
  return not pcall(tostring, t)
end)

case("an endless chain of __index", "ok", function()
  local t = {}
  setmetatable(t, { __index = t })
  return not pcall(function() return t.x end)
end)

case("recursion through require and load", "ok", function()
  local function f() return load(function() return f() end) end
  pcall(f)
  return true
end)

for _, bracket in ipairs { { "(", ")" }, { "{", "}" }, { "function() return ", " end" }, { "not ", "" } } do
  case("source nested deeply in " .. bracket[1], "ok", function()
    local chunk, problem = load("return " .. bracket[1]:rep(100000) .. "1" .. bracket[2]:rep(100000))
    return chunk == nil and problem ~= nil
  end)
end

case("nested blocks", "ok", function() return load(("do "):rep(100000) .. ("end "):rep(100000)) == nil end)

case("JSON nested deeply", "ok", function()
  local deep = {}
  for _ = 1, 100000 do deep = { deep } end
  return not pcall(barchan.json.encode, deep) and select(2, barchan.json.decode(("["):rep(100000))) ~= nil
end)

-- ---- error values ----

case("an error that is nil", "script", function() error(nil) end)
case("an error that is a table", "script", function() error {} end)
case("an error that is a function", "script", function() error(print) end)
case("an error that is a coroutine", "script", function() error(coroutine.create(print)) end)
case("an error that is a long string", "script", function() error(("x"):rep(1 << 20)) end)
case("an error with NUL and escapes", "script", function() error "a\0b\27[31mc\nd" end)
case("an error whose tostring fails", "script", function()
  error(setmetatable({}, { __tostring = function() error "no" end }))
end)
case("an error whose tostring is no string", "script", function()
  error(setmetatable({}, { __tostring = function() return {} end }))
end)
case("an error object with odd fields", "script", function()
  error { message = {}, code = 17, status = "x", where = print, retryable = 1, traceback = false }
end)
case("an error object with a code of ours", "cancelled", function() error { code = "cancelled", message = "not so" } end)
case("an error object with a long code", "script", function() error { code = ("x"):rep(1000), message = "m" } end)
case("an error while closing", "script", function()
  local _ <close> = setmetatable({}, { __close = function() error "in close" end })
  error "first"
end)
case("an error in the error handler", "script", function() assert(xpcall(error, error)) end)

-- ---- what may be returned ----

case("a result that is a function", "script", function() return print end)
case("a result with a cycle", "script", function() local t = {} t.t = t return t end)
case("a result that is not a number", "script", function() return 0 / 0 end)
case("a result that is endless", "script", function() return 1e308 * 10 end)
case("a result with invalid UTF-8", "ok", function()
  return barchan.json.decode(barchan.json.encode "\xff") == "\u{FFFD}"
end)
case("a result with a sparse list", "script", function() return { 1, nil, nil, nil, [1000000] = 1 } end)
case("a result with mixed keys", "script", function() return { 1, x = 2 } end)
case("a result with traps", "ok", function()
  local function trap() error "a metamethod ran" end
  local traps = { __index = trap, __pairs = trap, __len = trap, __tostring = trap, __eq = trap }
  return setmetatable({ true }, traps)[1]
end)
case("many results", "ok", function() return true, table.unpack({}, 1, 200) end)

-- ---- code that is no text ----

case("bytecode", "ok", function()
  local pieces = { "return 1", "\27Lua" }
  local binary = "\27Lua\x54\x00\x19\x93\r\n\x1a\n"
  return load(binary) == nil and load(binary, "x", "b") == nil and load(binary, "x", "bt") == nil
    and load(function() return table.remove(pieces, 2) end, "x", "b") == nil
    and string.dump == nil
end)

case("names that are no modules", "ok", function()
  for _, name in ipairs { "../x", "/etc/passwd", "a/b", "x\0y", "", ".", "a..b", ("x"):rep(1000), "%a", "a;b" } do
    local ok, problem = pcall(require, name)
    if ok or not tostring(problem):find "not" then return false end
  end
  return not pcall(require, "barchan.cli") and not pcall(require, "_barchan.host")
end)

-- ---- what belongs to others ----

case("metatables", "ok", function()
  local sbx, model = barchan.json.null, barchan.spawn(function() end)
  local s = getmetatable ""
  return s == "locked" and not pcall(setmetatable, "", {}) and getmetatable(model) == "locked"
    and not pcall(setmetatable, model, {}) and not pcall(setmetatable, sbx, {})
end)

case("methods on what is not theirs", "ok", function()
  local t = barchan.spawn(function() end)
  for _, self in ipairs { 1, "x", {}, print, barchan.json.null, coroutine.create(print) } do
    for _, method in ipairs { t.wait, t.cancel, t.status } do
      if pcall(method, self) then return false end
    end
  end
  return not pcall(t.wait) and not pcall(t.cancel, nil)
end)

case("the collector", "ok", function()
  for _, word in ipairs { "stop", "restart", "generational", "incremental", "setpause", "setstepmul", "isrunning" } do
    if pcall(collectgarbage, word) then return false end
  end
  return pcall(collectgarbage) and pcall(collectgarbage, "count") and pcall(collectgarbage, "step")
end)

case("finalizers", "ok", function()
  local meta = {}
  local t = setmetatable({}, meta)
  meta.__gc = function() while true do end end -- too late: it counts at setmetatable only
  t = nil
  collectgarbage()
  return not pcall(setmetatable, {}, { __gc = print }) and t == nil
end)

case("a mode that kills keys in a walk", "ok", function()
  local t = setmetatable({}, { __mode = "k" })
  for _ = 1, 1000 do t[{}] = {} end
  for key in pairs(t) do
    t[key] = nil
    collectgarbage()
  end
  return next(t) == nil
end)

case("a sort that lies", "ok", function()
  local t = {}
  for i = 1, 1000 do t[i] = i end
  pcall(table.sort, t, function() return true end)
  return #t == 1000
end)

-- ---- waits where there can be none ----

case("a wait in a sort", "script", function()
  table.sort({ 2, 1 }, function() barchan.sleep(0) return true end)
end)
case("a wait in a substitution", "script", function() return (("x"):gsub("x", function() barchan.sleep(0) end)) end)
case("a wait in a loader", "script", function() assert(load(function() barchan.sleep(0) end)) end)
case("a yield out of a sort", "script", function()
  coroutine.wrap(function() table.sort({ 2, 1 }, coroutine.yield) end)()
end)
case("a task that waits for itself", "script", function()
  local t
  t = barchan.spawn(function() return t:wait() end)
  local _, err = t:wait()
  error(err, 0)
end)
case("tasks that wait for each other", "ok", function()
  local a, b
  a = barchan.spawn(function() return b:wait() end)
  b = barchan.spawn(function() return a:wait() end)
  barchan.sleep(0.01)
  a:cancel()
  return a:wait() == false
end)
case("its own coroutine, resumed", "ok", function()
  return coroutine.resume(coroutine.running()) == false and not pcall(coroutine.close, coroutine.running())
end)

-- ---- for the test ----

return {
  count = function() return #cases end,
  describe = function(i) return { cases[i].name, cases[i].codes } end,
  run = function(i) return cases[i].fn() end,
  alive = function()
    barchan.sleep(0)
    return #("x"):rep(1000) + #barchan.json.encode { 1 }
  end,
}
