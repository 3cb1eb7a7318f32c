-- The tool that demo.sh edits while the loop runs.
return {
  name = "measure",
  description = "Count the words of a text.",
  parameters = { type = "object", properties = { text = { type = "string" } }, required = { "text" } },
  run = function(args, ctx)
    ctx.state.calls = (ctx.state.calls or 0) + 1 -- outlives the edits
    local result = assert(ctx.sandbox:exec { "wc", "-w", stdin = args.text })
    return ("%d words (call %d)"):format(tonumber(result.out), ctx.state.calls)
  end,
}
