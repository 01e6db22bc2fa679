# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What PyTorch's autograd would differentiate in a module, recorded while torch.export runs its forward.

A program has the operations of a forward, and the compiler derives the gradients of these. So a module may have nothing else
that decides about gradients, and a gradient that PyTorch gives must be one that the program has, and the other way around.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.autograd.function import BackwardCFunction
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from .errors import UnsupportedError
from .source import find_line

_HOOKS = frozenset((torch.Tensor.register_hook, torch.Tensor.register_post_accumulate_grad_hook))


@dataclasses.dataclass
class Derivatives:
    """Of one forward pass, with the tensors that required gradients in it."""

    outputs: list[frozenset[int | str]] = dataclasses.field(default_factory=list)
    """For each tensor among the results, what autograd has a path to: parameters by their FQNs, and arguments by the numbers
    of `Signature.flatten`."""
    problems: list[str] = dataclasses.field(default_factory=list)
    """What the gradients of a program would lack."""
    written: list[int] = dataclasses.field(default_factory=list)
    """The numbers of the arguments that the forward writes to."""

    def check(self, name: str) -> None:
        """:raises UnsupportedError: the gradients of the program, of a module `name`, would differ from PyTorch's."""
        if self.problems and any(self.outputs):
            raise UnsupportedError(f"the gradients of {name} can't be compiled: {'; '.join(dict.fromkeys(self.problems))}. "
                                   "The module can be called under torch.no_grad()")


@contextlib.contextmanager
def recorded(module: torch.nn.Module, flatten: Callable[[Sequence[Any], Mapping[str, Any]], list[Any]]) -> Iterator[Derivatives]:
    """While in it, `module` records what autograd does when this thread runs its forward. `flatten`: gives the leaves of its
    arguments."""
    derivatives, inner, is_own = Derivatives(), module.forward, "forward" in vars(module)
    thread = threading.get_ident()

    @functools.wraps(inner)
    def forward(*args: Any, **kwargs: Any) -> Any:
        if threading.get_ident() != thread:
            return inner(*args, **kwargs)
        derivatives.problems.clear()
        arguments = {i: leaf for i, leaf in enumerate(flatten(args, kwargs)) if isinstance(leaf, torch.Tensor)}
        versions = {i: leaf._version for i, leaf in arguments.items()}
        leaves: dict[int, int | str] = {id(leaf): i for i, leaf in arguments.items()}
        leaves |= {id(parameter): name for name, parameter in module.named_parameters()}
        with _Watch(derivatives):
            result = inner(*args, **kwargs)
        derivatives.outputs = [_find_leaves(leaf, leaves, derivatives.problems) for leaf in pytree.tree_leaves(result)
                               if isinstance(leaf, torch.Tensor)]
        derivatives.written = [i for i, leaf in arguments.items() if leaf._version != versions[i]]
        return result

    module.forward = forward
    try:
        yield derivatives
    finally:
        if is_own:
            module.forward = inner
        else:
            del module.forward


class _Watch(TorchFunctionMode):
    """Notes what a program loses."""

    def __init__(self, derivatives: Derivatives) -> None:
        self._problems = derivatives.problems

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function in _HOOKS:
            self._problems.append(f"{function.__qualname__} is called at {find_line()}, and a program has no hooks")
        elif function is torch._C._set_grad_enabled:
            with torch._C.DisableTorchFunction():  # before PyTorch 2.9, an export only notes the call
                function(*args, **(kwargs or {}))
        elif torch.is_inference_mode_enabled():
            self._problems.append(f"torch.inference_mode() is active at {find_line()}, which a program doesn't have; use torch.no_grad()")
        return function(*args, **(kwargs or {}))


def _find_leaves(tensor: torch.Tensor, leaves: Mapping[int, int | str], problems: list[str]) -> frozenset[int | str]:
    """Those of `leaves`, by the identity of tensors, that autograd has a path to."""
    if tensor.grad_fn is None:
        return frozenset({leaves[id(tensor)]} if tensor.requires_grad and id(tensor) in leaves else ())
    found, seen, stack = set(), {tensor.grad_fn}, [tensor.grad_fn]
    while stack:
        node = stack.pop()
        if isinstance(node, BackwardCFunction):
            name = type(node).__name__.removesuffix("Backward")
            hint = "; use checkpoint(…, use_reentrant=False)" if name == "CheckpointFunction" else ""
            problems.append(f"the torch.autograd.Function '{name}' has a backward of its own{hint}")
        elif getattr(node, "_saved_sparse", False):
            problems.append("an embedding has sparse=True, and the gradients of a program are dense")
        elif (variable := getattr(node, "variable", None)) is not None:
            if id(variable) in leaves:
                found.add(leaves[id(variable)])
            else:
                problems.append(f"a tensor of shape {tuple(variable.shape)} that is neither a parameter nor an argument requires a gradient")
        following = {inner for inner, _ in node.next_functions if inner is not None} - seen
        seen |= following
        stack += following
    return frozenset(found)
