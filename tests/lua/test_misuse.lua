-- Wrong arguments: each error begins with the line of the script that gave them, and names the public call.
local lu = require "luaunit"
local barchan = require "barchan"
local misuse = require "barchan.misuse"
local support = require "reload_support"

local T = {}

local sbx, process, stream, dir

function T:setUp()
  dir = support.dir()
  dir:write("loop.lua", "return { turn = print }")
  sbx = assert(barchan.sandbox())
  process = assert(sbx:spawn "cat")
  stream = sbx:stream { "cat", stdin = true }
end

function T:tearDown()
  sbx:terminate()
  dir:remove()
end

-- What `fn` throws must begin with a line of this file, once, and go on with `message`.
local function refused(message, fn)
  local ok, problem = pcall(fn)
  lu.assertFalse(ok, message)
  problem = tostring(problem)
  local place, rest = problem:match "^([^:]*test_%w+%.lua:%d+): (.*)$"
  lu.assertNotNil(place, problem)
  lu.assertNil(rest:find("%.lua:%d+:"), problem)
  lu.assertEquals(rest:sub(1, #message), message)
end

function T:test_methods_called_with_a_point()
  local model = support.replaying "hi"
  local objects = {
    sandbox = sbx, ["sandbox.files"] = sbx.files, process = process, stream = stream, model = model,
    result = assert(sbx:exec "true"), tools = barchan.toolset {}, agent = barchan.agent { model = model },
    policies = barchan.policies {}, script = barchan.script { file = dir.path .. "/loop.lua" },
    writer = assert(barchan.transcript.open(dir.path .. "/run.jsonl")), task = barchan.spawn(function() end),
  }
  for what, object in pairs(objects) do
    local count = 0
    for name, method in pairs(debug.getmetatable(object).__index) do
      if type(method) == "function" and not name:find "^__" then
        local message = ("%s: call it with ':', as %s:%s(…)"):format(name, what, name)
        for _, wrong in ipairs { {}, "x", print } do refused(message, function() method(wrong) end) end
        refused(message, function() method() end)
        count = count + 1
      end
    end
    lu.assertTrue(count > 0, what)
  end
end

function T:test_the_place_is_the_first_line_outside()
  local here = debug.getinfo(1, "l").currentline
  local _, problem = pcall(function()
    return { barchan.gather { function() end, 5 } }
  end)
  lu.assertStrContains(problem, ("test_misuse.lua:%d: gather: "):format(here + 2))
  -- Called by C, the line that has C call it.
  _, problem = pcall(barchan.gather, 5)
  lu.assertStrContains(problem, ("test_misuse.lua:%d: gather: "):format(here + 6))
  -- A tool of somebody else is such a line, too.
  local tools = barchan.toolset { { name = "t", description = "", run = function() misuse.expected("t", "x", 5) end } }
  local message = tools:dispatch { id = "1", name = "t", arguments = {} }
  lu.assertStrContains(message.content, ("test_misuse.lua:%d: t: x expected, got 5"):format(here + 9))
  local published = {}
  misuse.publish { f = published.f }
  misuse.methods({}, "nothing")
end

return { TestMisuse = T }
