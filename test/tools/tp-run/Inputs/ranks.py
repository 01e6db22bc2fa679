"""Kills, stops and continues ranks and their launcher at random moments, and attacks the port where ranks meet.

usage: ranks.py TRIALS [host]

Runs in a directory of ranks.test: program.tpx and train.tpx over 3 ranks for the fake device, in FAKE_CUDA, and
host-program.tpx and host.tpx, the same for the host; y.npy and host-y.npy, what the programs compute. host: the jobs are of
the programs for the host, whose ranks are connected by TCP. TP_RANK_TRIALS overrides TRIALS, TP_RANK_SEED the seed. Whatever
happens:

- a job ends within LIMIT seconds, or goes on where it was only stopped for a while;
- what it prints names the rank, the signal, and the collective that others are in;
- no process of it is left;
- files are whole or absent.
"""

import contextlib
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

RANKS = 3
LIMIT = 5  # seconds: what docs/Runtime.md says
SLACK = 10  # of a machine with other work
TIMEOUT = 3  # --timeout
WORK = pathlib.Path("work")
ENVIRONMENT = dict(os.environ, LD_LIBRARY_PATH=os.environ["FAKE_CUDA"], OPENBLAS_NUM_THREADS="1",
                   TPRT_FAKE_NCCL_FOLDER=str(WORK.resolve()))
PROGRAM, TRAINING, EXPECTED = (("host-program.tpx", "host.tpx", "host-y.npy") if "host" in sys.argv
                               else ("program.tpx", "train.tpx", "y.npy"))
METRICS, OUTPUT, WEIGHTS = WORK / "metrics.jsonl", WORK / "y.npy", WORK / "out.safetensors"

TRAIN = ["--weights", "w.safetensors", "--data", "x=x.npy", "--data", "target=target.npy", "--steps", "100000000",
         "--metrics", str(METRICS), "--checkpoint-dir", str(WORK / "run"), "--checkpoint-every", "50", "--checkpoint-keep", "2",
         "--output-weights", str(WEIGHTS)]
RUN = ["--weights", "w.safetensors", "--input", "one.npy", "--output", str(OUTPUT)]


def get_name(process):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{process}/comm").read_text().strip()


class Job:
    """A command in a session of its own, so that all processes of it can be found."""

    def __init__(self, *arguments, stdout=subprocess.PIPE, **environment):
        self.command = ["tp-run", *arguments]
        self.process = subprocess.Popen(self.command, stdout=stdout, stderr=subprocess.PIPE, text=True,
                                        start_new_session=True, env=dict(ENVIRONMENT, **environment))
        self.id = self.process.pid

    def processes(self):
        """Those that aren't ended, by id, with their parents'."""
        found = {}
        for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                state, parent, _, session = path.read_text().rpartition(")")[2].split()[:4]
                if int(session) == self.id and state not in "ZX":
                    found[int(path.parent.name)] = int(parent)
        return found

    def ranks(self):
        """The ranks' processes in their order. Before they have their names they may outlive their launcher."""
        while True:
            names = {get_name(process): process for process in self.processes()}
            if all(f"tp-run:{rank}" in names for rank in range(RANKS)):
                return [names[f"tp-run:{rank}"] for rank in range(RANKS)]
            assert self.process.poll() is None, self.finish()
            time.sleep(0.01)

    def finish(self, limit=LIMIT):
        """The exit code and what it has printed; and nothing is left."""
        start = time.monotonic()
        try:
            out, err = self.process.communicate(timeout=limit + SLACK)
        except subprocess.TimeoutExpired:
            self.end()
            raise AssertionError(f"it hasn't ended for {limit + SLACK} s")
        while (left := self.processes()) and time.monotonic() - start < limit + SLACK:
            time.sleep(0.01)
        self.seconds = time.monotonic() - start
        self.end()
        assert not left, f"processes are left: {left}"
        return self.process.returncode, (out or "") + err

    def end(self):
        for process in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


def send(processes, number):
    for process in processes:
        os.kill(process, number)


def check_files():
    """What is there is whole."""
    if (WORK / "run").exists():
        listed = subprocess.run(["tp-ckpt", "list", WORK / "run"], capture_output=True, text=True)
        assert listed.returncode == 0 and "broken" not in listed.stdout, listed
        for path in (WORK / "run").glob("step-????????"):
            subprocess.run(["tp-ckpt", "verify", path], check=True, stdout=subprocess.DEVNULL)
    if OUTPUT.exists():
        assert OUTPUT.read_bytes() == pathlib.Path(EXPECTED).read_bytes(), "y.npy isn't whole"


def get_progress():
    return METRICS.stat().st_size if METRICS.exists() else 0


def count_repeated(printed, text):
    """How many ranks say `text` that haven't printed it, besides one for the line that says so."""
    lists = re.findall(r"the same of ranks? ([0-9, and]+)(?: others)?: .*" + re.escape(text), printed)
    return sum(len(re.findall(r"[0-9]+", ranks)) - 1 for ranks in lists)


