-- repeated_put: overwrites key_count keys in a cycle (report 5 used 1 000).
local keyspace = require "keyspace"

function init(args)
  local options = keyspace.options(args)
  local cycle, name, put = keyspace.cycle(options), keyspace.namer(options), keyspace.put_maker(options)
  function request() return put(name(cycle())) end
end
