# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tools as child processes that end with this one."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Sequence
from typing import Any

_prctl = ctypes.CDLL(None).prctl
_PR_SET_PDEATHSIG = 1


def start(command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    """Starts a tool. The system ends it when the thread that has started it ends, even if that is killed."""
    parent = os.getpid()

    def end_with_parent() -> None:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # it has ended before
            os.kill(os.getpid(), signal.SIGTERM)

    return subprocess.Popen(command, preexec_fn=end_with_parent, **options)
