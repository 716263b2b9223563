#!/usr/bin/env python3
"""shardwise beside nutcracker, over the same Redis servers: what a request costs each in CPU.

Every workload runs on each target in turn, round after round, and the turn rotates, so that all see the same machine. A
ratio is taken within its round, and its median over the rounds is printed: what drifts with the machine cancels. It is
taken to nutcracker at the cheaper of its two buffer sizes on that workload (512 bytes, and its default of 16 KB).

  cpu      microseconds per request that the target's own process spent, in user mode and in the kernel
  servers  microseconds per request that the Redis servers spent meanwhile: cost must not be moved onto them
  req/s    requests per second; p99: milliseconds, as redis-benchmark saw them

Every proxy runs one thread. If SIDE_BY_SIDE names another script that takes `--target NAME=PORT=COMMAND` with {conf} for a
configuration, that one runs instead, with the options given here after `--`.
"""

import argparse
import csv
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections import namedtuple

from stage import Stage, binary_option, check_programs, find, free_port

# As redis-benchmark is told; and how many requests each of its tests makes.
Workload = namedtuple("Workload", "options requests")
WORKLOADS = {
    "c50": Workload("-c 50 -t set,get -d 3 -r 100000", 200_000),
    "c50-P16": Workload("-c 50 -P 16 -t set,get -d 3 -r 100000", 800_000),
    "c1": Workload("-c 1 -t set,get -d 1000 -r 100000", 30_000),
    "c1000-1k": Workload("-c 1000 -t set,get -d 1000 -r 100000", 200_000),
    "c5000-1k": Workload("-c 5000 -t set,get -d 1000 -r 100000", 200_000),
    "seed-mix": Workload("-c 50 -t incr,lpush,lpop,sadd,spop,lrange_100,lrange_300,lrange_500,lrange_600,mset -d 3"
                         " -r 100000", 40_000),
    "mget16": Workload("-c 50 -r 100000 MGET" + " key:__rand_int__" * 16, 60_000),
    "reconnect": Workload("-c 50 -k 0 -t get -d 3 -r 100000", 20_000),
    "big64k": Workload("-c 20 -t set,get -d 65536 -r 1000", 20_000),
}

Figures = namedtuple("Figures", "cpu servers speed p99")
SETTINGS = ["hash: fnv1a_64", "distribution: ketama", "timeout: 5000"]
RIVALS = {"nutcracker": "512", "nutcracker-16k": "16384"}


def main():
    options = parse_arguments()
    if options.other:
        return run_other(options)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    with tempfile.TemporaryDirectory(prefix="shardwise-bench-") as folder, Stage(folder, "bench", SETTINGS) as stage:
        servers = [stage.redis(f"shard-{n}") for n in range(1, options.shards + 1)]
        targets = [servers[0]] if options.redis else []
        if find("nutcracker"):
            targets += [stage.nutcracker(name, servers, "-m", size) for name, size in RIVALS.items()]
        else:
            print("nutcracker is not installed: figures without ratios")
        targets.append(stage.shardwise(options.binary, servers, "--threads", "1"))
        for name in options.workload or WORKLOADS:
            workload = WORKLOADS[name]
            requests = max(100, int(workload.requests * options.scale))
            print(f"\n{name}: redis-benchmark {shortened(workload.options)} -n {requests}, {options.rounds} rounds")
            print_table(compare(targets, servers, workload.options, requests, options.rounds))
    return 0


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    binary_option(parser)
    parser.add_argument("--workload", action="append", choices=WORKLOADS, help="only this one (may be repeated)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds per workload (%(default)s)")
    parser.add_argument("--scale", type=float, default=1.0, help="factor on the numbers of requests")
    parser.add_argument("--shards", type=int, default=2, help="Redis servers (%(default)s)")
    parser.add_argument("--redis", action="store_true", help="also measure the first Redis server without any proxy")
    parser.add_argument("rest", nargs="*", metavar="-- OPTION", help="options for the script that SIDE_BY_SIDE names")
    options = parser.parse_args()
    options.other = os.environ.get("SIDE_BY_SIDE")
    if options.other and not os.path.exists(options.other):
        parser.error(f"SIDE_BY_SIDE: no script at {options.other}")
    options.binary = check_programs(parser, options.binary, ["redis-server", "redis-cli", "redis-benchmark"])
    return options


def run_other(options):
    port, stats = free_port(), free_port()
    command = f"{options.binary} -c {{conf}} -a 127.0.0.1 -s {stats} --threads 1"
    chosen = [word for name in options.workload or [] for word in ("--workload", name)]
    return subprocess.run([sys.executable, options.other, "--target", f"shardwise={port}={command}", "--rounds",
                           str(options.rounds), "--scale", str(options.scale), *chosen, *options.rest]).returncode


def compare(targets, servers, options, requests, rounds):
    """Figures of each target, one per round."""
    found = {target.name: [] for target in targets}
    for turn in range(rounds):
        shift = turn % len(targets)
        for target in targets[shift:] + targets[:shift]:
            found[target.name].append(measure(target, servers, options, requests))
    return found


def measure(target, servers, options, requests):
    for server in servers:
        server.cli("flushall")
    own, theirs = target.cpu_seconds(), sum(server.cpu_seconds() for server in servers)
    done = subprocess.run(["redis-benchmark", "-h", "127.0.0.1", "-p", str(target.port), "--csv", "-n", str(requests),
                           *options.split()], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=900)
    own, theirs = target.cpu_seconds() - own, sum(server.cpu_seconds() for server in servers) - theirs
    # Each test's line: its name, requests per second, and six latencies, of which the last but one is p99.
    tests = [row for row in csv.reader(done.stdout.splitlines()) if len(row) == 8 and row[0] != "test"]
    if done.returncode or not tests:
        sys.exit(f"redis-benchmark {options} on {target.name}:\n{done.stdout}{done.stderr}")
    made = requests * len(tests)
    return Figures(cpu=own * 1e6 / made, servers=theirs * 1e6 / made,
                   speed=made / sum(requests / float(row[1]) for row in tests),
                   p99=statistics.mean(float(row[6]) for row in tests))


def print_table(found):
    median = {name: Figures(*map(statistics.median, zip(*rounds))) for name, rounds in found.items()}
    baseline = min((name for name in RIVALS if name in found), key=lambda name: median[name].cpu, default=None)
    print(f"  {'':<16}{'cpu':>8}{'servers':>9}{'req/s':>10}{'p99':>9}"
          + (f"    beside {baseline}: cpu, servers, req/s, p99" if baseline else ""))
    for name, figures in median.items():
        line = f"  {name:<16}{figures.cpu:>8.2f}{figures.servers:>9.2f}{figures.speed:>10,.0f}{figures.p99:>9.3f}"
        if baseline:
            pairs = [zip(own, base) for own, base in zip(found[name], found[baseline])]
            ratios = zip(*([own / base if base else float("nan") for own, base in pair] for pair in pairs))
            line += "    " + "".join(f"{statistics.median(ratio):>7.2f}" for ratio in ratios)
        print(line, flush=True)


def shortened(options):
    return options if len(options) < 70 else options[:67] + "..."


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("stopped")
