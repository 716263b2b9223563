"""redis-py against a proxy (or a plain Redis) on HOST PORT: one line a check, exit code 1 if any fails."""

import sys
import threading
import traceback

import redis

from report import expect

PREFIX = b"smoke:redis-py:"


def main(host, port):
    client = connect(host, port)
    checks = [
        ("set and get, binary and empty", set_and_get),
        ("a value of 1 MB", big_value),
        ("incr, decr, append", counters),
        ("mset and mget over all shards", mset_and_mget),
        ("del, unlink, exists count over all shards", deletes),
        ("a pipeline of 300 in order", pipeline),
        ("a transaction, which is what pipeline() makes by default", transaction),
        ("a watched key that changes", watch),
        ("a blocking pop", blocking_pop),
        ("lists", lists),
        ("hashes", hashes),
        ("sets and sorted sets", sets),
        ("expiry", expiry),
        ("errors leave the connection usable", errors),
        ("errors inside a pipeline stay in their place", pipeline_errors),
        ("eight threads at once", threads),
    ]
    failed = 0
    for name, check in checks:
        try:
            check(client)
            print(f"ok     redis-py {redis.__version__}: {name}")
        except Exception:
            failed += 1
            print(f"FAILED redis-py {redis.__version__}: {name}")
            traceback.print_exc(file=sys.stdout)
    print(f"{len(checks) - failed} passed, {failed} failed")
    return 1 if failed else 0


def connect(host, port, **options):
    client = redis.Redis(host=host, port=port, **options)
    client.exists(key("connected"))
    return client


def key(name):
    return PREFIX + (name if isinstance(name, bytes) else str(name).encode())


def set_and_get(client):
    for name, value in [("plain", b"value"), ("empty", b""), (b"bin\x00\xff\r\n", bytes(range(256)))]:
        expect(client.set(key(name), value), True)
        expect(client.get(key(name)), value)
    expect(client.get(key("missing")), None)
    expect(client.set(key("plain"), b"other", nx=True), None)
    expect(client.getset(key("plain"), b"new"), b"value")
    expect(client.strlen(key("plain")), 3)


def big_value(client):
    value = bytes(i * 7 % 251 for i in range(1 << 20))
    expect(client.set(key("big"), value), True)
    expect(client.get(key("big")), value)
    expect(client.getrange(key("big"), 1000, 1009), value[1000:1010])


def counters(client):
    client.delete(key("n"), key("text"))
    expect([client.incr(key("n")), client.incrby(key("n"), 41), client.decr(key("n"))], [1, 42, 41])
    expect(client.incrbyfloat(key("n"), 0.5), 41.5)
    expect([client.append(key("text"), "ab"), client.append(key("text"), "c")], [2, 3])


def mset_and_mget(client):
    names = [key(f"many:{i}") for i in range(200)]
    expect(client.mset({name: b"of " + name for name in names}), True)
    client.delete(key("missing"))
    asked = names + [key("missing"), names[0], names[0]]
    answer = [b"of " + name for name in names] + [None, b"of " + names[0], b"of " + names[0]]
    expect(client.mget(asked), answer)


def deletes(client):
    names = [key(f"gone:{i}") for i in range(100)]
    client.mset(dict.fromkeys(names, b"v"))
    expect(client.exists(*names, names[0]), 101)
    expect(client.touch(*names), 100)
    expect(client.delete(*names[:60], key("missing")), 60)
    expect(client.unlink(*names), 40)
    expect(client.exists(*names), 0)


def pipeline(client):
    with client.pipeline(transaction=False) as batch:
        for i in range(100):
            batch.set(key(f"p:{i}"), f"value {i}")
            batch.get(key(f"p:{i}"))
            batch.strlen(key(f"p:{i}"))
        answers = batch.execute()
    wanted = []
    for i in range(100):
        value = f"value {i}".encode()
        wanted += [True, value, len(value)]
    expect(answers, wanted)


def transaction(client):
    name = key("transaction")
    client.delete(name)
    with client.pipeline() as batch:
        answers = batch.set(name, 1).incr(name).get(name).execute()
    expect(answers, [True, 2, b"2"])
    with client.pipeline() as batch:
        answers = batch.lpush(name, "x").get(name).execute(raise_on_error=False)
    expect([type(answers[0]), answers[1]], [redis.ResponseError, b"2"])