class Trial:
    """One job that something happens to."""

    def __init__(self, generator):
        self.generator = generator
        self.trains = generator.random() < 0.6
        program = TRAINING if self.trains else PROGRAM
        options = TRAIN if self.trains else [*RUN, "--repeat", "100000000"]
        self.job = Job("-n", str(RANKS), program, "--timeout", str(TIMEOUT), *options)
        self.ranks = self.job.ranks()
        self.victim = generator.randrange(RANKS)
        # Ranks run collectives once there are metrics; before that, anything may be under way.
        self.is_running = self.trains and generator.random() < 0.7
        if self.is_running:
            self.wait_for_progress()
        time.sleep(generator.uniform(0, 0.4))

    def wait_for_progress(self):
        before, end = get_progress(), time.monotonic() + LIMIT + SLACK
        while get_progress() <= before:
            assert self.job.process.poll() is None, self.job.finish()
            assert time.monotonic() < end, "it doesn't go on"
            time.sleep(0.01)

    def expect(self, code, text, limit=LIMIT, times=1):
        """`text` is printed as often once ranks run, by each that says so."""
        found, printed = self.job.finish(limit)
        assert found == code, f"exit code {found}, expected {code}: {printed}"
        assert text in printed, f"'{text}' isn't in: {printed}"
        if self.is_running and text:
            assert printed.count(text) + count_repeated(printed, text) >= times, printed
            # On the host, the ranks also wait for each other between steps.
            assert "host" in sys.argv or "collective" in printed and ("of 'up'" in printed or "of 'down'" in printed), printed

    def goes_on(self):
        """Until it is told to end."""
        if self.trains:
            self.wait_for_progress()
        else:
            time.sleep(0.3)
        assert self.job.process.poll() is None, self.job.finish()
        self.is_running = False
        if self.trains:
            self.job.process.send_signal(signal.SIGTERM)
            self.expect(5, "interrupted after step")
        else:
            send([self.job.id], signal.SIGKILL)
            self.expect(-signal.SIGKILL, "")

    def kill(self):
        send([self.ranks[self.victim]], signal.SIGKILL)
        self.expect(4, f"rank {self.victim} was ended by signal 9 (Killed)", times=RANKS)

    def kill_two(self):
        killed = [self.ranks[self.victim], self.ranks[self.victim - 1]]
        send(killed, signal.SIGKILL)
        code, printed = self.job.finish()
        named = re.findall(r"tp-run: error: rank ([0-9]) (?:too )?was ended by signal 9", printed)
        expected = sorted(str(self.ranks.index(rank)) for rank in killed)
        assert code == 4 and sorted(set(named)) == expected, printed

    def stop(self):
        send([self.ranks[self.victim]], signal.SIGSTOP)
        self.expect(4, f"rank {self.victim} is stopped by SIGSTOP", TIMEOUT + LIMIT, times=RANKS - 1)

    def stop_and_continue(self):
        send([self.ranks[self.victim]], signal.SIGSTOP)
        time.sleep(self.generator.uniform(0, TIMEOUT / 3))
        send([self.ranks[self.victim]], signal.SIGCONT)
        self.goes_on()

    def stop_and_kill_another(self):
        other = (self.victim + 1) % RANKS
        send([self.ranks[self.victim]], signal.SIGSTOP)
        send([self.ranks[other]], signal.SIGKILL)
        self.expect(4, f"rank {other} was ended by signal 9 (Killed)")

    def stop_all(self):
        """As Ctrl-Z does, for longer than the timeout."""
        everyone = self.job.processes()
        send(everyone, signal.SIGSTOP)
        time.sleep(TIMEOUT + 1)
        send(everyone, signal.SIGCONT)
        self.goes_on()

    def kill_launcher(self):
        send([self.job.id], signal.SIGKILL)
        self.is_running = False
        self.expect(-signal.SIGKILL, "")

    def stop_and_kill_launcher(self):
        send([self.ranks[self.victim], self.job.id], signal.SIGSTOP)
        self.kill_launcher()

    def stop_and_continue_launcher(self):
        send([self.job.id], signal.SIGSTOP)
        time.sleep(self.generator.uniform(0, TIMEOUT))
        send([self.job.id], signal.SIGCONT)
        self.goes_on()

    def abort(self):
        """As an assertion that fails does."""
        send([self.ranks[self.victim]], signal.SIGABRT)
        self.expect(4, f"rank {self.victim} was ended by signal 6 (Aborted)", times=RANKS)


EVENTS = [Trial.kill, Trial.stop, Trial.kill_launcher, Trial.stop_and_continue, Trial.stop_and_kill_another, Trial.stop_all,
          Trial.stop_and_kill_launcher, Trial.stop_and_continue_launcher, Trial.abort, Trial.kill_two]


def try_threads():
    """Ranks that are threads of one process."""
    options = ["host.tpx", "--timeout", "1", *TRAIN]
    job = Job(*options)
    while get_progress() == 0:
        assert job.process.poll() is None, job.finish()
        time.sleep(0.01)
    send([job.id], signal.SIGSTOP)
    time.sleep(2)
    before = get_progress()
    send([job.id], signal.SIGCONT)
    while get_progress() <= before:
        assert job.process.poll() is None, job.finish()
        time.sleep(0.01)
    send([job.id], signal.SIGKILL)
    assert job.finish()[0] == -signal.SIGKILL
    check_files()


