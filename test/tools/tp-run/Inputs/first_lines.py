"""Starts a command with its output in a pipe, and prints what comes first: lines that are written as they are made.

usage: first_lines.py NUMBER_OF_LINES COMMAND ...
"""

import os
import subprocess
import sys

wanted = int(sys.argv[1])
process = subprocess.Popen(sys.argv[2:], stdout=subprocess.PIPE)
text = b""
while text.count(b"\n") < wanted:
    chunk = os.read(process.stdout.fileno(), 1 << 20)
    # A buffer of stdio is cut anywhere, and only full ones come before the end.
    if not chunk.endswith(b"\n") or chunk.count(b"\n") > wanted:
        sys.exit(f"not line by line: {chunk}")
    text += chunk
if process.poll() is not None:
    sys.exit(f"the command has ended: {text}")
process.kill()
process.wait()
print(text.decode(), end="")
