-- What all workloads share: their arguments, their keys, and requests that are put together without
-- formatting each one.
--
-- Arguments stand after `--` as key=value words:
--   key_count=N      keys 0 … N-1                                                     (default 100000)
--   key_bytes=N      length of a key in bytes, 8 … 1024                               (16)
--   value_bytes=N    length of a value in bytes; at least key_bytes + 1               (100)
--   distribution=D   uniform | zipfian | latest, where a workload draws its keys      (uniform)
--   read_share=X     0 … 1, workload mixed only                                       (0.5)
--   threads=T        how many threads a generator has, so that they can share out the keys (1)
--   skip=N           unique_put and unique_get only: their walk begins behind its first N keys (0)
--   first_key=K      workload fill only: its keys are K … K+N-1                        (0)
--   writes=W         workload fill only: so many, in a cycle over the keys; 0: each once (0)
--   put_path=P       where a key is written, with {key} in its place                 (/v0/entity?id={key})
--   get_path=P, delete_path=P   the same, where it is read and deleted
--   put_status=S,S   workload fill only: the answers that say a write is done        (201)
--   seed=S           the run's seed; the same seed and threads give the same requests (1)
--
-- Key k is "k" and k in decimal, padded with zeros to key_bytes. A value begins with its key and a blank, and
-- goes on with the same letters for every key: who reads a value back can tell whose it is, and building one
-- costs a concatenation.
--
-- One of several generators (loadgen --part 2/3) has wrk.part and wrk.parts; its threads are then numbered
-- over all parts, and so what is written once is written once by all of them together.
--
-- Works in loadgen, wrk2 and wrk (the latter two need LUA_PATH to find this file).

local keyspace = {}

local defaults = {
  key_count = 100000, key_bytes = 16, value_bytes = 100, distribution = "uniform", read_share = 0.5,
  threads = 1, seed = 1,
  skip = 0, first_key = 0, writes = 0, put_status = "201",
  put_path = "/v0/entity?id={key}", get_path = "/v0/entity?id={key}", delete_path = "/v0/entity?id={key}",
}

local part, parts = wrk.part or 1, wrk.parts or 1

-- Called in the main state once per thread; numbers the threads of all parts from 0.
local threads_made = 0
function setup(thread)
  thread:set("thread_number", threads_made * parts + part - 1)
  threads_made = threads_made + 1
end

local function check(condition, what)
  if not condition then error("workload: " .. what, 0) end
end

-- args: the table that init gets. Returns the options, numbers as numbers.
function keyspace.options(args)
  local options = {}
  for name, value in pairs(defaults) do options[name] = value end
  for i = 1, #args do
    local name, value = string.match(args[i], "^([%w_]+)=(.+)$")
    check(name, "an argument must be key=value: " .. tostring(args[i]))
    check(defaults[name] ~= nil, "unknown argument: " .. name)
    if type(defaults[name]) == "number" then
      local number = tonumber(value)
      check(number, "not a number: " .. args[i])
      value = number
    end
    options[name] = value
  end
  local digits = #string.format("%d", options.first_key + options.key_count - 1)
  check(options.key_count >= 1 and options.key_count < 2 ^ 50, 
    
    
    "key_count must be 1 … 2^50: key_count=" .. options.key_count)
  check(options.key_bytes > digits and options.key_bytes <= 1024,
    "key_bytes must hold a letter and " .. digits .. " digits: key_bytes=" .. options.key_bytes)
  check(options.value_bytes > options.key_bytes, 
    
    
    "value_bytes must exceed key_bytes: value_bytes=" .. options.value_bytes)
  check(options.read_share >= 0 and options.read_share <= 1, 
    
    
    "read_share must be 0 … 1: read_share=" .. options.read_share)
  local drawn = options.distribution
  check(drawn == "uniform" or drawn == "zipfian" or drawn == "latest",
    "distribution must be uniform, zipfian or latest: distribution=" .. options.distribution)
  options.threads = options.threads * parts
  check(thread_number < options.threads, 
    
    
    "threads is smaller than the generator's threads: threads=" .. options.threads / parts)
  options.thread = thread_number
  math.randomseed(options.seed * 1009 + thread_number)
  return options
end

-- A function from key number to key.
function keyspace.namer(options)
  local format = "k%0" .. (options.key_bytes - 1) .. ".0f"
  local string_format = string.format
  return function(k) return string_format(format, k) end
