#!/bin/sh
# Redis behind webdis, which speaks HTTP for it: webdis.sh DIR. Every write goes to Redis' append-only file,
# synced once a second. Both end together: on SIGTERM, or when one of them ends.
set -eu
cd "$1"
sockets=$(mktemp -d)  # the path of a socket has 107 characters at most
redis= webdis=
finish() {
  trap '' TERM INT
  kill $webdis $redis 2>/dev/null || true
  wait
  rm -rf "$sockets"
  exit "$1"
}
trap 'finish 0' TERM INT
redis-server --port 0 --unixsocket "$sockets/redis.sock" --dir . --appendonly yes --appendfsync everysec \
  --save '' --daemonize no >redis.log 2>&1 &
redis=$!
tries=0
until [ -S "$sockets/redis.sock" ]; do
  tries=$((tries + 1))
  if [ $tries -gt 200 ] || ! kill -0 "$redis" 2>/dev/null; then
    tail -n 3 redis.log >&2
    finish 1
  fi
  sleep 0.05
done
sed "s#SOCKET#$sockets/redis.sock#" webdis.json >webdis.own.json
webdis webdis.own.json >&2 &
webdis=$!
wait "$webdis" || true
echo "webdis ended by itself" >&2
finish 1
