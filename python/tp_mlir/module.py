# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""parallelize_module, and the class of the modules that it returns.

As in PyTorch, the module itself is changed and returned: it gets a class derived from ParallelModule and its own (as
fully_shard does), whose forward runs a compiled program. The outermost such module that is called is compiled as a whole, with
the plans of all modules inside it.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from . import dtensors, hooks, processes, saved
from .capture import get_class_name, is_capturing
from .dispatch import Dispatcher
from .errors import Error, InputError, MeshError, PlanError, UnsupportedError
from .huggingface import find_plan
from .mesh import DeviceMesh, is_given, read_mesh
from .plan import AutoPlan, Call, DataCall, check_data_mesh, list_calls_of_dtensors, read_calls
from .report import Explanation, Proof, Report
from .source import CallSite
from .weights import is_meta


class ParallelModule(torch.nn.Module):
    """A module that runs as compiled programs, on several ranks. Its parameters are those of the module, whole."""

    written_class: type[torch.nn.Module]
    """The class that the module was written with."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # A capture changes the module for a while.
        with _get_dispatcher(self).lock:
            return super().__call__(*args, **kwargs)

    @property
    def report(self) -> Report:
        """What the ranks of the last program exchange and hold."""
        return _get_dispatcher(self).get_last().report

    @property
    def reports(self) -> list[Report]:
        """The reports of all programs, one for each set of input shapes."""
        return [executable.report for executable in _get_dispatcher(self).executables]

    def explain(self, value: str | None = None) -> Explanation:
        """Why values have the placements that they have, and what would communicate less: for all values, or for a module, a
        parameter, an argument or an op of this name (docs/Explain.md)."""
        if value is not None and not isinstance(value, str):
            raise InputError(f"value is the name of a module, a parameter, an argument or an op; found {value!r}")
        return _get_dispatcher(self).get_last().explain(value)

    def prove(self) -> Proof:
        """Proves for all inputs that the ranks compute what the module does (docs/Proof.md).

        :raises CompileError: they don't, or the proof fails."""
        return Proof.join([executable.prove() for executable in _get_dispatcher(self).executables
                           or [_get_dispatcher(self).get_last()]])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the programs to `path`, an artifact, and the weights beside it, as .safetensors: for `load`, and for tp-run."""
        saved.save(self, _get_dispatcher(self), path)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        state = super().state_dict(*args, **kwargs)
        dtensors.share_versions(state, self, kwargs.get("prefix", args[1] if len(args) > 1 else ""))
        return state

    def __reduce_ex__(self, protocol: Any) -> Any:
        get_state = getattr(self, "__getstate__", None)  # every object has it from Python 3.11 on
        return _make_empty, (self.written_class,), get_state() if get_state else self.__dict__

    def refresh(self, *, programs: bool = False) -> None:
        """Lets the next call read all parameters again. Needed after writes through `.data`, which PyTorch doesn't count.

        :param programs: whether it also compiles again. Needed after changes of attributes that aren't tensors."""
        dispatcher = _get_dispatcher(self)
        with dispatcher.lock:
            if programs:
                dispatcher.forget_programs()
            dispatcher.forget_weights()


_PUBLIC = [name for name in vars(ParallelModule) if not name.startswith("_") and name not in ("written_class", "state_dict")]


