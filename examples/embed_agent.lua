-- The agent of embed_agent.c: a function of JSON in, JSON out.
local barchan = require "barchan"

return {
  run = function(args)
    local sbx <close> = assert(barchan.sandbox { template = "host", network = "off" })
    local list = { "run_python", sandbox = sbx }
    for _, tool in ipairs(barchan.host.tools) do list[#list + 1] = tool end
    local agent = barchan.agent {
      model = assert(barchan.model { provider = "replay", replay = args.transcript }),
      tools = barchan.toolset(list),
      max_steps = 4,
    }
    local result = agent:run(args.prompt)
    if result.error then error(result.error, 0) end
    return { text = result.text, stop_reason = result.stop_reason, usage = result.usage }
  end,
}
