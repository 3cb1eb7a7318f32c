-- Small things that an agent loop needs, for loops of one's own too.
local _, core = ...

return {
  now = core.util.now, -- () -> seconds of a clock that only runs forward
  wall_time = core.util.wall_time, -- () -> seconds since 1970
  random_id = core.util.random_id, -- (prefix) -> a text that no other run has
  emit = core.host.emit, -- (event): to the host's event callback, where there is one
}
