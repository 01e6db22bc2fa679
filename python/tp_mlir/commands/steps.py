# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The steps from a model to a result: calls of tools, whose files stay in a folder.

A step runs only if its files aren't there, or if its command line, the files that it reads or the tool have changed since.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

from .. import tools
from ..files import write_file
from ..threads import repeated


class Failure(Exception):
    """A tool has failed, and has said why."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


# Larger files are known by their size and time.
_MAX_DIGESTED_BYTES = 16 << 20


def _identify(path: pathlib.Path) -> list[object]:
    """What changes when the contents of a file do."""
    try:
        status = path.stat()
        if status.st_size <= _MAX_DIGESTED_BYTES:
            return [str(path), hashlib.sha256(path.read_bytes()).hexdigest()]
    except OSError:
        return [str(path)]  # the tool says so
    return [str(path), status.st_size, status.st_mtime_ns]


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


class Steps:
    """Steps whose files are in `folder`. Messages go to stderr, unless `is_quiet`."""

    def __init__(self, folder: pathlib.Path, *, is_quiet: bool) -> None:
        self.folder = folder
        self._is_quiet = is_quiet
        self._done: set[str] = set()
        self._record = folder / "steps.json"

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Makes the folder. While in it, other processes that use the folder wait."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / ".lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._say(f"waits for another command that uses {self.folder}")
                fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def run(self, name: str, tool: str, arguments: Sequence[str], *, reads: Sequence[pathlib.Path], writes: Sequence[pathlib.Path],
            what: str, depends_on: Sequence[str] = (), has_same_warnings: bool = False) -> None:
        """Runs a step, if it is needed and this process hasn't run it.

        :param reads: the files that it depends on.
        :param writes: its results.
        :param what: what it does, for the message.
        :param depends_on: what else its results depend on.
        :param has_same_warnings: if it succeeds, its warnings are those of another step, which has printed them.
        :raises Failure: the tool has failed."""
        if name in self._done:
            return
        command = [*tools.get_command(tool), *arguments]
        key = _digest([command, [_identify(path) for path in (*tools.list_files(tool), *reads)], *depends_on])
        if self._read_record().get(name) == key and all(path.exists() for path in writes):
            self._say(f"{name:<8} {what}, as before")
            self._done.add(name)
            return
        self._write_record({**self._read_record(), name: ""})
        begin = time.monotonic()
        with self._show_progress(f"{name:<8} {what}", begin):
            done = subprocess.run(command, stdout=sys.stderr, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0 or not has_same_warnings:
            sys.stderr.write(done.stderr)
        if done.returncode < 0:
            print(f"{tool} was ended by {signal.Signals(-done.returncode).name}; if it needs more memory than there is, the system ends it",
                  file=sys.stderr)
            raise Failure(128 - done.returncode)
        if done.returncode != 0:
            self._say(f"{name:<8} failed")
            raise Failure(done.returncode)
        self._write_record({**self._read_record(), name: key})
        self._say(f"{name:<8} {what} ({time.monotonic() - begin:.1f} s)")
        self._done.add(name)

    def keep(self, name: str, values: list[str], of: pathlib.Path) -> list[str]:
        """Keeps values that were given for a file, for commands that are given none; returns those to use."""
        key = _digest(_identify(of))
        before = self._read_record().get(name)
        if not values and isinstance(before, list) and before[:1] == [key]:
            return before[1:]
        self._write_record({**self._read_record(), name: [key, *values]})
        return values

    def _say(self, text: str) -> None:
        if not self._is_quiet:
            print(text, file=sys.stderr, flush=True)

    @contextlib.contextmanager
    def _show_progress(self, text: str, begin: float) -> Iterator[None]:
        """While in it, the last line of a terminal says what is done, and for how long."""
        if self._is_quiet or not sys.stderr.isatty():
            yield
            return
        def show() -> None:
            sys.stderr.write(f"\r{text} … {time.monotonic() - begin:.0f} s\033[K")
            sys.stderr.flush()

        try:
            with repeated(show, seconds=0.2):
                yield
        finally:
            sys.stderr.write("\r\033[K")

    def _read_record(self) -> dict[str, Any]:
        try:
            record = json.loads(self._record.read_text())
        except (OSError, ValueError):
            return {}
        return record if isinstance(record, dict) else {}

    def _write_record(self, record: dict[str, Any]) -> None:
        write_file(self._record, json.dumps(record))
