# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Capturing a module's forward pass by torch.export.

The program keeps the arguments of all modules (signatures.py), and its archive has no data of parameters: the compiler needs
their shapes only, and a run gets the module's own tensors.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import inspect
import io
import itertools
import json
import logging
import mmap
import os
import re
import tempfile
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.autograd import forward_ad
from torch.utils import _pytree as pytree

from . import _native, dtensors, hooks
from .derivatives import Derivatives, recorded
from .errors import CaptureError, InputError, UnsupportedError, WeightError
from .huggingface import check_caches, register_caches
from .signatures import name_calls, ordered
from .source import Place, is_users
from .weights import NO_VALUES, collect_tensors, is_meta

# torch.export imports this, and it logs that Triton isn't installed.
_logger = logging.getLogger("torch.utils.flop_counter")
_logger.addFilter(_drop := lambda record: "triton" not in record.getMessage())
importlib.import_module("torch.utils.flop_counter")
_logger.removeFilter(_drop)

# Exporting sets the forward of modules for a while.
_lock = threading.RLock()
_thread = threading.local()
_is_any_autocast_enabled: Callable[[], bool] = torch._C._is_any_autocast_enabled  # asking for one device takes longer
# Above this size a tensor of the archive has its data: the importer doesn't let an archive grow without limits.
_MAX_EMPTY_BYTES = 256 << 20
_MAP_NORESERVE = 0x4000  # Linux's; Python has it from 3.13 on


def key_of(leaf: Any) -> Any:
    """What a program depends on: the type and the shape of a tensor, the value of anything else."""
    if isinstance(leaf, torch.Tensor):
        return leaf.dtype, leaf.shape
    return type(leaf), repr(leaf) if type(leaf) is float else leaf  # -0.0 equals 0.0, and NaN nothing


def describe(key: Any) -> str:
    """What `key_of` returns, for a message."""
    if isinstance(key[0], torch.dtype):
        return f"{str(key[0]).removeprefix('torch.')}[{', '.join(map(str, key[1]))}]"
    return repr(key[1])


def _list_leaves(tree: Any) -> list[tuple[str, Any]]:
    """The leaves, each with its path, as in "['x'][0]", or with its number, where a class in `tree` has no names for paths."""
    try:
        return [(pytree.keystr(path), leaf) for path, leaf in pytree.tree_flatten_with_path(tree)[0]]
    except ValueError:
        return [(f"[{number}]", leaf) for number, leaf in enumerate(pytree.tree_leaves(tree))]


