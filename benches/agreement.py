#!/usr/bin/env python3
"""Whether `shardwise bench` and redis-benchmark say the same of one target.

SET and GET, 50 clients, values of 3 bytes, 100,000 keys, one thread, with and without a pipeline; the two take turns. The target has one core and
the generator another one: so it is seen which of them is the limit. They can agree only where it is the target: a generator that is
saturated itself measures itself. Printed: requests per second, how busy the target's processes and the generator were (of one core),
and the ratio of the two generators. Targets: a single Redis; nutcracker with its Redis, and shardwise with its own, on the target's core.
"""

import argparse
import json
import os
import re
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from stage import Stage, binary_option, check_programs, find

TARGET_CORE, GENERATOR_CORE = 0, 1
LOAD = {"-c": "50", "-d": "3", "-t": "set,get"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    binary_option(parser)
    parser.add_argument("target", nargs="*", default=["redis", "nutcracker", "shardwise"], help="some of: redis nutcracker shardwise (all)")
    parser.add_argument("--rounds", type=int, default=5, help="of each (%(default)s)")
    parser.add_argument("--requests", type=int, default=100_000, help="per test and round, eight times as many in pipelines (%(default)s)")
    options = parser.parse_args()
    options.binary = check_programs(parser, options.binary, ["redis-server", "redis-benchmark", "nutcracker"])
    if (os.cpu_count() or 1) < 2:
        parser.error("two cores are needed: one for the target, one for the generator")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    print(f"{'target':<12}{'P':>3} {'test':<5}{'redis-benchmark':>16}{'busy':>6}{'own':>6}{'shardwise bench':>17}{'busy':>6}{'own':>6}{'ratio':>8}")
    with tempfile.TemporaryDirectory(prefix="shardwise-agreement-") as folder:
        for kind in options.target:
            with Stage(folder, "alpha", []) as stage:
                port, programs = target(stage, kind, options)
                for pipeline in (1, 16):
                    compare(kind, port, programs, pipeline, options)
    return 0


def target(stage, kind, options):
    """The target's port, and its programs, all on one core."""
    programs = [stage.redis("redis")]
    if kind == "nutcracker":
        programs.append(stage.nutcracker("nutcracker", programs[:1]))
    elif kind == "shardwise":
        programs.append(stage.shardwise(options.binary, programs[:1], "--threads", "1"))
    for program in programs:
        for thread in os.listdir(f"/proc/{program.process.pid}/task"):
            os.sched_setaffinity(int(thread), {TARGET_CORE})
    return programs[-1].port, programs


def compare(kind, port, programs, pipeline, options):
    requests = options.requests * (8 if pipeline > 1 else 1)
    runs = {"redis-benchmark": [], "shardwise": []}
    for turn in range(options.rounds):
        for name in sorted(runs, reverse=turn % 2 == 1):
            runs[name].append(measure(name, port, programs, pipeline, requests, options))
    for test in ("set", "get"):
        theirs, ours = ([run[test] for run in runs[name]] for name in runs)
        ratio = statistics.median(one / other for one, other in zip(ours, theirs))
        load = {name: [statistics.median(run[what] for run in runs[name]) for what in ("busy", "own")] for name in runs}
        print(f"{kind:<12}{pipeline:>3} {test:<5}{statistics.median(theirs):>16,.0f}{load['redis-benchmark'][0]:>6.2f}{load['redis-benchmark'][1]:>6.2f}"
              f"{statistics.median(ours):>17,.0f}{load['shardwise'][0]:>6.2f}{load['shardwise'][1]:>6.2f}{ratio:>8.2f}", flush=True)


def measure(name, port, programs, pipeline, requests, options):
    """Requests per second of each test; how busy the target and the generator were, of one core."""
    load = [word for pair in LOAD.items() for word in pair] + ["-P", str(pipeline), "-n", str(requests)]
    if name == "shardwise":
        command = [options.binary, "bench", "--target", f"it=127.0.0.1:{port}", "--keys", "100000", "--rounds", "1", "--threads", "1", "--json", "-"]
    else:
        command = [find("redis-benchmark"), "-p", str(port), "-r", "100000", "--csv"]
    before, own, start = sum(map(busy, programs)), generators(), time.monotonic()
    done = subprocess.run(command + load, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=600, check=True,
                          preexec_fn=lambda: os.sched_setaffinity(0, {GENERATOR_CORE}))
    elapsed = time.monotonic() - start
    if name == "shardwise":
        found = {one["test"]: one["requests_per_second"] for one in json.loads(done.stdout)["results"]}
    else:
        found = {test.lower(): float(rate) for test, rate in re.findall(r'"(SET|GET)","([\d.]+)"', done.stdout)}
    return found | {"busy": (sum(map(busy, programs)) - before) / elapsed, "own": (generators() - own) / elapsed}


def busy(program):
    """Seconds that its threads have run, to the nanosecond."""
    folder = f"/proc/{program.process.pid}/task"
    return sum(int(open(f"{folder}/{thread}/schedstat").read().split()[0]) for thread in os.listdir(folder)) / 1e9


def generators():
    """Seconds that generators have run so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
