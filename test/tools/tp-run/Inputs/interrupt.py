"""Interrupts a training by each signal, and continues it. Runs in a directory of make_train.py."""

import os
import re
import signal
import subprocess
import sys
import time

STEPS = 20000
# Where it is ignored, as in a shell's background jobs, it would stay so.
signal.signal(signal.SIGINT, signal.default_int_handler)


def run(*arguments):
    return subprocess.Popen(
        ["tp-run", "train.2.tpx", "--weights", "w.safetensors", "--data", "x=x.npy", "--data",
         "target=target.npy", "--steps", str(STEPS), "--metrics", "m.jsonl", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def get_size():
    return os.path.getsize("m.jsonl") if os.path.exists("m.jsonl") else 0


def interrupt(number, *arguments):
    """Starts a training and interrupts it once it has done some steps."""
    before = get_size()
    process = run(*arguments)
    while get_size() < before + 1000:
        time.sleep(0.001)
    process.send_signal(number)
    out, err = process.communicate()
    assert process.returncode == 5, (process.returncode, out, err)
    return int(re.search(r"interrupted after step (\d+) of 20000", err)[1]), err


process = run("--output-weights", "whole.safetensors")
process.communicate()
assert process.returncode == 0
os.remove("m.jsonl")

step, message = interrupt(signal.SIGINT, "--html", "page.html")
with open("page.html") as page:
    assert f'"state":"interrupted","step":{step},"steps":{STEPS},' in page.read()
assert "without --checkpoint-dir nothing is kept" in message, message
os.remove("m.jsonl")

for number in (signal.SIGINT, signal.SIGTERM):
    step, message = interrupt(number, "--checkpoint-dir", "run")
    assert "the same command continues from there" in message, message
    assert os.path.exists(f"run/step-{step:08}/checkpoint.json")
process = run("--checkpoint-dir", "run", "--output-weights", "parts.safetensors")
out, err = process.communicate()
assert process.returncode == 0 and f"resuming from 'run/step-{step:08}'" in out, (out, err)
with open("whole.safetensors", "rb") as whole, open("parts.safetensors", "rb") as parts:
    if whole.read() != parts.read():
        sys.exit("other weights")


# A signal that is ignored stays so.
signal.signal(signal.SIGINT, signal.SIG_IGN)
process = run()
signal.signal(signal.SIGINT, signal.default_int_handler)
time.sleep(0.5)
process.send_signal(signal.SIGINT)
process.communicate()
assert process.returncode == 0, process.returncode


def wait_until_blocked(process):
    """It sleeps and computes nothing for a second."""
    since, before = time.monotonic(), None
    while time.monotonic() < since + 1:
        with open(f"/proc/{process.pid}/stat") as file:
            words = file.read().rpartition(")")[2].split()
        now = (words[0], *words[11:13])
        if now != before or words[0] != "S":
            since, before = time.monotonic(), now
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


# A FIFO that nobody reads.
os.mkfifo("fifo")
for number in (signal.SIGINT, signal.SIGTERM):
    for option in ("--metrics", "--loss-curve", "--output-weights", "--trace"):
        process = subprocess.Popen(["tp-run", "train.2.tpx", "--weights", "w.safetensors", "--data", "x=x.npy", "--data",
                                    "target=target.npy", "--steps", "3", option, "fifo"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        wait_until_blocked(process)
        process.send_signal(number)
        try:
            _, err = process.communicate(timeout=20)
        finally:
            process.kill()
        assert process.returncode == 1, (process.returncode, err)
        assert re.search("cannot write '(./)?fifo': a signal has ended the wait for its reader", err), err
