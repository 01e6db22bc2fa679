# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans: what calls of parallelize_module and fully_shard ask for, and the text that the compiler reads.

A call is kept at the module that it was made for. When a module is compiled, the calls at it and at the modules inside it
become one plan: their patterns get the names of their modules. The text has one key a line, and for each line the place in
the user's code that it comes from; messages of the compiler are translated back.
"""

from __future__ import annotations

import dataclasses
import difflib
import fnmatch
import json
import re
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from . import dtensors, styles
from .errors import CompileError, Diagnostic, MeshError, PlanError
from .mesh import DeviceMesh, Layout, read_mesh
from .source import CallSite, EntryPlace, Place

if TYPE_CHECKING:
    import torch

# The name of the text in the compiler's messages.
FILE = "parallelize_module"
MATCHES = ("fnmatch", "hf", "regex")


@dataclasses.dataclass
class Entry:
    """A pattern of modules or parameters, and what becomes of them."""

    pattern: str
    value: styles.Style | list[str]
    place: EntryPlace


@dataclasses.dataclass
class TensorCall:
    """A call of parallelize_module."""

    mesh: DeviceMesh
    entries: list[Entry]
    match: str
    on_unmatched: str | None
    loss_parallel: bool
    place: Place
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    cpu: str | None = None
    is_found: bool = False
    """Whether auto_plan has made it."""


@dataclasses.dataclass
class DataCall:
    """A call of fully_shard or of DistributedDataParallel: splits the batch."""

    mesh: DeviceMesh
    style: str
    reshard_after_forward: bool | None
    batch: dict[str, int]
    place: Place
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    cpu: str | None = None
    is_found: bool = False


Call = TensorCall | DataCall


@dataclasses.dataclass(frozen=True)
class AutoPlan:
    """A plan that auto_plan has found, for parallelize_module. str() is the text of a plan file."""

    text: str
    mesh: DeviceMesh
    calls: tuple[Call, ...]
    """What its mesh dimensions split."""
    seconds: float
    """Predicted time of a run, or of a training step."""
    memory_bytes: int
    """Of the rank that needs most."""
    bytes_received: int
    """In collectives, by all ranks together."""
    collectives: int
    """That each rank issues."""
    training: Mapping[str, list[str]] = dataclasses.field(default_factory=dict)
    """The keys that the training file also needs: `checkpoint` and `keep`, if the blocks are computed again."""
    alternatives: tuple[AutoPlan, ...] = ()
    """Other plans that fit, the fastest one first."""

    def __str__(self) -> str:
        return self.text

    @property
    def entries(self) -> dict[str, styles.Style | list[str]]:
        """The modules and parameters that are split."""
        return {entry.pattern: entry.value for call in self.calls if isinstance(call, TensorCall) for entry in call.entries}


@dataclasses.dataclass
class Settings:
    """What the calls for a model say beside the plan."""

    options: dict[str, Any]
    cpu: str
    is_found: bool
    """Whether auto_plan has made all of the plan. It has weighed what lint would advise."""


def join_settings(calls: Collection[Call]) -> Settings:
    """:raises PlanError: the calls contradict each other."""
    found: dict[str, tuple[Any, Place]] = {}
    for call in calls:
        named = {f"options[{name!r}]": value for name, value in call.options.items()} | ({"cpu": call.cpu} if call.cpu else {})
        for name, value in named.items():
            known, place = found.setdefault(name, (value, call.place))
            if known != value:
                raise PlanError(f"{name} is {value!r} here, and {known!r} at {place}; modules that are compiled together must have the same",
                                place=call.place)
    options = {name: value for call in calls for name, value in call.options.items()}
    return Settings(options, found["cpu"][0] if "cpu" in found else "native", all(call.is_found for call in calls))


def read_calls(module: torch.nn.Module, mesh: DeviceMesh, plan: Any, *, match: str = "fnmatch",
               on_unmatched: str | None = None, loss_parallel: bool = False, argument: str = "parallelize_plan",
               index: int = 2) -> TensorCall:
    """What a call of parallelize_module for `module` asks for. `argument` and `index` are the plan's place in the call.

    :raises PlanError: an entry isn't a style, or matches nothing."""
    site = CallSite()
    if match not in MATCHES:
        raise PlanError(f"match must be {', '.join(MATCHES[:-1])} or {MATCHES[-1]}; found {match!r}", place=site.place)
    if mesh.ndim != 1:
        names = ", ".join(map(repr, mesh.mesh_dim_names))
        raise MeshError(f"a plan splits over one mesh dimension, and this mesh has {names}; select one, as in "
                        f"mesh[{mesh.mesh_dim_names[-1]!r}]", place=site.place)
    entries = []
    if not styles.is_style(plan):
        for key in plan:
            if not isinstance(key, str):
                raise PlanError(f"the keys of a plan are patterns of modules; found {key!r}", place=site.place)
        places = site.locate_entries(argument, index, list(plan))
        for key, value in plan.items():
            entries += _read_entries(key, value, places[key])
    else:
        entries += _read_entries("", plan, site.locate_style(argument, index))
    if match == "fnmatch" and on_unmatched != "warn":
        for entry in entries:
            _check_pattern(module, entry)
    return TensorCall(mesh, entries, match, on_unmatched, loss_parallel, site.place)


