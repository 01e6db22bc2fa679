# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files that are written as a whole or not at all."""

from __future__ import annotations

import contextlib
import os
import pathlib
import tempfile
from collections.abc import Iterator


def write_file(path: pathlib.Path, text: str) -> None:
    """Writes a file aside, and gives it its name when it is on the disk. What isn't a file, such as a device, is written to; a
    link stays one.

    :raises OSError: it can't be written. The error has the name `path`."""
    with named_errors(path):
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8", errors="surrogateescape")
        else:
            _replace(pathlib.Path(os.path.realpath(path)), text)


@contextlib.contextmanager
def named_errors(path: pathlib.Path) -> Iterator[None]:
    """Errors in it are about `path`, rather than about temporary files."""
    try:
        yield
    except OSError as error:
        raise (OSError(error.errno, error.strerror, str(path)) if error.errno else error) from None


def _replace(path: pathlib.Path, text: str) -> None:
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".tp-mlir-") as folder:
        aside = pathlib.Path(folder, "file")
        with aside.open("w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
