"""Ends tp-run and tp-compile by signals while they compile: no process and no directory is left.

usage: compile_signals.py IR

After SIGKILL directories may be left, but no process.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

LIMIT = 20  # seconds
NUMBERS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
TEMPORARY, CACHE = pathlib.Path("tmp").resolve(), pathlib.Path("cache").resolve()


def processes(session):
    """Those of a session that aren't ended, by id, with their names."""
    found = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, _, rest = path.read_text().rpartition(")")
            state, _, _, own = rest.split()[:4]
            if int(own) == session and state not in "ZX":
                found[int(path.parent.name)] = name.partition("(")[2]
    return found


def reset_signals():
    """They may be ignored here, as in what a shell runs in the background."""
    for number in NUMBERS:
        signal.signal(number, signal.SIG_DFL)


class Job:
    def __init__(self, *command):
        for folder in (TEMPORARY, CACHE):
            shutil.rmtree(folder, ignore_errors=True)
        TEMPORARY.mkdir()
        self.process = subprocess.Popen(command, env=dict(os.environ, TMPDIR=str(TEMPORARY), TP_CACHE_DIR=str(CACHE)),
                                        start_new_session=True, preexec_fn=reset_signals, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True)

    def wait_for(self, condition):
        """False where the command ends before that."""
        end = time.monotonic() + LIMIT
        while not condition():
            assert time.monotonic() < end, f"nothing happens for {LIMIT} s"
            if self.process.poll() is not None:
                return False
        return True

    def finish(self, number):
        try:
            _, printed = self.process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            for process in processes(self.process.pid):
                os.kill(process, signal.SIGKILL)
            raise
        assert self.process.returncode == -number, (self.process.returncode, printed)
        end = time.monotonic() + LIMIT
        while (left := processes(self.process.pid)) and time.monotonic() < end:
            time.sleep(0.01)
        for process in left:
            os.kill(process, signal.SIGKILL)
        assert not left, f"{signal.Signals(number).name}: processes are left: {left}"
        left = [str(path) for folder in (TEMPORARY, CACHE) for path in folder.glob("*")]
        assert number == signal.SIGKILL or not left, f"{signal.Signals(number).name}: left over: {left}"


def interrupt_run(ir, number, *options):
    """While its compiler is stopped, which would end on its own otherwise."""
    job = Job("tp-run", ir, *options)
    found = []

    def find():
        found[:] = [process for process, name in processes(job.process.pid).items() if name == "tp-compile"]
        return found

    if not job.wait_for(find):
        return False
    os.kill(found[0], signal.SIGSTOP)
    os.kill(job.process.pid, number)
    job.finish(number)
    return True


def interrupt_compile(ir, number):
    """While it has its directory."""
    job = Job("tp-compile", ir, "-o", "out.tpx")
    if not job.wait_for(lambda: any(TEMPORARY.iterdir())):
        return False
    os.kill(job.process.pid, signal.SIGSTOP)
    is_there = any(TEMPORARY.iterdir())
    os.kill(job.process.pid, number)
    os.kill(job.process.pid, signal.SIGCONT)
    if not is_there:
        job.process.communicate()
        return False
    job.finish(number)
    assert not os.path.exists("out.tpx")
    return True


def insist(what, *arguments):
    """Again where the moment was missed."""
    assert any(what(sys.argv[1], *arguments) for _ in range(20)), "the moment is missed again and again"


for number in (*NUMBERS, signal.SIGKILL):
    insist(interrupt_run, number)
    insist(interrupt_run, number, "--no-cache")
    insist(interrupt_compile, number)
