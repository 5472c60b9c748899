-- get: reads keys drawn by `distribution` over key_count keys, all of them filled before.
local keyspace = require "keyspace"

function init(args)
  local options = keyspace.options(args)
  local draw, name, get = keyspace.drawn(options), keyspace.namer(options),
    keyspace.bare_maker("GET", options)
  function request() return get(name(draw())) end
end
