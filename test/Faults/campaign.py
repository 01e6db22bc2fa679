"""Trains in processes, does something to one of them at a random moment, and looks at what becomes of the job.

usage: campaign.py --bin FOLDER --fake-cuda FOLDER --out FOLDER [--faults N] [--seed N] [--only KIND,…]

Each job trains with checkpoints between its steps or beside them, as chance has it. Kinds of faults:

  kill      a rank of `tp-run -n 3 --restart 2` gets SIGKILL
  stop      it gets SIGSTOP, for longer than --timeout
  slow      it gets SIGSTOP, and SIGCONT before --timeout
  full      rank 0 can't write files of more than some bytes from now on, as if the disk were full
  cut       the connection of rank 1 with rank 0 ends; ranks are started by hand, and meet through a proxy
  corrupt   a bit of a message changes on its way; ranks are started by mpirun, with --checksum

Whatever happens: a message names the fault within 5 seconds after it can be known, every other rank of a run that fails writes
its flight record, the job ends in time, no checkpoint is torn and nothing is left over, and the training that is started again, by
--restart or by the same command, has the losses and weights of one that was left alone.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tools/tp-run/Inputs"))
from make_toy import find_compiler

RANKS = 3
STEPS = 400
TIMEOUT = 3  # seconds, --timeout
NAMED = 5  # seconds within which a fault is named
LIMIT = 120  # seconds: no job takes so long, also on a machine with other work
KINDS = ("kill", "stop", "slow", "full", "cut", "corrupt")

MODEL = """func.func @main(%x: tensor<6x8xf32> {tp.name = "x"}) -> tensor<6x6xf32> {
  %h = nn.module "up" class "Up" (%x as "input" at 0) {
  ^bb0(%a: tensor<6x8xf32>):
    %w = nn.parameter "up.weight" : tensor<12x8xf32>
    %y = nn.linear %a, %w : (tensor<6x8xf32>, tensor<12x8xf32>) -> tensor<6x12xf32>
    nn.yield %y : tensor<6x12xf32>
  } : (tensor<6x8xf32>) -> tensor<6x12xf32>
  %0 = nn.module "down" class "Linear" (%h as "input" at 0) {
  ^bb0(%a: tensor<6x12xf32>):
    %w = nn.parameter "down.weight" : tensor<6x12xf32>
    %y = nn.linear %a, %w : (tensor<6x12xf32>, tensor<6x12xf32>) -> tensor<6x6xf32>
    nn.yield %y : tensor<6x6xf32>
  } : (tensor<6x12xf32>) -> tensor<6x6xf32>
  return %0 : tensor<6x6xf32>
}
"""


class Problem(Exception):
    pass


def check(condition, *what):
    if not condition:
        raise Problem(": ".join(map(str, what)))


class Proxy:
    """Passes bytes between rank 0 and ranks that connect here, until cut() is called."""

    def __init__(self, port):
        self.target, self.open = port, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:  # rank 0 doesn't listen yet; the rank tries again
                client.close()
                continue
            self.open += [client, server]
            for pair in ((client, server), (server, client)):
                threading.Thread(target=self.pump, args=pair, daemon=True).start()

    @staticmethod
    def pump(source, target):
        try:
            while data := source.recv(1 << 16):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def cut(self):
        self.listener.close()
        for each in self.open:
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            each.close()


class Output:
    """What processes print, each line with its time."""

    def __init__(self, processes):
        self.processes, self.lines, self.threads = processes, [], []
        for process in processes:
            thread = threading.Thread(target=self.read, args=(process.stderr,), daemon=True)
            thread.start()
            self.threads.append(thread)

    def read(self, stream):
        for line in stream:
            self.lines.append((time.monotonic(), line.rstrip("\n")))

    def finish(self):
        """The exit codes."""
        end = time.monotonic() + LIMIT
        try:
            codes = [process.wait(max(0.1, end - time.monotonic())) for process in self.processes]
        except subprocess.TimeoutExpired:
            for process in self.processes:
                process.kill()
            raise Problem("hangs", self.get_text()) from None
        for thread in self.threads:
            thread.join(5)
        return codes

    def get_text(self):
        return "\n".join(line for _, line in self.lines)

    def find(self, pattern):
        """When a line that matches was printed."""
        return next((when for when, line in self.lines if re.search(pattern, line)), None)


class Campaign:
    def __init__(self, options):
        self.options = options
        self.random = random.Random(options.seed)
        self.bin = pathlib.Path(options.bin).resolve()
        self.out = pathlib.Path(options.out).resolve()
        shutil.rmtree(self.out, ignore_errors=True)
        self.out.mkdir(parents=True)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TP_")}
        self.host = dict(environment, PATH=f"{self.bin}{os.pathsep}{environment['PATH']}", OPENBLAS_NUM_THREADS="1",
                         OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1")
        self.device = dict(self.host, LD_LIBRARY_PATH=str(pathlib.Path(options.fake_cuda).resolve()))
        self.make_inputs()
        self.expected = {program: self.train_alone(program) for program in ("host", "device")}

    def call(self, *command):
        subprocess.run([str(part) for part in command], cwd=self.out, env=self.host, check=True, stdout=subprocess.DEVNULL)

    def make_inputs(self):
        import numpy as np
        numbers = np.random.default_rng(0)
        for name, width in (("x", 8), ("target", 6)):
            np.save(self.out / f"{name}.npy", numbers.standard_normal((60, width)).astype(np.float32))
        (self.out / "model.mlir").write_text(MODEL)
        (self.out / "plan.yaml").write_text(f"mesh: {{tp: {RANKS}}}\nplan: {{up: ColwiseParallel, down: RowwiseParallel}}\n")
        (self.out / "train.yaml").write_text("loss: mse\noptimizer: {name: AdamW, lr: 0.01}\n")
        self.call("tp-opt", "model.mlir", "--tp-parallelize=plan=plan.yaml train=train.yaml", "-o", "ranks.mlir")
        self.call("tp-compile", "ranks.mlir", "-o", "host.tpx")
        self.call("tp-compile", "ranks.mlir", "--target=cuda:emulated", "-o", "device.tpx")
        self.call(find_compiler(), "-O1", "-fPIC", "-shared", HERE / "corrupt.c", "-o", "corrupt.so", "-ldl")

    def get_training(self, program, folder, steps=STEPS):
        return ["tp-run", f"{program}.tpx", "--random", "1", "--data", "x=x.npy", "--data", "target=target.npy", "--steps",
                str(steps), "--metrics", f"{folder}/m.jsonl", "--output-weights", f"{folder}/w.safetensors", "--timeout", str(TIMEOUT)]

    def read_results(self, folder):
        losses = [json.loads(line)["loss"] for line in (self.out / folder / "m.jsonl").read_text().splitlines()]
        return losses, (self.out / folder / "w.safetensors").read_bytes()

    def train_alone(self, program):
        folder = f"alone-{program}"
        (self.out / folder).mkdir()
        launcher = {"host": ["mpirun", "-n", str(RANKS)], "device": []}[program]
        options = {"host": [], "device": ["-n", str(RANKS)]}[program]
        subprocess.run([*launcher, *self.get_training(program, folder), *options], cwd=self.out, check=True,
                       env=self.host if program == "host" else self.device, stdout=subprocess.DEVNULL, timeout=LIMIT)
        losses, weights = self.read_results(folder)
        assert len(losses) == STEPS
        return losses, weights

    def start(self, command, environment, **settings):
        return subprocess.Popen(command, cwd=self.out, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                preexec_fn=lambda: signal.signal(signal.SIGXFSZ, signal.SIG_IGN), **settings)

    def find_rank(self, launcher, rank):
        """The process of a rank of `tp-run -n`."""
        for status in pathlib.Path("/proc").glob("[0-9]*/status"):
            try:
                fields = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
            except OSError:  # it has ended
                continue
            if fields["PPid"] == str(launcher.pid) and fields["Name"] == f"tp-run:{rank}" and fields["State"][0] not in "ZX":
                return int(fields["Pid"])
        return None

    def wait_for_steps(self, folder, process):
        """Until some steps are done, how many is left to chance."""
        path = self.out / folder / "m.jsonl"
        wanted = self.random.randrange(STEPS // 2)
        deadline = time.monotonic() + LIMIT
        while not path.exists() or path.read_text().count("\n") < wanted:
            check(process.poll() is None and time.monotonic() < deadline, "ends before the fault")
            time.sleep(0.005)
        time.sleep(self.random.uniform(0, 0.05))

    def attempt(self, kind, number):
        folder = f"{number}-{kind}"
        (self.out / folder).mkdir()
        self.is_async = self.random.random() < 0.6
        run = [*self.get_training("host" if kind == "corrupt" else "device", folder), "--checkpoint-dir", f"{folder}/run",
               "--checkpoint-every", str(self.random.choice((1, 5, 20))), "--checkpoint-keep", "2",
               "--flight-recorder", f"{folder}/flight", *(["--checkpoint-async"] if self.is_async else [])]
        codes, output, again = getattr(self, f"attempt_{kind}")(folder, run)
        if again:  # the same command continues
            more = Output([self.start(command, environment) for command, environment in again])
            found = more.finish()
            check(not any(found), "the same command doesn't continue", found, more.get_text())
        else:
            check(not any(codes), "exit codes", codes, output.get_text())
        listed = subprocess.run(["tp-ckpt", "list", f"{folder}/run"], cwd=self.out, env=self.host, capture_output=True, text=True)
        check(listed.returncode == 0 and "broken" not in listed.stdout, "tp-ckpt list", listed.stdout, listed.stderr)
        left = {path.name for path in (self.out / folder / "run").iterdir()}
        check(not any(".tmp-" in name for name in left), "left over", left)
        warnings = [line for _, line in output.lines if "warning" in line]
        check(not warnings, "warnings", warnings)
        losses, weights = self.read_results(folder)
        expected = self.expected["host" if kind == "corrupt" else "device"]
        check(losses == expected[0], "other losses, first at step",
              next((step for step, pair in enumerate(zip(losses, expected[0]), 1) if pair[0] != pair[1]), len(losses)))
        check(weights == expected[1], "other weights")

    def check_named(self, output, pattern, since):
        when = output.find(pattern)
        check(when, f"no message has '{pattern}'", output.get_text())
        check(when - since < NAMED, f"named after {when - since:.1f} s", output.get_text())
        return when - since

    def check_flights(self, folder, survivors, since):
        """Since that wall-clock time each survivor has recorded what it did."""
        for rank in survivors:
            path = self.out / folder / f"flight/flight-{rank}.json"
            check(path.exists(), f"rank {rank} has written no flight record")
            check(path.stat().st_mtime >= since - 1, f"the flight record of rank {rank} is an old one")
            check(json.loads(path.read_text())["error"], f"the flight record of rank {rank} has no error")

    def signal_rank(self, folder, run, send):
        """`tp-run -n` with restarts, to one of whose ranks send(process of the rank) does something."""
        launcher = self.start([*run, "-n", str(RANKS), "--restart", "2"], self.device)
        output = Output([launcher])
        try:
            self.wait_for_steps(folder, launcher)
            victim = self.random.randrange(RANKS)
            process = self.find_rank(launcher, victim)
            check(process, "no process of rank", victim)
            now = time.monotonic(), time.time()
            send(process)
        except (Problem, ProcessLookupError):
            launcher.kill()
            raise
        return output, victim, process, now

    def attempt_kill(self, folder, run):
        output, victim, _, (since, clock) = self.signal_rank(folder, run, lambda process: os.kill(process, signal.SIGKILL))
        codes = output.finish()
        self.check_named(output, rf"rank {victim} was ended by signal 9", since)
        self.check_flights(folder, set(range(RANKS)) - {victim}, clock)
        return codes, output, None

    def attempt_stop(self, folder, run):
        output, victim, _, (since, clock) = self.signal_rank(folder, run, lambda process: os.kill(process, signal.SIGSTOP))
        codes = output.finish()
        self.check_named(output, rf"rank {victim} is stopped by SIGSTOP", since + TIMEOUT)
        self.check_flights(folder, set(range(RANKS)) - {victim}, clock)
        return codes, output, None

    def attempt_slow(self, folder, run):
        output, victim, process, _ = self.signal_rank(folder, run, lambda process: os.kill(process, signal.SIGSTOP))
        time.sleep(self.random.uniform(0, TIMEOUT / 2))
        os.kill(process, signal.SIGCONT)
        codes = output.finish()
        check("error" not in output.get_text() and "starting all ranks again" not in output.get_text(), "a failure", output.get_text())
        return codes, output, None

    def attempt_full(self, folder, run):
        launcher = self.start([*run, "-n", str(RANKS), "--restart", "2"], self.device)
        output = Output([launcher])
        try:
            self.wait_for_steps(folder, launcher)
            process = self.find_rank(launcher, 0)
            check(process, "no process of rank 0")
            most = self.random.randrange(900)
            now = time.monotonic(), time.time()
            resource.prlimit(process, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
        except (Problem, ProcessLookupError):
            launcher.kill()
            raise
        codes = output.finish()
        check(codes == [1], "exit codes", codes, output.get_text())
        self.check_named(output, r"cannot write '.*': File too large", now[0])
        return codes, output, [([*run, "-n", str(RANKS)], self.device)]

    def attempt_cut(self, folder, run):
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        proxy = Proxy(port)
        processes = [self.start(run, dict(self.device, TP_RANK=str(rank), TP_WORLD_SIZE=str(RANKS), TP_LOCAL_RANK=str(rank),
                                          TP_PORT=str(proxy.port if rank == 1 else port))) for rank in range(RANKS)]
        output = Output(processes)
        try:
            self.wait_for_steps(folder, processes[0])
        except Problem:
            for process in processes:
                process.kill()
            raise
        since, clock = time.monotonic(), time.time()
        proxy.cut()
        codes = output.finish()
        check(codes == [4] * RANKS, "exit codes", codes, output.get_text())
        self.check_named(output, "rank [01] has left", since)
        self.check_flights(folder, range(RANKS), clock)
        return codes, output, [([*run, "-n", str(RANKS)], self.device)]

    def attempt_corrupt(self, folder, run):
        command = ["mpirun", "-n", str(RANKS), *run, "--checksum"]
        sender = self.random.randrange(RANKS)
        clock = time.time()
        output = Output([self.start(command, dict(self.host, LD_PRELOAD=str(self.out / "corrupt.so"),
                                                  TP_CORRUPT=f"{sender}:{self.random.randrange(10, 3000)}"))])
        codes = output.finish()
        check(codes != [0], "the change isn't noticed")
        name = rf"but rank {sender} on host '.*' sent bytes with CRC-32"
        check(output.find(name), "no message names the fault", output.get_text())
        self.check_flights(folder, range(RANKS), clock)
        return codes, output, [(command, self.host)]

    def run(self):
        kinds = self.options.only.split(",") if self.options.only else KINDS
        failures, counts = 0, collections.Counter()
        for number in range(self.options.faults):
            kind = kinds[number % len(kinds)]
            begin = time.monotonic()
            try:
                self.attempt(kind, number)
                problem = ""
            except Problem as error:
                failures += 1
                problem = f": {error}"
            counts[kind] += 1
            print(f"{number} {kind}{', beside the steps' if self.is_async else ''}, {time.monotonic() - begin:.1f} s{problem}", flush=True)
            if not problem:
                shutil.rmtree(self.out / f"{number}-{kind}")
        kinds = ", ".join(f"{count} {kind}" for kind, count in counts.items())
        print(f"{sum(counts.values())} faults ({kinds}), {failures} failures")
        return 1 if failures else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--fake-cuda", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--faults", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="kinds, separated by commas")
    sys.exit(Campaign(parser.parse_args()).run())


if __name__ == "__main__":
    main()
