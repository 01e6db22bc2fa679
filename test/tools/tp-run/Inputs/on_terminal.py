"""Runs a command whose stderr is a terminal, and prints what it writes there.

usage: on_terminal.py COMMAND…
"""

import os
import pty
import subprocess
import sys

ours, theirs = pty.openpty()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=theirs)
os.close(theirs)
text = b""
try:
    while chunk := os.read(ours, 4096):
        text += chunk
except OSError:  # the other end is closed
    pass
print(text.decode().replace("\r", "\n"))
sys.exit(process.wait())
