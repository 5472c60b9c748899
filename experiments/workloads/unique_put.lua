-- unique_put: writes every key once, in a scattered order, each thread its own keys. After key_count requests
-- the same keys come again: choose key_count above rate × duration.
local keyspace = require "keyspace"

function init(args)
  local options = keyspace.options(args)
  local walk, name, put = keyspace.scattered(options), keyspace.namer(options), keyspace.put_maker(options)
  function request() return put(name(walk())) end
end
