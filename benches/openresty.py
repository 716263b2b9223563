#!/usr/bin/env python3
"""A page of nginx that talks to Redis by Lua, under load by ab: directly, and through shardwise.

Two locations: /short opens a connection, sends AUTH, SET and GET, and closes it; /pooled keeps its connections
(set_keepalive) and sends AUTH on new ones only. Every server wants a password, and so does shardwise.

Prints requests per second, failed requests, the longest of 99% of the latencies, and what shardwise changes. Ends with 1 if a
request through shardwise failed. Sizes: --short 5000,10000,20000,40000 --pooled 1000000 is the large run.
"""

import argparse
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
from collections import Counter, namedtuple

from stage import Stage, binary_option, check_programs, find, free_port

PASSWORD = "scenario-s3cret"
TEMPLATE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "openresty", "nginx.conf")
SETTINGS = ["hash: fnv1a_64", "distribution: ketama", "timeout: 5000", f"redis_auth: {PASSWORD}"]

Figures = namedtuple("Figures", "rate failed p99 broken")


def main():
    options = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    with tempfile.TemporaryDirectory(prefix="shardwise-openresty-") as folder:
        os.chmod(folder, 0o755)  # nginx's workers run as another user
        with Stage(folder, "alpha", SETTINGS) as stage:
            failed = run(stage, options)
    print("\nfailed requests through shardwise:", failed)
    return 1 if failed else 0


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    binary_option(parser)
    parser.add_argument("--short", type=numbers, default=[2000], help="requests over short connections, e.g. 5000,40000")
    parser.add_argument("--pooled", type=numbers, default=[10000], help="requests over pooled connections")
    parser.add_argument("--clients", type=int, default=100, help="ab -c (%(default)s)")
    parser.add_argument("--rounds", type=int, default=1, help="rounds; the median is printed (%(default)s)")
    parser.add_argument("--shards", type=int, default=4, help="servers behind shardwise (%(default)s)")
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) // 2), help="nginx's (%(default)s)")
    parser.add_argument("--worker-connections", type=int, default=4096, help="nginx's (%(default)s)")
    parser.add_argument("--log", action="store_true", help="show how often nginx's log said what")
    parser.add_argument("--nofile", type=int, default=20000, help="nginx's worker_rlimit_nofile (%(default)s)")
    options = parser.parse_args()
    options.binary = check_programs(parser, options.binary, ["redis-server", "redis-cli", "nginx", "ab"])
    return options


def numbers(text):
    return [int(number) for number in text.split(",") if number]


def run(stage, options):
    """Runs all; the number of requests through shardwise that failed."""
    direct = stage.redis("direct", "--requirepass", PASSWORD)
    shards = [stage.redis(f"shard-{n}", "--requirepass", PASSWORD) for n in range(1, options.shards + 1)]
    proxy = stage.shardwise(options.binary, shards)
    targets = {"redis": nginx(stage, "redis", direct.port, options),
               "shardwise": nginx(stage, "shardwise", proxy.port, options)}
    failed = 0
    print(f"ab -k -c {options.clients}; nginx with {options.workers} workers; shardwise with {options.shards} servers; "
          f"median of {options.rounds} rounds\n")
    print(f"{'page':<8}{'requests':>10}  {'':<10}{'req/s':>8}{'p99 ms':>8}{'failed':>8}{'ratio':>8}")
    for page, sizes in (("short", options.short), ("pooled", options.pooled)):
        for size in sizes:
            failed += compare(targets, page, size, options)
    if options.log:
        for name, server in targets.items():
            show_log(name, server)
    return failed


def show_log(name, server):
    """Lines of the error log that differ in more than numbers, addresses and times, and how often."""
    with open(server.error_log) as log:
        lines = [re.sub(r"^\S+ \S+ |\d+#\d+: |\*\d+ |, client: .*|\d+", "", line).strip() for line in log]
    print(f"\nerror log of nginx before {name}:")
    for line, count in Counter(lines).most_common(8):
        print(f"{count:>8}  {line[:150]}")


def compare(targets, page, size, options):
    found = {name: [] for name in targets}
    for turn in range(options.rounds):
        order = list(targets.items())
        for name, server in order if turn % 2 == 0 else reversed(order):
            found[name].append(measure(server, page, size, options.clients))
    base = found["redis"]
    for name, rounds in found.items():
        middle = Figures(*map(statistics.median, zip(*rounds)))
        lost = sum(figures.failed for figures in rounds)
        ratio = statistics.median(own.rate / other.rate if other.rate else 0 for own, other in zip(rounds, base))
        broken = "  ab gave up" if any(figures.broken for figures in rounds) else ""
        print(f"{page:<8}{size:>10,}  {name:<10}{middle.rate:>8,.0f}{middle.p99:>8,.0f}{lost:>8,}{ratio:>8.2f}{broken}",
              flush=True)
    return sum(figures.failed + figures.broken for figures in found["shardwise"])


def measure(server, page, size, clients):
    command = ["ab", "-q", "-k", "-r", "-s", "60", "-c", str(min(clients, size)), "-n", str(size),
               f"http://127.0.0.1:{server.port}/{page}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=3600)
    figure = lambda pattern: float((re.search(pattern, done.stdout) or [0, 0])[1])
    # "Failed requests" counts one request up to three times, and what is no 2xx too when its length differs.
    failed = min(size, max(figure(r"Failed requests: +(\d+)"), figure(r"Non-2xx responses: +(\d+)")))
    missing = size - figure(r"Complete requests: +(\d+)")
    broken = done.returncode != 0 or missing > 0
    return Figures(figure(r"Requests per second: +([\d.]+)"), int(failed + missing), figure(r"\n +99% +(\d+)"), broken)


def nginx(stage, name, port, options):
    """nginx in front of the Redis or proxy at `port`."""
    folder = os.path.join(stage.folder, f"nginx-{name}")
    os.mkdir(folder)
    values = {"WORKERS": options.workers, "NOFILE": options.nofile, "CONNECTIONS": options.worker_connections,
              "FOLDER": folder, "PORT": port, "HTTP": free_port(), "PASSWORD": PASSWORD, "TIMEOUT": 10000}
    with open(TEMPLATE) as template:
        text = re.sub(r"@([A-Z]+)@", lambda word: str(values[word[1]]), template.read().partition("load_module")[2])
    config = os.path.join(folder, "nginx.conf")
    with open(config, "w") as file:
        file.write("load_module" + text)
    program = stage.start(f"nginx-{name}", values["HTTP"], [find("nginx"), "-c", config, "-p", folder],
                          ending=signal.SIGTERM)
    program.error_log = os.path.join(folder, "error.log")
    return program


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("stopped")
