# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The CPU of this machine, which compiled programs are for by default."""

from __future__ import annotations

import pathlib
import platform
import re

_CPU = re.compile(r"(vendor_id|cpu family|model|model name|stepping|flags|Features|CPU \w+)\s*:")


def describe_cpu() -> list[str]:
    """The model and the features of the CPU."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
    except OSError:
        return [platform.machine(), platform.processor(), platform.node()]
    return [platform.machine(), *(line for line in lines if _CPU.match(line))]
