"""redis-py against HOST PORT in PROTOCOL 2 or 3, otherwise at its defaults. Runs with version 4.6, too, which speaks 2 only."""

import sys
import threading
import time

import redis

from report import expect, run


def main(host, port, protocol):
    options = {} if redis.__version__.startswith("4.") else {"protocol": protocol}
    new = lambda: redis.Redis(host=host, port=port, **options)
    client = new()

    def connect():
        expect(client.set("features:connect", b"\x00\xff\r\n"), True)
        expect(client.get("features:connect"), b"\x00\xff\r\n")

    def pipeline():
        with client.pipeline(transaction=False) as batch:
            for i in range(300):
                batch.set(f"features:p:{i}", i)
                batch.get(f"features:p:{i}")
            expect(batch.execute(), [reply for i in range(300) for reply in (True, b"%d" % i)])

    def transaction():
        with client.pipeline() as batch:
            batch.watch("{features}:t")
            batch.multi()
            batch.set("{features}:t", "1").incr("{features}:t").get("{features}:t")
            expect(batch.execute(), [True, 2, b"2"])
        with client.pipeline() as batch:
            batch.watch("{features}:t")
            client.set("{features}:t", "changed")
            batch.multi()
            batch.get("{features}:t")
            try:
                batch.execute()
            except redis.WatchError:
                return
            raise AssertionError("a watched key that changed was not noticed")

    def blocking_pop():
        client.delete("features:queue")
        expect(client.blpop(["features:queue"], timeout=1), None)
        pusher = threading.Timer(0.2, lambda: new().rpush("features:queue", "element"))
        pusher.start()
        expect(tuple(client.blpop(["features:queue"], timeout=10)), (b"features:queue", b"element"))
        pusher.join()

    def subscribe():
        with client.pubsub() as listener:
            listener.subscribe("features:channel")
            listener.psubscribe("features:pattern:*")
            kinds = {next_message(listener)["type"] for _ in range(2)}
            expect(kinds, {"subscribe", "psubscribe"})
            expect(client.publish("features:channel", "direct") >= 1, True)
            expect(next_message(listener)["data"], b"direct")
            client.publish("features:pattern:x", "matched")
            message = next_message(listener)
            expect((message["type"], message["channel"], message["data"]), ("pmessage", b"features:pattern:x", b"matched"))

    def script():
        double = client.register_script("return redis.call('INCRBY', KEYS[1], ARGV[1] * 2)")
        for i in range(20):
            client.delete(f"features:script:{i}")
            expect(double(keys=[f"features:script:{i}"], args=[21]), 42)
        expect(client.eval("return ARGV[1]", 0, "x"), b"x")

    def scan():
        names = {f"features:scan:{i}".encode() for i in range(500)}
        client.mset({name: 1 for name in names})
        expect(set(client.scan_iter(match="features:scan:*", count=50)), names)
        client.sadd("features:set", *range(600))
        expect(len(set(client.sscan_iter("features:set"))), 600)

    checks = [("connect", connect), ("pipeline", pipeline), ("transaction", transaction), ("blocking pop", blocking_pop),
              ("subscribe", subscribe), ("script", script), ("scan", scan)]
    return run(f"redis-py {redis.__version__}", checks)


def next_message(listener):
    end = time.monotonic() + 10
    while time.monotonic() < end:
        message = listener.get_message(timeout=1)
        if message:
            return message
    raise AssertionError("no message within ten seconds")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
