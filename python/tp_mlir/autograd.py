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
from typing import TYPE_CHECKING, Any, NoReturn

import torch
from torch.utils import _pytree as pytree

from . import dtensors
from .capture import Structure, capture, check_context, differentiate, get_class_name
from .derivatives import Derivatives
from .errors import Error, InputError, UnsupportedError
from .executable import Bundle, Executable, shard
from .weights import collect_tensors

if TYPE_CHECKING:
    from .dispatch import Dispatcher
    from .snapshot import Snapshot

# The module's name in the program of its gradients.
_PREFIX = "module"


class _Weighted(torch.nn.Module):
    """The sum of a module's outputs, each times its cotangent. `given` says which outputs have one. The others don't count: zeros as
    cotangents would turn an infinite derivative into NaN."""

    def __init__(self, module: torch.nn.Module, arguments: Structure, given: Sequence[bool]) -> None:
        super().__init__()
        self.module = module
        self._arguments = arguments
        self._given = given

    def forward(self, inputs: list[torch.Tensor], cotangents: list[torch.Tensor]) -> torch.Tensor:
        args, kwargs = self._arguments.build(inputs)
        outputs = [leaf for leaf in pytree.tree_leaves(self.module(*args, **kwargs)) if _is_differentiable(leaf)]
        wide = torch.float64 if any(output.dtype == torch.float64 for output in outputs) else torch.float32
        remaining = iter(cotangents)
        # An output without a cotangent is still computed, so that every module that the plan names is in the program.
        terms = [(output.to(wide) * next(remaining).to(wide) if is_given else output.detach().to(wide) * 0).sum()
                 for output, is_given in zip(outputs, self._given, strict=True)]
        return torch.stack(terms).sum() if len(terms) > 1 else terms[0]


