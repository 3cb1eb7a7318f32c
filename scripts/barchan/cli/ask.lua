-- barchan ask: one question to an agent with a sandbox.
local _, core = ...

local agent = require "barchan.agent"
local args = require "barchan.cli.args"
local built_in = require "barchan.built_in"
local model = require "barchan.model"
local policy = require "barchan.policy"
local profile = require "barchan.cli.profile"
local sandbox = require "barchan.sandbox"
local tool = require "barchan.tool"
local toolset = require "barchan.toolset"
local transcript = require "barchan.transcript"
local ui = require "barchan.cli.ui"

local out = ui.out

local command = {
  summary = "ask a model that has a sandbox",
  usage = [[
usage: barchan ask [OPTIONS] "PROMPT"

Asks a model, runs the tools that it calls in a fresh sandbox, and prints its answer. "-" reads the
prompt from standard input.

  --model P:NAME      provider and model, as anthropic:NAME or openai:NAME (default: BARCHAN_MODEL, or
                      the provider whose key is set)
  --base-url URL      another address of the provider, or a compatible server; with or without /v1.
                      The provider's key in the environment is sent there
  --allow-plain-http  let URL be http beyond this machine: keys and answers go unprotected
  --system TEXT       the system prompt
  --max-steps N       completions until the model must answer (default: 16)
  --tools A,B         the built-in tools (default: all)
  --tool-dir DIR      tool files of your own, all of them; may be repeated
  --policy A,B        built-in policies: rules that are asked before each call
  --policy-dir DIR    policy files of your own, all of them; may be repeated
  --watch             let edits of these files take effect at the model's next turn
  --template T        "host" (default), a name of barchan template list, or a root directory
  --network M         what its sandbox may reach: off (default), restricted, open, allow=A,B; --allow E
                      and --deny E for single hosts, --host N=A for a name's address; see barchan
                      network --help
  --mount S:T         shows the host's folder or file S at T, read-only; S:T:rw writable, S:T:cow
                      copy-on-write; may be repeated
  --limits L          what the sandbox may use: memory=1G,pids=50,…; see barchan exec --help
  --env K=V           a variable for its commands; may be repeated
  --best-effort       go on without layers of isolation that this machine lacks
  --timeout S         seconds for the whole run
  --no-stream         ask for the answer in one piece
  --json              print events as JSON lines instead of text
  --transcript FILE   record the run
  --record FILE       record what goes over the wire to the model, without the key
  --replay FILE       play recorded model turns instead of asking a model: a transcript, or a recording

Keys come from ANTHROPIC_API_KEY, OPENAI_API_KEY and GEMINI_API_KEY, addresses from ..._BASE_URL;
a server on this machine needs no key.

exit code: 0 when the model finished; 1 when the run stopped before: no steps, tokens or time left, a refusal,
a policy ("stopped: max_steps", …); 2 wrong usage; 125 the model could not be asked ("stopped: error"), or
Barchan failed; 128+n ended by signal n (130: Ctrl-C).
]],
}

local SYSTEM = [[
You have a sandboxed Linux computer %s, reached by your tools. Its files live as long as
this conversation. When a question can be answered by computing, compute it rather than guess, check the
exit code of what you run, and answer from what you saw.]]

local networks = {
  off = "without network",
  allow = "that can reach a few hosts only",
  restricted = "that can reach the package registries but little else",
  open = "that can reach the public internet",
}

local function system_prompt(network)
  local mode = type(network) == "table" and network.mode or "off"
  return SYSTEM:format(networks[mode])
end

local EXIT_STOPPED, EXIT_FAILED = 1, 125

local flags = profile.with_network {
  model = { type = "string" },
  ["base-url"] = { type = "string" },
  ["allow-plain-http"] = { type = "flag" },
  system = { type = "string" },
  ["max-steps"] = { type = "integer", positive = true },
  tools = { type = "string" },
  ["tool-dir"] = { type = "string", many = true },
  policy = { type = "string" },
  ["policy-dir"] = { type = "string", many = true },
  watch = { type = "flag" },
  template = { type = "string" },
  mount = { type = "string", many = true },
  limits = { type = "string" },
  env = { type = "string", many = true },
  ["best-effort"] = { type = "flag" },
  timeout = { type = "seconds", positive = true },
  ["no-stream"] = { type = "flag" },
  json = { type = "flag" },
  transcript = { type = "string" },
  record = { type = "string" },
  replay = { type = "string" },
}

