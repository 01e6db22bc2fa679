# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a model to its per-rank program, as a command's options say."""

from __future__ import annotations

import argparse
import os
import pathlib
from collections.abc import Sequence

from ..cpu import describe_cpu
from ..units import read_bytes
from .steps import Steps

# NumPy's names of the types that inputs may have, and those of the compiler.
_TYPES = {"float32": "f32", "float64": "f64", "float16": "f16", "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8",
          "uint8": "ui8", "bool": "i1"}


class UsageError(Exception):
    """The options don't fit together."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that all commands have."""
    model = parser.add_argument_group("the model")
    model.add_argument("--shape", action="append", default=[], metavar="NAME=SHAPE",
                       help="the shape of an input, as in ids=2x64xi64, where neither the model nor a file of --input says it")
    model.add_argument("--signature", type=pathlib.Path, metavar="FILE", help="the arguments of modules, which tp_trace.py writes")
    model.add_argument("--weights", type=pathlib.Path, metavar="PATH",
                       help="weights in place of the model's: a safetensors file, the index of several, or a folder of Hugging Face")
    plan = parser.add_argument_group("the plan")
    which = plan.add_mutually_exclusive_group()
    which.add_argument("--plan", type=pathlib.Path, metavar="FILE", help="a plan (docs/Plans.md)")
    which.add_argument("--ranks", type=int, metavar="N", help="find the fastest plan for this number of ranks")
    which.add_argument("--mesh", metavar="NAME=SIZE,…", help="find the fastest plan for this mesh, as in dp=2,tp=4")
    plan.add_argument("--machine", metavar="NAME", help="predict the time on this machine: a preset, or the file of a description "
                      "(docs/Prediction.md); a plan that is found is the fastest one there (default: cpu)")
    plan.add_argument("--memory-limit", metavar="BYTES", help="the memory of a rank, for a plan that is found: 80GB, 512MiB")
    plan.add_argument("--training", type=pathlib.Path, metavar="FILE",
                      help="the program is a training step with this loss and optimizer (docs/Training.md)")
    plan.add_argument("--option", action="append", default=[], metavar="NAME[=VALUE]",
                      help="a further option of tp-parallelize (docs/Passes.md), as in sequence-parallel")
    files = parser.add_argument_group("files and messages")
    files.add_argument("--directory", type=pathlib.Path, metavar="DIR",
                       help="where the files of all steps stay, which aren't made again unless something changes (default: MODEL's name with "
                       "the extension .tp, in the current directory)")
    files.add_argument("-q", "--quiet", action="store_true", help="print results and errors only")


def quote(value: object) -> str:
    """The value of a pass's option.

    :raises UsageError: it can't be one."""
    text = str(value)
    if any(character in text for character in "\"'{}\n"):
        raise UsageError(f"quotes, braces and line breaks can't be passed to a pass: {text}")
    return f'"{text}"' if " " in text or "," in text else text


def join(options: dict[str, object]) -> str:
    """A pass's options."""
    return " ".join(f"{name}={quote(value)}" for name, value in options.items())