@functools.cache
def make_parallel_class(written: type[torch.nn.Module]) -> type[ParallelModule]:
    """The class of a ParallelModule that was written as `written`."""
    missing = object()
    members = {name: value for name in _PUBLIC if (value := inspect.getattr_static(written, name, missing)) is not missing}
    if members:
        warnings.warn(f"{written.__name__} has members named {', '.join(members)} of its own, which stay; call those of "
                      f"tp_mlir.ParallelModule by that class, as in tp_mlir.ParallelModule.{next(iter(members))}", stacklevel=4)

    @functools.wraps(written.forward)
    def forward(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        if is_capturing():
            return written.forward(self, *args, **kwargs)
        dispatcher = _get_dispatcher(self)
        with dispatcher.lock:  # while another thread captures the module, it computes something else
            return dispatcher.call(self, args, kwargs)

    def make_written(cls: type[torch.nn.Module], *args: Any, **kwargs: Any) -> torch.nn.Module:
        """Makes a module of the written class, which isn't parallelized, when the class's own code calls type(self), as slices of
        nn.Sequential do."""
        return written(*args, **kwargs) if "written_class" in vars(cls) else written.__new__(cls)

    # The name goes into programs.
    return type(written.__name__, (ParallelModule, written),
                {**members, "forward": forward, "written_class": written, "__new__": make_written, "__module__": written.__module__})


def _make_empty(written: type[torch.nn.Module]) -> torch.nn.Module:
    return written.__new__(make_parallel_class(written))  # type: ignore[arg-type]  # a class of modules can be hashed


def _get_dispatcher(module: torch.nn.Module) -> Dispatcher:
    dispatcher: Dispatcher | None = module.__dict__.get("_tp_mlir")
    if dispatcher is None:
        raise Error(f"this {get_class_name(module)} is a copy without programs, since its class has a __getstate__ or __deepcopy__ "
                    "that leaves them out: parallelize the copy")
    return dispatcher


def _add_call(module: torch.nn.Module, call: Call) -> Dispatcher:
    """Makes `module` a ParallelModule, if it isn't one, and keeps the call."""
    if not isinstance(module, ParallelModule):
        if isinstance(module, torch.jit.ScriptModule):
            raise UnsupportedError(f"{type(module).__name__} is compiled by TorchScript; use the module that it was made of",
                                   place=call.place, fqn="")
        if "forward" in vars(module):
            raise UnsupportedError(f"an instance of {type(module).__name__} has a forward of its own, set as an attribute, which can't be "
                                   "replaced; define forward in a class", place=call.place, fqn="")
        module.__class__ = make_parallel_class(type(module))  # type: ignore[arg-type]
        module.__dict__["_tp_mlir"] = Dispatcher()
    dispatcher = _get_dispatcher(module)
    dispatcher.calls.append(call)
    dispatcher.forget_programs()
    return dispatcher


@contextlib.contextmanager
def restoring(module: torch.nn.Module) -> Iterator[None]:
    """After an error in it, the module is what it was before."""
    kind, dispatcher = type(module), module.__dict__.get("_tp_mlir")
    if dispatcher is not None:
        changed = module.__dict__["_tp_mlir"] = Dispatcher()
        vars(changed).update(vars(dispatcher), calls=list(dispatcher.calls))
    try:
        yield
    except BaseException:
        if type(module) is not kind:
            module.__class__ = kind
        if dispatcher is None:
            module.__dict__.pop("_tp_mlir", None)
        else:
            module.__dict__["_tp_mlir"] = dispatcher
        raise


def parallelize_module(module: torch.nn.Module, device_mesh: Any = None, parallelize_plan: Any = None, *,
                       src_data_rank: int | None = 0, example_inputs: Any = None, match: str = "fnmatch",
                       on_unmatched: str | None = None, loss_parallel: bool = False, cpu: str | None = None,
                       options: Mapping[str, Any] | None = None) -> torch.nn.Module:
    """torch.distributed.tensor.parallel's function of this name, for programs instead of eager DTensors.

    :param module: is changed and returned. With example_inputs it may be on the meta device: its program is then compiled, reported
        and proven, and a run needs the values.
    :param device_mesh: one mesh dimension, or the whole mesh of a plan of auto_plan: a DeviceMesh, of this package or of PyTorch, or a
        map such as {"tp": 2}. By default that of the innermost `with mesh:`, or else of the module's DTensors.
    :param parallelize_plan: a style, or a map of patterns of modules to styles, to plans, or (for parameters) to lists of
        placements. "auto" takes the tp_plan of a model of transformers. A plan of auto_plan is one for the whole mesh. By default the
        placements of the module's DTensors.
    :param src_data_rank: under torchrun, the rank whose parameters and buffers all processes get, except DTensors. With None, they
        must be the same in all processes. Ranks that are threads read the same ones.
    :param example_inputs: the arguments of a call: a tuple, a dictionary of keywords, or one tensor; or a list of these, for
        several shapes. The module is compiled for them now, and takes inputs of these shapes only. Without it, the module is
        compiled when it is called, once for each shape.
    :param match: how patterns match: "fnmatch" as in PyTorch, "hf" or "regex" (docs/Plans.md).
    :param on_unmatched: "error" (the default) or "warn": what a pattern that matches nothing causes.
    :param loss_parallel: whether the logits of cross entropies in the module stay split.
    :param cpu: CPUs to compile for, separated by commas; by default that of this machine.
    :param options: further options of tp-parallelize (docs/Passes.md), as in {"sequence_parallel": True, "machine": "cpu"}.
    :raises PlanError: an entry is wrong. It has the line of the entry.
    :raises MeshError: the mesh can't be used.
    :raises CaptureError: torch.export can't capture the module.
    """
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"a torch.nn.Module is expected; found {module!r}")
    place = CallSite().place
    try:
        given = read_mesh(device_mesh) if is_given(device_mesh) or not dtensors.list_dtensors(module) else None
        of_dtensors = dtensors.find_mesh(module, known=given.layout if given else None, known_as="the mesh of this call is one")
    except MeshError as error:
        raise error if error.place else MeshError(error.message, place=place, fqn=error.fqn) from None
    mesh = given or of_dtensors
    assert mesh is not None
    if parallelize_plan is None and of_dtensors is None:
        warnings.warn("no parallelize_plan is given, so this call does nothing", stacklevel=2)
        return module
    if isinstance(parallelize_plan, str) and parallelize_plan == "auto":
        parallelize_plan, match = find_plan(module, place), "hf"
    if parallelize_plan is None:
        calls = list_calls_of_dtensors(module, mesh, place, loss_parallel=loss_parallel)
        for _, call in calls:
            call.options, call.cpu = dict(options or {}), cpu
    else:
        calls = [(module, call) for call in _read_plan(module, mesh, parallelize_plan, cpu, options, match=match, on_unmatched=on_unmatched,
                                                       loss_parallel=loss_parallel)]
    if src_data_rank is not None and parallelize_plan is not None:
        processes.broadcast([tensor for tensor in (*module.parameters(), *module.buffers()) if not (dtensors.is_dtensor(tensor) or is_meta(tensor))], src_data_rank)
    with contextlib.ExitStack() as stack:
        for changed in dict.fromkeys((module, *(inner for inner, _ in calls))):
            stack.enter_context(restoring(changed))
        if of_dtensors is not None:
            stack.enter_context(hooks.without_dtensors(module))
        for inner, call in calls:
            _add_call(inner, call)
        if example_inputs is not None:
            _get_dispatcher(module).compile_examples(module, read_examples(example_inputs))
    return module


