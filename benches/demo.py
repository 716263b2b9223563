#!/usr/bin/env python3
"""The demonstration behind `make demo`: shardwise over four Redis servers.

1. Starts four redis-server shards, one plain redis-server, shardwise, and nutcracker if it is installed, all on
   loopback and in a temporary folder.
2. Shows where a few keys went: what `shardwise explain` says, and which shard really has the key.
3. With nutcracker: writes a thousand keys through it and reads them back through shardwise.
4. Runs redis-benchmark side by side and prints a table with ratios, in about two minutes.

Everything it started ends with it, on Ctrl-C too. Exit code 1 if a key is not where it should be, or if a
benchmark met an error.
"""

import argparse
import csv
import math
import os
import signal
import subprocess
import sys
import tempfile
import time

from stage import Stage, binary_option, check_programs, find, indented

POOL = "demo"
SETTINGS = ["hash: murmur", 'hash_tag: "{}"', "distribution: ketama"]
SHARDS = 4
KEYS = ["user:1000", "user:1001", "{user:1001}:cart", "session:f3a9", "page:/index.html", "größe"]

# redis-benchmark's own tests, with the number of requests that one client setting below multiplies.
TESTS = {
    "set": 20_000, "get": 20_000, "incr": 20_000, "lpush": 20_000, "lpop": 20_000, "sadd": 20_000, "spop": 20_000,
    "lrange_100": 4_000, "lrange_300": 2_000, "lrange_500": 1_500, "lrange_600": 1_500, "mset": 8_000,
}
# A test that only means something when there is something to find: what fills it.
FILLED_BY = {"get": "set", "lpop": "lpush", "spop": "sadd"}

# How the clients behave, the size of their values in bytes, and the factor on the number of requests (of LRANGE,
# where it differs).
CLIENTS = [
    ("-c 50", 3, 1, 1),
    ("-c 1", 3, 0.12, 0.25),
    ("-c 1000", 3, 1, 1),
    ("-c 50 -P 16", 3, 3, 1),
    ("-c 50", 1000, 1, 0.4),
]


def main():
    options = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    with tempfile.TemporaryDirectory(prefix="shardwise-demo-") as folder, Stage(folder, POOL, SETTINGS) as stage:
        shards = [stage.redis(f"shard-{n}") for n in range(1, SHARDS + 1)]
        plain = stage.redis("redis")
        subject = stage.shardwise(options.binary, shards) if options.binary else stage.nutcracker("nutcracker", shards)
        rivals = [stage.nutcracker("nutcracker", shards)] if options.binary and find("nutcracker") else []
        print(f"Four shards, and {subject.name} in front of them on port {subject.port}, with this configuration:\n")
        print(indented(open(subject.config).read()))
        right = show_keys(options.binary, subject, shards)
        for rival in rivals:
            right &= show_takeover(rival, subject, shards)
        clean = benchmark([plain] + rivals + [subject], shards + [plain], options.seconds)
        return 0 if right and clean else 1


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    binary_option(parser)
    parser.add_argument("--nutcracker-instead", dest="binary", action="store_const", const=None,
                        help="put nutcracker in shardwise's place, to try this script itself")
    parser.add_argument("--seconds", type=float, default=120, help="end the benchmarks after so long (%(default)s)")
    options = parser.parse_args()
    options.binary = check_programs(parser, options.binary, ["redis-server", "redis-cli", "redis-benchmark"])
    return options


# --- Where the keys are ----------------------------------------------------------------------------------------

def show_keys(binary, proxy, shards):
    """Sets a few keys, says where each went, and checks it on the shards themselves."""
    right = True
    for key in KEYS:
        proxy.cli("set", key, f"the value of {key}")
        if binary:
            explain = subprocess.run([binary, "explain", "-c", proxy.config, POOL, key], stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT, timeout=10).stdout.decode(errors="replace").strip()
            print(f"$ shardwise explain -c {os.path.basename(proxy.config)} {POOL} '{key}'\n{indented(explain)}")
        holders = [shard for shard in shards if shard.cli("get", key) == f"the value of {key}"]
        for holder in holders:
            print(f"$ redis-cli -p {holder.port} get '{key}'    # {holder.name}\n{indented(holder.cli('get', key))}")
        agrees = len(holders) == 1
        if agrees and binary:
            agrees = [shard.name for shard in shards if shard.name in explain] == [holders[0].name]
        if not agrees:
            print(f"WRONG: '{key}' is on {[shard.name for shard in holders]}")
        right &= agrees
    same = {shard.name for shard in shards for key in KEYS[1:3] if shard.cli("exists", key) == "1"}
    print(f"'{KEYS[1]}' and '{KEYS[2]}' share a hash tag, and a shard: {', '.join(same)}\n")
    return right and len(same) == 1


