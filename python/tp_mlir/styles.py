# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The styles of torch.distributed.tensor.parallel, without torch.distributed, and how a plan has them.

The classes have PyTorch's names, arguments and attributes. `read` therefore reads an object of PyTorch by the attributes of
the class of the same name here. A subclass of a style has code of its own for one rank's tensors, so it is an error.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from .errors import PlanError
from .placements import Placement, Replicate, Shard, is_from, is_placement, spell

Layouts = Placement | tuple[Placement | None, ...] | None


@dataclasses.dataclass
class Style:
    """A style as a plan has it: its name and its arguments, in the form of JSON."""

    name: str
    arguments: dict[str, Any] = dataclasses.field(default_factory=dict)


def _as_tuple(layouts: Any) -> Any:
    return (layouts,) if is_placement(layouts) else layouts


def _spell_layouts(layouts: Any) -> Any:
    """One layout as a text, several as a list."""
    if layouts is None or is_placement(layouts):
        return layouts and spell(layouts)
    if not isinstance(layouts, (tuple, list)):
        raise PlanError(f"layouts are a placement or a tuple of placements and None; found {layouts!r}")
    return [None if layout is None else _spell_layouts(layout) for layout in layouts]


def _spell_mapping(layouts: Any) -> dict[str, Any]:
    if not isinstance(layouts, Mapping):
        raise PlanError(f"the layouts of keyword arguments map names to placements; found {layouts!r}")
    return {name: _spell_layouts(layout) for name, layout in layouts.items()}


def _check_same(first: Any, second: Any, first_name: str, second_name: str) -> None:
    if (first is None) != (second is None) or (first is not None and len(first) != len(second)):
        raise PlanError(f"'{first_name}' and '{second_name}' must have the same length; found {first!r} and {second!r}")


class ParallelStyle:
    """How a module is split. The styles below are the only ones."""

    def get_arguments(self) -> dict[str, Any]:
        """The arguments for a plan."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"


class _LinearStyle(ParallelStyle):
    _default_input: Placement
    _default_output: Placement

    def __init__(self, *, input_layouts: Placement | None = None, output_layouts: Placement | None = None,
                 use_local_output: bool = True) -> None:
        self.input_layouts = (input_layouts or self._default_input,)
        self.output_layouts = (output_layouts or self._default_output,)
        self.use_local_output = use_local_output

    def get_arguments(self) -> dict[str, Any]:
        (input,), (output,) = self.input_layouts, self.output_layouts
        return {"input_layouts": spell(input), "output_layouts": spell(output), "use_local_output": self.use_local_output}


class ColwiseParallel(_LinearStyle):
    """Splits the output features of an nn.Linear, or the embedding dimension of an nn.Embedding."""

    _default_input, _default_output = Replicate(), Shard(-1)


class RowwiseParallel(_LinearStyle):
    """Splits the input features of an nn.Linear, or the vocabulary of an nn.Embedding."""

    _default_input, _default_output = Shard(-1), Replicate()


class SequenceParallel(ParallelStyle):
    """Splits the input and the output of a module along the sequence; its parameters are whole."""

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None:
        self.sequence_sharding = (Shard(sequence_dim),)
        self.use_local_output = use_local_output

    def get_arguments(self) -> dict[str, Any]:
        (sharding,) = self.sequence_sharding
        return {"sequence_dim": sharding.dim, "use_local_output": self.use_local_output}


def _get_input_layouts(style: Any) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    if style.input_layouts is not None:
        arguments["input_layouts"] = _spell_layouts(style.input_layouts)
        arguments["desired_input_layouts"] = _spell_layouts(style.desired_input_layouts)
    if style.input_kwarg_layouts:
        arguments["input_kwarg_layouts"] = _spell_mapping(style.input_kwarg_layouts)
        arguments["desired_input_kwarg_layouts"] = _spell_mapping(style.desired_input_kwarg_layouts)
    return arguments


class PrepareModuleInput(ParallelStyle):
    """Changes the layouts of a module's inputs."""

    def __init__(self, *, input_layouts: Layouts = None, desired_input_layouts: Layouts = None,
                 input_kwarg_layouts: dict[str, Placement] | None = None,
                 desired_input_kwarg_layouts: dict[str, Placement] | None = None, use_local_output: bool = False) -> None:
        self.input_layouts = _as_tuple(input_layouts)
        self.desired_input_layouts = _as_tuple(desired_input_layouts)
        self.input_kwarg_layouts = input_kwarg_layouts or {}
        self.desired_input_kwarg_layouts = desired_input_kwarg_layouts or {}
        self.use_local_output = use_local_output
        _check_same(self.input_layouts, self.desired_input_layouts, "input_layouts", "desired_input_layouts")
        _check_same(self.input_kwarg_layouts, self.desired_input_kwarg_layouts, "input_kwarg_layouts",
                    "desired_input_kwarg_layouts")

    def get_arguments(self) -> dict[str, Any]:
        arguments = _get_input_layouts(self)
        if not arguments:
            # A plan without layouts means PyTorch 2.1's style, which has some.
            raise PlanError("PrepareModuleInput has no layouts, so it changes nothing; remove the entry")
        return arguments | {"use_local_output": self.use_local_output}


