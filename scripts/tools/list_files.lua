-- Lists a directory of the sandbox.

local MAX_LINES = 500

local marks = { directory = "/", symlink = "@", fifo = "|", socket = "=", device = "%" }

return {
  name = "list_files",
  description = [[
List the files of a directory of the sandbox, one a line with its size in bytes; a name that ends in /
is a directory. Relative paths start at /workspace, which is listed when no path is given. Set depth to
see what is in its subdirectories too.]],
  parameters = {
    type = "object",
    properties = {
      path = { type = "string", minLength = 1, description = "The directory; /workspace when absent." },
      depth = { type = "integer", minimum = 1, maximum = 16, description = "Levels; 1 when absent." },
    },
    additionalProperties = false,
  },
  run = function(args, ctx)
    local path = args.path or "/workspace"
    local entries, truncated = ctx.sandbox.files:list(path, { depth = math.tointeger(args.depth or 1) })
    if not entries then return nil, truncated end
    if #entries == 0 then return path .. " is empty" end
    local lines = {}
    for i = 1, math.min(#entries, MAX_LINES) do
      local entry = entries[i]
      local size = entry.type == "file" and ("%10d"):format(entry.size) or (" "):rep(10)
      -- Names are any bytes: a newline must not look like a second file.
      local name = entry.path:gsub("[%c]", function(c) return ("\\x%02x"):format(c:byte()) end)
      lines[i] = size .. "  " .. name .. (marks[entry.type] or "")
    end
    if #entries > MAX_LINES or truncated then
      lines[#lines + 1] = ("… and more (%d of %s%d shown)"):format(math.min(#entries, MAX_LINES),
        truncated and "over " or "", #entries)
    end
    return table.concat(lines, "\n")
  end,
}