def show_takeover(rival, proxy, shards):
    """Writes through nutcracker and reads back through shardwise: not one key moves."""
    names = [f"taken:over:{n}" for n in range(1000)]
    rival.cli("mset", *[word for name in names for word in (name, f"the value of {name}")])
    found = proxy.cli("mget", *names).splitlines()
    good = sum(value == f"the value of {name}" for name, value in zip(names, found))
    spread = ", ".join(f"{shard.name} {shard.cli('dbsize')}" for shard in shards)
    print(f"{good} of {len(names)} keys written through nutcracker are found through shardwise (keys on {spread}).\n")
    return good == len(names)


# --- Side by side ----------------------------------------------------------------------------------------------

def benchmark(targets, servers, seconds):
    """Every test on every target in turn; prints a table for each setting. Whether no error was met."""
    end = time.monotonic() + seconds
    clean, subject = True, targets[-1]
    print("Requests per second, side by side. The benchmark, the proxies and the servers share "
          f"{os.cpu_count()} cores,\nso 'redis' (one server, no proxy) is a ceiling, and CPU per request tells more than the ratio.")
    for clients, size, factor, lrange_factor in CLIENTS:
        print(f"\nredis-benchmark {clients} -d {size}")
        ratios = [f"{subject.name}/{other.name}" for other in targets[:-1]]
        print(row("", [target.name for target in targets], ratios))
        spent, requests, logs = [0.0] * len(targets), [0] * len(targets), [0.0] * len(ratios)
        done = 0
        for test, base in TESTS.items():
            if time.monotonic() > end:
                print(f"  (the rest is left out: {seconds:.0f} s are over)")
                return clean
            count = max(200, int(base * (lrange_factor if test.startswith("lrange") else factor)))
            speeds = []
            for i, target in enumerate(targets):
                speed, fault, cpu, made = measure(target, servers, test, count, clients, size)
                if fault:
                    clean = False
                    print(f"ERROR: {test} through {target.name}: {fault}")
                speeds.append(speed)
                spent[i] += cpu
                requests[i] += made
            of = [speeds[-1] / speed if speed else math.nan for speed in speeds[:-1]]
            print(row(test, [f"{speed:,.0f}" for speed in speeds], [f"{ratio:.2f}" for ratio in of]), flush=True)
            logs = [total + math.log(ratio or math.nan) for total, ratio in zip(logs, of)]
            done += 1
        print(row("geometric mean", [""] * len(targets), [f"{math.exp(total / done):.2f}" for total in logs]))
        print(row("CPU µs/request", [f"{1e6 * cpu / made:.1f}" for cpu, made in zip(spent, requests)], []))
    return clean


def measure(target, servers, test, count, clients, size):
    """Requests per second of one test; what went wrong, if anything; the target's CPU seconds and requests."""
    for server in servers:
        server.cli("flushall")
    if test in FILLED_BY:
        run_benchmark(target, FILLED_BY[test], count, "-c 50 -P 16", size)
    before = target.cpu_seconds()
    rows, fault = run_benchmark(target, test, count, clients, size)
    # An LRANGE test is preceded by as many LPUSHes, which count for the CPU; its own line is the last.
    speed = float(rows[-1][1]) if rows else 0.0
    return speed, fault, target.cpu_seconds() - before, count * max(1, len(rows))


def run_benchmark(target, test, count, clients, size):
    command = ["redis-benchmark", "-h", "127.0.0.1", "-p", str(target.port), "--csv", "-t", test, "-n", str(count),
               "-r", "100000", "-d", str(size), *clients.split()]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return [], "no end after 60 s"
    rows = [fields for fields in csv.reader(done.stdout.splitlines()) if len(fields) > 1 and fields[0] != "test"]
    lines = (done.stdout + done.stderr).splitlines()
    faults = [line for line in lines if "error" in line.lower() and "config" not in line.lower()]
    if done.returncode or not rows:
        faults.append(f"redis-benchmark ended with {done.returncode}")
    return rows, faults[0] if faults else None


# --- Small things ----------------------------------------------------------------------------------------------

def row(name, speeds, ratios):
    return f"  {name:<16}" + "".join(f"{cell:>12}" for cell in speeds) + "".join(f"{cell:>22}" for cell in ratios)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("stopped")
