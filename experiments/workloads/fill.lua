-- fill: writes keys 0 … key_count-1 once each, or first_key … in a cycle of `writes` writes, every thread its share, and stops by itself when all are acknowledged (201).
-- Once its share is sent, a thread asks for the status (200) until the last acknowledgement has come.
local keyspace = require "keyspace"

function init(args)
  local options = keyspace.options(args)
  local name, put = keyspace.namer(options), keyspace.put_maker(options)
  local writes = options.writes > 0 and options.writes or options.key_count
  local next_write, unacknowledged = options.thread, math.ceil((writes - options.thread) / options.threads)
  local status = wrk.format("GET", "/v0/status")
  if unacknowledged <= 0 then wrk.thread:stop() end

  function request()
    if next_write >= writes then return status end
    local key = name(options.first_key + next_write % options.key_count)
    next_write = next_write + options.threads
    return put(key)
  end

  function response(status_code)
    if status_code == 201 then
      unacknowledged = unacknowledged - 1
      if unacknowledged == 0 then wrk.thread:stop() end
    end
  end
end
