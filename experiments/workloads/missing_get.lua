-- missing_get: reads keys that were never written and that lie between written ones, so that bloom filters
-- have to answer (404).
local keyspace = require "keyspace"

function init(args)
  local options = keyspace.options(args)
  local draw, get = keyspace.drawn(options), keyspace.bare_maker("GET", options)
  -- The digits of k without the last one, then an "x": sorts behind the ten keys that share them, before the
  -- next ten.
  options.key_bytes = options.key_bytes - 1
  local name = keyspace.namer(options)
  local floor = math.floor
  function request() return get(name(floor(draw() / 10)) .. "x") end
end
