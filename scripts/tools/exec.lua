-- Runs a command in the sandbox.

return {
  name = "exec",
  description = [[
Run a shell command in the sandbox, a Linux computer that reaches no network, or only the hosts that
it may: the result names those that were refused. Use it for anything that a shell does: building,
testing, searching, moving files. State in files stays between calls; variables and the working
directory do not: every command starts in /workspace. Check exit_code in the result: anything but 0
means that the command failed, and err says why. Long output is cut in the middle.]],
  parameters = {
    type = "object",
    properties = {
      command = { type = "string", minLength = 1, description = "The command, for /bin/sh." },
      timeout = {
        type = "number", exclusiveMinimum = 0, maximum = 600,
        description = "Seconds until it is killed; 60 when absent.",
      },
    },
    required = { "command" },
    additionalProperties = false,
  },
  sequential = true, -- a later call of the turn may need what it did
  run = function(args, ctx)
    return ctx.sandbox:exec { sh = args.command, timeout = args.timeout }
  end,
}
