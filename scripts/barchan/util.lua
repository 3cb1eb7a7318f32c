-- Small things that an agent loop needs, for loops of one's own too.
local _, core = ...

-- JSON text; or nil and what cannot be encoded. What stops the task is thrown on.
local function encode(value)
  local ok, text = pcall(core.json.encode, value)
  if ok then return text end
  if type(text) ~= "string" then error(text, 0) end
  return nil, text
end

return {
  encode = encode,
  now = core.util.now, -- () -> seconds of a clock that only runs forward
  wall_time = core.util.wall_time, -- () -> seconds since 1970
  random_id = core.util.random_id, -- (prefix) -> a text that no other run has
  emit = core.host.emit, -- (event): to the host's event callback, where there is one
}
