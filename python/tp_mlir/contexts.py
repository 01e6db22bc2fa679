# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The context managers that scripts put around calls of a model."""

from __future__ import annotations

import contextlib
import contextvars
import sys
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
    """Whether this package's context manager is active, or PyTorch's."""
    return _loss_parallel.get() or _is_loss_parallel_in_torch()


def _is_loss_parallel_in_torch() -> bool:
    """PyTorch's context manager gives DTensor other ops for cross entropies while it is active, for all threads."""
    loss, api = sys.modules.get("torch.distributed.tensor.parallel.loss"), sys.modules.get("torch.distributed.tensor._api")
    handlers = getattr(loss, "customized_loss_ops", None)
    if not handlers or api is None:
        return False
    return next(iter(handlers)) in api.DTensor._op_dispatcher._custom_op_handlers


@contextlib.contextmanager
def implicit_replication() -> Iterator[None]:
    """Does nothing: a program has no plain tensors beside DTensors, so each value has a placement."""
    yield
