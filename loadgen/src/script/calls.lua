-- Calls of a script's globals as they are when they are called: a script may assign them anew while it runs.
local tonumber, type = tonumber, type

local function next_request()
  if type(request) == "function" then return request() end
  return wrk.request()
end

local function take_response(status, headers, body)
  if type(response) == "function" then response(status, headers, body) end
end

local function next_delay_ms()
  if type(delay) == "function" then return tonumber((delay())) end
end

return next_request, take_response, next_delay_ms
