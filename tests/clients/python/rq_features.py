"""rq with HOST PORT: jobs are queued, and a worker in burst mode does them."""

import os
import subprocess
import sys

# All keys of it on one server: a job, its queue and its registries are used together. Read by rq, here and in the worker.
os.environ["RQ_KEY_PREFIX"] = "{rq}"

import redis
import rq

from report import expect, run


def double(number):
    return number * 2


def fails():
    raise ValueError("as it should")


def main(host, port):
    import rq_features

    connection = redis.Redis(host=host, port=port)
    queue = rq.Queue("features", connection=connection)

    def work():
        command = [os.path.join(os.path.dirname(sys.executable), "rq"), "worker", "--burst", "--url", f"redis://{host}:{port}",
                   "--with-scheduler", "features"]
        folder = os.path.dirname(os.path.abspath(__file__))
        done = subprocess.run(command, cwd=folder, env=dict(os.environ, PYTHONPATH=folder), stdout=sys.stderr, timeout=60)
        expect(done.returncode, 0)

    def jobs():
        queued = [queue.enqueue(rq_features.double, number) for number in range(10)]
        work()
        expect([job.return_value(refresh=True) for job in queued], [2 * number for number in range(10)])

    def failures():
        job = queue.enqueue(rq_features.fails)
        work()
        expect(job.get_status(refresh=True), rq.job.JobStatus.FAILED)
        expect(job.id in queue.failed_job_registry, True)

    def dependencies():
        first = queue.enqueue(rq_features.double, 1)
        second = queue.enqueue(rq_features.double, 2, depends_on=first)
        work()
        expect([first.return_value(refresh=True), second.return_value(refresh=True)], [2, 4])

    return run(f"rq {rq.VERSION}", [("jobs", jobs), ("failures", failures), ("dependencies", dependencies)])


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
