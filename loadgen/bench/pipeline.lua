-- wrk's way of pipelining: one string of sixteen requests, made once.
local requests

function init(args)
  local all = {}
  for i = 1, 16 do
    all[i] = wrk.format("GET", "/")
  end
  requests = table.concat(all)
end

function request()
  return requests
end
