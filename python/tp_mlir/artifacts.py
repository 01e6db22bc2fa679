# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled programs on the disk, by their contents: what was compiled once isn't compiled again.

They are in the folder of tp-run's cache ($XDG_CACHE_HOME/tp-mlir, by default ~/.cache/tp-mlir). Without such a folder they
live as long as the process does. Those that weren't used for long are deleted.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import os
import pathlib
import re
import shutil
import tempfile
from collections.abc import Sequence

from . import _native, processes
from .cpu import describe_cpu
from .errors import InputError

# The size that the folder may have.
_MAX_BYTES = 4 << 30
_LIBRARY = re.compile(r"/lib(LLVM|MLIR|tprt)[^/]*$")


@functools.cache
def _get_folder() -> pathlib.Path:
    root = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = pathlib.Path(root, "tp-mlir", "python")
    with contextlib.suppress(OSError):
        if os.path.isabs(root):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                return folder
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tp-mlir-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@functools.cache
def _get_compiler() -> str:
    """What a compiled program depends on beside its text: the compiler's libraries, and the CPU that 'native' means."""
    return " ".join([_native.__version__, *_list_libraries(), *describe_cpu()])


def _list_libraries() -> list[str]:
    """The libraries of the compiler and the runtime in this process, with their sizes and times."""
    package = os.path.dirname(os.path.realpath(_native.__file__))
    paths = {line.split(maxsplit=5)[-1].strip() for line in pathlib.Path("/proc/self/maps").read_text().splitlines() if ".so" in line}
    found = []
    for path in sorted(paths):
        if _LIBRARY.search(path) or os.path.dirname(path) == package:
            with contextlib.suppress(OSError):  # replaced since it was loaded
                status = os.stat(path)
                found.append(f"{path} {status.st_size} {status.st_mtime_ns}")
    return found


def _limit(folder: pathlib.Path) -> None:
    """Deletes the artifacts that weren't used for the longest time, if all together are too large. Processes that have mapped
    one keep it."""
    files = []
    for path in folder.glob("*.tpx"):
        with contextlib.suppress(OSError):  # another process deletes, too
            status = path.stat()
            files.append((status.st_mtime_ns, status.st_size, path))
    excess = sum(size for _, size, _ in files) - _MAX_BYTES
    for _, size, path in sorted(files)[:-1]:
        if excess <= 0:
            break
        path.unlink(missing_ok=True)
        excess -= size


def compile_cached(programs: Sequence[tuple[str, _native.Program]], *, cpu: str = "native") -> _native.Artifact:
    """The artifact of per-rank programs, each with its name.

    :raises CompileError: a program can't be compiled."""
    digest = hashlib.sha256(f"{_get_compiler()} {cpu}".encode())
    for name, program in programs:
        for part in (name.encode(), program.text(locations=True).encode()):
            digest.update(len(part).to_bytes(8, "little") + part)
    path = _get_folder() / f"{digest.hexdigest()}.tpx"
    with processes.rank_zero_first(path.stem):
        return _get_or_compile(programs, path, cpu)


def _get_or_compile(programs: Sequence[tuple[str, _native.Program]], path: pathlib.Path, cpu: str) -> _native.Artifact:
    if path.exists():
        with contextlib.suppress(InputError, OSError):  # damaged, or deleted by another process
            os.utime(path)
            return _native.Artifact(path)
    _native.compile_programs(programs, path, cpu=cpu)
    artifact = _native.Artifact(path)
    _limit(path.parent)
    return artifact
