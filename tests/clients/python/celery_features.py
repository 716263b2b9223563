"""Celery with HOST PORT as broker and result backend: a worker process does what this one asks for."""

import os
import subprocess
import sys
import time

import celery

from report import expect, run

PREFIX = "{celery}"


def make_app(host, port):
    url = f"redis://{host}:{port}/0"
    app = celery.Celery("celery_features", broker=url, backend=url)
    # All keys of it on one server: BRPOP over its queues and MULTI over a message's keys need that.
    app.conf.broker_transport_options = {"global_keyprefix": PREFIX}
    app.conf.result_backend_transport_options = {"global_keyprefix": PREFIX}
    app.conf.worker_hijack_root_logger = False
    return app


app = make_app(os.environ.get("FEATURES_HOST", "127.0.0.1"), os.environ.get("FEATURES_PORT", "6379"))


@app.task
def double(number):
    return number * 2


@app.task(bind=True, max_retries=3)
def stubborn(self):
    if self.request.retries < 2:
        raise self.retry(countdown=0.1)
    return self.request.retries


def main(host, port):
    environment = dict(os.environ, FEATURES_HOST=host, FEATURES_PORT=str(port))
    command = [sys.executable, "-m", "celery", "-A", "celery_features", "worker", "--pool", "solo", "--loglevel", "WARNING"]
    worker = subprocess.Popen(command, env=environment, cwd=os.path.dirname(os.path.abspath(__file__)), stdout=sys.stderr)
    global app
    app.conf.broker_url = app.conf.result_backend = f"redis://{host}:{port}/0"
    limit = 40

    def jobs():
        results = [double.delay(number) for number in range(30)]
        expect([result.get(timeout=limit) for result in results], [2 * number for number in range(30)])

    def delayed():
        expect(double.apply_async((21,), countdown=1).get(timeout=limit), 42)

    def retries():
        expect(stubborn.delay().get(timeout=limit), 2)

    def group():
        results = celery.group(double.s(number) for number in range(10)).apply_async()
        expect(results.get(timeout=limit), [2 * number for number in range(10)])

    try:
        return run(f"Celery {celery.__version__}", [("jobs", jobs), ("delayed jobs", delayed), ("retries", retries), ("groups", group)])
    finally:
        worker.terminate()
        worker.wait(timeout=30)


if __name__ == "__main__":
    os.environ.update(FEATURES_HOST=sys.argv[1], FEATURES_PORT=sys.argv[2])
    import celery_features  # the tasks by the name that the worker knows

    sys.exit(celery_features.main(sys.argv[1], int(sys.argv[2])))
