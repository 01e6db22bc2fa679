# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files that are written as a whole or not at all."""

from __future__ import annotations

import os
import pathlib
import tempfile


def write_file(path: pathlib.Path, text: str) -> None:
    """Writes a file aside, and gives it its name when it is on the disk. What isn't a file, such as a device, is written to; a
    link stays one."""
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8")
        return
    path = pathlib.Path(os.path.realpath(path))
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f"{path.name}.") as folder:
        aside = pathlib.Path(folder, path.name)
        with aside.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
