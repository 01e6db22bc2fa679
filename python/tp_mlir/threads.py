# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Work beside a thread."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def repeated(function: Callable[[], object], *, seconds: float) -> Iterator[None]:
    """While in it, another thread calls `function` every so many seconds, until a call raises RuntimeError."""
    is_over = threading.Event()

    def call() -> None:
        with contextlib.suppress(RuntimeError):
            while not is_over.wait(seconds):
                function()

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
