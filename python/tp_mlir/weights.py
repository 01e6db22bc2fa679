# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tensors of a module as the weights of a session, in both directions.

The module's tensors are the truth. Before a run, a session gets those that have changed since it saw them: another tensor, or
another version of the same one, as PyTorch counts in-place writes. After a run, the module gets what the program has updated.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any

import torch

from . import _native, dtensors, processes
from .errors import Error, WeightError
from .mesh import Layout

# The types of a manifest.
DTYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16, "i64": torch.int64,
          "i32": torch.int32, "i16": torch.int16, "i8": torch.int8, "ui8": torch.uint8, "i1": torch.bool}
_from_dlpack: Callable[[Any], torch.Tensor] = torch._C._from_dlpack
NO_VALUES = "has no values, because it is on the device 'meta'; initialize the module, or load a state_dict with assign=True, first"
_NOTHING: Mapping[str, torch.Tensor] = MappingProxyType({})


def collect_tensors(module: torch.nn.Module) -> dict[str, tuple[dict[str, Any], str]]:
    """Where a module and those inside it keep each tensor, by all of its FQNs: a dictionary and a key."""
    slots = {}
    for fqn, inner in module.named_modules(remove_duplicate=False):
        for kept in (inner._parameters, inner._buffers):
            for name, tensor in kept.items():
                if tensor is not None:
                    slots[f"{fqn}.{name}" if fqn else name] = kept, name
    return slots


def list_names(artifact: _native.Artifact, slots: Mapping[str, Any]) -> list[str]:
    """The FQNs of the tensors of a module, `slots`, that the artifact's programs read."""
    return [parameter["name"] for parameter in json.loads(artifact.manifest)["parameters"] if parameter["name"] in slots]


def is_meta(tensor: torch.Tensor) -> bool:
    """Whether the tensor was made on the meta device, so that it has a shape and no values."""
    return tensor.device.type == "meta"


def to_tensor(array: _native.Array) -> torch.Tensor:
    """The array's memory as a tensor. Given a capsule, PyTorch asks for no device and no version, which takes microseconds."""
    return _from_dlpack(array.__dlpack__())


