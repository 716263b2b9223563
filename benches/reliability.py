#!/usr/bin/env python3
"""What one proxy does under loads that are meant to break it; the figures of docs/reliability.md.

Each scenario starts redis-servers and a proxy of its own on loopback. Memory is what is resident (VmRSS); the highest of
what was seen every 20 ms. Others' latency is that of one client that sends a GET every 2 ms.
"""

import argparse
import os
import signal
import socket
import statistics
import struct
import sys
import tempfile
import threading
import time

from stage import Stage, binary_option, check_programs

POOL = "alpha"
SETTINGS = ["hash: fnv1a_64", "distribution: modula"]
MB = 1 << 20


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    binary_option(parser)
    parser.add_argument("--clients", type=int, default=10_000, help="of the scenario `clients` (%(default)s)")
    parser.add_argument("--closes", type=int, default=1_000_000, help="abrupt ones (%(default)s)")
    parser.add_argument("--commands", type=int, default=10_000_000, help="of the scenario `pipeline` (%(default)s)")
    parser.add_argument("scenario", nargs="*", default=list(SCENARIOS), help=f"of {', '.join(SCENARIOS)} (all)")
    options = parser.parse_args()
    if unknown := set(options.scenario) - set(SCENARIOS):
        parser.error(f"no scenario {', '.join(unknown)}")
    options.binary = check_programs(parser, options.binary, ["redis-server"])
    for name in options.scenario:
        print(f"\n{name}: {SCENARIOS[name].__doc__}", flush=True)
        with tempfile.TemporaryDirectory(prefix="shardwise-reliability-") as folder:
            SCENARIOS[name](folder, options)
    return 0


# --- Scenarios -------------------------------------------------------------------------------------------------

