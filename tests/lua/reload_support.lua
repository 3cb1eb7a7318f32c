-- A directory of scripts that tests edit, and the model turns that they replay.
local lu = require "luaunit"
local barchan = require "barchan"

local support = {}

local Dir = {}
Dir.__index = Dir

function support.sh(format, ...) assert(os.execute(format:format(...))) end

--- The primitives in C, which scripts do not see but through the library's own.
function support.core()
  for i = 1, 50 do
    local name, value = debug.getupvalue(require("barchan.docs").topics, i)
    if name == "core" then return value end
  end
end

--- What a command prints.
function support.sh_says(command)
  local pipe = assert(io.popen(command))
  local text = pipe:read "a"
  pipe:close()
  return text
end

--- A fresh directory; `remove` it.
function support.dir()
  local path = os.tmpname()
  os.remove(path)
  support.sh("mkdir -m 755 %s", path)
  return setmetatable({ path = path }, Dir)
end

function Dir:write(name, text)
  local file = assert(io.open(self.path .. "/" .. name, "w"))
  file:write(text)
  file:close()
end

--- As root to another user, and open to everybody: what commands see of it is then the same as as a user.
function Dir:give() support.sh("chmod -R go+rX %s; chown -R 12345:12345 %s 2>/dev/null || true", self.path, self.path) end

function Dir:read(name)
  local file = io.open(self.path .. "/" .. name)
  if not file then return nil end
  local text = file:read "a"
  file:close()
  return text
end

function Dir:remove() support.sh("chmod -R u+rwx %s; rm -rf %s", self.path, self.path) end

--- Skips the test where the kernel has not what copy-on-write mounts need.
function support.needs_copies()
  for _, entry in ipairs(assert(barchan.doctor())) do
    if entry.name == "copy_on_write" and entry.state ~= "ok" then lu.skip(entry.detail) end
  end
end

--- One of everything that has methods, by what messages call it; the sandbox is the caller's to end.
function support.objects(dir, sbx)
  dir:write("loop.lua", "return { turn = function() return 1 end }")
  local model = support.replaying "hi"
  return {
    sandbox = sbx, ["sandbox.files"] = sbx.files, process = assert(sbx:spawn "cat"),
    stream = sbx:stream { "cat", stdin = true }, result = assert(sbx:exec "true"), model = model,
    tools = barchan.toolset {}, agent = barchan.agent { model = model }, policies = barchan.policies {},
    script = barchan.script { file = dir.path .. "/loop.lua" }, task = barchan.spawn(function() end),
    writer = assert(barchan.transcript.open(dir.path .. "/run.jsonl")),
  }
end

--- Waits until `happened()` is true; fails with `what` after a while.
function support.eventually(happened, what)
  local deadline = barchan.now() + 20
  while not happened() do
    lu.assertTrue(barchan.now() < deadline, what)
    barchan.sleep(0.02)
  end
end

--- The example in the manual: of a topic, or of what one of its functions says; to be called.
function support.example(topic_name, function_name, env)
  local lines = {}
  local function take(text)
    for line in text:gmatch "[^\n]+" do lines[#lines + 1] = line:match "^    (.*)" end
  end
  for _, topic in ipairs(require("barchan.docs").topics()) do
    if topic.name == topic_name and not function_name then take(topic.intro) end
    for _, item in ipairs(topic.name == topic_name and topic.items or {}) do
      if item.kind == "function" and item.name == function_name then take(item.text) end
    end
  end
  return assert(load(table.concat(lines, "\n"), "example", "t", setmetatable(env, { __index = _G })))
end

--- The path of a file of examples/data.
function support.data(name)
  return assert(debug.getinfo(1, "S").source:match "^@(.-)tests/lua/") .. "examples/data/" .. name
end

--- A model that plays turns: each is a list of calls { name, arguments }, or a text, the last answer.
function support.replaying(...)
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  file:write '{"type":"transcript","version":1}\n'
  for i, turn in ipairs { ... } do
    local reply = { role = "assistant", text = "", tool_calls = barchan.json.array {}, stop_reason = "tool_use" }
    if type(turn) == "string" then
      reply.text, reply.stop_reason = turn, "end_turn"
    else
      for j, call in ipairs(turn) do
        reply.tool_calls[j] = { id = ("%d.%d"):format(i, j), name = call[1], arguments = call[2] or {} }
      end
    end
    file:write(barchan.json.encode { type = "model_reply", reply = reply }, "\n")
  end
  file:close()
  local model = assert(barchan.model { provider = "replay", replay = path })
  os.remove(path)
  return model
end

return support