def resolve(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor's values as they are in memory: PyTorch may negate them when they are read."""
    return tensor.detach() if dtensors.is_dtensor(tensor) else tensor.detach().resolve_neg()


class Outdated(Error):
    """A module's parameters have other types or shapes than its programs have."""


@dataclasses.dataclass(frozen=True)
class Pushed:
    """Tensors that a session has got."""

    tensors: Mapping[str, torch.Tensor]
    """By their FQNs. They have the memory that they had then, which nothing else can get while they are kept, so other tensors
    have other pointers."""
    versions: Mapping[str, int]

    def update(self, tensors: Mapping[str, torch.Tensor]) -> Pushed:
        tensors = {name: resolve(tensor) for name, tensor in tensors.items()}
        return Pushed({**self.tensors, **tensors}, {**self.versions, **{name: tensor._version for name, tensor in tensors.items()}})


class Weights:
    """The parameters of `artifact`, which are tensors of a module or constants of its programs.

    :raises WeightError: a tensor of the module has no values."""

    def __init__(self, artifact: _native.Artifact, names: list[str], slots: Mapping[str, tuple[dict[str, Any], str]],
                 constants: Mapping[str, Any], layout: Layout) -> None:
        manifest = json.loads(artifact.manifest)
        parameters = manifest["parameters"]
        self.world_size: int = manifest["world_size"]
        self._names = names
        self._slots = [slots[name] for name in self._names]
        self._updated = [i for i, name in enumerate(self._names)
                         if any(parameter["name"] == name and parameter.get("updated") for parameter in parameters)]
        self._shardings = {parameter["name"]: dtensors.Sharding(parameter, layout) for parameter in parameters}
        self._tensors: list[torch.Tensor] = []
        self._guard: _native.TensorGuard | None = None
        """Holds while the session has what the module has."""
        self._seen: tuple[list[Any], list[int]] = [], []
        self._look()
        for fqn, tensor in zip(self._names, self._tensors):
            if is_meta(tensor):
                raise WeightError(f"'{fqn}' {NO_VALUES}", fqn=fqn)
        self._types = [(tensor.dtype, tensor.shape) for tensor in self._tensors]
        self._constants = {parameter["name"]: constants[parameter["name"]] for parameter in parameters
                   if parameter["name"] not in slots and parameter["name"] in constants}
        self.pushed = Pushed({}, {}).update(dict(zip(self._names, self._tensors)))
        options = processes.get_session_options(self.world_size)
        values, blocks = self._split(self.pushed.tensors)
        self.session = _native.Session(artifact, {**values, **self._constants}, options, blocks)

    def get_dtensor(self, name: str) -> torch.Tensor:
        """The value of a parameter in the session, with the program's placements.

        :raises WeightError: there are no such placements."""
        sharding = self._shardings[name]
        sharding.check()
        return sharding.join(to_tensor(self.session.get_block(name)))

    def _split(self, tensors: Mapping[str, torch.Tensor]) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
        """Whole tensors, and blocks of DTensors."""
        values, blocks = {}, {}
        for name, tensor in tensors.items():
            if dtensors.is_dtensor(tensor):
                if dtensors.is_whole(tensor):
                    values[name] = dtensors.get_local(tensor)
                else:
                    blocks[name] = self._shardings[name].split(tensor)
            else:
                values[name] = tensor
        return values, blocks

    def set(self, tensors: Mapping[str, torch.Tensor | None]) -> None:
        """Gives the session values of parameters that aren't the module's. None stands for zeros."""
        values, blocks = self._split({name: tensor for name, tensor in tensors.items() if tensor is not None})
        dtypes = {parameter["name"]: DTYPES[parameter["dtype"]] for parameter in json.loads(self.session.manifest)["parameters"]}
        zeros = blocks if processes.count() > 1 else values
        for name in [name for name, tensor in tensors.items() if tensor is None]:
            sharding = self._shardings[name]
            zeros[name] = torch.zeros(sharding.local_shape if processes.count() > 1 else sharding.shape, dtype=dtypes[name])
        self.session.set_parameters(values, blocks)

    def get(self, name: str, like: torch.Tensor | None = None) -> torch.Tensor:
        """The value of a parameter in the session: a DTensor if `like` is one, with its placements, or else the whole tensor."""
        if dtensors.is_dtensor(like):
            if not dtensors.is_whole(like):
                return self._shardings[name].join_like(to_tensor(self.session.get_block(name)), like)
            return dtensors.make_like(to_tensor(self.session.get_parameter(name)), like)
        return to_tensor(self.session.get_parameter(name))

    def _look(self, others: Mapping[str, torch.Tensor] = _NOTHING) -> tuple[list[Any], list[int]]:
        """Reads the module's tensors, unless there are others in their place; returns what was seen before."""
        before = self._seen
        self._guard = None
        if others:
            self._tensors = [others[fqn] if fqn in others else kept[name] for fqn, (kept, name) in zip(self._names, self._slots)]
        else:
            self._look_up()
        self._seen = dtensors.observe(self._tensors)
        return before

    def _watch(self) -> None:
        """The session has what `_look` saw in the module."""
        self._guard = _native.TensorGuard(self._slots, self._tensors, *self._seen)

    def _look_up(self) -> None:
        self._tensors = [kept[name] for kept, name in self._slots]

    def push(self, others: Mapping[str, torch.Tensor] = _NOTHING) -> None:
        """Gives the session what has changed in the module. `others`: tensors that take the place of the module's, for one run."""
        if not others and self._guard and self._guard.holds():
            return
        try:
            before = self._look(others)
        except (LookupError, AttributeError, RuntimeError) as error:  # it's gone, None, or an inference tensor
            raise Outdated(f"the module's parameters aren't those that its programs were made for: {error}") from error
        if before != self._seen:
            self._push(before)
        if not others:
            self._watch()

    def _push(self, before: tuple[list[Any], list[int]]) -> None:
        """Gives the session the tensors that differ from what was seen before."""
        for name, tensor, expected in zip(self._names, self._tensors, self._types):
            if (tensor.dtype, tensor.shape) != expected or tensor.device.type != "cpu":
                self._seen = before
                raise Outdated(f"'{name}' was {expected[0]} of shape {tuple(expected[1])} when its program was made, and is {tensor.dtype} "
                               f"of shape {tuple(tensor.shape)} on '{tensor.device}' now")
        changed = {name: tensor for name, tensor, *states in zip(self._names, self._tensors, *before, *self._seen)
                   if states[:2] != states[2:]}
        pushed = self.pushed.update(changed)
        try:
            self.session.set_parameters(*self._split({name: pushed.tensors[name] for name in changed}))
        except BaseException:
            self._seen = before
            raise
        self.pushed = pushed

    def pull(self) -> None:
        """Gives the module what the last run has updated."""
        if not self._updated:
            return
        with torch.no_grad():
            for i in self._updated:
                tensor, value = self._tensors[i], self.get(self._names[i], self._tensors[i])
                if dtensors.is_dtensor(tensor) and dtensors.is_dtensor(value):
                    dtensors.write(tensor, dtensors.get_local(value))
                else:
                    tensor.copy_(value)
        self._look()
        self._watch()

    def check_unchanged(self, pushed: Pushed) -> None:
        """:raises RuntimeError: one of the tensors was written since, other than by the program. PyTorch has no other error for this."""
        updated = {self._names[i] for i in self._updated}
        for name, tensor in pushed.tensors.items():
            if tensor._version != pushed.versions[name] and name not in updated:
                raise RuntimeError(f"'{name}' has been modified by an inplace operation between forward and backward pass; the gradients "
                                   "need what it was in the forward pass")

    def copy_updated(self) -> dict[str, torch.Tensor]:
        """Copies of the tensors that a run updates, before it does."""
        self._look_up()
        return {self._names[i]: self._tensors[i].detach().clone() for i in self._updated}

    def collect(self) -> dict[str, torch.Tensor]:
        """The parameters that the programs read, as the module has them now, each whole and in memory of its own."""
        self.push()
        tensors = {name: resolve(tensor) for name, tensor in zip(self._names, self._tensors)}
        constants = {name: to_tensor(value) for name, value in self._constants.items()}
        return {name: (tensor.full_tensor() if dtensors.is_dtensor(tensor) else tensor).contiguous().clone()
                for name, tensor in (tensors | constants).items()}

    def forget_updated(self) -> None:
        """At the next run, gives the session again those tensors that programs update."""
        self._guard = None
        for i in self._updated:
            self._seen[0][i] = self._seen[1][i] = -1

    def forget(self) -> None:
        """Gives the session all tensors at the next run: after writes through `.data`, which aren't counted, or a run that failed."""
        self._guard = None
        self._seen = [-1] * len(self._names), [-1] * len(self._names)
