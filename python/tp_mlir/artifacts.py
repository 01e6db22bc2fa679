# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled programs on the disk, by their contents: what was compiled once isn't compiled again.

They are in the folder of tp-run's cache ($XDG_CACHE_HOME/tp-mlir, by default ~/.cache/tp-mlir). Without such a folder they
live as long as the process does.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import os
import pathlib
import platform
import shutil
import tempfile
from collections.abc import Sequence

from . import _native
from .errors import InputError


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
    """What a compiled program depends on beside its text."""
    status = os.stat(_native.__file__)
    return f"{_native.__version__} {status.st_size} {status.st_mtime_ns} {platform.node()}"


def compile_cached(programs: Sequence[tuple[str, _native.Program]], *, cpu: str = "native") -> _native.Artifact:
    """The artifact of per-rank programs, each with its name.

    :raises CompileError: a program can't be compiled."""
    digest = hashlib.sha256(f"{_get_compiler()} {cpu}".encode())
    for name, program in programs:
        for part in (name.encode(), program.text(locations=True).encode()):
            digest.update(len(part).to_bytes(8, "little") + part)
    path = _get_folder() / f"{digest.hexdigest()}.tpx"
    if path.exists():
        with contextlib.suppress(InputError):  # damaged
            return _native.Artifact(path)
    _native.compile_programs(programs, path, cpu=cpu)
    return _native.Artifact(path)
