# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The context managers that scripts put around calls of a model."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator

_loss_parallel = contextvars.ContextVar("loss_parallel", default=False)


@contextlib.contextmanager
def loss_parallel() -> Iterator[None]:
    """Programs that are compiled in it keep the logits of their cross entropies split along the classes.

    A loss that is computed outside of the model is PyTorch's own, on whole logits."""
    token = _loss_parallel.set(True)
    try:
        yield
    finally:
        _loss_parallel.reset(token)


def is_loss_parallel() -> bool:
    return _loss_parallel.get()


@contextlib.contextmanager
def implicit_replication() -> Iterator[None]:
    """Does nothing: a program has no plain tensors beside DTensors, so each value has a placement."""
    yield
