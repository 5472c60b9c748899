-- random_get: reads keys drawn evenly over key_count keys, whatever `distribution` says.
local keyspace = require "keyspace"

function init(args)
  local options = keyspace.options(args)
  options.distribution = "uniform"
  local draw, name, get = keyspace.drawn(options), keyspace.namer(options),
    keyspace.bare_maker("GET", options)
  function request() return get(name(draw())) end
end
