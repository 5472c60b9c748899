-- delete: deletes keys drawn by `distribution`; most are deleted more than once, which the contract answers
-- alike (202).
local keyspace = require "keyspace"

function init(args)
  local options = keyspace.options(args)
  local draw, name, delete = keyspace.drawn(options), keyspace.namer(options),
    keyspace.bare_maker("DELETE", options)
  function request() return delete(name(draw())) end
end
