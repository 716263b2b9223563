"""Programs that the scripts of this folder start: Redis servers, and proxies in front of them, all on loopback."""

import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time


class Program:
    """A running server, and the file it was configured by, if any."""

    def __init__(self, name, port, process, config=None, stats=None, ending=signal.SIGKILL):
        self.name, self.port, self.process, self.config, self.stats_port = name, port, process, config, stats
        self.ending = ending

    def cpu_seconds(self):
        """What all its threads have used, in user mode and in the kernel."""
        with open(f"/proc/{self.process.pid}/stat") as stat:
            fields = stat.read().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self, name="VmRSS"):
        """A figure of its memory, in bytes."""
        with open(f"/proc/{self.process.pid}/status") as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith(f"{name}:"))

    def stats(self):
        """What its stats port says."""
        with socket.create_connection(("127.0.0.1", self.stats_port), 5) as connection:
            return json.loads(b"".join(iter(lambda: connection.recv(65536), b"")))

    def cli(self, *arguments):
        command = ["redis-cli", "-h", "127.0.0.1", "-p", str(self.port), *arguments]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=30)
        return done.stdout.decode(errors="replace").strip()


class Stage:
    """Starts programs in one folder; ends all of them, by their ids, when it is left."""

    def __init__(self, folder, pool, settings):
        """`settings`: lines of the pool's section, beside its address and its servers."""
        self.folder, self.pool, self.settings, self.programs = folder, pool, settings, []
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for program in self.programs:
            program.process.send_signal(program.ending)
        for program in self.programs:
            program.process.wait()

    def end(self, program):
        self.programs.remove(program)
        program.process.send_signal(program.ending)
        program.process.wait()

    def redis(self, name, *options):
        port = free_port()
        return self.start(name, port, [find("redis-server"), "--port", str(port), "--bind", "127.0.0.1", "--save", "",
                                       "--appendonly", "no", *options])

    def shardwise(self, binary, servers, *options, name="shardwise"):
        return self.proxy(name, [binary, *options], servers)

    def nutcracker(self, name, servers, *options):
        # -v 4: at its default level it spends a third of its time on log lines that it never writes.
        return self.proxy(name, [find("nutcracker"), "-v", "4", *options], servers)

    def proxy(self, name, command, servers):
        port, stats = free_port(), free_port()
        config = os.path.join(self.folder, f"{name}.yml")
        with open(config, "w") as file:
            lines = [f"listen: 127.0.0.1:{port}", "redis: true", *self.settings, "servers:",
                     *(f" - 127.0.0.1:{server.port}:1 {server.name}" for server in servers)]
            file.write(f"{self.pool}:\n" + "".join(f"  {line}\n" for line in lines))
        return self.start(name, port, [*command, "-c", config, "-a", "127.0.0.1", "-s", str(stats)], config, stats)

    def start(self, name, port, command, config=None, stats=None, ending=signal.SIGKILL):
        """`ending`: SIGTERM for programs that have children of their own to end."""
        log = os.path.join(self.folder, f"{name}-{port}.log")
        with open(log, "w") as output:
            # setpriv lets the kernel end it when this script is killed without a chance to do so itself.
            process = subprocess.Popen(["setpriv", "--pdeathsig", ending.name[3:], "--", *command], cwd=self.folder,
                                       stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        self.programs.append(Program(name, port, process, config, stats, ending))
        end = time.monotonic() + 10
        while not listens(port):
            if process.poll() is not None or time.monotonic() > end:
                with open(log) as said:
                    sys.exit(f"{name} does not start:\n{indented(said.read())}")
            time.sleep(0.0005)
        return self.programs[-1]


def binary_option(parser):
    parser.add_argument("--binary", default="target/release/shardwise", help="the shardwise to run (%(default)s)")


def check_programs(parser, binary, needed):
    """The path of the shardwise to run. Ends with the parser's error if something is missing."""
    for program in needed:
        if not find(program):
            parser.error(f"{program} is not installed; `tests/setup.sh demo` does that")
    if binary and not os.access(binary, os.X_OK):
        parser.error(f"no program at {binary}; `make build` makes it")
    return binary and os.path.abspath(binary)


def indented(text):
    return "".join(f"    {line}\n" for line in text.splitlines())


def find(program):
    return shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