class Build:
    """The steps of one command. Each runs those before it, and returns the path of its result."""

    def __init__(self, model: pathlib.Path, options: argparse.Namespace, inputs: Sequence[str]) -> None:
        """`inputs`: NAME=PATH of .npy files, which have the shapes of inputs."""
        self.model = model
        self._options = options
        self._inputs = inputs
        self._check_plan()
        if not model.exists():
            raise UsageError(f"there is no model '{model}'")
        if model.is_dir():
            raise UsageError(f"'{model}' is a folder: it has weights, but no program. Export the model with torch.export "
                             "(docs/Importing.md), and give the folder as --weights")
        self._steps = Steps(options.directory or pathlib.Path(f"{model.stem}.tp"), is_quiet=options.quiet)
        self.lock = self._steps.lock

    def _check_plan(self) -> None:
        options = self._options
        if options.plan:
            if options.memory_limit:
                raise UsageError("--memory-limit is for a plan that is found; --plan gives one")
        elif options.ranks is None and not options.mesh:
            raise UsageError("a plan is needed: --plan FILE, or --ranks N to find one")
        elif getattr(options, "target", None) and not options.machine:
            raise UsageError("a plan that is found is for a machine: with --target, name it, as in --machine h100-nvlink")

    def get_path(self, name: str) -> pathlib.Path:
        return self._steps.folder / name

    @property
    def weights(self) -> pathlib.Path | None:
        """What tp-run gets as weights, if the model has any."""
        given: pathlib.Path | None = self._options.weights
        return given or (None if self._is_imported else self.get_path("model.safetensors"))

    @property
    def _is_imported(self) -> bool:
        return self.model.suffix in (".mlir", ".mlirbc")

    def import_model(self) -> pathlib.Path:
        """The model as MLIR."""
        if self._is_imported:
            return self.model
        target, weights, options = self.get_path("model.mlir"), self.get_path("model.safetensors"), self._options
        arguments = [str(self.model), "-o", str(target)]
        writes, reads = [target], [self.model]
        if not options.weights:
            arguments += ["--weights", str(weights)]
            writes.append(weights)
        if options.signature:
            arguments += ["--signature", str(options.signature)]
            reads.append(options.signature)
        for shape in self._list_shapes():
            arguments += ["--input", shape]
        self._steps.run("import", "tp-import", arguments, reads=reads, writes=writes, what=str(self.model))
        return target

    def _list_shapes(self) -> list[str]:
        shapes = {shape.partition("=")[0]: shape for shape in self._options.shape}
        # A program of torch.export has shapes of its own.
        for given in self._inputs if self.model.suffix != ".pt2" else ():
            name, _, path = given.partition("=")
            if path and name not in shapes and (shape := _read_shape(pathlib.Path(path))):
                shapes[name] = f"{name}={shape}"
        return self._steps.keep("shapes", list(shapes.values()), self.model)

    def find_plan(self) -> pathlib.Path:
        """The plan that is given, or else the fastest one."""
        options = self._options
        if options.plan:
            plan: pathlib.Path = options.plan
            return plan
        target = self.get_path("plan.yaml")
        values: dict[str, object] = {"mesh": options.mesh} if options.mesh else {"ranks": options.ranks}
        values |= {"machine": options.machine or "cpu", "file": target}
        reads = [model := self.import_model(), *filter(None, [self.machine_file])]
        if options.memory_limit:
            values["memory-limit"] = read_bytes(options.memory_limit)
        if options.training:
            values["train"] = options.training
            reads.append(options.training)
        self._steps.run("plan", "tp-opt", [str(model), f"--tp-auto-plan={join(values)}", "-o", "/dev/null"], reads=reads, writes=[target],
                         what=f"the fastest plan for {values['machine']}")
        return target

    @property
    def machine_file(self) -> pathlib.Path | None:
        """The description of the machine, unless it is a preset."""
        machine = self._options.machine
        return pathlib.Path(machine) if machine and os.path.isfile(machine) else None

    def shard(self) -> pathlib.Path:
        """The program of each rank."""
        plan, target, report, options = self.find_plan(), self.get_path("ranks.mlir"), self.get_path("report.json"), self._options
        values: dict[str, object] = {"plan": plan, "report": report}
        reads = [model := self.import_model(), plan, *filter(None, [self.machine_file])]
        if options.training:
            values["train"] = options.training
            reads.append(options.training)
        if options.machine:
            values["machine"] = options.machine
        text = " ".join([join(values), *options.option])
        self._steps.run("shard", "tp-opt", [str(model), f"--tp-parallelize={text}", "-o", str(target)], reads=reads, writes=[target, report],
                         what=f"by {plan}")
        return target

    @property
    def is_explained(self) -> bool:
        """Whether tp-explain explains the program that `shard` makes: it knows neither training nor options of tp-parallelize."""
        return not self._options.training and not self._options.option

    def explain(self) -> pathlib.Path:
        """What tp-explain says about the program, JSON."""
        plan, model, target = self.find_plan(), self.import_model(), self.get_path("explanation.json")
        values = {"plan": plan, "format": "json", "file": target}
        self._steps.run("explain", "tp-opt", [str(model), f"--tp-explain={join(values)}", "-o", "/dev/null"], reads=[model, plan],
                         writes=[target], what="the collectives, and edits that remove them", has_same_warnings=True)
        return target

    def compile(self) -> pathlib.Path:
        """The artifact."""
        ranks, target, options = self.shard(), self.get_path("model.tpx"), self._options
        arguments = [str(ranks), "-o", str(target)]
        if options.target_cpu:
            arguments.append(f"--target-cpu={options.target_cpu}")
        if options.target:
            arguments.append(f"--target={options.target}")
        # Without an option, the code is for the CPU of this machine.
        self._steps.run("compile", "tp-compile", arguments, reads=[ranks], writes=[target], what=f"to {target}",
                         depends_on=[] if options.target_cpu else describe_cpu())
        return target


def _read_shape(path: pathlib.Path) -> str | None:
    """The shape and the type of an array, as in 2x64xi64."""
    try:
        import numpy
        array = numpy.load(path, mmap_mode="r")
    except (ImportError, OSError, ValueError, EOFError):
        return None  # tp-run says what is wrong with the file
    if not isinstance(array, numpy.ndarray):
        return None
    kind = _TYPES.get(array.dtype.name)
    return kind and "x".join([*map(str, array.shape), kind])


def list_inputs(arguments: Sequence[str]) -> list[str]:
    """The values of --input among options of tp-run."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--input", action="extend", nargs="*", default=[])
    inputs: list[str] = parser.parse_known_args(arguments)[0].input
    return inputs
