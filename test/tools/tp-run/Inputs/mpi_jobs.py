"""Jobs of processes that mpirun starts, and the same programs with ranks that are threads of one process."""

import os
import pathlib
import re
import subprocess
import sys

LIMIT = 60  # seconds: no job here takes so long, also on a machine with other work
TITLES = {"openmpi": "Open MPI", "mpich": "MPICH"}
# The launchers' own reports.
NOISE = re.compile(r"^-{20,}$|^Primary job|^a non-zero exit code|^mpirun|^the job to be|^  (Process name|Exit code):|^$|^="
                   r"|^YOUR APPLICATION|^This typically|^Please see|plm:rsh: Warning: setpgid")


def check(what, condition, *shown):
    if not condition:
        sys.exit(f"wrong: {what}: {shown}")
    print(what)


def check_error(what, found, exit_code, pattern):
    """One message, which the pattern matches, and no output."""
    code, out, messages = found
    check(what, code == exit_code and out == "" and len(messages) == 1 and
          re.fullmatch("tp-run: error: " + pattern, messages[0]), found)


def finish(process):
    """The exit code, what was printed, and the messages without the launcher's."""
    try:
        out, err = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        sys.exit(f"hangs: {process.args}")
    return process.returncode, out, [line for line in err.splitlines() if not NOISE.search(line)]


class Jobs:
    """Of an implementation of MPI, in folders inside a folder. `prefix`: what runs the launcher; `options`: of the launcher."""

    def __init__(self, name, folder, prefix=(), options=()):
        self.name, self.folder, self.prefix, self.options = name, pathlib.Path(folder).resolve(), prefix, options
        self.environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                                OMPI_MCA_rmaps_base_oversubscribe="1", OPENBLAS_NUM_THREADS="1")

    def get_command(self, ranks, arguments):
        return [*self.prefix, f"mpirun.{self.name}", *self.options, "-n", ranks, *arguments]

    def start(self, ranks, *arguments, cwd, job="", **environment):
        """`job`: a name, for find_rank."""
        environment["TP_TEST_JOB"] = self._identify(job)
        return subprocess.Popen(list(map(str, self.get_command(ranks, arguments))), cwd=self.folder / cwd, text=True, env=dict(self.environment, **environment),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def launch(self, ranks, *arguments, cwd, **environment):
        # MPICH's launcher may notice that a process has left before it knows the exit code. Then it says 1, as if by SIGHUP. When
        # one process ends with an error, it kills those that haven't ended yet, and may say 9 because of these.
        for _ in range(5):
            code, out, messages = finish(self.start(ranks, "tp-run", *arguments, cwd=cwd, **environment))
            if not re.search(r"EXIT STRING: (Hangup \(signal 1\)|Killed \(signal 9\))", out):
                break
        return code, out, messages

    def run(self, *arguments, cwd, **environment):
        found = subprocess.run(["tp-run", *map(str, arguments)], cwd=self.folder / cwd, capture_output=True, text=True,
                               timeout=LIMIT, env=dict(self.environment, **environment))
        return found.returncode, found.stdout, found.stderr.splitlines()

    def compare(self, what, ranks, program, *arguments, cwd, outputs, only_processes=()):
        """The same files and the same text from processes as from threads."""
        results = []
        for folder, go in (("threads", self.run), ("processes", lambda *a, **k: self.launch(ranks, *a, *only_processes, **k))):
            (self.folder / cwd / folder).mkdir(exist_ok=True)
            code, out, messages = go(program, *(str(each).replace("OUT", folder) for each in arguments), cwd=cwd)
            check(f"{what}: {folder}", code == 0 and not messages, code, out, messages)
            results.append([re.sub(r"[0-9.]+ s,.*", "", out),
                            *((self.folder / cwd / folder / name).read_bytes() for name in outputs)])
        check(f"{what}: the same bits", results[0] == results[1] and all(results[0][1:]))

    def _identify(self, job):
        return f"{job} of {os.getpid()}"

    def find_rank(self, job, rank):
        """The number of a rank's process; None if there is none. Other tests may run jobs of the same name."""
        variable = {"openmpi": "OMPI_COMM_WORLD_RANK", "mpich": "PMI_RANK"}[self.name]
        for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
            try:
                if (path.parent / "comm").read_text().strip() == "tp-run" and \
                        {f"{variable}={rank}", f"TP_TEST_JOB={self._identify(job)}"} <= set(path.read_text().split("\0")):
                    return int(path.parent.name)
            except OSError:
                continue
        return None
