-- lua-resty-redis against ?host=…&port=…, at its defaults. Tells what it could do: a line for the client, then one for each
-- feature: its name, `ok` or `FAILED`, and why.
local redis = require "nginx.redis"
local args = ngx.req.get_uri_args()

local function connect()
  local client = redis:new()
  assert(client:connect(args.host, tonumber(args.port)))
  return client
end

local function same(found, wanted)
  if found ~= wanted then
    error("found " .. tostring(found) .. ", wanted " .. tostring(wanted), 2)
  end
end

-- Sends one command from beside, after 0.2 s.
local function later(command, ...)
  local words = {...}
  return ngx.thread.spawn(function()
    ngx.sleep(0.2)
    local client = connect()
    local sent = assert(client[command](client, unpack(words)))
    client:close()
    return sent
  end)
end

local checks = {
  {"connect", function(client)
    same(client:set("features:connect", "\0\255\r\n"), "OK")
    same(client:get("features:connect"), "\0\255\r\n")
    same(client:get("features:missing"), ngx.null)
  end},
  {"pipeline", function(client)
    client:init_pipeline()
    for i = 1, 300 do
      client:set("features:p:" .. i, i)
      client:get("features:p:" .. i)
    end
    local replies = assert(client:commit_pipeline())
    same(#replies, 600)
    for i = 1, 300 do
      same(replies[2 * i - 1], "OK")
      same(replies[2 * i], tostring(i))
    end
  end},
  {"transaction", function(client)
    assert(client:watch("{features}:t"))
    same(client:multi(), "OK")
    same(client:set("{features}:t", 1), "QUEUED")
    same(client:incr("{features}:t"), "QUEUED")
    local done = assert(client:exec())
    same(done[1], "OK")
    same(done[2], 2)
    assert(client:watch("{features}:t"))
    local other = connect()
    same(other:set("{features}:t", "changed"), "OK")
    same(client:multi(), "OK")
    same(client:get("{features}:t"), "QUEUED")
    same(client:exec(), ngx.null)
  end},
  {"blocking pop", function(client)
    assert(client:del("features:queue"))
    same(client:blpop("features:queue", 1), ngx.null)
    local pusher = later("rpush", "features:queue", "element")
    local popped = assert(client:blpop("features:queue", 10))
    same(popped[1], "features:queue")
    same(popped[2], "element")
    ngx.thread.wait(pusher)
  end},
  {"subscribe", function(client)
    assert(client:subscribe("features:channel"))
    local publisher = later("publish", "features:channel", "direct")
    local message = assert(client:read_reply())
    same(message[1], "message")
    same(message[3], "direct")
    ngx.thread.wait(publisher)
    local patterns = connect()
    assert(patterns:psubscribe("features:pattern:*"))
    publisher = later("publish", "features:pattern:x", "matched")
    message = assert(patterns:read_reply())
    same(message[1], "pmessage")
    same(message[3], "features:pattern:x")
    same(message[4], "matched")
    ngx.thread.wait(publisher)
  end},
  {"script", function(client)
    local body = "return redis.call('INCRBY', KEYS[1], ARGV[1] * 2)"
    local sha = assert(client:script("load", body))
    for i = 1, 20 do
      client:del("features:script:" .. i)
      same(client:evalsha(sha, 1, "features:script:" .. i, 21), 42)
    end
    same(client:eval("return ARGV[1]", 0, "x"), "x")
  end},
  {"scan", function(client)
    for i = 0, 499 do
      same(client:set("features:scan:" .. i, 1), "OK")
    end
    local cursor, seen, count = "0", {}, 0
    repeat
      local reply = assert(client:scan(cursor, "match", "features:scan:*", "count", 50))
      cursor = reply[1]
      for _, key in ipairs(reply[2]) do
        if not seen[key] then
          seen[key] = true
          count = count + 1
        end
      end
    until cursor == "0"
    same(count, 500)
  end},
}

ngx.say("client\tlua-resty-redis ", redis._VERSION)
for _, check in ipairs(checks) do
  local client = connect()
  local ok, reason = pcall(check[2], client)
  ngx.say(check[1], ok and "\tok" or "\tFAILED\t" .. string.gsub(tostring(reason), "%s+", " "))
  client:close()
end
