-- Reads a text file of the sandbox, or a part of it.

local DEFAULT_LIMIT = 16 * 1024

return {
  name = "read_file",
  description = [[
Read a file of the sandbox. Relative paths start at /workspace. Gives at most `limit` bytes (16384
when absent) from byte `offset`; the first line of the result says how much of the file it is. Use it
instead of cat: nothing is cut without saying so.]],
  parameters = {
    type = "object",
    properties = {
      path = { type = "string", minLength = 1, description = "The file's path." },
      offset = { type = "integer", minimum = 0, description = "First byte to read; 0 when absent." },
      limit = { type = "integer", minimum = 1, maximum = 60000, description = "Most bytes to read." },
    },
    required = { "path" },
    additionalProperties = false,
  },
  run = function(args, ctx)
    local offset, limit = math.tointeger(args.offset or 0), math.tointeger(args.limit or DEFAULT_LIMIT)
    local data, size = ctx.sandbox.files:read(args.path, { offset = offset, limit = limit })
    if not data then return nil, size end
    return ("%s: %d bytes, of which %d from byte %d:\n%s"):format(args.path, size, #data, offset, data)
  end,
}
