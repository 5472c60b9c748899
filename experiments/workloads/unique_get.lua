-- unique_get: reads every filled key once, in a scattered order, each thread its own keys; a cache helps only
-- after key_count requests.
local keyspace = require "keyspace"

function init(args)
  local options = keyspace.options(args)
  local walk, name, get = keyspace.scattered(options), keyspace.namer(options),
    keyspace.bare_maker("GET", options)
  function request() return get(name(walk())) end
end