def _is_differentiable(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and leaf.is_floating_point()


class Backward:
    """The program of the gradients that belongs to `forward`, a program of `module`."""

    def __init__(self, dispatcher: Dispatcher, module: torch.nn.Module, forward: Executable, modes: bytes,
                 names: Sequence[str], given: Sequence[bool], inputs: Sequence[torch.Tensor], cotangents: Sequence[torch.Tensor]) -> None:
        weighted = _Weighted(module, forward.sharded.captured.arguments, given)
        with dispatcher.lock, _as_in_forward(module, modes, names):
            captured = capture(weighted, ([tensor.detach() for tensor in inputs], list(cotangents)), {},
                               name=f"the gradients of {get_class_name(module)}", has_signatures=dispatcher.has_signatures, called=module)
        plan, settings = dispatcher.write_plan(module, _PREFIX)
        sharded = shard(captured, plan, {**settings.options, "gradients": True}, quiet=True)
        self._executable = Bundle([sharded], collect_tensors(weighted), cpu=settings.cpu).executables[0]
        (program,) = json.loads(self._executable.bundle.artifact.manifest)["programs"]
        self._outputs = {output["name"]: i for i, output in enumerate(program["outputs"])}
        self._shardings = [dtensors.Sharding(output, plan.layout) for output in program["outputs"]]
        self._inputs = [tensor["name"] for tensor in program["inputs"]]

    def run(self, inputs: Sequence[torch.Tensor], cotangents: Sequence[torch.Tensor], weights: Mapping[str, torch.Tensor],
            wanted: Sequence[int | str]) -> list[torch.Tensor]:
        """The gradients of the inputs with the numbers `wanted`, and of the parameters with these names. `weights`: those of the
        forward pass."""
        indices = []
        for leaf in wanted:
            name = self._inputs[leaf] if isinstance(leaf, int) else f"{_PREFIX}.{leaf}"
            if f"grad.{name}" not in self._outputs:
                raise Error(f"PyTorch computes a gradient of {'input ' if isinstance(leaf, int) else ''}'{name.removeprefix(_PREFIX + '.')}', "
                            "and the program has none")
            indices.append(self._outputs[f"grad.{name}"])
        given = [weights[leaf] if isinstance(leaf, str) else None for leaf in wanted]
        parameters = [tensor if dtensors.is_dtensor(tensor) else None for tensor in given]
        split = [index for index, tensor in zip(indices, parameters) if tensor is not None and not dtensors.is_whole(tensor)]
        outputs = self._executable.run_without_update([*inputs, *cotangents],
                                                      {f"{_PREFIX}.{name}": value for name, value in weights.items()}, is_repeated=True,
                                                      blocks=split)
        gradients = []
        for index, tensor in zip(indices, parameters):
            gradient = outputs[index]
            if tensor is not None:
                gradient = self._shardings[index].join_like(gradient, tensor) if index in split else dtensors.make_like(gradient, tensor)
            gradients.append(gradient)
        return gradients


@contextlib.contextmanager
def _as_in_forward(module: torch.nn.Module, modes: bytes, names: Sequence[str]) -> Iterator[None]:
    """While in it, modules are in training and evaluation mode as they were in the forward pass, and the parameters `names`
    are trained."""
    now = [(inner, inner.training) for inner in module.modules()]
    parameters = [(name, parameter, parameter.requires_grad) for name, parameter in module.named_parameters()]
    try:
        for (inner, _), mode in zip(now, modes):
            inner.training = bool(mode)
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
    def forward(ctx: Any, call: _Call, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ctx.call = call
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors)
        weights = call.executable.bundle.weights
        ctx.buffers = weights.copy_updated()
        outputs = call.executable.run([tensor.detach() for tensor in tensors[:call.count]])
        ctx.pushed = weights.pushed
        ctx.mark_non_differentiable(*(output for output, leaves in zip(outputs, call.leaves, strict=True) if not leaves))
        ctx.dtypes = [output.dtype for output in outputs]
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> tuple[Any, ...]:
        with torch.no_grad():
            found = _Run._differentiate(ctx, gradients)
        if torch.is_grad_enabled():  # create_graph
            sources = [tensor for tensor in (*ctx.saved_tensors, *gradients) if tensor is not None and tensor.requires_grad]
            found = tuple(tensor if tensor is None else _Once.apply(tensor, *sources) for tensor in found)  # type: ignore[no-untyped-call]
        return None, *found

    @staticmethod
    def _differentiate(ctx: Any, gradients: Sequence[torch.Tensor | None]) -> tuple[torch.Tensor | None, ...]:
        """The gradients of the inputs and of the parameters."""
        call: _Call = ctx.call
        check_context()
        if any(gradient is not None and torch._C._functorch.is_legacy_batchedtensor(gradient) for gradient in gradients):
            raise UnsupportedError("a program computes one gradient at a time: call torch.autograd.grad without is_grads_batched, or "
                                   "torch.autograd.functional.jacobian without vectorize")
        # Reports parameters and inputs that were written since.
        inputs = [tensor.detach() for tensor in ctx.saved_tensors[:call.count]]
        call.executable.bundle.weights.check_unchanged(ctx.pushed)
        floats = [gradient for gradient, dtype in zip(gradients, ctx.dtypes) if dtype.is_floating_point]
        cotangents = [gradient.contiguous() for gradient in floats if gradient is not None]
        reached = frozenset().union(*(leaves for gradient, leaves in zip(gradients, call.leaves) if gradient is not None))
        tensors: list[int | str] = [*range(call.count), *call.names]
        wanted = [leaf for leaf, is_needed in zip(tensors, ctx.needs_input_grad[1:]) if is_needed and leaf in reached]
        if not wanted:
            return (None,) * len(tensors)
        backward = call.get_backward(tuple(gradient is not None for gradient in floats), inputs, cotangents)
        found: dict[int | str, torch.Tensor] = dict(zip(wanted, backward.run(inputs, cotangents, {**ctx.pushed.tensors, **ctx.buffers}, wanted)))
        return tuple(map(found.get, tensors))


class _Once(torch.autograd.Function):
    """A gradient that can't be differentiated by its sources."""

    @staticmethod
    def forward(ctx: Any, gradient: torch.Tensor, *sources: torch.Tensor) -> torch.Tensor:
        return gradient.view_as(gradient)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> NoReturn:
        raise UnsupportedError("a program has no second derivatives: to differentiate a gradient, call the module before it is parallelized")


class _Call:
    """A call of a module whose outputs can be differentiated."""

    def __init__(self, dispatcher: Dispatcher, module: torch.nn.Module, executable: Executable, inputs: Sequence[torch.Tensor],
                 names: tuple[str, ...], modes: bytes) -> None:
        self.executable = executable
        self.count = len(inputs)
        self.names = names
        self._dispatcher = dispatcher
        self._module = module
        self._modes = modes
        positions: dict[int | str, int] = {leaf: position for position, leaf in enumerate(executable.captured.inputs)}
        self.leaves = [frozenset(positions.get(leaf, leaf) for leaf in leaves) for leaves in self._differentiate(inputs).outputs]
        """For each output, the inputs and the parameters that autograd finds a path to."""

    def _differentiate(self, inputs: Sequence[torch.Tensor]) -> Derivatives:
        required = self.names, tuple(tensor.requires_grad for tensor in inputs)
        captured, known = self.executable.captured, self.executable.derivatives
        if required not in known:
            if required == captured.required:
                known[required] = captured.derivatives
            else:
                known[required] = differentiate(self._module, *captured.arguments.build(inputs),
                                                has_signatures=self._dispatcher.has_signatures)
        known[required].check(get_class_name(self._module))
        return known[required]

    def get_backward(self, given: tuple[bool, ...], inputs: Sequence[torch.Tensor], cotangents: Sequence[torch.Tensor]) -> Backward:
        """The program of the gradients. `given`: which of the outputs that are floats have cotangents.

        :raises InputError: there is none yet, and the module isn't any more what it was in the forward pass."""
        programs = self.executable.backward
        with self._dispatcher.lock:
            if (key := (self.names, given)) not in programs:
                if not self._dispatcher.has(self.executable):
                    raise InputError(f"{get_class_name(self._module)} has changed between forward and backward pass, beside its parameters: "
                                     "the gradients are those of another module than the forward pass")
                programs[key] = Backward(self._dispatcher, self._module, self.executable, self._modes, self.names, given, inputs, cotangents)
            return programs[key]


def run(dispatcher: Dispatcher, module: torch.nn.Module, executable: Executable, inputs: Sequence[torch.Tensor],
        snapshot: Snapshot) -> list[torch.Tensor]:
    """Runs `executable`; PyTorch can differentiate its outputs. `snapshot`: the module of now.

    :raises UnsupportedError: PyTorch's gradients depend on something that a program doesn't have."""
    trained = snapshot.list_trained()
    call = _Call(dispatcher, module, executable, inputs, tuple(trained), snapshot.modes)
    return list(_Run.apply(call, *inputs, *trained.values()))  # type: ignore[no-untyped-call]