def _read_plan(module: torch.nn.Module, mesh: DeviceMesh, plan: Any, cpu: str | None, options: Mapping[str, Any] | None,
               **how: Any) -> list[Call]:
    """What a plan asks for: one that is written, or one that auto_plan has found."""
    if not isinstance(plan, AutoPlan):
        calls: list[Call] = [read_calls(module, mesh, plan, **how)]
    elif given := [name for name, value in how.items() if name in ("match", "on_unmatched", "loss_parallel") and value not in ("fnmatch", None, False)]:
        raise PlanError(f"{', '.join(given)} can't be given for a plan that auto_plan has found", place=CallSite().place)
    elif mesh != plan.mesh:
        raise MeshError(f"the plan is for {plan.mesh!r}, not for {mesh!r}; pass plan.mesh", place=CallSite().place)
    else:
        calls = [copy.copy(call) for call in plan.calls]
    for call in calls:
        call.options, call.cpu = dict(options or {}), cpu
    return calls


def parallelize_graph(module: torch.nn.Module, mesh: DeviceMesh, plan: Any, *, cpu: str | None = None,
                      options: Mapping[str, Any] | None = None, **how: Any) -> None:
    """parallelize_module for a graph that PyTorch has captured, which has lost the arguments of its modules."""
    for call in _read_plan(module, mesh, plan, cpu, options, argument="", index=sys.maxsize, **how):
        _add_call(module, call)
    dispatcher = _get_dispatcher(module)
    dispatcher.has_signatures = False


def read_examples(examples: Any) -> list[tuple[Sequence[Any], Mapping[str, Any]]]:
    """Positional arguments and keywords of each example."""
    calls: list[tuple[Sequence[Any], Mapping[str, Any]]] = []
    for example in examples if isinstance(examples, list) else [examples]:
        if isinstance(example, Mapping):
            calls.append(((), example))
        else:
            calls.append((example if isinstance(example, tuple) else (example,), {}))
    return calls


