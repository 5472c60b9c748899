-- fill: writes keys 0 … key_count-1 once each, or first_key … in a cycle of `writes` writes, every thread its
-- share, and stops by itself when all are acknowledged by one of put_status. Another answer, or none, ends it
-- with an error. For a closed loop, where delay() is called.
local keyspace = require "keyspace"
local LONGEST_ANSWER_MS = 35000 -- longer than the timeout that it is run with

function init(args)
  local options = keyspace.options(args)
  local name, put = keyspace.namer(options), keyspace.put_maker(options)
  local writes = options.writes > 0 and options.writes or options.key_count
  local next_write, unacknowledged = options.thread, math.ceil((writes - options.thread) / options.threads)
  local acknowledges = {}
  for status in string.gmatch(options.put_status, "%d+") do acknowledges[tonumber(status)] = true end
  if unacknowledged <= 0 then wrk.thread:stop() end

  -- A connection that finds nothing left to write waits here until the others have their answers.
  function delay() return next_write >= writes and LONGEST_ANSWER_MS or 0 end

  function request()
    if next_write >= writes then error("fill: acknowledgements that did not come: " .. unacknowledged, 0) end
    local key = name(options.first_key + next_write % options.key_count)
    next_write = next_write + options.threads
    return put(key)
  end

  function response(status)
    if not acknowledges[status] then error("fill: PUT answered " .. status, 0) end
    unacknowledged = unacknowledged - 1
    if unacknowledged == 0 then wrk.thread:stop() end
  end
end