local function must(value, err)
  if value == nil then error(err, 0) end
  return value
end

local function model_options(given)
  if given.replay then
    for _, other in ipairs { "model", "base-url", "record" } do
      if given[other] then args.fail("--replay and --%s exclude each other", other) end
    end
    return must(model.recorded(given.replay))
  end
  local chosen = given.model or model.default()
  if not chosen and given["base-url"] then args.fail("--base-url needs --model, as openai:NAME") end
  if not chosen then
    args.fail "no model to ask: set ANTHROPIC_API_KEY (OPENAI_, GEMINI_), give --model, or --replay FILE"
  end
  local provider, name = chosen:match("^([^:]+):(.+)$")
  if not provider then args.fail("--model takes PROVIDER:NAME, got '%s'", chosen) end
  local base_url = given["base-url"]
  return {
    provider = provider,
    name = name,
    base_url = base_url,
    allow_plain_http = given["allow-plain-http"],
    record = given.record,
    use_key = base_url and true or nil, -- the person at the command line chose the address
  }
end

-- The names after --tools or --policy.
local function names_of(text, flag)
  local list = {}
  for name in (text or ""):gmatch "[^,]+" do list[#list + 1] = name end
  if text and #list == 0 then args.fail("--%s names nothing", flag) end
  return list
end

local function create(call, constructor, list)
  local ok, made = pcall(constructor, list)
  if not ok then args.refused(call, made) end
  return made
end

local function tool_list(given, sbx)
  local list = given.tools and names_of(given.tools, "tools") or built_in.names "tools"
  list.dir, list.sandbox = given["tool-dir"], sbx
  list.watch = given.watch and list.dir ~= nil
  return create("toolset", toolset.create, list)
end

local function policy_list(given)
  local list = names_of(given.policy, "policy")
  list.dir = given["policy-dir"]
  list.watch = given.watch and list.dir ~= nil
  if given.watch and not list.dir and not given["tool-dir"] then
    args.fail("--watch needs --tool-dir or --policy-dir")
  end
  return create("policies", policy.create, list)
end

local function read_prompt(rest)
  if #rest ~= 1 then args.fail("one prompt expected, got %d arguments", #rest) end
  if rest[1] ~= "-" then return rest[1] end
  local parts = {}
  while true do
    local chunk, err = core.host.read_stdin()
    if err then error(err, 0) end
    if not chunk then return table.concat(parts) end
    parts[#parts + 1] = chunk
  end
end

function command.main(words)
  local given, rest = args.parse(words, flags)
  local prompt = read_prompt(rest)
  local policies = policy_list(given)
  local network = profile.network(given)
  local m = must(model.create(model_options(given)))
  local sbx <close> = must(sandbox.create {
    template = given.template,
    network = network,
    mounts = profile.mounts(given.mount),
    limits = given.limits and profile.limits(given.limits),
    env = given.env and profile.environment(given.env),
    best_effort = given["best-effort"],
  })
  local tools = tool_list(given, sbx)
  -- Last: what fails before leaves no file behind that would stand in the way of the next try.
  local writer = given.transcript and must(transcript.open(given.transcript)) or nil
  local show <close> = ui.new(not given.json and core.host.is_terminal(2))
  if given.replay and not given.json then
    show:line("replaying recorded model turns from " .. given.replay .. "; the sandbox is real")
  end
  local a = agent.create {
    model = m,
    tools = tools,
    policy = policies,
    system = given.system or system_prompt(network),
    max_steps = given["max-steps"],
    max_seconds = given.timeout,
    stream = not given["no-stream"],
    transcript = writer,
    on_event = function(event)
      if not given.json then return show:event(event) end
      out(core.json.encode(event), "\n")
    end,
  }
  local result = a:run(prompt)
  if writer then writer:close() end
  if result.stop_reason == "cancelled" then error(result.error, 0) end
  if result.stop_reason == "end_turn" or result.stop_reason == "stop_sequence" then return 0 end
  if result.stop_reason ~= "error" then return EXIT_STOPPED end
  if given.json then io.stderr:write("barchan: ", ui.visible(tool.message(result.error)), "\n") end
  return EXIT_FAILED
end

return command
