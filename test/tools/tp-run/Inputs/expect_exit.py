"""Runs a command and fails unless it exits with the code that is expected.

usage: expect_exit.py CODE COMMAND…
"""

import subprocess
import sys

expected = int(sys.argv[1])
found = subprocess.run(sys.argv[2:]).returncode
if found != expected:
    sys.exit(f"exit code {found}, expected {expected}")
