"""Runs programs for the host in processes that `tp-run -n`, torchrun or a launcher on several hosts has started, which are
connected by TCP, and compares with ranks that are threads of one process.

usage: tcp.py FOLDER [hosts]

FOLDER has the directories toy and train of make_toy.py and make_train.py, and the programs of make_mpi.sh. hosts: also on
hosts that are network namespaces. Prints a line for each thing that is as it should be, and stops at the first that isn't.
"""

import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

from hosts import Hosts
from mpi_jobs import LIMIT, Jobs, check, check_error, finish

FOLDER = pathlib.Path(sys.argv[1]).resolve()
TOY = ["--weights", "w.safetensors", "--input", "x=x.npy"]
TRAINING = ["--weights", "w.safetensors", "--data", "x=x.npy", "--data", "target=target.npy"]


class TcpJobs(Jobs):
    """Whose processes `tp-run -n` starts."""

    def __init__(self, folder):
        super().__init__("tcp", folder)

    def get_command(self, ranks, arguments):
        return ["tp-run", "-n", ranks, *arguments[1:]]


JOBS = TcpJobs(FOLDER)


def test_results():
    for ranks in (2, 3, 4):
        for program in ("program", "half"):
            JOBS.compare(f"{program} on {ranks}", ranks, f"{program}.{ranks}.tpx", "--random", 1, "--output", "OUT/y.npy", cwd=".",
                         outputs=["y.npy"])
    outputs = ["r", "s", "g", "h"]
    for what, options in (("", ()), (", with checksums", ("--checksum",))):
        JOBS.compare(f"collectives that are started early{what}", 4, "collectives.tpx", "--random", 1, "--warmup", 20,
                     *(f"--output={name}=OUT/{name}.npy" for name in outputs), cwd=".", outputs=[f"{name}.npy" for name in outputs],
                     only_processes=options)


def test_training():
    """In two parts, the second of which continues from a checkpoint."""
    JOBS.run("train.3.tpx", *TRAINING, "--steps", 40, "--output-weights", "whole.safetensors", cwd="train")
    whole = (FOLDER / "train/whole.safetensors").read_bytes()
    for steps in (17, 40):
        code, out, messages = JOBS.launch(3, "train.3.tpx", *TRAINING, "--checkpoint-dir", "tcp", "--checkpoint-every", 5, "--steps", steps,
                                          "--output-weights", "parts.safetensors", cwd="train")
        check(f"training to step {steps}", code == 0 and f"step {steps}: loss" in out, code, out, messages)
    check("training in two parts", whole == (FOLDER / "train/parts.safetensors").read_bytes())


def test_errors():
    code, out, messages = JOBS.launch(2, "hang.tpx", *TOY, "--timeout", 1, cwd="toy")
    check("a rank that doesn't come", code == 4 and out == "" and messages and all(line.startswith(
        "tp-run: error: no progress for 1 s: rank 0 waits in collective 0 (all_reduce of 'mlp.down') for rank 1") for line in messages),
        code, out, messages)
    check_error("another number of processes", JOBS.launch(3, "toy.tpx", *TOY, cwd="toy"), 1,
                "the program has 2 ranks, but there are 3 processes")
    check_error("no launcher", JOBS.run("toy.tpx", *TOY, "--comm=tcp", cwd="toy"), 1,
                r"--comm=tcp needs several processes; start them with srun, torchrun, 'tp-run -n' or another launcher that sets "
                "TP_RANK and TP_WORLD_SIZE")


