-- The table `wrk` of every Lua state: the request by default, and how to make another.
-- Given: whether an address, one of so many, accepts a connection; where it does not, that may be told to
-- the user.
local is_kept = ...
local concat, error, pairs, remove, tostring, type = table.concat, error, pairs, table.remove, tostring, type

wrk = { scheme = "http", host = "localhost", port = nil, method = "GET", path = "/", headers = {},
  body = nil, thread = nil }

local parts = {}

-- What goes into a request: a string, or what Lua writes for a number or a boolean.
local function text(value, what)
  local kind = type(value)
  if kind == "string" then return value end
  if kind == "number" or kind == "boolean" then return tostring(value) end
  error("wrk.format: the " .. what .. " must be text, a number or a boolean, not a " .. kind, 3)
end

-- A request as a string; whatever is not given is taken from `wrk`. Given headers replace those of `wrk`, but
-- for Host.
function wrk.format(method, path, headers, body)
  headers = headers or wrk.headers
  body = body or wrk.body
  parts[1], parts[2] = text(method or wrk.method, "method"), " "
  parts[3], parts[4] = text(path or wrk.path, "path"), " HTTP/1.1\r\n"
  local n = 4
  local host = wrk.headers["Host"]
  if host and not headers["Host"] then
    parts[5], parts[6], parts[7] = "Host: ", text(host, "header Host"), "\r\n"
    n = 7
  end
  for name, value in pairs(headers) do
    if name ~= "Content-Length" then
      if type(value) ~= "string" then value = text(value, "header " .. tostring(name)) end
      parts[n + 1], parts[n + 2], parts[n + 3], parts[n + 4] = name, ": ", value, "\r\n"
      n = n + 4
    end
  end
  if body then
    body = text(body, "body")
    parts[n + 1], parts[n + 2], parts[n + 3], parts[n + 4] = "Content-Length: ", #body, "\r\n\r\n", body
    return concat(parts, "", 1, n + 4)
  end
  parts[n + 1] = "\r\n"
  return concat(parts, "", 1, n + 1)
end

-- Leaves in `wrk.addrs` those addresses that accept a connection. A script may put a function of its own in
-- its place.
function wrk.resolve(host, service)
  local addrs = wrk.lookup(host, service)
  local tried = #addrs
  for i = tried, 1, -1 do
    if not is_kept(addrs[i], tried) then remove(addrs, i) end
  end
  wrk.addrs = addrs
end

-- Scripts call this from their own init(); the Host header is set before it already.
function wrk.init(args) end

function wrk.request()
  return wrk.format()
end
