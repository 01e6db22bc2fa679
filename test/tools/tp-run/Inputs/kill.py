"""Kills a training again and again, and compares the weights it ends with.

usage: kill.py KILLS [OPTION…]

Runs in a directory of make_train.py. The options are for the training that is killed. TP_KILLS overrides KILLS.
"""

import os
import random
import signal
import subprocess
import sys
import time

STEPS = 4000


def command(*arguments):
    return ["tp-run", "train.3.tpx", "--weights", "w.safetensors", "--data", "x=x.npy",
            "--data", "target=target.npy", "--steps", str(STEPS), *arguments]


def read(path):
    with open(path, "rb") as file:
        return file.read()


subprocess.run(command("--output-weights", "whole.safetensors", "--metrics", "whole.jsonl"),
               check=True, stdout=subprocess.DEVNULL)

kills = int(os.environ.get("TP_KILLS", sys.argv[1]))
seed = random.randrange(1 << 32)
print("seed", seed)  # where a failure can be looked for again, nearly
generator = random.Random(seed)
training = command("--output-weights", "killed.safetensors", "--metrics", "killed.jsonl",
                   "--checkpoint-dir", "run", "--checkpoint-every", str(max(1, STEPS // 4 // kills)),
                   "--checkpoint-keep", "2", *sys.argv[2:])
killed = 0
while True:
    process = subprocess.Popen(training, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if killed < kills:
        time.sleep(generator.uniform(0, 0.15))
        process.send_signal(signal.SIGKILL)
    out, err = process.communicate()
    # No checkpoint is ever broken, nothing is ever passed over.
    if err:
        sys.exit(f"after {killed} kills: {err}")
    if process.returncode == -signal.SIGKILL:
        killed += 1
    elif process.returncode == 0:
        break
    else:
        sys.exit(f"after {killed} kills: exit code {process.returncode}")

left = [name for name in os.listdir("run") if not name.startswith("step-") or ".tmp-" in name]
if left != ["lock"] or len(os.listdir("run")) != 3:
    sys.exit(f"left over after {killed} kills: {os.listdir('run')}")
if read("killed.safetensors") != read("whole.safetensors"):
    sys.exit(f"other weights after {killed} kills")
if len(read("killed.jsonl").splitlines()) != STEPS:
    sys.exit(f"lost metrics after {killed} kills")
print(f"killed {killed} times: the same weights")