def test_signals():
    """What ends a run of threads ends one of processes in the same way."""
    for number in (signal.SIGINT, signal.SIGTERM):
        process = subprocess.Popen(["tp-run", "-n", "2", "toy.tpx", *TOY, "--repeat", str(10**8)], cwd=FOLDER / "toy", text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        time.sleep(1)
        process.send_signal(number)
        code, out, messages = finish(process)
        check(f"signal {number.name}", code == -number and not out and not messages, code, out, messages)


def find_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def start_ranks(count, *arguments, cwd, places=None, **environment):
    """A process for each rank, as a launcher such as srun would start it. `places`: the beginnings of the ranks' commands."""
    port = find_port()
    return [subprocess.Popen([*(places[rank] if places else ()), "tp-run", *map(str, arguments)], cwd=FOLDER / cwd, text=True,
                             env=dict(os.environ, TP_RANK=str(rank), TP_WORLD_SIZE=str(count), TP_PORT=str(port), **environment),
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE) for rank in range(count)]


def test_torchrun():
    command = shutil.which("torchrun", path=f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}")
    if not command:
        return
    JOBS.run("toy.tpx", *TOY, "--output", "one.npy", cwd="toy")
    found = subprocess.run([command, "--nproc-per-node", "2", "--master-port", str(find_port()), "--no-python", "tp-run", "toy.tpx", *TOY,
                            "--output", "two.npy"], cwd=FOLDER / "toy", capture_output=True, text=True, timeout=LIMIT)
    check("torchrun", found.returncode == 0 and
          (FOLDER / "toy/one.npy").read_bytes() == (FOLDER / "toy/two.npy").read_bytes(), found)


def test_hosts():
    """Two ranks on each of two hosts. A rank is killed or stopped, or a host is cut off: all others end, and say why."""
    late = r"no progress for 2 s: rank [0-3] waits (in collective .* )?for ranks? "
    with Hosts(2, FOLDER / "two") as hosts:
        places = [hosts.enter(name) for name in hosts.names for _ in range(2)]
        token = {"TP_ADDRESS": "host1", "TP_TOKEN": "a secret of the job, which has at least 32 characters"}
        JOBS.run("program.4.tpx", "--random", 1, "--output", "one.npy", cwd=".")
        found = [finish(process) for process in start_ranks(4, "program.4.tpx", "--random", 1, "--output", "four.npy", cwd=".",
                                                            places=places, **token)]
        check("two hosts", all(code == 0 for code, *_ in found) and
              (FOLDER / "one.npy").read_bytes() == (FOLDER / "four.npy").read_bytes(), found)
        found = [finish(process) for process in start_ranks(4, "program.4.tpx", "--random", 1, "--timeout", 5, cwd=".", places=places,
                                                            TP_ADDRESS="host1")]
        check("two hosts without a token", all(code == 1 for code, *_ in found) and
              any("give the ranks a secret" in line for line in found[0][2]), found)
        for what, begin, expected in (("a killed rank", lambda process: process.kill(), "rank 2"),
                                      ("a stopped rank", lambda process: process.send_signal(signal.SIGSTOP), late),
                                      ("a host that is cut off", lambda _: hosts.cut("host2"), late)):
            metrics = FOLDER / "train/endless.jsonl"
            metrics.unlink(missing_ok=True)
            processes = start_ranks(3, "train.3.tpx", *TRAINING, "--steps", 10**8, "--metrics", metrics, "--timeout", 2, cwd="train",
                                    places=places, **token)
            deadline = time.monotonic() + LIMIT
            while not (metrics.exists() and metrics.stat().st_size) and time.monotonic() < deadline:
                time.sleep(0.05)
            try:
                began = time.monotonic()
                begin(processes[2])
                found = [finish(process) for process in processes[:2]]
                check(f"{what}: the others end", all(code == 4 for code, *_ in found) and time.monotonic() - began < 20, found)
                check(f"{what}: why", any(re.search(expected, line) for line in found[0][2]), found)
                processes[2].send_signal(signal.SIGCONT)
                check(f"{what}: no rank is left", finish(processes[2])[0] != 0)
            finally:
                for process in processes:
                    process.kill()
            hosts.connect("host2")


for test in (test_results, test_training, test_errors, test_signals, test_torchrun, *([test_hosts] if "hosts" in sys.argv else [])):
    test()
print("all is well")
