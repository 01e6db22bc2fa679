# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The context managers that scripts put around calls of a model."""

from __future__ import annotations

import contextlib
import contextvars
import sys
from collections.abc import Iterator
from typing import Any

_torch_handlers: tuple[dict[Any, Any], Any] | None = None
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
    if _loss_parallel.get():
        return True
    known = _torch_handlers or _find_torch_handlers()
    return known is not None and known[1] in known[0].values()


def _find_torch_handlers() -> tuple[dict[Any, Any], Any] | None:
    """PyTorch's context manager gives DTensor other ops for cross entropies while it is active, for all threads: the handlers
    of DTensor, and one that is among them then. To look for its op would take longer: the hash of an op is Python code."""
    global _torch_handlers
    loss, api = sys.modules.get("torch.distributed.tensor.parallel.loss"), sys.modules.get("torch.distributed.tensor._api")
    if api is not None and hasattr(api, "DTensor") and (ops := getattr(loss, "customized_loss_ops", None)):
        _torch_handlers = api.DTensor._op_dispatcher._custom_op_handlers, next(iter(ops.values()))
    return _torch_handlers


@contextlib.contextmanager
def implicit_replication() -> Iterator[None]:
    """Does nothing: a program has no plain tensors beside DTensors, so each value has a placement."""
    yield