def watch(client):
    name = key("watched")
    client.set(name, 1)
    with client.pipeline() as batch:
        batch.watch(name)
        value = int(batch.get(name))
        client.incr(name)
        batch.multi()
        batch.set(name, value + 10)
        try:
            batch.execute()
        except redis.WatchError:
            pass
        else:
            raise AssertionError("EXEC succeeded although the key had changed")
    add = lambda batch: batch.multi() or batch.incrby(name, 10)
    expect(client.transaction(add, name), [12])


def blocking_pop(client):
    name = key("queue")
    client.delete(name)
    expect(client.blpop([name], timeout=0.05), None)
    pusher = threading.Timer(0.1, lambda: client.rpush(name, "x"))
    pusher.start()
    popped = client.blpop([name], timeout=10)
    pusher.join()
    expect(tuple(popped), (name, b"x"))


def lists(client):
    name = key("list")
    client.delete(name)
    expect(client.rpush(name, *[f"e{i}" for i in range(600)]), 600)
    expect(client.lrange(name, 0, -1), [f"e{i}".encode() for i in range(600)])
    expect([client.lpop(name), client.rpop(name), client.llen(name)], [b"e0", b"e599", 598])
    expect(client.lindex(name, -1), b"e598")
    expect(client.lrange(key("missing"), 0, -1), [])


def hashes(client):
    name = key("hash")
    client.delete(name)
    fields = {f"f{i}".encode(): f"v{i}".encode() for i in range(50)}
    expect(client.hset(name, mapping=fields), 50)
    expect(client.hgetall(name), fields)
    expect(client.hmget(name, "f1", "missing"), [b"v1", None])
    expect(client.hincrby(name, "count", 5), 5)
    expect(client.hdel(name, "f0", "missing"), 1)


def sets(client):
    client.delete(key("set"), key("zset"))
    expect(client.sadd(key("set"), "a", "b", "b"), 2)
    expect(client.smembers(key("set")), {b"a", b"b"})
    expect(client.sismember(key("set"), "a"), 1)
    expect(client.zadd(key("zset"), {"one": 1, "two": 2.5}), 2)
    expect([tuple(pair) for pair in client.zrange(key("zset"), 0, -1, withscores=True)], [(b"one", 1.0), (b"two", 2.5)])
    expect(client.zscore(key("zset"), "two"), 2.5)


def expiry(client):
    client.set(key("short"), "v", ex=100)
    expect(0 < client.ttl(key("short")) <= 100, True)
    expect(client.persist(key("short")), True)
    expect(client.ttl(key("short")), -1)


def errors(client):
    client.delete(key("list"))
    client.rpush(key("list"), "a")
    expect_error(lambda: client.get(key("list")), "WRONGTYPE", "Operation against a key")
    expect_error(lambda: client.execute_command("GET"), "wrong number of arguments for 'get' command")
    expect_error(lambda: client.execute_command("NOSUCHCOMMAND", "x"), "unknown command")
    expect(client.llen(key("list")), 1)


def pipeline_errors(client):
    client.delete(key("list"))
    with client.pipeline(transaction=False) as batch:
        batch.rpush(key("list"), "a").get(key("list")).llen(key("list"))
        answers = batch.execute(raise_on_error=False)
    expect([answers[0], isinstance(answers[1], redis.ResponseError), answers[2]], [1, True, 1])


def threads(client):
    faults = []

    def work(number):
        try:
            for i in range(100):
                name, value = key(f"t{number}:{i}"), f"thread {number} value {i}".encode()
                expect(client.set(name, value), True)
                expect(client.get(name), value)
        except Exception as fault:
            faults.append(fault)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    expect(faults, [])


def expect_error(call, *any_of):
    try:
        answer = call()
    except redis.ResponseError as error:
        if not any(text in str(error) for text in any_of):
            raise AssertionError(f"another error: {error}") from error
    else:
        raise AssertionError(f"no error but {answer!r}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