def _add_data_call(module: torch.nn.Module, mesh: Any, style: str, reshard_after_forward: bool | None,
                   batch: Mapping[str, int] | None) -> torch.nn.Module:
    place = CallSite().place
    if not isinstance(module, torch.nn.Module):
        raise UnsupportedError(f"{style} takes one module; found {type(module).__name__}. Call it for each module", place=place)
    mesh = read_mesh(mesh)
    check_data_mesh(mesh, style, place)
    is_distributed = dtensors.find_mesh(module, known=mesh.layout, known_as="the mesh of this call is one") is not None
    with hooks.without_dtensors(module) if is_distributed else contextlib.nullcontext():
        _add_call(module, DataCall(mesh, style, reshard_after_forward, dict(batch or {}), place))
    return module


def _refuse(function: str, options: Mapping[str, Any], theirs: Any = None) -> None:
    """Refuses options, unless they have the values that `theirs`, PyTorch's function of this name, has by default."""
    defaults = inspect.signature(theirs).parameters if theirs else {}
    for name, value in options.items():
        if theirs and name not in defaults:
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
        if theirs and (value is None or _is_same(value, defaults[name].default)):
            continue
        raise UnsupportedError(f"{function} doesn't support {name}={value!r}", place=CallSite().place)


def fully_shard(module: torch.nn.Module, *, mesh: Any = None, reshard_after_forward: bool | int | None = None,
                batch: Mapping[str, int] | None = None, **options: Any) -> torch.nn.Module:
    """torch.distributed.fsdp's function of this name. Inputs and outputs of the module are those of all ranks together.

    :param mesh: one dimension, or two for HSDP: replicas of what the second one shards.
    :param batch: the dimensions of inputs that are the batch, where they aren't dimension 0 (docs/Plans.md).
    """
    if not isinstance(reshard_after_forward, (bool, type(None))):
        _refuse("fully_shard", {"reshard_after_forward": reshard_after_forward})
        reshard_after_forward = None
    _refuse("fully_shard", {name: value for name, value in options.items() if not _is_default(value)})
    return _add_data_call(module, mesh, "fsdp", reshard_after_forward, batch)


def _is_default(value: Any) -> bool:
    """Whether a policy of PyTorch, such as MixedPrecisionPolicy(), asks for nothing."""
    try:
        return value is None or (type(value).__name__ in ("MixedPrecisionPolicy", "OffloadPolicy") and value == type(value)())
    except TypeError:
        return False


def _is_same(value: Any, default: Any) -> bool:
    return value is default or type(value) is type(default) and isinstance(value, (bool, int, float, str)) and value == default


def FullyShardedDataParallel(module: torch.nn.Module, *, device_mesh: Any = None, use_orig_params: bool = True,
                             batch: Mapping[str, int] | None = None, **options: Any) -> torch.nn.Module:
    """FSDP1's class of this name: fully_shard of the module, as one unit."""
    from torch.distributed.fsdp import FullyShardedDataParallel as theirs
    _refuse("FullyShardedDataParallel", options, theirs)
    return _add_data_call(module, device_mesh, "fsdp", None, batch)


def DistributedDataParallel(module: torch.nn.Module, *, device_mesh: Any = None, batch: Mapping[str, int] | None = None,
                            **options: Any) -> torch.nn.Module:
    """torch.nn.parallel's class of this name. Inputs and outputs of the module are those of all ranks together."""
    _refuse("DistributedDataParallel", options, torch.nn.parallel.DistributedDataParallel)
    _add_data_call(module, device_mesh, "ddp", None, batch)
    processes.broadcast([tensor for tensor in (*module.parameters(), *module.buffers()) if not dtensors.is_dtensor(tensor)], 0)
    return module


def replicate(module: torch.nn.Module, mesh: DeviceMesh | Any = None, *, batch: Mapping[str, int] | None = None,
              **options: Any) -> torch.nn.Module:
    """torch.distributed's function of this name: data parallelism with whole parameters."""
    _refuse("replicate", options)
    return _add_data_call(module, mesh, "ddp", None, batch)


def load(path: str | os.PathLike[str]) -> saved.LoadedModule:
    """What `ParallelModule.save` has written, ready to run. Load only files from sources that you trust: an artifact has
    native code.

    :raises InputError: the files aren't such an artifact and its weights."""
    return saved.LoadedModule(path)


__all__ = ["DistributedDataParallel", "FullyShardedDataParallel", "ParallelModule", "PlanError", "fully_shard", "load",
           "parallelize_module", "replicate"]
