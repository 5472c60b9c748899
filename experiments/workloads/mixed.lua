-- mixed: reads with probability read_share, writes otherwise, keys drawn by `distribution`.
local keyspace = require "keyspace"

function init(args)
  local options = keyspace.options(args)
  local draw, name = keyspace.drawn(options), keyspace.namer(options)
  local get, put = keyspace.bare_maker("GET", options), keyspace.put_maker(options)
  local random, read_share = math.random, options.read_share
  function request()
    if random() < read_share then return get(name(draw())) end
    return put(name(draw()))
  end
end
