# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a captured module and a plan to programs that run."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import re
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from . import _native, processes
from .artifacts import compile_cached
from .capture import Captured
from .errors import CompileError, Error, ExecutionError, InputError
from .plan import FILE, PlanText, translate_mapping
from .report import Explanation, Proof, Report
from .weights import Weights, is_meta, list_names, resolve, to_tensor

if TYPE_CHECKING:
    from .autograd import Backward
    from .derivatives import Derivatives


# What names of values consist of. Other characters would end a pass's option.
_NAME = re.compile(r"[\w.:/#\[\]-]+")
# Findings of lint end with the check's name.
_LINT = re.compile(r" \[[a-z-]+\]$")
_is_negative = torch.Tensor.is_neg
_forks = 0  # how often this process is the child of a fork


def _count_fork() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_count_fork)


class PlanWarning(UserWarning):
    """What the compiler says about a plan that is valid, but may not be what was intended."""


@dataclasses.dataclass
class Sharded:
    """One rank's program, and what it was made from."""

    captured: Captured
    plan: PlanText
    options: dict[str, Any]
    program: _native.Program
    """The program of one rank."""


def shard(captured: Captured, plan: PlanText, options: Mapping[str, Any], *, files: Mapping[str, str | bytes] | None = None,
          quiet: bool = False, is_found: bool = False) -> Sharded:
    """Applies a plan.

    :param options: those of tp-parallelize, by Python's names.
    :param quiet: whether warnings about the plan have been given before.
    :param is_found: whether auto_plan has made the plan: what lint has to say isn't news.
    :raises PlanError: the plan doesn't fit the model.
    :raises CompileError: something else is wrong."""
    all_options = {"plan": FILE, **translate_mapping(options)}
    try:
        program = captured.program.parallelize(all_options, files=plan.files | dict(files or {}))
    except CompileError as error:
        raise plan.convert(error) from None
    for diagnostic in program.diagnostics:
        if diagnostic.severity == "warning" and not quiet and processes.get_rank() == 0:
            if is_found and _LINT.search(diagnostic.message):
                continue
            place = plan.find(diagnostic)
            text = plan.translate(str(diagnostic)).removeprefix(f"{place}: ").removeprefix("warning: ")
            warnings.warn_explicit(text, PlanWarning, place.file, place.line)
    return Sharded(captured, plan, dict(options), program)


class Bundle:
    """Programs of one module that share its weights."""

    def __init__(self, programs: Sequence[Sharded], slots: Mapping[str, tuple[dict[str, Any], str]], *, cpu: str) -> None:
        named = [(f"program{i}", sharded.program) for i, sharded in enumerate(programs)]
        try:
            self.artifact = compile_cached(named, cpu=cpu)
        except CompileError as error:
            raise programs[0].plan.convert(error) from None
        self._slots = slots
        self._weights: Weights | None = None
        self.lock = threading.RLock()
        """Held while the session gets weights, runs, and gives them back."""
        self._forks = _forks
        self.executables = [Executable(self, name, sharded) for (name, _), sharded in zip(named, programs)]
        self.names = list_names(self.artifact, slots)
        """The FQNs of the module's tensors that the programs read."""
        if not any(is_meta(kept[name]) for kept, name in map(slots.__getitem__, self.names)):
            self._weights = self._load()

    @property
    def weights(self) -> Weights:
        """The weights of the session, which is started once the module has values.

        :raises WeightError: a tensor of the module has none."""
        if self._weights is None:
            with self.lock:
                self._weights = self._weights or self._load()
        return self._weights

    def _load(self) -> Weights:
        constants: dict[str, Any] = {}
        for executable in self.executables:
            constants |= executable.captured.program.weights
        return Weights(self.artifact, self.names, self._slots, constants, self.executables[0].sharded.plan.layout)

    def check_process(self) -> None:
        """:raises Error: the ranks are threads of another process."""
        if self._forks != _forks:
            raise Error("this process was forked after the program was loaded, and has none of its ranks, which are threads; start "
                        "processes by 'spawn', or make the module in the new process")


class Executable:
    """A program that is ready to run."""

    def __init__(self, bundle: Bundle, name: str, sharded: Sharded) -> None:
        self.bundle = bundle
        self.name = name
        self.sharded = sharded
        self.backward: dict[tuple[tuple[str, ...], tuple[bool, ...]], Backward] = {}
        """The programs of its gradients, once they are needed, by the parameters that are trained and by which outputs have cotangents."""
        self.derivatives: dict[tuple[tuple[str, ...], tuple[bool, ...]], Derivatives] = {}
        """What autograd differentiates, by the parameters that are trained, and the inputs."""

    @functools.cached_property
    def _run_flat(self) -> Callable[..., tuple[_native.Array, ...]]:
        return self.bundle.weights.session.run_flat

    @property
    def captured(self) -> Captured:
        return self.sharded.captured

    def run(self, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Runs with the module's tensors of now. Inputs and outputs are in the order of the program."""
        weights = self.bundle.weights
        with self.bundle.lock:
            try:
                outputs = self.run_without_update(inputs)
            except KeyboardInterrupt:  # the run is complete
                weights.pull()
                raise
            except ExecutionError:
                weights.forget()
                raise
            weights.pull()
        return outputs

    def run_without_update(self, inputs: Sequence[torch.Tensor], weights: Mapping[str, torch.Tensor] | None = None, *,
                           is_repeated: bool = False, blocks: Sequence[int] = ()) -> list[torch.Tensor]:
        """The same, but what the program updates stays in it. `weights`: those that aren't the module's tensors of now.
        `is_repeated`: the next run begins with the same values as this one, so what this one updates is forgotten. `blocks`: the
        numbers of the outputs of which only the block of this process's rank is wanted."""
        self.bundle.check_process()
        if any(map(_is_negative, inputs)):
            inputs = list(map(resolve, inputs))
        with self.bundle.lock:
            self.bundle.weights.push(weights or {})
            try:
                return list(map(to_tensor, self._run_flat(inputs, self.name, blocks)))
            finally:
                if is_repeated:
                    self.bundle.weights.forget_updated()

    @property
    def report(self) -> Report:
        text, machine = self.sharded.program.report(), self.sharded.options.get("machine")
        if machine:
            pipeline = f"builtin.module(tp-predict-memory,tp-report{{file=report machine={machine}}})"
            text = self.sharded.program.clone().run_pipeline(pipeline, outputs=["report"])["report"]
        return Report.parse(text, self.sharded.plan.translate)

    def explain(self, value: str | None) -> Explanation:
        if value and not _NAME.fullmatch(value):
            raise InputError(f"a value to explain is named as in 'layers.0.wq'; found {value!r}")
        plan, texts = self.sharded.plan, {}
        for format in "text", "json":
            program = self.sharded.captured.program.clone()
            options = f"plan={FILE} format={format} file=explanation" + (f" value={value}" if value else "")
            try:
                outputs = program.run_pipeline(f"builtin.module(tp-explain{{{options}}})", files=plan.files, outputs=["explanation"])
            except CompileError as error:
                raise plan.convert(error) from None
            texts[format] = plan.translate(outputs["explanation"])
        return Explanation(texts["text"], json.loads(texts["json"]))

    def prove(self) -> Proof:
        program = self.sharded.program.clone()
        model = self.sharded.captured.program.bytecode()
        try:
            program.run_pipeline("builtin.module(tp-verify-spmd{reference=model})", files={"model": model})
        except CompileError as error:
            raise self.sharded.plan.convert(error) from None
        return Proof(tuple(diagnostic.message for diagnostic in program.diagnostics if diagnostic.severity == "remark"))