def _read_entries(pattern: str, value: Any, place: EntryPlace) -> list[Entry]:
    if not styles.is_style(value):  # a plan for the modules that the pattern matches, as parallelize_module allows
        return [entry for key, item in value.items()
                for entry in _read_entries(join(pattern, key), item, place)]
    try:
        return [Entry(pattern, styles.read(value), place)]
    except PlanError as error:
        raise PlanError(f"entry {pattern!r}: {error.message}", place=place.key, entry=pattern) from None


def list_calls_of_dtensors(module: torch.nn.Module, mesh: DeviceMesh, place: Place, *,
                           loss_parallel: bool = False) -> list[tuple[torch.nn.Module, Call]]:
    """The calls that ask for the placements which the module's DTensors have, each with its module: those of fully_shard for
    modules that PyTorch's function of this name was called for, and placements of parameters over the other dimensions.

    :param mesh: the whole mesh of the DTensors."""
    calls: list[tuple[torch.nn.Module, Call]] = []
    axes = list(mesh.axes)
    for inner in module.modules():
        if (data := _find_fsdp_mesh(inner)) is not None:
            data_mesh = read_mesh(data)
            check_data_mesh(data_mesh, "fsdp", place)
            calls.append((inner, DataCall(data_mesh, "fsdp", None, {}, place)))
            axes = [axis for axis in axes if axis not in data_mesh.axes]
    if axes:
        entries = []
        for fqn, tensor in dtensors.list_dtensors(module).items():
            placements = dtensors.list_placements(tensor)
            entries.append(Entry(fqn, [placements[axis] for axis in axes], EntryPlace(place)))
        calls.append((module, TensorCall(mesh[tuple(axes)], entries, "fnmatch", None, loss_parallel, place)))
    return calls


def _find_fsdp_mesh(module: torch.nn.Module) -> Any:
    """The mesh that PyTorch's fully_shard was called with for `module`, if it was, and the module has parameters."""
    if not any(base.__name__ == "FSDPModule" for base in type(module).__mro__):
        return None
    state = module._get_fsdp_state()  # type: ignore[operator]
    groups = state._fsdp_param_groups if hasattr(state, "_fsdp_param_groups") else [state._fsdp_param_group]  # before PyTorch 2.12
    return next((group.mesh_info.mesh for group in groups if group is not None), None)


def join(*names: str) -> str:
    """An FQN of its parts, of which some may be empty."""
    return ".".join(name for name in names if name)