end

-- The same request line and headers as wrk.format writes, cut at the key: a request is then two or four
-- strings joined.
local function cut(method, options, body)
  local mark = string.rep("K", options.key_bytes)
  local before, behind = string.match(options[string.lower(method) .. "_path"], "^(.-){key}(.*)$")
  local option = string.lower(method) .. "_path"
  check(before, "a path must hold {key}: " .. option .. "=" .. options[option])
  local text = wrk.format(method, before .. mark .. behind, nil, body and (mark .. body))
  local head = #method + 1 + #before -- by lengths: a path may hold any letters
  local rest = head + #mark
  if not body then return string.sub(text, 1, head), string.sub(text, rest + 1) end
  return string.sub(text, 1, head), string.sub(text, rest + 1, -1 - #mark - #body), string.sub(text, -#body)
end

-- A function from key to a whole PUT request.
function keyspace.put_maker(options)
  local filler = string.rep("abcdefghijklmnopqrstuvwxyz", math.ceil(options.value_bytes / 26))
  local rest = string.sub(filler, 1, options.value_bytes - options.key_bytes - 1)
  local head, middle, tail = cut("PUT", options, " " .. rest)
  return function(key) return head .. key .. middle .. key .. tail end
end

-- A function from key to a whole request without a body.
function keyspace.bare_maker(method, options)
  local head, tail = cut(method, options, nil)
  return function(key) return head .. key .. tail end
end

local function greatest_common_divisor(a, b)
  while b ~= 0 do a, b = b, a % b end
  return a
end

-- a * count % n. Only additions, so exact for every n that key_count may be.
local function multiple(a, count, n)
  local product = 0
  while count > 0 do
    if count % 2 == 1 then product = (product + a) % n end
    a, count = (a + a) % n, math.floor(count / 2)
  end
  return product
end

-- Every key exactly once over all threads, scattered over the whole range, before any comes again. Thread t
-- of T takes positions t, t + T, t + 2T … of one walk in steps coprime to key_count, from `skip` on.
function keyspace.scattered(options)
  local n, T = options.key_count, options.threads
  local step = math.max(1, math.floor(n * 0.6180339887))
  while greatest_common_divisor(step, n) ~= 1 do step = step + 1 end
  local key, stride = multiple(step, options.skip + options.thread, n), multiple(step, T, n)
  return function()
    local k = key
    key = (key + stride) % n
    return k
  end
end

-- Keys 0, 1, 2 … in a cycle, shared out over the threads.
function keyspace.cycle(options)
  local next_key, n, T = options.thread % options.key_count, options.key_count, options.threads
  return function()
    local k = next_key
    next_key = (next_key + T) % n
    return k
  end
end

-- Zipf's law with exponent 0.99 by the method of Gray and others, "Quickly generating billion-record
-- synthetic databases" (SIGMOD 1994), section 3; rank 0 is the most frequent. Costs one pass over key_count
-- at the start.
local function zipfian_rank(n)
  local theta = 0.99
  local zeta, zeta2 = 0, 1 + 0.5 ^ theta
  for i = 1, n do zeta = zeta + 1 / i ^ theta end
  local alpha = 1 / (1 - theta)
  local eta = (1 - (2 / n) ^ (1 - theta)) / (1 - zeta2 / zeta)
  local random, floor = math.random, math.floor
  return function()
    local u = random()
    local uz = u * zeta
    if uz < 1 or n == 1 then return 0 end
    if uz < zeta2 then return 1 end
    return math.min(n - 1, floor(n * (eta * u - eta + 1) ^ alpha))
  end
end

-- A function that draws key numbers as `distribution` says. zipfian scatters the popular ranks over the
-- range; latest makes the highest key the most popular.
function keyspace.drawn(options)
  local n = options.key_count
  if options.distribution == "uniform" then
    local random, floor = math.random, math.floor
    return function() return floor(random() * n) end
  end
  local rank = zipfian_rank(n)
  if options.distribution == "latest" then
    return function() return n - 1 - rank() end
  end
  local step = math.max(1, math.floor(n * 0.6180339887))
  while greatest_common_divisor(step, n) ~= 1 do step = step + 1 end
  return function() return (rank() * step) % n end
end

return keyspace
