-- The model may look, not touch: only tools that change nothing in the sandbox are run.

local allowed = { read_file = true, list_files = true }

return {
  before_call = function(call)
    if allowed[call.name] then return nil end
    return "deny", ("'%s' could change something; this conversation may only read"):format(call.name)
  end,
}