class PrepareModuleOutput(ParallelStyle):
    """Changes the layouts of a module's outputs."""

    def __init__(self, *, output_layouts: Layouts, desired_output_layouts: Layouts, use_local_output: bool = True) -> None:
        self.output_layouts = _as_tuple(output_layouts)
        self.desired_output_layouts = _as_tuple(desired_output_layouts)
        self.use_local_output = use_local_output
        _check_same(self.output_layouts, self.desired_output_layouts, "output_layouts", "desired_output_layouts")

    def get_arguments(self) -> dict[str, Any]:
        return {"output_layouts": _spell_layouts(self.output_layouts),
                "desired_output_layouts": _spell_layouts(self.desired_output_layouts),
                "use_local_output": self.use_local_output}


class PrepareModuleInputOutput(ParallelStyle):
    """PrepareModuleInput and PrepareModuleOutput in one."""

    def __init__(self, *, input_layouts: Layouts = None, desired_input_layouts: Layouts = None,
                 input_kwarg_layouts: dict[str, Placement] | None = None,
                 desired_input_kwarg_layouts: dict[str, Placement] | None = None, use_local_input: bool = False,
                 output_layouts: Layouts, desired_output_layouts: Layouts, use_local_output: bool = True) -> None:
        self.prepare_module_input = PrepareModuleInput(
            input_layouts=input_layouts, desired_input_layouts=desired_input_layouts,
            input_kwarg_layouts=input_kwarg_layouts, desired_input_kwarg_layouts=desired_input_kwarg_layouts,
            use_local_output=use_local_input)
        self.prepare_module_output = PrepareModuleOutput(
            output_layouts=output_layouts, desired_output_layouts=desired_output_layouts, use_local_output=use_local_output)

    def get_arguments(self) -> dict[str, Any]:
        # The parts may be PyTorch's.
        return {**_get_input_layouts(self.prepare_module_input),
                "use_local_input": self.prepare_module_input.use_local_output,
                **PrepareModuleOutput.get_arguments(self.prepare_module_output)}


STYLES = {style.__name__: style for style in (ColwiseParallel, RowwiseParallel, SequenceParallel, PrepareModuleInput,
                                              PrepareModuleOutput, PrepareModuleInputOutput)}


def is_style(value: Any) -> bool:
    """Whether `value` is one entry's value rather than a map of entries."""
    return not isinstance(value, Mapping) or isinstance(value.get("style"), str)


def read(value: Any) -> Style | list[str]:
    """What a plan has for `value`: a style, or the placements of a parameter.

    Beside objects, `value` may be what a plan file has: a style's name, or a map with the key 'style'.

    :raises PlanError: it is none of these."""
    if isinstance(value, str):
        return Style(value)
    if isinstance(value, Mapping):
        if not isinstance(value.get("style"), str):
            raise PlanError("an entry's map needs the key 'style', the name of a style")
        return Style(value["style"], {name: _read_argument(argument) for name, argument in value.items() if name != "style"})
    if is_placement(value):
        return [spell(value)]
    if isinstance(value, (list, tuple)):
        return [item if isinstance(item, str) else spell(item) for item in value]
    name = type(value).__name__
    style = STYLES.get(name)
    if style is not None and is_from(value, "torch.distributed.tensor.parallel", "tp_mlir.styles"):
        return Style(name, style.get_arguments(value))
    bases = [base.__name__ for base in type(value).__mro__[1:] if base.__name__ in STYLES]
    if any(base.__name__ == "ParallelStyle" for base in type(value).__mro__):
        raise PlanError(f"'{type(value).__module__}.{name}' is a style with Python code for the tensors of one rank, which can't "
                        f"be compiled; use {bases[0] if bases else ', '.join(STYLES)}"
                        + ("" if bases else ", or a style's name in a text, such as 'replicate'"))
    raise PlanError(f"a style is expected, such as ColwiseParallel(); found {value!r}")


def _read_argument(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _read_argument(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_read_argument(item) for item in value]
    return spell(value) if is_placement(value) else value
