-- The table `wrk` of every Lua state: the request by default, and how to make another.
local concat, pairs = table.concat, pairs

wrk = { scheme = "http", host = "localhost", port = nil, method = "GET", path = "/", headers = {}, body = nil, thread = nil }

local parts = {}

-- A request as a string; whatever is not given is taken from `wrk`. Given headers replace those of `wrk`, but for Host.
function wrk.format(method, path, headers, body)
  headers = headers or wrk.headers
  body = body or wrk.body
  parts[1], parts[2], parts[3], parts[4] = method or wrk.method, " ", path or wrk.path, " HTTP/1.1\r\n"
  local n = 4
  local host = wrk.headers["Host"]
  if host and not headers["Host"] then
    parts[5], parts[6], parts[7] = "Host: ", host, "\r\n"
    n = 7
  end
  for name, value in pairs(headers) do
    if name ~= "Content-Length" then
      parts[n + 1], parts[n + 2], parts[n + 3], parts[n + 4] = name, ": ", value, "\r\n"
      n = n + 4
    end
  end
  if body then
    parts[n + 1], parts[n + 2], parts[n + 3], parts[n + 4] = "Content-Length: ", #body, "\r\n\r\n", body
    return concat(parts, "", 1, n + 4)
  end
  parts[n + 1] = "\r\n"
  return concat(parts, "", 1, n + 1)
end

-- Scripts call this from their own init(); the Host header is set before it already.
function wrk.init(args) end

function wrk.request()
  return wrk.format()
end
