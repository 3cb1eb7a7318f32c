-- A whole run of an agent whose commands use a secret: a job on standard input, what a model saw on standard
-- output, events on standard error, the transcript where the job says. The model is a list of commands.
local barchan = require "barchan"

local job = barchan.json.decode(io.read "a")
local seen, turn = {}, 0

local function complete(request)
  seen[#seen + 1] = request.messages
  turn = turn + 1
  local command = job.commands[turn]
  if not command then
    return { role = "assistant", text = "done", tool_calls = {}, stop_reason = "end_turn" }
  end
  local call = { id = "call" .. turn, name = "exec", arguments = { command = command } }
  return { role = "assistant", text = "", tool_calls = { call }, stop_reason = "tool_use" }
end

local sbx <close> = assert(barchan.sandbox {
  network = { allow = job.allow, hosts = job.hosts },
  secrets = { { name = "TOKEN", from = "env:SECRET_OF_A_TEST", hosts = job.bound, ca_file = job.ca_file } },
})
local writer <close> = assert(barchan.transcript.open(job.transcript))
local agent = barchan.agent {
  model = barchan.model { name = "scripted", provider = { complete = complete } },
  tools = barchan.toolset { "exec", sandbox = sbx },
  transcript = writer,
  on_event = function(event) io.stderr:write(barchan.json.encode(event), "\n") end,
}
local result = agent:run "go"
print(barchan.json.encode { text = result.text, stop_reason = result.stop_reason, seen = seen,
  error = result.error and tostring(result.error) })