def _check_pattern(module: torch.nn.Module, entry: Entry) -> None:
    """Reports a pattern that matches nothing where it is written, without compiling anything."""
    matched, names = [("", module)], entry.pattern.split(".") if entry.pattern else []
    for depth, token in enumerate(names):
        children: dict[str, Any] = {}
        found = []
        for fqn, parent in matched:
            # Parameters, too, are matched, by placements.
            items: dict[str, Any] = dict(parent.named_children()) if hasattr(parent, "named_children") else {}
            if depth == len(names) - 1 and items is not None and hasattr(parent, "named_parameters"):
                items |= dict(parent.named_parameters(recurse=False)) | dict(parent.named_buffers(recurse=False))
            children |= items
            found += [(join(fqn, name), child) for name, child in items.items() if fnmatch.fnmatchcase(name, token)]
        if not found:
            similar = difflib.get_close_matches(token, children, 1)
            within = f"'{matched[0][0]}'" if matched[0][0] else f"the root, {type(module).__name__}"
            hint = f"; did you mean {similar[0]!r}?" if similar else f"; it has {', '.join(map(repr, children))}" if children else ""
            raise PlanError(f"pattern {entry.pattern!r} matches no module: no submodule {token!r} in {within}{hint}",
                            place=entry.place.key, entry=entry.pattern, fqn=matched[0][0])
        matched = found


@dataclasses.dataclass
class PlanText:
    """A plan as the compiler reads it."""

    text: str
    places: list[tuple[Place, str | None]]
    """Where each line comes from, and the pattern of its entry."""
    layout: Layout
    """The mesh."""
    names: Collection[str] = ()
    """The FQNs of the modules and parameters that are compiled."""

    @property
    def files(self) -> dict[str, str]:
        return {FILE: self.text}

    def translate(self, text: str) -> str:
        """`text` with the user's places instead of those in the plan's text."""
        return re.sub(rf"\b{FILE}:(\d+):(\d+)", lambda found: str(self._find(int(found[1]))[0]), text)

    def _find(self, line: int) -> tuple[Place, str | None]:
        return self.places[min(line, len(self.places)) - 1]

    def find(self, diagnostic: Diagnostic) -> Place:
        """The place in the user's code that a message is about; that of the first call, if it isn't about an entry."""
        if diagnostic.file == FILE and diagnostic.line:
            return self._find(diagnostic.line)[0]
        return self.places[0][0]

    def convert(self, error: CompileError) -> PlanError | CompileError:
        """The compiler's error as one about the user's code, if it is about the plan."""
        message = self.translate(str(error))
        for diagnostic in error.diagnostics:
            if diagnostic.severity == "error" and diagnostic.file == FILE and diagnostic.line:
                place, entry = self._find(diagnostic.line)
                message = message.removeprefix(f"{place}: ").removeprefix("error: ")
                # Messages quote names.
                fqn = next((name for name in re.findall(r"(?<!\w)'([^'\s]*)'", diagnostic.message) if name in self.names), None)
                return PlanError(message, place=place, entry=entry, fqn=fqn, diagnostics=error.diagnostics)
        converted = CompileError(message)
        converted.diagnostics = error.diagnostics
        return converted


