# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans that are found instead of written (docs/AutoPlan.md)."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from typing import Any

import torch

from . import styles
from .capture import capture
from .errors import CompileError, InputError, PlanError
from .mesh import read_mesh
from .module import read_examples
from .plan import AutoPlan, DataCall, Entry, TensorCall
from .source import CallSite, EntryPlace, Place
from .units import read_bytes

# What the value of a pass's option may consist of.
_VALUE = re.compile(r"[\w./:+-]+")


def auto_plan(module: torch.nn.Module, device_mesh: Any = None, *, example_inputs: Any, memory_limit: str | int | None = None,
              machine: str = "cpu", train: Mapping[str, Any] | None = None, alternatives: int = 5) -> AutoPlan:
    """The fastest plan of those that are tried, by predicted time, whose ranks have enough memory. The module isn't changed, and
    may be on the meta device.

        plan = tp.auto_plan(model, {"tp": 2}, example_inputs=(ids,), memory_limit="80GB")
        print(plan)
        tp.parallelize_module(model, plan.mesh, plan)

    :param device_mesh: a mesh, each of whose dimensions may split the batch or parameters; or a number of ranks, for which
        meshes of up to two dimensions, dp and tp, are tried. By default the mesh of the innermost `with mesh:`.
    :param example_inputs: the arguments of a call: a tuple, a dictionary of keywords, or one tensor.
    :param memory_limit: the bytes that a rank may need, as a number or with a unit: "80GB", "512MiB". By default what a device
        of the machine has.
    :param machine: a preset, or the path of a description (docs/Prediction.md).
    :param train: a training file (docs/Training.md) as a dictionary, as in {"loss": "cross_entropy", "optimizer": {"name":
        "AdamW", "lr": 1e-3}}: plans are compared by their training steps.
    :param alternatives: how many other plans are kept.
    :raises PlanError: no plan fits into the memory, or none can be compiled.
    :raises MeshError: the mesh can't be used.
    :raises CaptureError: torch.export can't capture the module.
    :raises InputError: the memory limit or the machine is wrong."""
    place = CallSite().place
    if isinstance(example_inputs, list):
        raise InputError("a plan is for the inputs of one call: example_inputs is a tuple, a dictionary or a tensor")
    options: dict[str, Any] = {"machine": machine, "file": "plan", "report": "report", "alternatives": alternatives}
    if isinstance(device_mesh, int) and not isinstance(device_mesh, bool):
        options["ranks"] = device_mesh
    else:
        mesh = read_mesh(device_mesh)
        if mesh.axes != tuple(name for name, _ in mesh.layout.axes) or mesh.layout.ranks != tuple(range(len(mesh.layout.ranks))):
            raise PlanError("a plan is found for a whole mesh, whose ranks are in order", place=place)
        options["mesh"] = ",".join(f"{name}={size}" for name, size in mesh.layout.axes)
    if memory_limit is not None:
        options["memory-limit"] = read_bytes(memory_limit)
    if train is not None:
        options["train"] = "train"
    if not _VALUE.fullmatch(machine):
        raise InputError(f"a machine is the name of a preset, or a path without spaces; found {machine!r}")
    (args, kwargs), = read_examples(example_inputs)
    program = capture(module, args, kwargs, is_step=train is not None, needs_values=False).program
    text = " ".join(f"{name}={value}" for name, value in options.items())
    try:
        outputs = program.clone().run_pipeline(f"builtin.module(tp-auto-plan{{{text}}})", files={} if train is None else {"train": json.dumps(train)},
                                               outputs=["plan", "report"])
    except CompileError as error:
        messages = [diagnostic.message for diagnostic in error.diagnostics if diagnostic.severity == "error"]
        raise PlanError("; ".join(messages) or str(error), place=place, diagnostics=error.diagnostics) from None
    report = json.loads(outputs["report"])
    return dataclasses.replace(_read(report, place), text=outputs["plan"],
                               alternatives=tuple(_read(other, place) for other in report["alternatives"]))


def _read(report: Mapping[str, Any], place: Place) -> AutoPlan:
    """The plan that a member of tp-auto-plan's report describes."""
    axes = report["axes"]
    mesh = read_mesh({axis["name"]: axis["size"] for axis in axes})
    calls: list[TensorCall | DataCall] = [DataCall(mesh[axis["name"]], axis["role"], None, {}, place, is_found=True)
                                          for axis in axes if axis["role"] != "tensor"]
    if tensor := tuple(axis["name"] for axis in axes if axis["role"] == "tensor"):
        entries = [Entry(entry["pattern"], entry["placements"] if "placements" in entry else
                         styles.Style(entry["style"], entry["arguments"]), EntryPlace(place)) for entry in report["entries"]]
        calls.append(TensorCall(mesh[tensor], entries, "fnmatch", None, False, place, is_found=True))
    return AutoPlan(report["plan"], mesh, tuple(calls), report["seconds"], report["memory_bytes"], report["bytes_received"],
                    report["collectives"], {key: report[key] for key in ("checkpoint", "keep") if report[key]})
