-- Writes Python code to a file in the sandbox and runs it. The file keeps the code's own bytes (no
-- quoting, no indenting) and gives tracebacks a place.

return {
  name = "run_python",
  description = [[
Run Python 3 code in the sandbox and get what it prints. Use it for calculations, data work and
anything that is easier in Python than in the shell. Print what you want to see: the value of the last
expression is not shown. Each call is a new process in /workspace: files stay, variables do not. Check
exit_code: 1 with a traceback in err means that the code raised an exception.]],
  parameters = {
    type = "object",
    properties = {
      code = { type = "string", minLength = 1, description = "The program." },
      timeout = {
        type = "number", exclusiveMinimum = 0, maximum = 600,
        description = "Seconds until it is killed; 60 when absent.",
      },
    },
    required = { "code" },
    additionalProperties = false,
  },
  sequential = true, -- a later call of the turn may need what it did
  run = function(args, ctx)
    ctx.state.runs = (ctx.state.runs or 0) + 1
    local path = ("/tmp/run_python_%d.py"):format(ctx.state.runs)
    local ok, err = ctx.sandbox.files:write(path, args.code)
    if not ok then return nil, err end
    -- By its full path: what PATH finds may be a wrapper of the host's.
    return ctx.sandbox:exec { "/usr/bin/python3", path, timeout = args.timeout }
  end,
}