def try_slow_end():
    """Rank 0 may take its time at the end, here to print, where the others are interrupted and have ended."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(write, b" " * 512)
    os.set_blocking(write, True)
    job = Job("-n", str(RANKS), TRAINING, *TRAIN, stdout=write)
    os.close(write)
    while get_progress() == 0:
        assert job.process.poll() is None, job.finish()
        time.sleep(0.01)
    job.process.send_signal(signal.SIGTERM)
    end = time.monotonic() + LIMIT + SLACK
    while len(job.processes()) > 2:  # the launcher and rank 0
        assert time.monotonic() < end, "the others don't end"
        time.sleep(0.01)
    time.sleep(LIMIT)
    os.set_blocking(read, False)
    while job.process.poll() is None and time.monotonic() < end + LIMIT:
        with contextlib.suppress(BlockingIOError):
            os.read(read, 1 << 16)
        time.sleep(0.01)
    os.close(read)
    code, printed = job.finish()
    assert code == 5 and "killed" not in printed, (code, printed)
    check_files()


def try_compiler():
    """What tp-run has started ends with it."""
    job = Job("train.mlir", "--no-cache", *TRAIN)
    while not (found := [process for process in job.processes() if get_name(process) == "tp-compile"]):
        assert job.process.poll() is None, job.finish()
    send(found, signal.SIGSTOP)  # or it may end on its own
    send([job.id], signal.SIGKILL)
    assert job.finish()[0] == -signal.SIGKILL


def find_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def attack(generator, port, said):
    """One connection; it stays open where something is returned."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=5)
    kind = generator.randrange(6)
    if kind == 0:
        return connection  # says nothing
    magic = b"tprtjob\x01"
    bytes = {1: generator.randbytes(generator.randrange(1, 4096)),
             2: magic + generator.randbytes(72),
             3: (magic + generator.randbytes(72))[:generator.randrange(80)],
             4: b"D" + (1 << generator.randrange(64)).to_bytes(8, "little") + b"x" * 80,
             5: generator.choice(said) if said else b""}[kind]
    with contextlib.suppress(OSError):
        connection.sendall(bytes)
        if kind == 2:
            said.append(bytes)
            assert connection.recv(40).startswith(magic)
            answer = connection.recv(33)
            assert not answer.startswith(b"Y"), answer
    return connection if generator.random() < 0.5 else connection.close()


def try_attacks(generator, said):
    """The ranks come while others connect, and all is as without these."""
    port = find_port()
    token = generator.randbytes(20).hex()
    environment = {"TP_WORLD_SIZE": str(RANKS), "TP_PORT": str(port), "TP_TOKEN": token}
    start = lambda rank: Job(PROGRAM, "--timeout", "30", *RUN, TP_RANK=str(rank), **environment)
    jobs, connections = [start(0)], []
    while True:  # until it listens
        with contextlib.suppress(OSError):
            connections.append(attack(generator, port, said))
            break
        assert jobs[0].process.poll() is None, jobs[0].finish()
        time.sleep(0.01)
    for rank in range(1, RANKS):
        for _ in range(generator.choice([3, 30, 200])):
            connections.append(attack(generator, port, said))
        jobs.append(start(rank))
    for rank, job in enumerate(jobs):
        code, printed = job.finish()
        assert code == 0, f"rank {rank}: {printed}"
        assert token not in printed
    assert OUTPUT.exists()
    check_files()
    for connection in connections:
        if connection:
            connection.close()


def main():
    trials = int(os.environ.get("TP_RANK_TRIALS", sys.argv[1]))
    seed = int(os.environ.get("TP_RANK_SEED", 1))
    longest = 0
    for trial in range(trials):
        others = [try_threads, try_slow_end, try_compiler, lambda: try_attacks(random.Random(f"{seed} {trial}"), [])]
        for other in others if trial % len(EVENTS) == 0 else []:
            clean()
            other()
        clean()
        event = EVENTS[trial % len(EVENTS)]
        current = Trial(random.Random(f"{seed} {trial}"))
        try:
            event(current)
            check_files()
        except (AssertionError, subprocess.CalledProcessError) as error:
            current.job.end()
            sys.exit(f"seed {seed}, trial {trial}: {event.__name__} of rank {current.victim}, "
                     f"{' '.join(current.job.command)}: {error}")
        if event in (Trial.kill, Trial.stop_and_kill_another, Trial.abort, Trial.kill_launcher):
            longest = max(longest, current.job.seconds)
        if "--verbose" in sys.argv:
            print(trial, event.__name__, current.victim, f"{current.job.seconds:.2f} s", flush=True)
    print(f"{trials} trials, all is well")
    print(f"the longest end took {longest:.1f} s", file=sys.stderr)


def clean():
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir()


main()
