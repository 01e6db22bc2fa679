# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The steps from a model to a result: calls of tools, whose files stay in a folder.

A step runs only if its files aren't there, or if they, its command line, the files that it reads or the tool have changed since.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import pathlib
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from .. import tools
from .._native import InputError
from ..files import write_file
from ..threads import repeated
from .children import start


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
        if stat.S_ISREG(status.st_mode) and status.st_size <= _MAX_DIGESTED_BYTES:
            return [str(path), hashlib.sha256(path.read_bytes()).hexdigest()]
    except OSError:
        return [str(path)]  # the tool says so
    return [str(path), status.st_size, status.st_mtime_ns]


def _identify_all(paths: Sequence[pathlib.Path]) -> list[list[object]]:
    return [_identify(path) for path in paths]


def is_any(path: pathlib.Path, others: Iterable[pathlib.Path]) -> bool:
    """Whether a path leads to the file of one of the others."""
    return path.exists() and any(other.exists() and path.samefile(other) for other in others)


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


class Steps:
    """Steps whose files are in `folder`. Messages go to stderr, unless `is_quiet`."""

    def __init__(self, folder: pathlib.Path, *, is_quiet: bool) -> None:
        self.folder = folder
        self._is_quiet = is_quiet
        self._done: set[str] = set()
        self._record = folder / "steps.json"
        self._lock_descriptors: tuple[int, ...] = ()

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Makes the folder. While in it, other processes that use the folder wait.

        :raises InputError: there is something else in the folder's place."""
        if self.folder.exists() and not self.folder.is_dir():
            raise InputError(f"'{self.folder}', where the files of all steps stay, isn't a folder; name one with --directory")
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / ".lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self.say(f"waits for another command that uses {self.folder}")
                fcntl.flock(file, fcntl.LOCK_EX)
            self._lock_descriptors = (file.fileno(),)
            try:
                yield
            finally:
                self._lock_descriptors = ()

    def run(self, name: str, tool: str, arguments: Sequence[str], *, reads: Sequence[pathlib.Path], writes: Sequence[pathlib.Path],
            what: str, depends_on: Sequence[str] = (), has_same_warnings: bool = False, renamed: Mapping[str, str] | None = None) -> None:
        """Runs a step, if it is needed and this process hasn't run it.

        :param reads: the files that it depends on.
        :param writes: its results.
        :param what: what it does, for the message.
        :param depends_on: what else its results depend on.
        :param has_same_warnings: if it succeeds, its warnings are those of another step, which has printed them.
        :param renamed: options of the tool that the command has under other names.
        :raises InputError: a result would overwrite a file that the step reads.
        :raises Failure: the tool has failed."""
        if name in self._done:
            return
        for path in writes:
            if is_any(path, reads):
                raise InputError(f"'{path}' is a file that the step {name} reads, and the one that it writes; name another --directory")
        key = _digest([[*tools.get_command(tool), *arguments], _identify_all([*tools.list_files(tool), *reads]), *depends_on])
        if all(path.exists() for path in writes) and self._read_record().get(name) == [key, _identify_all(writes)]:
            self.say(f"{name:<8} {what}, as before")
            self._done.add(name)
            return
        self._write_record({**self._read_record(), name: ""})
        begin = time.monotonic()
        # Should this process be killed, the tool has the lock until it ends, too.
        with start([*tools.get_command(tool), *arguments], stdout=sys.stderr, stderr=subprocess.PIPE,
                   pass_fds=self._lock_descriptors) as process, self._show_progress(f"{name:<8} {what}", begin):
            messages = process.communicate()[1]
        for option, ours in (renamed or {}).items():
            messages = re.sub(rb"(?<![\w-])" + re.escape(option.encode()) + rb"(?![\w-])", ours.encode(), messages)
        if process.returncode != 0 or not has_same_warnings:
            sys.stderr.flush()
            sys.stderr.buffer.write(messages)  # as they are: names of files needn't be text
            sys.stderr.flush()
        if process.returncode < 0:
            print(f"{tool} was ended by {signal.Signals(-process.returncode).name}; if it needs more memory than there is, the system ends it",
                  file=sys.stderr)
            raise Failure(128 - process.returncode)
        if process.returncode != 0:
            self.say(f"{name:<8} failed")
            raise Failure(process.returncode)
        self._write_record({**self._read_record(), name: [key, _identify_all(writes)]})
        self.say(f"{name:<8} {what} ({time.monotonic() - begin:.1f} s)")
        self._done.add(name)

    def remember(self, name: str, values: Sequence[str], of: pathlib.Path) -> None:
        """Keeps values that were given for a file, for commands that are given none."""
        self._write_record({**self._read_record(), name: [_digest(_identify(of)), *values]})

    def recall(self, name: str, of: pathlib.Path) -> list[str]:
        """The values that were kept for a file, unless it has changed."""
        kept = self._read_record().get(name)
        return kept[1:] if isinstance(kept, list) and kept[:1] == [_digest(_identify(of))] else []

    def say(self, text: str) -> None:
        """Prints a message, unless the user wants results and errors only."""
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
