"""Runs programs in processes that mpirun starts, and compares with ranks that are threads of one process.

usage: mpi.py openmpi|mpich FOLDER

FOLDER has the directories toy, train and generate of make_toy.py, make_train.py and make_generate.py, and the programs
of make_mpi.sh. Prints a line for each thing that is as it should be, and stops at the first that isn't.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy as np

from make_toy import find_compiler
from mpi_jobs import LIMIT, TITLES, Jobs, check, check_error, finish

ROOT = pathlib.Path(__file__).resolve().parents[4]
NAME, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
TITLE = TITLES[NAME]
JOBS = Jobs(NAME, FOLDER)
start, launch, run, compare, find_rank = JOBS.start, JOBS.launch, JOBS.run, JOBS.compare, JOBS.find_rank


def read_report(path):
    report = json.loads(pathlib.Path(path).read_text())
    return report["backend"], report["total"], report["ranks"]


def test_results():
    toy = ["--weights", "w.safetensors", "--input", "x=x.npy"]
    compare("a program", 2, "toy.tpx", *toy, "--output", "OUT/y.npy", cwd="toy", outputs=["y.npy"])
    compare("printed outputs", 2, "toy.tpx", *toy, cwd="toy", outputs=[])
    for ranks in (2, 3, 4):
        for program in ("program", "half"):
            compare(f"{program} on {ranks}", ranks, f"{program}.{ranks}.tpx", "--random", 1, "--output", "OUT/y.npy",
                    "--json", "OUT/report.json", "--repeat", 20, cwd=".", outputs=["y.npy"])
            local, mpi = (read_report(FOLDER / each / "report.json") for each in ("threads", "processes"))
            check("the same counts", local[1:] == mpi[1:] and (local[0], mpi[0]) == ("local", "mpi"), local, mpi)
        numbers = np.random.default_rng(0)
        np.save(FOLDER / "data.npy", numbers.standard_normal((24, 6)).astype(np.float32))
        np.save(FOLDER / "target.npy", numbers.standard_normal((24, 13)).astype(np.float32))
        compare(f"training on {ranks}", ranks, f"train.{ranks}.tpx", "--random", 1, "--data", "x=data.npy", "--data",
                "target=target.npy", "--steps", 20, "--output-weights", "OUT/w.safetensors", cwd=".", outputs=["w.safetensors"])
    outputs = ["r", "s", "g", "h"]
    for what, options in (("", ()), (", with checksums", ("--checksum",))):
        compare(f"collectives that are started early, of rows and columns{what}", 4, "collectives.tpx", "--random", 1, "--warmup", 20,
                *(f"--output={name}=OUT/{name}.npy" for name in outputs), cwd=".", outputs=[f"{name}.npy" for name in outputs],
                only_processes=options)
    generate = ["--weights", "w.safetensors", "--generate", "--prompt-ids", "three.npy", "--max-new-tokens", 6,
                "--temperature", 0.8, "--seed", 3, "--output", "OUT/tokens.npy"]
    run("generate.2.tpx", *(str(each).replace("OUT/", "") for each in generate), cwd="generate")
    code, out, messages = launch(2, "generate.2.tpx", *(str(each).replace("OUT/", "p_") for each in generate), cwd="generate")
    check("generated tokens", code == 0 and (FOLDER / "generate/tokens.npy").read_bytes() ==
          (FOLDER / "generate/p_tokens.npy").read_bytes(), code, out, messages)


def test_checkpoints():
    data = ["--weights", "w.safetensors", "--data", "x=x.npy", "--data", "target=target.npy", "--metrics", "m.jsonl"]
    parts = ["--checkpoint-dir", "parts", "--checkpoint-every", 5]
    run("train.3.tpx", *data, "--steps", 40, "--output-weights", "whole.safetensors", cwd="train")
    for steps in (17, 40):
        code, out, messages = launch(3, "train.3.tpx", *data, *parts, "--steps", steps, "--output-weights", "parts.safetensors",
                                     cwd="train")
        check(f"training to step {steps}", code == 0 and f"step {steps}: loss" in out, code, out, messages)
    check("training in two parts", (FOLDER / "train/whole.safetensors").read_bytes() ==
          (FOLDER / "train/parts.safetensors").read_bytes())
    code, out, messages = launch(3, "train.3.tpx", *data[:-2], "--steps", 40, "--checkpoint-dir", "beside", "--checkpoint-every", 1,
                                 "--checkpoint-async", "--checkpoint-keep", 3, "--checksum", cwd="train")
    check("checkpoints beside the steps", code == 0 and sorted(path.name for path in (FOLDER / "train/beside").iterdir()) ==
          ["lock", *(f"step-000000{step}" for step in (38, 39, 40))], code, out, messages)
    check("and they are the same", all(
        path.read_bytes() == (FOLDER / "train/beside/step-00000040" / path.name).read_bytes()
        for path in (FOLDER / "train/parts/step-00000040").iterdir()))


def test_checksums():
    """A bit of a message changes on its way: the job ends, says where, and each rank records what it did."""
    library = FOLDER / "corrupt.so"
    subprocess.run([find_compiler(), "-O1", "-fPIC", "-shared", ROOT / "test/Faults/corrupt.c", "-o", library, "-ldl"], check=True)
    host = re.escape(os.uname().nodename)
    for rank, number in ((0, 4), (1, 30), (2, 33), (2, 100)):
        flights = FOLDER / f"train/flights-{rank}-{number}"
        found = launch(3, "train.3.tpx", "--weights", "w.safetensors", "--data", "x=x.npy", "--data", "target=target.npy", "--steps",
                       40, "--checksum", "--timeout", 20, "--flight-recorder", flights, cwd="train", LD_PRELOAD=library,
                       TP_CORRUPT=f"{rank}:{number}")
        check_error(f"message {number} of rank {rank}", found, 4,
                    rf"(rank [0-2] failed.*: )?rank [0-2] on host '{host}' received [0-9]+ bytes with CRC-32 [0-9a-f]{{8}} in "
                    rf"(collective [0-9]+ \(all_(gather of 'w'|reduce)\)|an exchange of all ranks between runs), but rank {rank} on "
                    rf"host '{host}' sent bytes with CRC-32 [0-9a-f]{{8}}.*")
        check("each rank's record", sorted(path.name for path in flights.iterdir()) ==
              [f"flight-{rank}.json" for rank in range(3)], list(flights.iterdir()))
    check_error("checksums of ranks that are threads", run("train.3.tpx", "--weights", "w.safetensors", "--data", "x=x.npy", "--data",
                "target=target.npy", "--steps", 1, "--checksum", cwd="train"), 1,
                "--checksum: with --comm=local messages carry no checksums, only with '--comm=mpi', '--comm=tcp'")


def test_errors():
    toy = ["--weights", "w.safetensors", "--input", "x=x.npy", "--output", "out.npy"]
    check_error("a rank that fails", launch(2, "fail.tpx", *toy, cwd="toy"), 4,
                r"rank 1 failed after collective 0 \(all_reduce of 'mlp.down'\): embeddings.word: embedding: index 30522 is out "
                r"of range \[0, 30522\).*")
    check_error("a rank that doesn't come", launch(2, "hang.tpx", *toy, "--timeout", 1, cwd="toy"), 4,
                r"no progress for 1 s: rank 0 waits in collective 0 \(all_reduce of 'mlp.down'\) for rank 1")
    check_error("another number of processes", launch(3, "toy.tpx", *toy, cwd="toy"), 1,
                "the program has 2 ranks, but there are 3 processes")
    check_error("a file that is missing", launch(2, "toy.tpx", "--weights", "none", "--input", "x=x.npy", cwd="toy"), 1,
                r"(rank 1 failed: )?cannot open 'none': No such file or directory")
    check_error("wrong usage", launch(2, "toy.tpx", *toy, "--input", "z=x.npy", "--pad", "q=1", cwd="toy"), 2,
                r"(rank 1 failed: )?--pad q=1: the program has no input 'q'.*")
    check("no output", not (FOLDER / "toy/out.npy").exists())
    code, out, messages = launch(2, "toy.tpx", *toy[:4], "--expect", "y=y_close.npy", "--rtol", 0, "--atol", 0, cwd="toy")
    check("another output than expected", code == 3, code, out, messages)
    code, out, messages = launch(2, "none.tpx", *toy, cwd="toy")
    check("what fails before ranks are connected", code == 1 and messages and all(re.fullmatch(
        "tp-run: error: rank [01]: cannot open 'none.tpx': No such file or directory", line) for line in messages), messages)
    check_error("no launcher", run("toy.tpx", *toy, "--comm=mpi", cwd="toy"), 1,
                "--comm=mpi needs several processes; start them with mpirun, mpiexec or srun")
    check_error("one process", launch(1, "toy.tpx", *toy, "--comm=mpi", cwd="toy"), 1,
                "--comm=mpi needs several processes; start them with mpirun, mpiexec or srun")
    code, _, messages = run("-n", 2, "toy.tpx", *toy, "--comm=mpi", cwd="toy")
    check("tp-run -n", code == 2 and messages[0] == "tp-run: error: -n starts processes, and those of --comm=mpi are started "
          "by mpirun, mpiexec or srun; leave -n out", code, messages)
    code, out, messages = launch(2, "toy.tpx", *toy, cwd="toy", TP_RANK="0", TP_WORLD_SIZE="2")
    # One rank ends before MPI has started in the other, which MPICH's launcher then kills.
    check("a rank of two launchers", code != 0 and re.fullmatch(
        rf"tp-run: error: rank 0: {TITLE} v?[0-9.]+ says that this process is rank 1 of 2, its launcher's variables that it is "
        "rank 0 of 2: another implementation of MPI, or another launcher, has set them", messages[0]), code, messages)


def test_missing():
    """The library of the runtime in a folder without plug-ins, and with one that can't be loaded."""
    toy = ["toy.tpx", "--weights", "w.safetensors", "--input", "x=x.npy"]
    folder = FOLDER / "libraries"
    folder.mkdir(exist_ok=True)
    binary = pathlib.Path(shutil.which("tp-run")).resolve()
    shutil.copy(binary.parent.parent / "lib/libtprt.so.0", folder)
    for what, pattern in (
            ("no plug-in", rf"this build of the runtime can't use {TITLE}, which has started this process: there is no "
             rf"libtprt-mpi-{NAME}.so in '{folder}'; it is built where {TITLE}'s mpi.h is installed \(Debian: lib{NAME}-dev\)"),
            ("no MPI", rf"cannot load {TITLE}: .*; install it \(Debian: lib{NAME}[0-9]+\)"),
    ):
        code, out, messages = launch(2, *toy, cwd="toy", LD_LIBRARY_PATH=str(folder))
        check(what, code == 1 and messages and all(re.fullmatch(f"tp-run: error: rank [01]: {pattern}", line)
                                                   for line in messages), code, messages)
        (folder / f"libtprt-mpi-{NAME}.so").write_text("not a library")
    check("ranks that are threads need none", run(*toy, cwd="toy", LD_LIBRARY_PATH=str(folder))[0] == 0)


