"""Copies tp-run to a directory and puts a stand-in for tp-compile beside it.

usage: make_stand_in.py DIRECTORY

The stand-in logs each call, copies ../toy.tpx to its output, and refuses a
program that says "faulty".
"""

import os
import shutil
import sys

STAND_IN = """#!/bin/sh
directory=$(dirname "$0")
echo call >> "$directory/log"
if grep -q faulty "$1"; then
  echo "$1:1:1: error: no program" >&2
  exit 1
fi
cp "$directory/../toy.tpx" "$3"
"""

directory = sys.argv[1]
os.makedirs(directory)
shutil.copy(shutil.which("tp-run"), directory)
compiler = os.path.join(directory, "tp-compile")
with open(compiler, "w") as file:
    file.write(STAND_IN)
os.chmod(compiler, 0o755)
