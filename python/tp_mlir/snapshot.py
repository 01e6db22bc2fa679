# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the programs of a module were made from, beside the values of its weights, to see when they don't fit any more.

These are the modules inside it and their names, their hooks, which parameters and buffers there are, and the tensors that are
neither (attributes of modules), whose values are constants of the programs.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import torch

from . import _native, dtensors, hooks
from .capture import get_class_name
from .errors import WeightError

_flatten = itertools.chain.from_iterable
# What torch.nn.Module keeps itself.
_KEPT_BY_TORCH = frozenset(vars(torch.nn.Module()))


class Snapshot:
    """A module as it was when the snapshot was taken."""

    def __init__(self, module: torch.nn.Module) -> None:
        self._module = module
        self._guard: _native.ModuleGuard | None = None
        self._checked_hooks: list[int] = []
        named = dict(module.named_modules())
        self.modules = list(named.values())
        """The module and those inside it."""
        self._tensors = [tensors for inner in self.modules for tensors in (inner._parameters, inner._buffers)]
        self._absent = [(tensors, name) for tensors in self._tensors for name, tensor in tensors.items() if tensor is None]
        self._parameters = [inner._parameters for inner in self.modules]
        self._parameter_slots = [(f"{fqn}.{name}" if fqn else name, inner._parameters, name) for fqn, inner in named.items()
                                 for name, parameter in inner._parameters.items() if parameter is not None]
        self._structure = self._look()
        self.modes = self._read_modes()
        """For each module, whether it was in training at the last look."""
        self._constants: list[tuple[Any, Any, torch.Tensor]] = []
        self._seen: tuple[list[Any], list[int]] = [], []
        self._constants_guard = _native.TensorGuard([], [], [], [])

    def _look(self) -> tuple[list[torch.nn.Module | None], list[str], list[int], list[frozenset[str]]]:
        children = [inner._modules for inner in self.modules]
        kept = [tensors for inner in self.modules for tensors in (inner._parameters, inner._buffers)]
        return list(_flatten(map(dict.values, children))), list(_flatten(children)), list(map(id, kept)), list(map(frozenset, kept))

    def _read_modes(self) -> bytes:
        return bytes(bool(inner.training) for inner in self.modules)

    def has_changed(self) -> bool:
        """Whether programs must be made again.

        :raises UnsupportedError: a module inside has got a hook."""
        modes = self._guard.check() if self._guard else None
        if modes is None:
            # Made first, it sees what another thread changes from here on.
            guard = _native.ModuleGuard(self.modules, list(hooks.GLOBAL))
            self.check_hooks()
            if self._look() != self._structure or any(tensors.get(name) is not None for tensors, name in self._absent):
                return True
            self._guard, modes = guard, self._read_modes()
        self.modes = modes
        return bool(self._constants) and self._have_constants_changed()

    def requires_grad(self) -> bool:
        """Whether a parameter requires a gradient."""
        return _native.requires_grad(self._parameters)

    def list_trained(self) -> dict[str, torch.nn.Parameter]:
        """The parameters that require gradients, each by its first FQN."""
        trained = {}
        seen = set()
        for fqn, kept, name in self._parameter_slots:
            parameter = kept[name]
            if parameter is not None and parameter.requires_grad and id(parameter) not in seen:
                seen.add(id(parameter))
                trained[fqn] = parameter
        return trained

    def check_hooks(self) -> None:
        """:raises UnsupportedError: a module inside has a hook, or all modules have."""
        hooks.check_global()
        # Numbers that PyTorch gives once.
        found = [key for inner in self.modules[1:] for kind in hooks.KINDS for key in getattr(inner, kind)]
        if found != self._checked_hooks:
            hooks.check(itertools.islice(self._module.named_modules(), 1, None), get_class_name(self._module))
            self._checked_hooks = found

    def keep_constants(self, weights: Sequence[Collection[str]]) -> None:
        """Watches the tensors that are constants of programs. `weights`: of each program, the FQNs of those that it reads."""
        buffers = dict(self._module.named_buffers(remove_duplicate=False))
        known = {id(buffers[name]) for name in set.intersection(*map(set, weights)) if name in buffers}
        self._constants = [(kept, key, tensor) for kept, key, tensor in _iterate_tensors(self.modules) if id(tensor) not in known]
        tensors = [tensor for *_, tensor in self._constants]
        for _, key, tensor in self._constants:
            if tensor.is_inference():
                raise WeightError(f"the tensor {key!r} inside {get_class_name(self._module)} was made under torch.inference_mode(), so "
                                  "PyTorch doesn't count the writes to it; make the module outside of it")
        self._seen = dtensors.observe(tensors)
        self._constants_guard = _native.TensorGuard([(kept, key) for kept, key, _ in self._constants], tensors, *self._seen)

    def _have_constants_changed(self) -> bool:
        if self._constants_guard.holds():
            return False
        tensors = [tensor for *_, tensor in self._constants]
        try:
            if any(kept[key] is not tensor for kept, key, tensor in self._constants):
                return True
        except LookupError:
            return True
        return dtensors.observe(tensors) != self._seen


def _iterate_tensors(modules: Collection[torch.nn.Module]) -> Iterator[tuple[Any, Any, torch.Tensor]]:
    """Buffers that no state_dict has, and tensors among the attributes of modules, and in lists, tuples and dictionaries there:
    where each is kept, by which key, and the tensor."""
    for module in modules:
        for name in module._non_persistent_buffers_set:
            if (tensor := module._buffers.get(name)) is not None:
                yield module._buffers, name, tensor
        attributes = vars(module)
        for name, value in attributes.items():
            if name in _KEPT_BY_TORCH:
                continue
            if type(value) in (list, tuple):
                items: Any = enumerate(value)
            elif type(value) is dict:
                items = value.items()
            else:
                items = ((name, value),)
                value = attributes
            for key, tensor in items:
                if isinstance(tensor, torch.Tensor):
                    yield value, key, tensor
