"""Runs programs in processes of MPI on two and on four hosts, and compares with ranks that are threads of one process.

usage: mpi_hosts.py openmpi|mpich FOLDER

FOLDER has the directories toy and train of make_toy.py and make_train.py, and the programs
of make_mpi.sh. Prints a line for each thing that is as it should be, and stops at the first that isn't.
"""

import os
import pathlib
import re
import signal
import sys
import time

from hosts import Hosts
from mpi_jobs import LIMIT, Jobs, check, check_error, finish

NAME, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
TRAINING = ["--weights", "w.safetensors", "--data", "x=x.npy", "--data", "target=target.npy"]


def make_jobs(hosts, ranks_of_host):
    """The ranks are on the hosts in turn, `ranks_of_host` on each. The launcher runs on the first one."""
    places = ",".join(f"{name}:{ranks_of_host}" for name in hosts.names)
    options = {"openmpi": ["--mca", "plm_rsh_agent", hosts.agent, "--host", places],
               "mpich": ["-launcher", "ssh", "-launcher-exec", hosts.agent, "-hosts", places]}[NAME]
    return Jobs(NAME, FOLDER, hosts.enter("host1"), options)


def test_results(hosts, jobs):
    count = len(hosts.names)
    place = 'echo "$(hostname) ${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"'
    code, out, messages = finish(jobs.start(4, "sh", "-c", place, cwd="."))
    found = dict(line.split()[::-1] for line in out.splitlines())
    check(f"{count} hosts: where the ranks are", found == {str(rank): hosts.names[rank * count // 4] for rank in range(4)}, out, messages)
    for program in ("program", "half"):
        jobs.compare(f"{count} hosts: {program}", 4, f"{program}.4.tpx", "--random", 1, "--output", "OUT/y.npy", cwd=".",
                     outputs=["y.npy"])
    outputs = ["r", "s", "g", "h"]
    jobs.compare(f"{count} hosts: collectives that are started early", 4, "collectives.tpx", "--random", 1, "--warmup", 20,
                 *(f"--output={name}=OUT/{name}.npy" for name in outputs), cwd=".", outputs=[f"{name}.npy" for name in outputs],
                 only_processes=["--checksum"])


def test_training(jobs):
    """In two parts, the second of which continues from a checkpoint that each rank has written for itself."""
    jobs.run("train.3.tpx", *TRAINING, "--steps", 40, "--output-weights", "whole.safetensors", cwd="train")
    for steps in (17, 40):
        code, out, messages = jobs.launch(3, "train.3.tpx", *TRAINING, "--checkpoint-dir", "hosts", "--checkpoint-every", 5, "--steps", steps,
                                          "--output-weights", "parts.safetensors", cwd="train")
        check(f"training to step {steps}", code == 0 and f"step {steps}: loss" in out, code, out, messages)
    check("training in two parts", (FOLDER / "train/whole.safetensors").read_bytes() ==
          (FOLDER / "train/parts.safetensors").read_bytes())


def test_errors(jobs):
    check_error("a rank that doesn't come", jobs.launch(2, "hang.tpx", "--weights", "w.safetensors", "--input", "x=x.npy", "--timeout", 1,
                                                        cwd="toy"), 4,
                r"no progress for 1 s: rank 0 waits in collective 0 \(all_reduce of 'mlp.down'\) for rank 1")


def wait_for_ranks(jobs, job, ranks, are_there):
    """Whether they come, or go, in time."""
    deadline = time.monotonic() + LIMIT
    while any((jobs.find_rank(job, rank) is not None) != are_there for rank in ranks):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def test_faults(hosts, jobs):
    """In a training, rank 2 is killed or stopped, or its host is cut off. All ranks end, on both sides."""
    metrics = FOLDER / "train/endless.jsonl"
    late = r"no progress for 2 s: rank [0-2] waits (in collective .* )?for ranks? "
    for what, begin, expected in (("a killed rank", lambda pid: os.kill(pid, signal.SIGKILL), None),
                                  ("a stopped rank", lambda pid: os.kill(pid, signal.SIGSTOP), late),
                                  ("a host that is cut off", lambda _: hosts.cut("host2"), late)):
        metrics.unlink(missing_ok=True)
        process = jobs.start(3, "tp-run", "train.3.tpx", *TRAINING, "--steps", 10**8, "--metrics", metrics, "--timeout", 2, cwd="train",
                             job=what)
        deadline = time.monotonic() + LIMIT
        while not (metrics.exists() and metrics.stat().st_size) and time.monotonic() < deadline:
            time.sleep(0.05)
        check(f"{what}: it trains", wait_for_ranks(jobs, what, range(3), are_there=True))
        pid = jobs.find_rank(what, 2)
        begin(pid)
        began = time.monotonic()
        check(f"{what}: the others end", wait_for_ranks(jobs, what, range(2), are_there=False) and time.monotonic() - began < 20)
        if jobs.find_rank(what, 2) == pid:  # MPICH's launcher doesn't kill it
            os.kill(pid, signal.SIGCONT)
        check(f"{what}: no rank is left", wait_for_ranks(jobs, what, [2], are_there=False))
        hosts.connect("host2")
        code, out, messages = finish(process)
        check(f"{what}: the job fails", code != 0, code, messages)
        if expected:
            check(f"{what}: who waits for whom", any(re.search(expected, line) for line in messages), messages)


with Hosts(4, FOLDER / "four") as hosts:
    test_results(hosts, make_jobs(hosts, 1))
with Hosts(2, FOLDER / "two") as hosts:
    jobs = make_jobs(hosts, 2)
    test_results(hosts, jobs)
    test_training(jobs)
    test_errors(jobs)
    test_faults(hosts, jobs)
print("all is well")