def wait_for(path):
    deadline = time.monotonic() + LIMIT
    while not (path.exists() and path.stat().st_size > 0) and time.monotonic() < deadline:
        time.sleep(0.05)


def test_cores():
    """Ranks that a launcher doesn't bind to cores share those of the host."""
    usable = sorted(os.sched_getaffinity(0))
    each = max(len(usable) // 3, 1)
    shared = [{usable[(rank * each + i) % len(usable)] for i in range(each)} for rank in range(3)]
    unbound = ["--bind-to", "none"]
    for what, options, expected in (("cores", [], shared), ("cores with --no-pin", ["--no-pin"], [set(usable)] * 3)):
        metrics = FOLDER / "train/cores.jsonl"
        metrics.unlink(missing_ok=True)
        process = start(3, *unbound, "tp-run", "train.3.tpx", "--weights", "w.safetensors", "--data", "x=x.npy", "--data",
                        "target=target.npy", "--steps", 10**8, "--metrics", metrics, *options, cwd="train", job=what)
        wait_for(metrics)
        found = [os.sched_getaffinity(find_rank(what, rank)) for rank in range(3)]
        process.terminate()
        finish(process)
        check(what, found == expected, found, expected)


def test_signals():
    endless = ["tp-run", "train.3.tpx", "--weights", "w.safetensors", "--data", "x=x.npy", "--data", "target=target.npy", "--steps",
               10**8, "--metrics", "endless.jsonl", "--timeout", 2]
    metrics = FOLDER / "train/endless.jsonl"
    # Between steps, the ranks ask each other whether to end.
    late = r"no progress for 2 s: rank [02] waits (in collective .* )?for ranks? .*[01]"
    for what, number, expected in (("a killed rank", signal.SIGKILL, None), ("a stopped rank", signal.SIGSTOP, late)):
        metrics.unlink(missing_ok=True)
        process = start(3, *endless, cwd="train", job=what)
        wait_for(metrics)
        os.kill(find_rank(what, 1), number)
        began = time.monotonic()
        code, out, messages = finish(process)
        check(f"{what}: the job ends", code != 0 and time.monotonic() - began < 20, code, messages)
        check(f"{what}: no rank is left", not any(find_rank(what, rank) for rank in range(3)))
        if expected:
            check(f"{what}: who waits for whom", any(re.search(expected, line) for line in messages), messages)
    script = 'if [ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 1 ]; then exit 1; fi; exec tp-run toy.tpx --weights w.safetensors ' \
             '--input x=x.npy --timeout 2'
    code, out, messages = finish(start(2, "sh", "-c", script, cwd="toy"))
    # Open MPI ends the others at once.
    check("a rank that never starts MPI", code != 0 and all(
        line == "tp-run: error: rank 0: MPI_Init hasn't returned for 2 s: other ranks haven't called it" for line in messages) and
        (messages or NAME == "openmpi"), code, messages)


for test in (test_results, test_checkpoints, test_checksums, test_errors, test_missing, test_cores, test_signals):
    test()
print("all is well")