class Signature:
    """The arguments of a forward: a call is known by names, however it passes them."""

    def __init__(self, forward: Callable[..., Any] | inspect.Signature) -> None:
        self._signature = forward if isinstance(forward, inspect.Signature) else inspect.signature(forward)

    def write(self) -> list[tuple[str, int, bool]]:
        """For each parameter its name, its kind, and whether it has a default value: what `read` takes."""
        return [(name, int(parameter.kind), parameter.default is not parameter.empty)
                for name, parameter in self._signature.parameters.items()]

    @staticmethod
    def read(parameters: Sequence[tuple[str, int, bool]]) -> Signature:
        kinds = {int(kind): kind for kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD,
                                              inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)}
        return Signature(inspect.Signature([
            inspect.Parameter(name, kinds[kind], default=None if has_default else inspect.Parameter.empty)
            for name, kind, has_default in parameters]))

    def flatten(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[list[Any], pytree.TreeSpec]:
        """The leaves of all arguments, in one order for all ways to pass them.

        :raises TypeError: these aren't arguments of the forward.
        :raises UnsupportedError: one is a cache."""
        arguments = dict(sorted(self._signature.bind(*args, **kwargs).arguments.items()))
        check_caches(arguments)
        return pytree.tree_flatten(arguments)

    def name(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[str]:
        """The names of the leaves of `flatten`, as in "batch['x']"."""
        arguments = sorted(self._signature.bind(*args, **kwargs).arguments.items())
        return [name + path for name, value in arguments for path, _ in _list_leaves(value)]

    def order(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[int]:
        """For each leaf of `args` and `kwargs`, its index among the leaves of `flatten`."""
        counts = [len(pytree.tree_leaves(value)) for value in (*args, *kwargs.values())]
        begins = list(itertools.accumulate(counts, initial=0))
        # Arguments as numbers: their classes needn't take numbers as leaves.
        numbers, _ = self.flatten(range(len(args)), dict(zip(kwargs, range(len(args), len(counts)))))
        order = [0] * begins[-1]
        for index, leaf in enumerate(leaf for i in numbers for leaf in range(begins[i], begins[i] + counts[i])):
            order[leaf] = index
        return order


@dataclasses.dataclass
class Structure:
    """The structure of what a forward takes or returns. Each leaf is a tensor of the program, or a constant."""

    spec: pytree.TreeSpec
    constants: list[tuple[bool, Any]]
    """For each leaf, whether it is a constant, and which."""

    @functools.cached_property
    def _is_leaf(self) -> bool:
        return self.spec.is_leaf()

    def build(self, tensors: Sequence[torch.Tensor]) -> Any:
        if self._is_leaf and tensors:
            return tensors[0]
        rest = iter(tensors)
        return pytree.tree_unflatten([value if is_constant else next(rest) for is_constant, value in self.constants], self.spec)


@dataclasses.dataclass
class Captured:
    """A program of torch.export."""

    program: _native.Program
    inputs: list[int]
    """For each input of the program, its index among the leaves of `Signature.flatten`."""
    arguments: Structure
    """Positional arguments and keywords."""
    output: Structure
    derivatives: Derivatives
    """What autograd differentiates."""
    required: tuple[tuple[str, ...], tuple[bool, ...]]
    """The parameters and the inputs that required gradients then."""


def is_capturing() -> bool:
    """Whether this thread captures a module: modules then compute as they are written."""
    return getattr(_thread, "is_capturing", False)


@contextlib.contextmanager
def _exporting(module: torch.nn.Module, called: torch.nn.Module) -> Iterator[None]:
    """While in it, the module can be captured, without the hooks of `called`. No other thread can call it or a parallelized module inside it.

    The fused kernels of an encoder aren't used: they have no submodules to split."""
    with contextlib.ExitStack() as stack:
        for inner in module.modules():
            if dispatcher := inner.__dict__.get("_tp_mlir"):
                stack.enter_context(dispatcher.lock)
        stack.enter_context(_lock)
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        stack.callback(torch.backends.mha.set_fastpath_enabled, torch.backends.mha.get_fastpath_enabled())
        torch.backends.mha.set_fastpath_enabled(False)
        stack.enter_context(hooks.removed(called))
        stack.enter_context(_with_parameters(module))
        # Those of the caller, as of torch.utils.checkpoint, are for the tensors of its own graph.
        stack.enter_context(torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor))
        stack.callback(setattr, _thread, "is_capturing", is_capturing())
        _thread.is_capturing = True
        yield


@contextlib.contextmanager
def _with_parameters(module: torch.nn.Module) -> Iterator[None]:
    """While in it, tensors that torch.func.functional_call has put in the places of parameters are parameters, and DTensors are
    plain tensors of their shapes."""
    made: dict[int, torch.Tensor] = {}
    replaced: list[tuple[dict[str, Any], str, torch.Tensor]] = []
    for inner in module.modules():
        kept: dict[str, Any] = inner._parameters
        for name, tensor in kept.items():
            if tensor is not None and (dtensors.is_dtensor(tensor) or not isinstance(tensor, torch.nn.Parameter)):
                replaced.append((kept, name, tensor))
                made.setdefault(id(tensor), torch.nn.Parameter(_make_plain(tensor), requires_grad=tensor.requires_grad))
        buffers: dict[str, Any] = inner._buffers
        for name, tensor in buffers.items():
            if dtensors.is_dtensor(tensor):
                replaced.append((buffers, name, tensor))
                made.setdefault(id(tensor), _make_plain(tensor))
    for kept, name, tensor in replaced:
        kept[name] = made[id(tensor)]
    try:
        yield
    finally:
        for kept, name, tensor in replaced:
            kept[name] = tensor


def _make_plain(tensor: torch.Tensor) -> torch.Tensor:
    """A plain tensor with the values of `tensor`. In place of a DTensor of which this process has a block, it has no values, and
    addresses without memory."""
    if not dtensors.is_dtensor(tensor):
        return tensor.detach()
    distributed: Any = tensor
    if dtensors.is_whole(distributed):
        return dtensors.get_local(distributed)
    size = tensor.numel() * tensor.element_size()
    addresses = mmap.mmap(-1, max(size, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE)
    return torch.frombuffer(addresses, dtype=torch.uint8, count=size).view(tensor.dtype).view(tensor.shape) if size else (
        torch.empty(tensor.shape, dtype=tensor.dtype))


def capture(module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], *, name: str | None = None,
            has_signatures: bool = True, called: torch.nn.Module | None = None, is_step: bool = False, needs_values: bool = True) -> Captured:
    """The program of `module` for these arguments.

    :param called: the module whose hooks run around the program; `module` itself, or one inside it.
    :param is_step: whether it is for a training step, which may have dropout.
    :param has_signatures: whether the forward functions of the modules inside have the arguments that a plan means.
    :param needs_values: whether tensors on the meta device are errors. A buffer without values is a parameter of the program.

    :raises CaptureError: torch.export can't capture it, or the compiler has no op for something in it.
    :raises InputError: a tensor isn't in the host's memory. (WeightError if it is the module's.)
    :raises UnsupportedError: autocast or a transform of torch.func is active, a module inside has a hook, or there is dropout."""
    name = name or get_class_name(module)
    called = called or module
    check_context()
    check_tensors(module, args, kwargs, needs_values=needs_values)
    hooks.check(((fqn, inner) for fqn, inner in called.named_modules() if inner is not called), get_class_name(called))
    register_caches()
    with _exporting(module, called):
        signature = Signature(module.forward)
        signature.flatten(args, kwargs)
        program, signatures, derivatives = _export(module, args, kwargs, name, has_signatures, signature)
        if derivatives.written:
            raise CaptureError(f"{name} writes to its input '{signature.name(args, kwargs)[derivatives.written[0]]}', and a program can't "
                               "change the caller's tensor; write to a copy, as in x = x.clone()", fqn="")
        if not is_step:
            _check_dropout(program, name)
        call = program.call_spec
        output = _get_output(program)
        if not _is_plain(call.out_spec):
            program.module_call_graph[0].signature.out_spec = pytree.tree_structure((0,) * call.out_spec.num_leaves)
        try:
            archive = _save(program)
        except Exception as error:
            raise CaptureError(f"torch.export can't save the program of {name}: {type(error).__name__}: {error}") from error
    keywords = _get_children(call.in_spec)[1]
    kwargs = {key: kwargs[key] for key in keywords.context}
    leaves, spec = pytree.tree_flatten((tuple(args), kwargs))
    order = signature.order(args, kwargs)
    inputs = [order[i] for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    arguments = Structure(spec, [(False, None) if isinstance(leaf, torch.Tensor) else (True, leaf) for leaf in leaves])
    required = (tuple(fqn for fqn, parameter in module.named_parameters() if parameter.requires_grad),
                tuple(leaf.requires_grad for leaf in leaves if isinstance(leaf, torch.Tensor)))
    return Captured(_import(archive, signatures, name, list(collect_tensors(module))), inputs, arguments, output, derivatives, required)


def differentiate(module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], *, has_signatures: bool = True) -> Derivatives:
    """What `capture` finds about gradients, without the program: for tensors that require others than when it was captured."""
    with _exporting(module, module):
        return _export(module, args, kwargs, get_class_name(module), has_signatures, Signature(module.forward))[2]


def _export(module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], name: str, has_signatures: bool,
            signature: Signature) -> tuple[torch.export.ExportedProgram, dict[str, Any], Derivatives]:
    """The program of PyTorch, the arguments of the modules, and what autograd does."""
    device = torch.device("meta" if any(map(is_meta, itertools.chain(module.parameters(), module.buffers()))) else "cpu")
    examples = pytree.tree_map_only(torch.Tensor, lambda tensor: _make_example(tensor, device), (tuple(args), dict(kwargs)))
    try:
        recorder: contextlib.AbstractContextManager[dict[str, Any]] = ordered(module) if has_signatures else contextlib.nullcontext({})
        with (recorder as signatures,
              recorded(module, lambda *values: signature.flatten(*values)[0]) as derivatives):
            program = torch.export.export(module, *examples, strict=False)
        name_calls(signatures, module, program)
    except Exception as error:
        raise _explain(error, module, name) from error
    for graph in program.graph_module.modules():
        # Before PyTorch 2.9, these have the module whose result they are about, not the one that they are in.
        for node in list(graph.graph.nodes) if isinstance(graph, torch.fx.GraphModule) else ():
            if node.target is torch.ops.aten._assert_tensor_metadata.default:
                graph.graph.erase_node(node)
    return program, signatures, derivatives


def _check_dropout(program: torch.export.ExportedProgram, name: str) -> None:
    """:raises UnsupportedError: there is dropout in the program."""
    aten = torch.ops.aten
    for graph in program.graph_module.modules():
        for node in graph.graph.nodes if isinstance(graph, torch.fx.GraphModule) else ():
            arguments = [*node.args, *node.kwargs.values()]
            if (node.target is aten.dropout.default and arguments[1] and arguments[2]
                    or node.target is aten.scaled_dot_product_attention.default and len(node.args) > 4 and node.args[4]):
                stack = list((node.meta.get("nn_module_stack") or {"": ("", None)}).values())
                lines = [(file, int(line)) for file, line in re.findall(r'File "([^"]+)", line (\d+)', node.meta.get("stack_trace") or "")]
                place = next((Place(file, line, 1) for file, line in reversed(lines) if is_users(file)), None)
                where = f"'{stack[-1][0]}' in {name}" if stack[-1][0] else name
                raise UnsupportedError(f"{where} drops out, for which only a training step has random numbers: call eval(), or train with "
                                       "train_step", place=place, fqn=stack[-1][0])


def _get_children(spec: pytree.TreeSpec) -> list[pytree.TreeSpec]:
    return spec.children() if hasattr(spec, "children") else spec.children_specs  # before PyTorch 2.12


def _is_plain(spec: pytree.TreeSpec) -> bool:
    """Whether the importer knows the classes of a structure; it gives the parts of others numbers instead of names."""
    # The type of a named tuple is a function.
    known = spec.type is None or isinstance(spec.type, type) and issubclass(spec.type, (tuple, list, dict))
    return known and all(map(_is_plain, _get_children(spec)))


def _make_example(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A tensor to capture with. One that is passed twice, or is a parameter, too, must be an input of its own each time."""
    return torch.empty_like(tensor, device=device, requires_grad=tensor.requires_grad)


def get_class_name(module: torch.nn.Module) -> str:
    return getattr(type(module), "written_class", type(module)).__name__


def check_context() -> None:
    """:raises UnsupportedError: autocast, or a transform of torch.func, is active."""
    if torch._C._are_functorch_transforms_active():
        raise UnsupportedError("a transform of torch.func, such as vmap or grad, can't see into a program; call the module outside of it, "
                               "and use backward() or torch.autograd.grad")
    if _is_any_autocast_enabled() and torch.is_autocast_enabled("cpu"):
        raise UnsupportedError("torch.autocast has no effect on a program; call the module and backward() outside of it, and convert "
                               "the module instead, "
                               "as in model.to(torch.bfloat16), or give compute= to train_step")


def check_tangents(module: torch.nn.Module, arguments: Any) -> None:
    """:raises UnsupportedError: a tensor of the module or of the arguments has a tangent, of forward-mode differentiation."""
    for tensor in itertools.chain(pytree.tree_leaves(arguments), module.parameters(), module.buffers()):
        if isinstance(tensor, torch.Tensor) and forward_ad.unpack_dual(tensor).tangent is not None:  # type: ignore[no-untyped-call]
            raise UnsupportedError("a program has no forward-mode differentiation: call the module before it is parallelized")


def check_tensors(module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], *, needs_values: bool = True) -> None:
    """:raises InputError: a tensor of the module or of the arguments can't be read by a program, or has no values and needs them."""
    constants = {id(inner._buffers[name]) for inner in module.modules() for name in inner._non_persistent_buffers_set}
    for kind, tensors in (("parameter", module.named_parameters()), ("buffer", module.named_buffers())):
        for fqn, tensor in tensors:
            what = f"{kind} '{fqn}' of {get_class_name(module)}"
            if problem := _find_problem(tensor, needs_values=needs_values, is_constant=id(tensor) in constants):
                raise WeightError(f"{what} {problem}", fqn=fqn)
            if tensor.is_inference():
                raise WeightError(f"{what} was made under torch.inference_mode(), so PyTorch doesn't count the writes to it; make the module "
                                  "outside of it, or under torch.no_grad()", fqn=fqn)
    arguments = [*enumerate(args), *kwargs.items()]
    for path, leaf in ((f"[{key!r}]{path}", leaf) for key, value in arguments for path, leaf in _list_leaves(value)):
        if isinstance(leaf, torch.Tensor):
            problem = _find_problem(leaf, needs_values=needs_values)
            if dtensors.is_dtensor(leaf):
                problem = "is a DTensor; a program takes the whole tensor, and splits it itself"
            if problem:
                raise InputError(f"input {path} {problem}")


def _find_problem(tensor: torch.Tensor, *, needs_values: bool, is_constant: bool = False) -> str | None:
    """Why a program can't read a tensor, if it can't. `is_constant`: whether its values are a part of the program."""
    if dtensors.is_dtensor(tensor):
        if problem := dtensors.find_problem(tensor):
            return problem
        if is_constant and not dtensors.is_whole(tensor):
            return (f"is a DTensor with the placements {tuple(tensor.placements)}, and not persistent: its values are a part of the "
                    "program, so each process needs all of them; replicate it")
    if is_meta(tensor):
        return NO_VALUES if needs_values else None
    if tensor.device.type != "cpu":
        return f"is on the device '{tensor.device}'; programs run on 'cpu'"
    if tensor.layout != torch.strided:
        return f"has the layout {tensor.layout}; only dense tensors are supported"
    return None


def _save(program: torch.export.ExportedProgram) -> bytes:
    """The program's archive, without the data of its parameters. Buffers are small, and the importer looks at some.

    Tensors may have attributes, which an archive of PyTorch 2.8 would have, too; those of the archive have none."""
    state, constants, replaced = dict(program._state_dict), dict(program._constants), {}

    def replace(tensor: Any) -> Any:
        if not isinstance(tensor, torch.Tensor):
            return tensor
        if id(tensor) not in replaced:
            replaced[id(tensor)] = tensor.detach()
            if isinstance(tensor, torch.nn.Parameter):
                is_empty = 1024 < tensor.nbytes <= _MAX_EMPTY_BYTES
                data = torch.zeros((), dtype=tensor.dtype).expand(tensor.shape) if is_empty else tensor.detach()
                replaced[id(tensor)] = torch.nn.Parameter(data, requires_grad=tensor.requires_grad)
        return replaced[id(tensor)]

    program._state_dict.update({fqn: replace(tensor) for fqn, tensor in state.items()})
    program._constants.update({fqn: replace(tensor) for fqn, tensor in constants.items()})
    buffer = io.BytesIO()
    try:
        torch.export.save(program, buffer)
    finally:
        program._state_dict.update(state)
        program._constants.update(constants)
    return buffer.getvalue()


def _import(archive: bytes, signatures: Mapping[str, Any], name: str, without: Sequence[str]) -> _native.Program:
    """The program, with all tensors but those of the names `without`, of which it needs the shapes only."""
    with tempfile.NamedTemporaryFile("w", suffix=".signature.json") as file:
        json.dump(signatures, file)
        file.flush()
        try:
            return _native.import_program(archive, weights=True, signature=file.name if signatures else None, name=name, without=without)
        except InputError as error:
            raise _locate(str(error)) from None


def _locate(message: str) -> CaptureError:
    """The importer's error, with the place that its text has at the end of the first problem."""
    error = CaptureError(message)
    if found := re.search(r"\(in (the root module|'[^']*')(?:, ([^()]*):(\d+))?\)", message):
        error.fqn = "" if found[1] == "the root module" else found[1].strip("'")
        error.place = Place(found[2], int(found[3]), 1) if found[2] else None
    return error


def _get_output(program: torch.export.ExportedProgram) -> Structure:
    constants = []
    for output in program.graph_signature.output_specs:
        if output.kind.name == "USER_OUTPUT":
            is_constant = not type(output.arg).__name__ == "TensorArgument"
            constants.append((is_constant, getattr(output.arg, "value", None)))
    return Structure(program.call_spec.out_spec, constants)


_WRONG_SIZE = re.compile(r"shape '?\[.*\]'? is (invalid|not compatible)|cannot be multiplied|must match the size")


def _explain(error: Exception, module: torch.nn.Module, name: str) -> CaptureError:
    """PyTorch's error, with the line of the user's code that it is about."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    reason = lines[0] if lines else type(error).__name__
    place, text, fqn = None, "", None
    names = {id(inner): name for name, inner in module.named_modules()}
    for (frame, line), summary in zip(traceback.walk_tb(error.__traceback__), traceback.extract_tb(error.__traceback__)):
        fqn = names.get(id(frame.f_locals.get("self")), fqn)
        if is_users(summary.filename):
            place = Place(summary.filename, line, (summary.colno or 0) + 1)
            text = f" (at {place.file}:{line}: {summary.line})"
    hint = ""
    if _WRONG_SIZE.search(str(error)):
        hint = ("; the module is captured as a whole, so its sizes, such as the number of heads in a view, are those of one device: "
                "they must not be divided by the size of the mesh")
    found = CaptureError(f"torch.export can't capture {name}: {type(error).__name__}: {reason}{text}{hint}", fqn=fqn)
    found.place = place
    return found
