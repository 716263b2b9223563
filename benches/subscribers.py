#!/usr/bin/env python3
"""Many subscribers of one channel through one proxy: subscriptions at the server, and how long until the last one has a message.

Starts a redis-server and a proxy with two workers on loopback. Each message is published when all subscribers have the one before;
then some of them stop reading, and it is done again.
"""

import argparse
import selectors
import socket
import statistics
import sys
import tempfile
import time

from stage import Stage, binary_option, check_programs

CHANNEL = b"news"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    binary_option(parser)
    parser.add_argument("--subscribers", type=int, default=10_000, help="(%(default)s)")
    parser.add_argument("--stalled", type=int, default=10, help="those that stop reading (%(default)s)")
    parser.add_argument("--messages", type=int, default=40, help="of each round (%(default)s)")
    parser.add_argument("--bytes", type=int, default=1000, help="of a message (%(default)s)")
    parser.add_argument("--flood", type=int, default=16 << 20, help="bytes published before the second round (%(default)s)")
    options = parser.parse_args()
    binary = check_programs(parser, options.binary, ["redis-server", "redis-cli"])
    with tempfile.TemporaryDirectory(prefix="shardwise-subscribers-") as folder, \
            Stage(folder, "alpha", ["out_soft: 256k", "out_hard: 1m"]) as stage:
        redis = stage.redis("redis", "--maxclients", "1000")
        proxy = stage.shardwise(binary, [redis], "--threads", "2")
        run(options, redis, proxy)


def run(options, redis, proxy):
    base = proxy.memory()
    crowd = Crowd(proxy.port, options.subscribers)
    show("subscribers", options.subscribers)
    show("subscriptions at the server, one for each worker", redis.cli("PUBSUB", "NUMSUB", CHANNEL.decode()).split()[-1])
    show("connections of the server", redis.cli("INFO", "clients").split("connected_clients:")[1].split()[0])
    show("memory of the proxy for each subscriber, bytes", (proxy.memory() - base) // options.subscribers)
    publisher = socket.create_connection(("127.0.0.1", proxy.port))
    before = crowd.round(publisher, options.messages, options.bytes)
    show_round("until the last one has a message, ms", before)
    crowd.stall(options.stalled)
    # Enough for the kernel's buffers and out_hard of those that don't read.
    size = 256 << 10
    for _ in range(max(1, options.flood // size)):
        flood(publisher, size)
    after = crowd.round(publisher, options.messages, options.bytes)
    show_round(f"with {options.stalled} that don't read, ms", after)
    show("ratio of the medians", f"{statistics.median(after) / statistics.median(before):.2f}")
    show("messages lost or out of order", crowd.wrong)


def flood(publisher, size):
    """Something big on another channel that only the stalled ones have subscribed to."""
    publisher.sendall(request(b"PUBLISH", b"flood", b"x" * size))
    read_reply(publisher)


class Crowd:
    """Subscribers that read, and some that stop."""

    def __init__(self, port, count):
        self.selector = selectors.EpollSelector()
        self.reading, self.stalled, self.number, self.wrong = [], [], 0, 0
        for _ in range(count):
            member = Member(socket.create_connection(("127.0.0.1", port)))
            member.socket.sendall(request(b"SUBSCRIBE", CHANNEL))
            self.reading.append(member)
        for member in self.reading:
            member.take(len(b"*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n"))
            member.socket.setblocking(False)
            self.selector.register(member.socket, selectors.EVENT_READ, member)

    def stall(self, count):
        """So many subscribe to the flood, too, and read nothing from then on."""
        for _ in range(count):
            member = self.reading.pop()
            self.selector.unregister(member.socket)
            member.socket.setblocking(True)
            member.socket.sendall(request(b"SUBSCRIBE", b"flood"))
            self.stalled.append(member)

    def round(self, publisher, messages, size):
        """Milliseconds until the last one had each message."""
        times = []
        for _ in range(messages):
            self.number += 1
            payload = str(self.number).encode().rjust(size, b".")
            frame = request(b"message", CHANNEL, payload)
            start = time.monotonic()
            publisher.sendall(request(b"PUBLISH", CHANNEL, payload))
            awaited = len(self.reading)
            while awaited:
                events = self.selector.select(20)
                if not events:
                    sys.exit(f"{awaited} subscribers have not got message {self.number} after 20 s")
                for key, _ in events:
                    member = key.data
                    member.got += member.socket.recv(1 << 16)
                    if len(member.got) >= len(frame):
                        self.wrong += member.got != frame
                        member.got = b""
                        awaited -= 1
            times.append((time.monotonic() - start) * 1000)
            read_reply(publisher)
        return times


class Member:
    """One subscriber: its socket, and what it has of the message that is coming."""

    def __init__(self, connection):
        self.socket, self.got = connection, b""

    def take(self, count):
        while count:
            count -= len(self.socket.recv(count))


def request(*words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def read_reply(connection):
    reply = b""
    while not reply.endswith(b"\r\n"):
        reply += connection.recv(4096)
    if not reply.startswith(b":"):
        sys.exit(f"PUBLISH: {reply.decode()}")


def show_round(name, times):
    show(f"{name}: median, most", f"{statistics.median(times):.1f}, {max(times):.1f}")


def show(name, value):
    print(f"  {name:<60} {value}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