def many_clients(folder, options):
    """Clients that are silent, then all active, then gone; and abrupt closes."""
    with Stage(folder, POOL, SETTINGS) as stage:
        proxy = stage.shardwise(options.binary, [stage.redis("redis")], "--threads", "2")
        base = proxy.memory()
        clients = [connect(proxy) for _ in range(options.clients)]
        wait_for_clients(proxy, options.clients)
        idle = proxy.memory()
        show("idle clients", options.clients)
        show("memory for each, bytes", (idle - base) // options.clients)
        start = time.monotonic()
        for _ in range(10):
            for client in clients:
                client.sendall(request("SET", "key", "x" * 32))
            for client in clients:
                expect(client, b"+OK\r\n")
        show("requests/s, all of them active (this script is the limit)",
             round(10 * len(clients) / (time.monotonic() - start)))
        show("memory for each, bytes", (proxy.memory() - base) // options.clients)
        for client in clients:
            client.close()
        wait_for_clients(proxy, 0)
        warm(proxy)
        time.sleep(15)
        before = proxy.memory()
        start = time.monotonic()
        # In the middle of a request, of a reply, or of nothing.
        left = [b"", b"*2\r\n$3\r\nGET\r\n$100\r\nabc", request("GET", "key") * 10]
        linger = struct.pack("ii", 1, 0)
        for number in range(options.closes):
            client = connect(proxy)
            client.sendall(left[number % len(left)])
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            client.close()
        wait_for_clients(proxy, 0)
        time.sleep(15)
        after = proxy.memory()
        show("abrupt closes", options.closes)
        show("of them a second", round(options.closes / (time.monotonic() - start - 15)))
        show("memory before and after, MB", f"{before / 1e6:.1f}, {after / 1e6:.1f} ({after / before - 1:+.1%})")


def never_reads(folder, options):
    """A client asks for 600 values of 1 MB and does not read them."""
    with Stage(folder, POOL, SETTINGS) as stage:
        proxy = stage.shardwise(options.binary, [stage.redis("redis")], "--threads", "2")
        client = connect(proxy)
        client.sendall(request("SET", "big", "x" * MB))
        expect(client, b"+OK\r\n")
        quiet = Latency(proxy, "key").measured(3)
        base = proxy.memory()
        client.sendall(request("GET", "big") * 600)
        with Memory(proxy) as memory:
            loaded = Latency(proxy, "key").measured(5)
        show("memory before, highest, MB", f"{base / 1e6:.1f}, {memory.highest / 1e6:.1f}")
        show("others' p50, p99 before, ms", quiet)
        show("others' p50, p99 meanwhile, ms", loaded)
        got = 0
        while got < 600 * (MB + len(f"${MB}\r\n\r\n")):
            got += len(client.recv(1 << 20)) or sys.exit("the client was closed")
        show("bytes that it got when it read", got)


def pipeline(folder, options):
    """A client sends commands without reading one reply, then reads all."""
    with Stage(folder, POOL, SETTINGS) as stage:
        proxy = stage.shardwise(options.binary, [stage.redis("redis")], "--threads", "2")
        quiet = Latency(proxy, "key").measured(3)
        base = proxy.memory()
        client = connect(proxy)
        sent = Sent(client, options.commands)
        with Memory(proxy) as memory:
            loaded = Latency(proxy, "key").measured(10)
            show("commands that could be sent unread", sent.count)
            show("memory before, highest, MB", f"{base / 1e6:.1f}, {memory.highest / 1e6:.1f}")
            show("others' p50, p99 before, ms", quiet)
            show("others' p50, p99 meanwhile, ms", loaded)
            buffered, number = b"", 0
            start = time.monotonic()
            while number < options.commands:
                buffered += client.recv(1 << 20) or sys.exit(f"the client was closed after {number} replies")
                last = buffered.rfind(b"\r\n") + 2
                # Every reply is $10, the number of its command.
                whole = last // 17
                expected = b"".join(b"$10\r\n%010d\r\n" % n for n in range(number, number + whole))
                if buffered[:len(expected)] != expected:
                    sys.exit(f"a wrong reply near {number}")
                number, buffered = number + whole, buffered[len(expected):]
            show("right replies, in order", number)
            show("of them a second", round(number / (time.monotonic() - start)))
        show("memory, highest while it read, MB", f"{memory.highest / 1e6:.1f}")


def huge_value(folder, options):
    """A value of 512 MB, written and read."""
    with Stage(folder, POOL, SETTINGS) as stage:
        proxy = stage.shardwise(options.binary, [stage.redis("redis")], "--threads", "2")
        size, piece = 512 * MB, b"x" * MB
        client = connect(proxy, timeout=300)
        base = proxy.memory()
        with Memory(proxy) as memory:
            start = time.monotonic()
            client.sendall(b"*3\r\n$3\r\nSET\r\n$4\r\nhuge\r\n$%d\r\n" % size)
            for _ in range(512):
                client.sendall(piece)
            client.sendall(b"\r\n")
            expect(client, b"+OK\r\n")
        show("SET: seconds", f"{time.monotonic() - start:.1f}")
        show("SET: memory before, highest, MB", f"{base / 1e6:.1f}, {memory.highest / 1e6:.1f}")
        with Memory(proxy) as memory:
            start = time.monotonic()
            client.sendall(request("GET", "huge"))
            left = size + len(f"${size}\r\n\r\n")
            while left:
                left -= len(client.recv(min(left, 1 << 20))) or sys.exit("the client was closed")
        show("GET: seconds", f"{time.monotonic() - start:.1f}")
        show("GET: memory, highest, MB", f"{memory.highest / 1e6:.1f}")


def slow_shard(folder, options):
    """One of four servers is stopped (SIGSTOP); `timeout: 400`. Others' keys and its own."""
    with Stage(folder, POOL, [*SETTINGS, "timeout: 400"]) as stage:
        servers = [stage.redis(f"r{number}") for number in range(4)]
        proxy = stage.shardwise(options.binary, servers, "--threads", "2")
        keys = key_of_each(proxy, servers)
        quiet = Latency(proxy, keys[1]).measured(5)
        servers[0].process.send_signal(signal.SIGSTOP)
        stuck = Latency(proxy, keys[0])
        others = Latency(proxy, keys[1]).measured(5)
        show("others' p50, p99 before, ms", quiet)
        show("others' p50, p99 while one is stopped, ms", others)
        show("its own keys fail after, ms (p50, p99)", stuck.stop())
        servers[0].process.send_signal(signal.SIGCONT)
        servers[0].process.kill()
        time.sleep(2)
        show("its own keys fail after, ms (p50, p99), once it is dead", Latency(proxy, keys[0]).measured(3))


SCENARIOS = {"clients": many_clients, "never-reads": never_reads, "pipeline": pipeline, "huge-value": huge_value,
             "slow-shard": slow_shard}


# --- Measuring -------------------------------------------------------------------------------------------------

class Latency:
    """One client that sends a GET every 2 ms."""

    def __init__(self, proxy, key):
        self.client, self.key, self.times, self.over = connect(proxy), key, [], False
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def work(self):
        ask = request("GET", self.key)
        while not self.over:
            start = time.monotonic()
            self.client.sendall(ask)
            if not self.client.recv(4096):
                sys.exit("a client was closed")
            self.times.append(time.monotonic() - start)
            time.sleep(0.002)

    def measured(self, seconds):
        time.sleep(seconds)
        return self.stop()

    def stop(self):
        self.over = True
        self.thread.join()
        hundredths = statistics.quantiles(self.times, n=100)
        return f"{hundredths[49] * 1e3:.2f}, {hundredths[98] * 1e3:.2f}"


class Memory:
    """The most memory that the proxy had meanwhile."""

    def __init__(self, proxy):
        self.proxy, self.highest, self.over = proxy, 0, False

    def __enter__(self):
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over = True
        self.thread.join()

    def watch(self):
        while not self.over:
            self.highest = max(self.highest, self.proxy.memory())
            time.sleep(0.02)


class Sent:
    """ECHO of consecutive numbers, sent from beside as far as the proxy takes them."""

    def __init__(self, client, count):
        self.count = 0
        threading.Thread(target=self.work, args=(client, count), daemon=True).start()

    def work(self, client, count):
        while self.count < count:
            most = min(count, self.count + 1_000)
            client.sendall(b"".join(b"*2\r\n$4\r\nECHO\r\n$10\r\n%010d\r\n" % n for n in range(self.count, most)))
            self.count = most


# --- Clients ---------------------------------------------------------------------------------------------------

def connect(proxy, timeout=60):
    client = socket.create_connection(("127.0.0.1", proxy.port), timeout)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client


def request(*args):
    return f"*{len(args)}\r\n".encode() + b"".join(f"${len(arg)}\r\n{arg}\r\n".encode() for arg in args)


def expect(client, reply):
    got = b""
    while len(got) < len(reply):
        got += client.recv(len(reply) - len(got)) or sys.exit("a client was closed")
    if got != reply:
        sys.exit(f"{got!r} instead of {reply!r}")


def warm(proxy):
    """Some traffic, so that what is kept for the next burst is kept already."""
    for _ in range(2_000):
        with connect(proxy) as client:
            client.sendall(request("GET", "key") * 10)


def wait_for_clients(proxy, count):
    end = time.monotonic() + 120
    while proxy.stats()[POOL]["client_connections"] != count:
        if time.monotonic() > end:
            sys.exit(f"the proxy does not come to have {count} clients")
        time.sleep(0.05)


def key_of_each(proxy, servers):
    """A key that lives on each server."""
    keys = {}
    with connect(proxy) as client:
        for number in range(1_000):
            key = f"key:{number * 48271 % 100003}"
            client.sendall(request("SET", key, "x"))
            expect(client, b"+OK\r\n")
            for index, server in enumerate(servers):
                if index not in keys and server.cli("EXISTS", key) == "1":
                    keys[index] = key
            if len(keys) == len(servers):
                return keys
    sys.exit("a server has no key")


def show(what, figure):
    print(f"  {what:<62}{figure}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
