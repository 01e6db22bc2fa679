"""Interrupts a generation after its second token, and checks that the signal ends it.

usage: interrupt_generation.py COMMAND…
"""

import signal
import subprocess
import sys

for number in signal.SIGINT, signal.SIGTERM:
    process = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    begin = b""
    while begin.count(b" ") < 2:
        begin += process.stdout.read(1)
    process.send_signal(number)
    rest, errors = process.communicate(timeout=60)
    if process.returncode != -number or errors:
        sys.exit(f"{signal.Signals(number).name}: exit code {process.returncode}, stderr {errors}")
