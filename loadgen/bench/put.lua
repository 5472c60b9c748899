-- A request made anew each time, as a key-value workload makes it: another key, the same value of 100 bytes.
local count = 0
local value = string.rep("v", 100)

function request()
  count = count + 1
  return wrk.format("PUT", "/v0/entity?id=key" .. count, nil, value)
end
