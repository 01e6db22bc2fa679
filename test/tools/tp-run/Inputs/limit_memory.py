"""Runs a command with ever more memory, and fails unless each run ends in time with a result or a
message: never by a signal, by an exception that nobody caught, or not at all. Both must happen.

usage: limit_memory.py COMMAND…
"""

import resource
import subprocess
import sys

outcomes = set()
for megabytes in [*range(60, 400, 10), 600]:
    limit = megabytes << 20
    try:
        run = subprocess.run(
            sys.argv[1:],
            capture_output=True,
            text=True,
            timeout=60,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
        )
    except subprocess.TimeoutExpired:
        sys.exit(f"{megabytes} MiB: no end")
    # OpenBLAS raises SIGINT, with a message, where it gets no thread as it is loaded.
    unloaded = "OpenBLAS blas_thread_init" in run.stderr or "shared librar" in run.stderr
    if not unloaded and (run.returncode not in (0, 1, 4) or (run.returncode and ": error: " not in run.stderr)):
        sys.exit(f"{megabytes} MiB: exit code {run.returncode}\n{run.stderr}")
    if not unloaded:
        outcomes.add(run.returncode == 0)
if outcomes != {True, False}:
    sys.exit("all runs had enough" if True in outcomes else "no run had enough")
