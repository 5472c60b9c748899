-- repeated_get: reads key_count keys in a cycle (report 5 used 5 000, just as many as its cache held).
local keyspace = require "keyspace"

function init(args)
  local options = keyspace.options(args)
  local cycle, name, get = keyspace.cycle(options), keyspace.namer(options),
    keyspace.bare_maker("GET", options)
  function request() return get(name(cycle())) end
end
