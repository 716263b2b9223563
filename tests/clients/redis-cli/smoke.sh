#!/usr/bin/env bash
# redis-cli and redis-benchmark (both on hiredis) against a proxy, or a plain Redis, on HOST PORT.
set -u
host=$1 port=$2
name="redis-cli $(redis-cli --version | cut -d' ' -f2)"
passed=0 failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cli() { timeout 20 redis-cli -h "$host" -p "$port" "$@"; }

# check NAME WANTED FOUND
check() {
  if [ "$2" = "$3" ]; then
    passed=$((passed + 1)); echo "ok     $name: $1"
  else
    failed=$((failed + 1)); printf 'FAILED %s: %s\n  wanted: %.300q\n  found:  %.300q\n' "$name" "$1" "$2" "$3"
  fi
}

key() { echo "smoke:redis-cli:$1"; }

check 'set' OK "$(cli set "$(key a)" value)"
check 'get' value "$(cli get "$(key a)")"
check 'get of nothing' '(nil)' "$(cli --no-raw get "$(key missing)")"
check 'a binary value through -x' "$(printf 'a\r\n\377b' | od -c)" \
  "$(printf 'a\r\n\377b' | cli -x set "$(key bin)" >/dev/null; cli --raw get "$(key bin)" | head -c 5 | od -c)"
check 'del counts over all shards' 3 "$(cli mset "$(key b)" 1 "$(key c)" 2 "$(key d)" 3 >/dev/null
  cli del "$(key b)" "$(key c)" "$(key d)" "$(key missing)")"
check 'mset' OK "$(cli mset "$(key b)" 1 "$(key c)" 2 "$(key d)" 3)"
check 'mget in order' $'3\n1\n2\n\n3' "$(cli mget "$(key d)" "$(key b)" "$(key c)" "$(key missing)" "$(key d)")"
check 'incr' $'1\n2' "$(cli del "$(key n)" >/dev/null; cli -r 2 incr "$(key n)")"
check 'a list' $'x\ny\nz' "$(cli del "$(key l)" >/dev/null; cli rpush "$(key l)" x y z >/dev/null; cli lrange "$(key l)" 0 -1)"
check 'a hash' $'f\nv' "$(cli del "$(key h)" >/dev/null; cli hset "$(key h)" f v >/dev/null; cli hgetall "$(key h)")"
check 'WRONGTYPE' 'WRONGTYPE Operation against a key holding the wrong kind of value' "$(cli get "$(key l)" 2>&1 | head -1)"
check 'wrong number of arguments' "ERR wrong number of arguments for 'get' command" "$(cli get 2>&1 | head -1)"
check 'an unknown command' "ERR unknown command" "$(cli nosuchcommand x 2>&1 | head -1 | cut -c1-19)"
check 'commands after an error, on one connection' $'ERR unknown command\nvalue' \
  "$(printf 'nosuchcommand\nget %s\n' "$(key a)" | cli 2>&1 | sed '/^$/d' | cut -c1-19)"

# Mass insertion: 5,000 commands in one pipeline, ended by an ECHO whose reply must come last.
for i in $(seq 5000); do printf '*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$4\r\npipe\r\n' "$((21 + ${#i}))" "$(key "pipe:$i")"; done >"$work/pipe"
check '--pipe' 'errors: 0, replies: 5000' "$(cli --pipe <"$work/pipe" 2>&1 | tail -1)"
check 'what --pipe wrote' pipe "$(cli get "$(key pipe:5000)")"

benchmark() {
  timeout 120 redis-benchmark -h "$host" -p "$port" -q -n 2000 -r 1000 "$@" >"$work/benchmark" 2>&1
  echo "$? $(grep -ciE '^error|error from server' "$work/benchmark") $(tr '\r' '\n' <"$work/benchmark" | grep -c 'requests per second')"
}
tests=set,get,incr,lpush,lpop,sadd,spop,lrange_100,mset
check 'redis-benchmark, 20 clients' '0 0 10' "$(benchmark -c 20 -t $tests)"
check 'redis-benchmark, pipelines of 16, 1000 bytes' '0 0 10' "$(benchmark -c 20 -P 16 -d 1000 -t $tests)"

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