class _Writer:
    """JSON, one key a line."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.places: list[tuple[Place, str | None]] = []

    def write(self, line: str, place: Place, entry: str | None = None) -> None:
        self.lines.append(line)
        self.places.append((place, entry))

    def close(self, brackets: str) -> None:
        """Ends a map, whose last key has no comma."""
        self.lines[-1] = self.lines[-1].removesuffix(",")
        self.write(brackets, *self.places[-1])


def write_plan(calls: Iterable[tuple[str, Call]], *, prefix: str = "", loss_parallel: bool = False, names: Collection[str] = ()) -> PlanText:
    """The plan of `calls`, each with the FQN of its module in the model that is compiled; `prefix` goes in front of all names.

    :param names: the FQNs of the model's modules and parameters.

    :raises MeshError: the calls' meshes are parts of different meshes.
    :raises PlanError: the calls contradict each other."""
    calls = list(calls)
    first = calls[0][1]
    for _, call in calls:
        if call.mesh.layout != first.mesh.layout:
            raise MeshError(f"this mesh is a part of another one than that of {first.place}: {call.mesh.layout.axes} and "
                            f"{first.mesh.layout.axes}; make one mesh with all dimensions, and select from it, as in mesh['tp']",
                            place=call.place)
    writer = _Writer()
    writer.write("{", first.place)
    writer.write(f' "mesh": {json.dumps(first.mesh.layout.describe())},', first.place)
    _write_data(writer, [(fqn, call) for fqn, call in calls if isinstance(call, DataCall)], prefix)
    tensor = [(fqn, call) for fqn, call in calls if isinstance(call, TensorCall)]
    if tensor:
        writer.write(' "parallelize": [', tensor[0][1].place)
        for fqn, call in tensor:
            _write_group(writer, join(prefix, fqn), call, loss_parallel)
        writer.close(" ]")
    writer.close("}")
    return PlanText("\n".join(writer.lines) + "\n", writer.places, first.mesh.layout, names)


def _write_group(writer: _Writer, fqn: str, call: TensorCall, loss_parallel: bool) -> None:
    writer.write('  {"mesh_dim": ' + json.dumps(list(call.mesh.axes)) + ",", call.place)
    writer.write(f'   "match": "{call.match}",', call.place)
    if call.on_unmatched:
        writer.write(f'   "on_unmatched": {json.dumps(call.on_unmatched)},', call.place)
    if call.loss_parallel or loss_parallel:
        writer.write('   "loss_parallel": true,', call.place)
    writer.write('   "plan": {', call.place)
    for entry in call.entries:
        pattern = json.dumps(join(fqn, entry.pattern))
        if isinstance(entry.value, list):
            writer.write(f"    {pattern}: {json.dumps(entry.value)},", entry.place.key, entry.pattern)
            continue
        writer.write(f"    {pattern}: {{", entry.place.key, entry.pattern)
        writer.write(f'     "style": {json.dumps(entry.value.name)},', entry.place.key, entry.pattern)
        for name, value in entry.value.arguments.items():
            place = entry.place.arguments.get(name, entry.place.key)
            writer.write(f"     {json.dumps(name)}: {json.dumps(value)},", place, entry.pattern)
        writer.close("    },")
    writer.close("   }")
    writer.close("  },")


def _write_data(writer: _Writer, calls: list[tuple[str, DataCall]], prefix: str) -> None:
    styles_by_axis: dict[str, tuple[dict[str, Any], Place]] = {}
    batch: dict[str, int] = {}
    for fqn, call in calls:
        batch |= call.batch
        for style, axis in zip(_get_data_styles(call), call.mesh.axes):
            if axis not in styles_by_axis:
                styles_by_axis[axis] = {"style": style, **({"modules": []} if style == "fsdp" else {})}, call.place
            known, place = styles_by_axis[axis]
            if known["style"] != style:
                raise PlanError(f"mesh dimension {axis!r} has '{style}' here, and '{known['style']}' at {place}", place=call.place)
            if style != "fsdp":
                continue
            if fqn or prefix:
                known["modules"].append(join(prefix, fqn))
            if call.reshard_after_forward is not None:
                if known.setdefault("reshard_after_forward", call.reshard_after_forward) != call.reshard_after_forward:
                    raise PlanError(f"reshard_after_forward is {call.reshard_after_forward} here, and "
                                    f"{known['reshard_after_forward']} for another module; it must be the same for all", place=call.place)
    if not styles_by_axis:
        return
    writer.write(' "data_parallel": {', calls[0][1].place)
    for axis, (written, place) in styles_by_axis.items():
        writer.write(f"  {json.dumps(axis)}: {json.dumps(written if len(written) > 1 else written['style'])},", place)
    writer.close(" },")
    if batch:
        writer.write(f' "batch": {json.dumps(batch)},', calls[0][1].place)


def _get_data_styles(call: DataCall) -> list[str]:
    """The styles of the mesh's dimensions. fully_shard on two dimensions is HSDP: replicas of what the second one shards."""
    return ["fsdp"] if call.style == "fsdp" and len(call.mesh.axes) == 1 else (
        ["ddp", "fsdp"] if call.style == "fsdp" else ["ddp"] * len(call.mesh.axes))


def check_data_mesh(mesh: DeviceMesh, style: str, place: Place) -> None:
    """:raises MeshError: the style can't have so many dimensions."""
    if mesh.ndim > (2 if style == "fsdp" else 1) or len(mesh.axes) != mesh.ndim:
        raise MeshError(f"{style} is over one dimension of a mesh, or over two with fully_shard (HSDP); found {mesh!r}", place=place)


def translate_mapping(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of the compiler, whose names have dashes, from Python's names."""
    return {name.replace("_", "-"): value for name, value in options.items()}
