-- Writes a file in the sandbox.

return {
  name = "write_file",
  description = [[
Write a file in the sandbox, replacing what was there; the folders of its path are made. Relative
paths start at /workspace. Set append to add to the end instead. Use it rather than echo or heredocs:
the content arrives exactly as given.]],
  parameters = {
    type = "object",
    properties = {
      path = { type = "string", minLength = 1, description = "The file's path." },
      content = { type = "string", description = "The whole content." },
      append = { type = "boolean", description = "Add to the end of the file." },
    },
    required = { "path", "content" },
    additionalProperties = false,
  },
  sequential = true, -- a later call of the turn may need what it did
  run = function(args, ctx)
    local ok, err = ctx.sandbox.files:write(args.path, args.content, { append = args.append })
    if not ok then return nil, err end
    local verb = args.append and "appended to" or "written to"
    return ("%d bytes %s %s"):format(#args.content, verb, args.path)
  end,
}
