-- The types in bindings/lua/meta against what C and the scripts export: both ways, functions, fields, options.
local lu = require "luaunit"
local barchan = require "barchan"
local docs = require "barchan.docs"
local support = require "reload_support"

local T = {}

-- Everything that the types declare: functions by class, fields by class.
local function declared()
  local functions, fields = {}, {}
  for _, topic in ipairs(docs.topics()) do
    for _, item in ipairs(topic.items) do
      local class = item.kind == "class" and item.name or item.owner
      if class == "barchan.json" or class == "barchan.transcripts" then class = class:gsub("s$", "") end
      functions[class] = functions[class] or {}
      fields[class] = fields[class] or {}
      if item.kind == "function" then
        functions[class][item.name] = item
      else
        for _, field in ipairs(item.fields) do fields[class][field.name] = field end
      end
    end
  end
  return functions, fields
end

local function keys(t, keep)
  local list = {}
  for key, value in pairs(t) do
    if type(key) == "string" and not key:find "^__" and keep(value) then list[#list + 1] = key end
  end
  table.sort(list)
  return list
end

local function is_function(value) return type(value) == "function" end
local function is_any() return true end

-- The methods of one object of each class, its table of methods found through its metatable.
local function methods(object)
  local index = debug.getmetatable(object).__index
  return keys(type(index) == "table" and index or debug.getmetatable(object), is_function)
end

function T:test_functions()
  local dir = support.dir()
  local sbx <close> = assert(barchan.sandbox())
  local functions, objects = declared(), support.objects(dir, sbx)
  local classes = {
    ["barchan"] = keys(barchan, is_function), ["barchan.json"] = keys(barchan.json, is_function),
    ["barchan.transcript"] = keys(barchan.transcript, is_function),
    ["barchan.templates"] = keys(barchan.templates, is_function),
    ["barchan.Sandbox"] = methods(sbx), ["barchan.Files"] = methods(sbx.files),
    ["barchan.ExecResult"] = methods(objects.result), ["barchan.Stream"] = methods(objects.stream),
    ["barchan.Process"] = methods(objects.process), ["barchan.Model"] = methods(objects.model),
    ["barchan.Toolset"] = methods(objects.tools), ["barchan.Agent"] = methods(objects.agent),
    ["barchan.Policies"] = methods(objects.policies), ["barchan.Script"] = methods(objects.script),
    ["barchan.Task"] = methods(objects.task),
  }
  dir:remove()
  for class, list in pairs(functions) do
    if next(list) then lu.assertEquals(keys(list, is_any), classes[class], class) end
  end
  for class in pairs(classes) do lu.assertTrue(next(functions[class] or {}) ~= nil, class .. " is not described") end
end

function T:test_each_function_is_described_with_its_parameters()
  for class, list in pairs(declared()) do
    for name, item in pairs(list) do
      if not item.private then
        lu.assertTrue(item.text ~= "" or #item.returns > 0, class .. "." .. name .. " says nothing")
        local params = {}
        for i, param in ipairs(item.params) do params[i] = param.name:gsub("%?$", "") end
        lu.assertEquals(table.concat(params, ", "), item.args, class .. "." .. name)
      end
    end
  end
end

function T:test_fields_that_are_no_functions()
  local _, fields = declared()
  for _, name in ipairs(keys(barchan, function(v) return type(v) ~= "function" end)) do
    lu.assertNotNil(fields.barchan[name], name)
  end
  local sbx <close> = assert(barchan.sandbox())
  for name in pairs(assert(sbx:exec "true")) do lu.assertNotNil(fields["barchan.ExecResult"][name], name) end
  local result = barchan.agent { model = support.replaying "hi" }:run "q"
  for name in pairs(result) do lu.assertNotNil(fields["barchan.AgentResult"][name], name) end
  local _, err = barchan.model { replay = "/no/such" }
  for name in pairs(err) do lu.assertNotNil(fields["barchan.Error"][name], name) end
end

-- What a result has is declared, and what is declared without '?' is there.
local function compare(class, object)
  local _, fields = declared()
  for name in pairs(object) do lu.assertNotNil(fields[class][name], class .. "." .. name .. " is not declared") end
  for name, field in pairs(fields[class]) do
    lu.assertTrue(field.optional or object[name] ~= nil, ("%s.%s may be missing"):format(class, name))
  end
end

function T:test_fields_of_results()
  local sbx <close> = assert(barchan.sandbox())
  for _, command in ipairs { { "true" }, { "false" }, { sh = "kill -9 $$" }, { "/no/such" }, { "true", cwd = "/no/such" },
    { "sleep", "9", timeout = 0.05 }, { "seq", "1000", output_limit = 10 }, { sh = "seq 1000 >&2", output_limit = 10 } } do
    compare("barchan.ExecResult", assert(sbx:exec(command)))
  end
  assert(sbx:exec "ln -s a b; echo c > d")
  for _, change in ipairs(assert(sbx:changes())) do compare("barchan.Change", change) end
  local seen
  local tool = { name = "look", run = function(_, ctx) seen = ctx return "" end }
  local policy = { before_call = function(call, run)
    compare("barchan.Call", call)
    for name, field in pairs(select(2, declared())["barchan.PolicyRun"]) do
      lu.assertTrue(field.optional or run[name] ~= nil, name)
    end
  end }
  local run = barchan.agent {
    model = support.replaying({ { "look" } }, "hi"), tools = { tool, sandbox = sbx }, policy = policy,
  }:run "q"
  compare("barchan.AgentResult", run)
  compare("barchan.Reply", run.messages[2])
  compare("barchan.ToolContext", seen)
  compare("barchan.Error", select(2, barchan.model { replay = "/no/such" }))
  compare("barchan.Error", select(2, sbx.files:read "none"))
  local answers = barchan.model { name = "x", provider = { complete = function() return {} end } }
  compare("barchan.Reply", assert(answers:complete { messages = "q", schema = {} }))
end

function T:test_the_manual_says_what_may_be_missing()
  local parts = {}
  for _, topic in ipairs(docs.topics()) do docs.write(topic, function(...) parts[#parts + 1] = table.concat { ... } end) end
  local text = table.concat(parts)
  for _, line in ipairs { "- `denied?` (Denied[])", "- `exit_code?` (integer)", "- `reason` (string)", "- `lease?` (number)" } do
    lu.assertStrContains(text, line)
  end
end

-- What there is of options, from what the refusal of an unknown one lists.
local function options_of(fn, ...)
  local ok, problem = pcall(fn, ...)
  lu.assertFalse(ok)
  local list = {}
  for name in problem:match("there is: (.*)$"):gmatch "[%w_]+" do list[#list + 1] = name end
  return list
end

function T:test_options()
  local UNKNOWN = "zzzzzzzzzzzz"
  local sbx <close> = assert(barchan.sandbox())
  local model = support.replaying "hi"
  local _, fields = declared()
  local turns = options_of(model.turns, model, { [UNKNOWN] = 1 })
  lu.assertItemsEquals(options_of(model.complete, model, { [UNKNOWN] = 1, messages = "x" }),
    keys(fields["barchan.CompleteOptions"], function(f) return f.name ~= "max" end))
  local cases = {
    ["barchan.SandboxOptions"] = options_of(barchan.sandbox, { [UNKNOWN] = 1 }),
    ["barchan.ExecOptions"] = options_of(sbx.exec, sbx, { "x", [UNKNOWN] = 1 }),
    ["barchan.SpawnOptions"] = options_of(sbx.spawn, sbx, { "x", [UNKNOWN] = 1 }),
    ["barchan.NetworkOptions"] = options_of(barchan.sandbox, { network = { [UNKNOWN] = 1 } }),
    ["barchan.SecretOptions"] = options_of(barchan.sandbox, { secrets = { { [UNKNOWN] = 1 } } }),
    ["barchan.ApplyOptions"] = options_of(sbx.apply_changes, sbx, "/tmp", { [UNKNOWN] = 1 }),
    ["barchan.SnapshotOptions"] = options_of(sbx.snapshot, sbx, "x", { [UNKNOWN] = 1 }),
    ["barchan.ModelOptions"] = options_of(barchan.model, { [UNKNOWN] = 1 }),
    ["barchan.CompleteOptions"] = turns,
    ["barchan.Tool"] = options_of(barchan.tool, { name = "x", [UNKNOWN] = 1 }),
    ["barchan.ToolsetOptions"] = options_of(barchan.toolset, { [UNKNOWN] = 1 }),
    ["barchan.AgentOptions"] = options_of(barchan.agent, { [UNKNOWN] = 1 }),
    ["barchan.Policy"] = options_of(barchan.policies, { { [UNKNOWN] = 1 } }),
    ["barchan.PoliciesOptions"] = options_of(barchan.policies, { dir = "x", [UNKNOWN] = 1 }),
    ["barchan.Price"] = options_of(function() barchan.prices["x:y"] = { [UNKNOWN] = 1 } end),
    ["barchan.Preset"] = options_of(function() barchan.presets.x = { [UNKNOWN] = 1 } end),
    ["barchan.ScriptOptions"] = options_of(barchan.script, { [UNKNOWN] = 1 }),
  }
  for class, list in pairs(cases) do lu.assertEquals(keys(fields[class], is_any), list, class) end
  for class in pairs(fields) do
    if class:find "Options$" then lu.assertNotNil(cases[class], class .. " is compared with nothing") end
  end
  lu.assertEquals(options_of(barchan.sandbox, { limits = { [UNKNOWN] = 1 } }), keys(fields["barchan.Limits"], is_any))
end

return { TestMeta = T }
