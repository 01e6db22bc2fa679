# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which program a call of a module runs, and compiling those that are missing."""

from __future__ import annotations

import operator
import threading
import weakref
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd import forward_ad

from . import autograd
from .capture import Signature, capture, check_context, check_tangents, check_tensors, describe, get_class_name, key_of
from .contexts import is_loss_parallel
from .errors import Error, InputError
from .executable import Bundle, Executable, Sharded, shard
from .plan import Call, PlanText, Settings, join_settings, write_plan
from .snapshot import Snapshot
from .weights import Outdated, collect_tensors

if TYPE_CHECKING:
    from .training import TrainStep

_requires_grad = operator.attrgetter("requires_grad")
# Types of arguments that a program depends on by value.
_VALUES = frozenset((bool, int, float, str, type(None), torch.dtype))


class Dispatcher:
    """The programs of one module, by the shapes of its inputs and the mode of its modules."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.has_signatures = True  # whether the arguments of modules are known
        self.lock = threading.RLock()
        self.steps: weakref.WeakSet[TrainStep] = weakref.WeakSet()
        self.program_revision = self.weight_revision = 0
        """How often the programs and the weights were changed in ways that only the user knows, or the plan was."""
        self.clear()

    def clear(self) -> None:
        """Forgets all programs, because the plan or the module has changed."""
        self.executables: list[Executable] = []
        self._is_fixed = False  # whether it takes the shapes of examples only
        self._by_key: dict[Any, tuple[Executable, list[int]]] = {}
        self._by_flat_key: dict[Any, tuple[Executable, list[int]]] = {}
        self._last: Executable | None = None
        self._snapshot: Snapshot | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Dispatcher:
        copy = Dispatcher()
        copy.calls, copy.has_signatures = list(self.calls), self.has_signatures
        return copy

    def __reduce__(self) -> Any:
        raise TypeError("a parallelized module can't be pickled; save its state_dict, or use its method save")

    def call(self, module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Runs the program for these arguments.

        :raises UnsupportedError: autocast or a transform of torch.func is active, a tensor has a tangent, or a module inside has a
            hook."""
        check_context()
        if forward_ad._current_level >= 0:
            check_tangents(module, (args, kwargs))
        try:
            return self._call(module, args, kwargs)
        except Outdated:
            self.clear()
            return self._call(module, args, kwargs)

    def _call(self, module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        leaves = [*args, *kwargs.values()]
        key: list[Any] = [len(args), *kwargs, is_loss_parallel(), self._look(module)]
        for leaf in leaves:
            if type(leaf) is torch.Tensor:
                key.append((leaf.dtype, leaf.shape))
            elif type(leaf) in _VALUES:
                key.append(key_of(leaf))
            else:  # a tree, or a subclass
                executable, inputs = self._find(module, args, kwargs)
                return self._run(module, executable, inputs)
        found = self._by_flat_key.get(flat_key := tuple(key))
        if found is None:
            executable, _ = self._find(module, args, kwargs)
            order = self._signature.order(args, kwargs)
            found = self._by_flat_key[flat_key] = executable, [order.index(i) for i in executable.sharded.captured.inputs]
        executable, positions = found
        return self._run(module, executable, [leaves[i] for i in positions])

    def _look(self, module: torch.nn.Module) -> bytes:
        """The modes of the module and those inside. Forgets the programs if they don't fit the module any more."""
        if self._snapshot is None or self._snapshot.has_changed():
            self.clear()
            snapshot = Snapshot(module)
            snapshot.check_hooks()
            self._signature = Signature(module.forward)
            self._snapshot = snapshot
        return self._snapshot.modes

    def _run(self, module: torch.nn.Module, executable: Executable, inputs: list[torch.Tensor]) -> Any:
        self._last = executable
        output = executable.sharded.captured.output
        is_recorded = torch.is_grad_enabled() and not torch.is_inference_mode_enabled()
        assert self._snapshot is not None
        if is_recorded and (any(map(_requires_grad, inputs)) or self._snapshot.requires_grad()):
            return output.build(autograd.run(self, module, executable, inputs, self._snapshot))
        return output.build(executable.run(inputs))

    def _make_key(self, module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, list[Any]]:
        """What a program for these arguments is known by, and the arguments' leaves."""
        modes = self._look(module)
        leaves, spec = self._signature.flatten(args, kwargs)
        keys = tuple(map(key_of, leaves))
        try:
            hash(keys)
        except TypeError:
            unhashable = [leaf for leaf in leaves if not isinstance(leaf, torch.Tensor) and type(leaf).__hash__ is None]
            raise InputError(f"an argument of {get_class_name(module)} can't be a part of a program: {unhashable[0]!r} is neither a tensor, "
                             "a container of tensors, nor a value that can be hashed") from None
        return (keys, spec, is_loss_parallel(), modes), leaves

    def _find(self, module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Executable, list[torch.Tensor]]:
        """The program for these arguments, and its inputs. Compiles it if it is missing."""
        key, leaves = self._make_key(module, args, kwargs)
        with self.lock:
            if key not in self._by_key:
                check_tensors(module, args, kwargs)
                if self._is_fixed:
                    raise InputError(self._describe_mismatch(module, key))
                self._add(module, {key: self._shard(module, args, kwargs)})
            executable, indices = self._by_key[key]
        return executable, [leaves[i] for i in indices]

    def compile_examples(self, module: torch.nn.Module, examples: Sequence[tuple[Sequence[Any], Mapping[str, Any]]]) -> None:
        """Compiles for these arguments, to one artifact; others are errors from then on."""
        with self.lock:
            check_context()
            programs = {self._make_key(module, *example)[0]: self._shard(module, *example) for example in examples}
            self._add(module, programs)
            self._is_fixed = True
            self._last = self.executables[0]

    def _shard(self, module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Sharded:
        plan, settings = self.write_plan(module)
        return shard(capture(module, args, kwargs, has_signatures=self.has_signatures, needs_values=False), plan, settings.options,
                     is_found=settings.is_found)

    def _add(self, module: torch.nn.Module, programs: Mapping[Any, Sharded]) -> None:
        bundle = Bundle(list(programs.values()), collect_tensors(module), cpu=self.write_plan(module)[1].cpu)
        self.executables += bundle.executables
        assert self._snapshot is not None
        self._snapshot.keep_constants([executable.bundle.names for executable in self.executables])
        for key, executable in zip(programs, bundle.executables):
            self._by_key[key] = executable, executable.sharded.captured.inputs

    def write_plan(self, module: torch.nn.Module, prefix: str = "") -> tuple[PlanText, Settings]:
        """The plan of the calls for the module and those inside it, and what else they say.

        :raises PlanError: the calls contradict each other."""
        calls = [(fqn, call) for fqn, inner in module.named_modules()
                 for call in getattr(inner.__dict__.get("_tp_mlir"), "calls", ())]
        settings = join_settings([call for _, call in calls])
        names = {name for kept in (module.named_modules(), module.named_parameters(), module.named_buffers()) for name, _ in kept}
        return write_plan(calls, prefix=prefix, loss_parallel=is_loss_parallel(), names=names), settings

    def has(self, executable: Executable) -> bool:
        """Whether the module is still what the program was made of, beside its weights and modes."""
        return executable in self.executables and self._snapshot is not None and not self._snapshot.has_changed()

    def get_last(self) -> Executable:
        """The program that ran last, or the first one.

        :raises Error: there is none yet."""
        if self._last is None:
            raise Error("the module has no program yet: call it, or give example_inputs to parallelize_module")
        return self._last

    def forget_programs(self) -> None:
        self.program_revision += 1
        self.clear()

    def forget_weights(self) -> None:
        self.weight_revision += 1
        for executable in self.executables:
            executable.bundle.weights.forget()

    def _describe_mismatch(self, module: torch.nn.Module, key: Any) -> str:
        known = dict.fromkeys(_describe(leaves) for leaves, *_ in self._by_key)
        text = (f"{get_class_name(module)} has no program for the inputs {_describe(key[0])}; its example_inputs were "
                f"{' or '.join(known)}. Give an example of these, too, or no examples: the module is then compiled for the inputs that "
                "it gets")
        if any(leaves == key[0] for leaves, *_ in self._by_key):
            text = (f"{get_class_name(module)} was compiled with its modules in other modes (training or evaluation) than now: examples "
                    "are compiled for the modes that the modules have then")
        return text


def _describe(keys: Sequence[Any]) -> str:
    return f"({', '.join(map(describe, keys))})"
