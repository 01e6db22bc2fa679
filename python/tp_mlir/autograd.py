# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients of a module's program, for PyTorch's autograd.

The backward pass is a program of its own, compiled when it is needed first: the gradient of the sum of all outputs, each times
its cotangent. It computes the forward pass again, so that nothing but the inputs has to be kept. Where speed counts,
`train_step` has forward and backward pass in one program.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd.function import once_differentiable
from torch.utils import _pytree as pytree

from .capture import Structure, capture, get_class_name
from .executable import Bundle, Executable, shard
from .weights import collect_tensors

if TYPE_CHECKING:
    from .dispatch import Dispatcher

# The module's name in the program of its gradients.
_PREFIX = "module"


class _Weighted(torch.nn.Module):
    """The sum of a module's outputs, each times its cotangent."""

    def __init__(self, module: torch.nn.Module, arguments: Structure) -> None:
        super().__init__()
        self.module = module
        self._arguments = arguments

    def forward(self, inputs: list[torch.Tensor], cotangents: list[torch.Tensor]) -> torch.Tensor:
        args, kwargs = self._arguments.build(inputs)
        outputs = [leaf for leaf in pytree.tree_leaves(self.module(*args, **kwargs)) if _is_differentiable(leaf)]
        wide = torch.float64 if any(output.dtype == torch.float64 for output in outputs) else torch.float32
        terms = [(output.to(wide) * cotangent.to(wide)).sum() for output, cotangent in zip(outputs, cotangents)]
        return torch.stack(terms).sum() if len(terms) > 1 else terms[0]


def _is_differentiable(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and leaf.is_floating_point()


class Backward:
    """The program of the gradients that belongs to `forward`, a program of `module`."""

    def __init__(self, dispatcher: Dispatcher, module: torch.nn.Module, forward: Executable, modes: Sequence[bool],
                 names: Sequence[str], inputs: Sequence[torch.Tensor], cotangents: Sequence[torch.Tensor]) -> None:
        weighted = _Weighted(module, forward.sharded.captured.arguments)
        with dispatcher.lock, _as_in_forward(module, modes, names):
            captured = capture(weighted, ([tensor.detach() for tensor in inputs], list(cotangents)), {},
                               name=f"the gradients of {get_class_name(module)}", has_signatures=dispatcher.has_signatures, called=module)
        plan, settings = dispatcher.write_plan(module, _PREFIX)
        sharded = shard(captured, plan, {**settings.options, "gradients": True}, quiet=True)
        self._executable = Bundle([sharded], collect_tensors(weighted), cpu=settings.cpu).executables[0]
        (program,) = json.loads(self._executable.bundle.artifact.manifest)["programs"]
        self._outputs = {output["name"]: i for i, output in enumerate(program["outputs"])}
        self._inputs = [tensor["name"] for tensor in program["inputs"]]

    def run(self, inputs: Sequence[torch.Tensor], cotangents: Sequence[torch.Tensor], state: Mapping[str, torch.Tensor],
            names: Sequence[str]) -> list[torch.Tensor | None]:
        """The gradients of the inputs and of the parameters `names`. `state`: the buffers that the forward pass updates, as they
        were before it."""
        outputs = self._executable.run_without_update([*inputs, *cotangents],
                                                      {f"{_PREFIX}.{name}": value for name, value in state.items()})
        wanted = [*self._inputs[:len(inputs)], *(f"{_PREFIX}.{name}" for name in names)]
        return [outputs[self._outputs[f"grad.{name}"]] if f"grad.{name}" in self._outputs else None for name in wanted]


@contextlib.contextmanager
def _as_in_forward(module: torch.nn.Module, modes: Sequence[bool], names: Sequence[str]) -> Iterator[None]:
    """While in it, modules are in training and evaluation mode as they were in the forward pass, and the parameters `names`
    are trained."""
    now = [(inner, inner.training) for inner in module.modules()]
    parameters = [(name, parameter, parameter.requires_grad) for name, parameter in module.named_parameters()]
    try:
        for (inner, _), mode in zip(now, modes):
            inner.training = mode
        for name, parameter, _ in parameters:
            parameter.requires_grad_(name in names)
        yield
    finally:
        for inner, mode in now:
            inner.training = mode
        for _, parameter, is_trained in parameters:
            parameter.requires_grad_(is_trained)


class _Run(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, dispatcher: Dispatcher, module: torch.nn.Module, executable: Executable, names: tuple[str, ...],
                count: int, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ctx.state = dispatcher, module, executable, names, count
        ctx.modes = [inner.training for inner in module.modules()]
        ctx.save_for_backward(*tensors)
        ctx.buffers = executable.bundle.weights.copy_updated()
        outputs = executable.run([tensor.detach() for tensor in tensors[:count]])
        ctx.mark_non_differentiable(*(output for output in outputs if not output.is_floating_point()))
        ctx.differentiable = [output.is_floating_point() for output in outputs]
        return tuple(outputs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
        dispatcher, module, executable, names, count = ctx.state
        # Reports parameters and inputs that were written since.
        inputs = [tensor.detach() for tensor in ctx.saved_tensors[:count]]
        cotangents = [gradient.contiguous() for gradient, kept in zip(gradients, ctx.differentiable) if kept]
        with dispatcher.lock:
            if (backward := executable.backward.get(names)) is None:
                backward = executable.backward[names] = Backward(dispatcher, module, executable, ctx.modes, names, inputs, cotangents)
        results = backward.run(inputs, cotangents, ctx.buffers, names)
        needed = ctx.needs_input_grad[5:]
        return (None,) * 5 + tuple(result if wanted else None for result, wanted in zip(results, needed))


def run(dispatcher: Dispatcher, module: torch.nn.Module, executable: Executable, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Runs `executable`; PyTorch can differentiate its outputs."""
    trained = {name: parameter for name, parameter in module.named_parameters() if parameter.requires_grad}
    return list(_Run.apply(dispatcher, module, executable, tuple(trained), len(inputs), *inputs, *trained.values()))
