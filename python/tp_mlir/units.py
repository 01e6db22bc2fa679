# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Quantities with units, as people write them."""

from __future__ import annotations

import re

from ._native import InputError


def read_bytes(text: str | int) -> int:
    """A number of bytes, at least 1, which may have a unit: "80GB", "512MiB".

    :raises InputError: it isn't one, or less than one."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*", str(text), re.IGNORECASE)
    if not found or found[3] and not found[2]:
        raise InputError(f"a memory limit is a number of bytes, which may have a unit, as in '80GB' or '512MiB'; found {text!r}")
    power = ["", "k", "m", "g", "t"].index(found[2].lower())
    number = int(float(found[1]) * (1024 if found[3] else 1000)**power)
    if number < 1:
        raise InputError(f"a memory limit is at least one byte; found {text!r}")
    return number
