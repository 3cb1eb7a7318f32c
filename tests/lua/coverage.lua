-- Which of the functions that C and the scripts export, and which options, the suites have used. `start` before
-- anything runs; `report` prints what was never used, and whether that is nothing.
local coverage = {}

local called = {} -- function -> true
local options = {} -- where they are taken -> { name -> whether it was given }

-- Options of these are those of another (complete, exec), which has them all used.
local same_as_others = { turns = true, spawn = true, set_network = true, network = true }

local function of_core()
  for i = 1, 50 do
    local name, value = debug.getupvalue(require("barchan.docs").topics, i)
    if name == "core" then return value end
  end
  error "the primitives were not found"
end

local function on_call()
  local fn = debug.getinfo(2, "f").func
  called[fn] = true
  if fn ~= coverage.check then return end
  local _, where = debug.getlocal(2, 1)
  local _, given = debug.getlocal(2, 2)
  local _, spec = debug.getlocal(2, 3)
  if type(given) ~= "table" or type(spec) ~= "table" then return end
  where = where:gsub(" '.*", ""):gsub("%[%d+%]", "")
  local here = options[where] or {}
  options[where] = here
  for name in pairs(spec) do here[name] = here[name] or given[name] ~= nil end
end

local watching = false

-- A hook of the debug library belongs to one coroutine: each gets its own at its start.
local function hooked(fn)
  return function(...)
    if watching then debug.sethook(on_call, "c") end
    return fn(...)
  end
end

local function hook_what_it_starts(t, name)
  local start = t[name]
  t[name] = function(fn, ...)
    if type(fn) ~= "function" then return start(fn, ...) end
    return start(hooked(fn), ...)
  end
  return start
end

--- Hooks every call from here on, in tasks and coroutines too. (Not what loads scripts: it has a hook already.)
function coverage.start()
  coverage.check = require("barchan.options").check
  local misuse = require "barchan.misuse"
  called[misuse.methods], called[misuse.publish] = true, true -- as the library was loaded
  called[hook_what_it_starts(require "barchan.task", "spawn")] = true
  hook_what_it_starts(require "barchan", "spawn")
  hook_what_it_starts(coroutine, "create")
  hook_what_it_starts(coroutine, "wrap")
  watching = true
  debug.sethook(on_call, "c")
end

--- Calls fn without hooks: where the watchdog's own is what is tested.
function coverage.without(fn)
  local was = watching
  watching = false
  debug.sethook()
  fn()
  watching = was
  if was then debug.sethook(on_call, "c") end
end

-- All that is exported, by a name for the report. One function may have several names; one is enough.
local function exported()
  local names, seen = {}, {}
  local function add(name, value)
    if type(value) == "function" and not names[value] then names[value] = name end
    if type(value) ~= "table" or seen[value] then return end
    seen[value] = true
    for key, inner in pairs(value) do
      if type(key) == "string" and not key:find "^__" then add(name .. "." .. key, inner) end
    end
  end
  add("core", of_core())
  for key, class in pairs(debug.getregistry()) do
    if type(key) == "string" and key:find "^barchan" and type(class) == "table" then
      add(key, type(class.__index) == "table" and class.__index or {})
      -- Without __gc: finalizers run where no hook sees them.
      for _, event in ipairs { "__close", "__tostring" } do
        if class[event] ~= class.__gc then add(key .. "." .. event, class[event]) end
      end
    end
  end
  add("barchan", require "barchan")
  for name, module in pairs(package.loaded) do
    if name:find "^barchan%." and not name:find "^barchan%.cli" and type(module) == "table" then
      add(name, module)
      for _, fn in pairs(module) do -- classes are upvalues of the functions that make their objects
        for i = 1, type(fn) == "function" and 50 or 0 do
          local upvalue, value = debug.getupvalue(fn, i)
          if not upvalue then break end
          if type(value) == "table" and rawget(value, "__index") == value then add(name .. ":" .. upvalue, value) end
        end
      end
    end
  end
  return names
end

local function print_missing(what, total, missing)
  table.sort(missing)
  print(("binding coverage: %d of %d %s"):format(total - #missing, total, what))
  for _, name in ipairs(missing) do print("  never used: " .. name) end
  return #missing
end

--- Prints the figures; returns how many functions and options were never used.
function coverage.report()
  debug.sethook()
  local functions, unused, given, ungiven = 0, {}, 0, {}
  for fn, name in pairs(exported()) do
    functions = functions + 1
    if not called[fn] then unused[#unused + 1] = name end
  end
  for where, names in pairs(options) do
    for name, was_given in pairs(same_as_others[where] and {} or names) do
      given = given + 1
      if not was_given then ungiven[#ungiven + 1] = where .. ": " .. tostring(name) end
    end
  end
  return print_missing("functions", functions, unused) + print_missing("options", given, ungiven)
end

return coverage
