-- put: writes keys drawn by `distribution` over key_count keys; a key is overwritten as often as it is drawn.
local keyspace = require "keyspace"

function init(args)
  local options = keyspace.options(args)
  local draw, name, put = keyspace.drawn(options), keyspace.namer(options), keyspace.put_maker(options)
  function request() return put(name(draw())) end
end
