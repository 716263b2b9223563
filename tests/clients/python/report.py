"""Tells what a client could do: a line for the client, then one for each feature: its name, `ok` or `FAILED`, and why."""

import sys
import traceback


def run(client, checks):
    """Runs the named checks in order; the exit code."""
    print(f"client\t{client}", flush=True)
    failed = 0
    for name, check in checks:
        try:
            check()
            print(f"{name}\tok", flush=True)
        except Exception as fault:
            failed += 1
            print(f"{name}\tFAILED\t{type(fault).__name__}: {' '.join(str(fault).split())}", flush=True)
            traceback.print_exc(file=sys.stderr)
    return 1 if failed else 0


def expect(found, wanted):
    if found != wanted:
        raise AssertionError(f"found {found!r:.300}, wanted {wanted!r:.300}")
