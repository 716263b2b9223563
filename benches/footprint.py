#!/usr/bin/env python3
"""What one worker of shardwise takes: memory at rest and per client, and time from its start to its first answer.

Memory is what is resident (VmRSS), of which `anonymous` is its own and not a page of its program file. Idle clients are
connected and silent; a client that has been served is one that got an answer to a SET before it fell silent.
"""

import argparse
import selectors
import socket
import statistics
import sys
import tempfile
import time

from stage import Program, Stage, binary_option, check_programs

POOL = "alpha"
SETTINGS = ["hash: fnv1a_64", "distribution: ketama"]
# What a worker that has had a burst may take to give its memory back.
SETTLING_SECONDS = 15


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    binary_option(parser)
    parser.add_argument("--clients", type=int, default=9_900, help="idle clients (%(default)s)")
    parser.add_argument("--servers", type=int, default=100, help="servers of the pool that is started (%(default)s)")
    parser.add_argument("--starts", type=int, default=11, help="how often it is started (%(default)s)")
    options = parser.parse_args()
    binary = check_programs(parser, options.binary, ["redis-server"])
    with tempfile.TemporaryDirectory(prefix="shardwise-footprint-") as folder, Stage(folder, POOL, SETTINGS) as stage:
        redis = stage.redis("redis")
        show_memory(stage.shardwise(binary, [redis], "--threads", "1"), options.clients)
        show_start(stage, binary, redis, options.servers, options.starts)
    return 0


# --- Memory ----------------------------------------------------------------------------------------------------

def show_memory(proxy, count):
    print(f"{'memory, one worker':<34}{'resident MB':>13}{'anonymous MB':>14}{'bytes per client':>18}")
    base = show_line(proxy, "started")
    clients = [socket.create_connection(("127.0.0.1", proxy.port), 5) for _ in range(count)]
    wait_for_clients(proxy, count)
    show_line(proxy, f"{count} idle clients", base, count)
    for start in range(0, count, 500):
        serve(clients[start:start + 500], start)
    show_line(proxy, "each has been served, 500 at once", base, count)
    serve(clients, 0)
    show_line(proxy, "each has been served, all at once", base, count)
    time.sleep(SETTLING_SECONDS)
    show_line(proxy, f"{SETTLING_SECONDS} s later", base, count)
    for client in clients:
        client.close()
    wait_for_clients(proxy, 0)
    show_line(proxy, "all have gone", base)
    time.sleep(SETTLING_SECONDS)
    show_line(proxy, f"{SETTLING_SECONDS} s later", base)


def show_line(proxy, name, base=None, count=0):
    resident, anonymous = proxy.memory("VmRSS"), proxy.memory("RssAnon")
    each = f"{(resident - base) / count:.0f}" if count else ""
    print(f"{name:<34}{resident / 1e6:>13.2f}{anonymous / 1e6:>14.2f}{each:>18}", flush=True)
    return resident


def serve(clients, first):
    """A SET of each client, all in flight together."""
    for number, client in enumerate(clients, first):
        key = f"key:{number:08}".encode()
        client.sendall(b"*3\r\n$3\r\nSET\r\n$12\r\n" + key + b"\r\n$3\r\nxyz\r\n")
    for client in clients:
        reply = client.recv(64)
        if reply != b"+OK\r\n":
            sys.exit(f"a client got {reply!r}")


def wait_for_clients(proxy, count):
    end = time.monotonic() + 30
    while proxy.stats()[POOL]["client_connections"] != count:
        if time.monotonic() > end:
            sys.exit(f"the proxy does not come to {count} clients")
        time.sleep(0.05)


# --- Time to the first answer ----------------------------------------------------------------------------------

def show_start(stage, binary, redis, servers, starts):
    """One Redis under many names: a ring of so many servers."""
    named = [Program(f"s{n}", redis.port, redis.process) for n in range(1, servers + 1)]
    times = []
    for _ in range(starts):
        before = time.monotonic()
        proxy = stage.shardwise(binary, named, "--threads", "1")
        with socket.create_connection(("127.0.0.1", proxy.port), 5) as client:
            client.sendall(b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n")
            if client.recv(64) != b"$-1\r\n":
                sys.exit("the first answer is wrong")
        times.append((time.monotonic() - before) * 1e3)
        stage.end(proxy)
    print(f"\nfrom exec to the first answer, {servers} servers: {statistics.median(times):.1f} ms "
          f"({min(times):.1f}…{max(times):.1f}, {starts} starts; setpriv's own start included)")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("stopped")
