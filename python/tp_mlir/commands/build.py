# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a model to its per-rank program, as a command's options say."""

from __future__ import annotations

import argparse
import functools
import json
import os
import pathlib
import re
import zipfile
from collections.abc import Collection, Sequence
from typing import Any

from ..cpu import describe_cpu
from ..units import read_bytes
from .steps import Steps, is_any

# NumPy's names of the types that inputs may have, and those of the compiler.
_TYPES = {"float32": "f32", "float64": "f64", "float16": "f16", "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8",
          "uint8": "ui8", "bool": "i1"}
_MAX_RANKS = 4096  # tp-auto-plan's
_ALTERNATIVES = "alternatives.json"  # of plans for the same ranks
# What the commands have in place of options of tp-parallelize.
_OWN_OPTIONS = {
    "plan": "--plan gives it",
    "train": "--training gives it",
    "machine": "--machine gives it",
    "report": "the command report prints it, with --json all of it",
    "html": "the option --html of the command report writes it",
    "explanation": "the option --html of the command report takes it",
    "trace": "the option --trace of the command report takes it",
    "alternatives": "the option --compare of the command report makes them",
    "scaling": "the option --compare of the command report makes it",
}


class UsageError(Exception):
    """The options don't fit together."""


def read_path(text: str) -> pathlib.Path:
    """A path, which no tool takes for an option."""
    path = pathlib.Path(text)
    return path.absolute() if str(path).startswith("-") and text != "-" else path


def read_ranks(text: str) -> int:
    """:raises argparse.ArgumentTypeError: it isn't a number of ranks that a plan can be found for."""
    if not re.fullmatch("[0-9]{1,9}", text) or not 1 <= int(text) <= _MAX_RANKS:
        raise argparse.ArgumentTypeError(f"a number from 1 to {_MAX_RANKS} is expected; found '{text}'")
    return int(text)


def add_options(parser: argparse.ArgumentParser, unused: Collection[str] = ()) -> None:
    """The options of all commands. Those of the names `unused` aren't listed."""
    def add(group: Any, *names: str, help: str, **how: Any) -> None:
        group.add_argument(*names, help=argparse.SUPPRESS if names[-1].removeprefix("--") in unused else help, **how)

    model = parser.add_argument_group("the model")
    add(model, "--shape", action="append", default=[], metavar="NAME=SHAPE",
        help="the shape of an input, as in ids=2x64xi64, where neither the model nor a file of --input says it")
    add(model, "--signature", type=read_path, metavar="FILE", help="the arguments of modules, which tp_trace.py writes")
    add(model, "--weights", type=read_path, metavar="PATH",
        help="weights in place of the model's: a safetensors file, the index of several, or a folder of Hugging Face")
    plan = parser.add_argument_group("the plan")
    which = plan.add_mutually_exclusive_group(required="plan" in unused)
    add(which, "--plan", type=read_path, metavar="FILE", help="a plan (docs/Plans.md)")
    add(which, "--ranks", type=read_ranks, metavar="N", help="find the fastest plan for this number of ranks")
    add(which, "--mesh", metavar="NAME=SIZE,…", help="find the fastest plan for this mesh, as in dp=2,tp=4")
    add(plan, "--machine", metavar="NAME", help="predict the time on this machine: a preset, or the file of a description "
        "(docs/Prediction.md); a plan that is found is the fastest one there (default: cpu)")
    add(plan, "--memory-limit", metavar="BYTES", help="the memory of a rank, for a plan that is found: 80GB, 512MiB")
    add(plan, "--training", type=read_path, metavar="FILE",
        help="the program is a training step with this loss and optimizer (docs/Training.md)")
    add(plan, "--option", action="append", default=[], metavar="NAME[=VALUE]",
        help="a further option of tp-parallelize (docs/Passes.md), as in sequence-parallel")
    files = parser.add_argument_group("files and messages")
    add(files, "--directory", type=read_path, metavar="DIR",
        help="where the files of all steps stay, which aren't made again unless something changes (default: MODEL's name with "
        "the extension .tp, in the current directory)")
    add(files, "-q", "--quiet", action="store_true", help="print results and errors only")


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


def _read_options(given: Sequence[str]) -> dict[str, object]:
    """Options of tp-parallelize.

    :raises UsageError: one isn't NAME or NAME=VALUE, or the commands have another option for it."""
    options: dict[str, object] = {}
    for option in given:
        name, equals, value = option.partition("=")
        if not re.fullmatch(r"[\w-]+", name):
            raise UsageError(f"--option is NAME or NAME=VALUE, once for each option of tp-parallelize; found '{option}'")
        if name in _OWN_OPTIONS:
            raise UsageError(f"--option can't set '{name}': {_OWN_OPTIONS[name]}")
        options[name] = value if equals else "true"
    return options


class Build:
    """The steps of one command. Each runs those before it, and returns the path of its result."""

    def __init__(self, model: pathlib.Path, options: argparse.Namespace, inputs: Sequence[str]) -> None:
        """`inputs`: NAME=PATH of .npy files, which have the shapes of inputs."""
        self.model = model
        self._options = options
        self._inputs = inputs
        self._options_of_shard = _read_options(options.option)
        self._check_plan()
        if not model.exists():
            raise UsageError(f"there is no model '{model}'")
        if model.is_dir():
            raise UsageError(f"'{model}' is a folder: it has weights, but no program. Export the model with torch.export "
                             "(docs/Importing.md), and give the folder as --weights")
        self._check_outputs()
        self._steps = Steps(options.directory or read_path(f"{model.stem}.tp"), is_quiet=options.quiet)
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

    def _check_outputs(self) -> None:
        options = self._options
        inputs = [path for path in (self.model, options.plan, options.weights, options.training, options.signature, self.machine_file,
                                    getattr(options, "trace", None)) if path]
        for name in ("output", "html"):
            path = getattr(options, name, None)
            if path and is_any(path, inputs):
                raise UsageError(f"--{name} '{path}' is an input of this command, which it would overwrite")

    def get_path(self, name: str) -> pathlib.Path:
        return self._steps.folder / name

    @property
    def weights(self) -> pathlib.Path | None:
        """What tp-run gets as weights, if the model has any.

        :raises UsageError: the model has parameters without values."""
        given: pathlib.Path | None = self._options.weights
        if not given and self._is_meta:
            raise UsageError(f"the weights of '{self.model}' have no values, because the model was built on the meta device; give them with "
                             "--weights")
        return given or (None if self._is_imported else self.get_path("model.safetensors"))

    @property
    def _is_imported(self) -> bool:
        return self.model.suffix in (".mlir", ".mlirbc")

    @functools.cached_property
    def _is_meta(self) -> bool:
        """Whether the model was built on the meta device. A program of torch.export lists its weights in a file of its archive."""
        try:
            with zipfile.ZipFile(self.model) as archive:
                names = [name for name in archive.namelist() if name.endswith("/data/weights/model_weights_config.json")]
                weights = json.loads(archive.read(names[0]))["config"].values() if names else ()
                return any(weight["tensor_meta"]["device"]["type"] == "meta" for weight in weights)
        except Exception:  # tp-import says what is wrong with the file
            return False

    def import_model(self) -> pathlib.Path:
        """The model as MLIR."""
        if self._is_imported:
            return self.model
        target, weights, options = self.get_path("model.mlir"), self.get_path("model.safetensors"), self._options
        arguments = [str(self.model), "-o", str(target)]
        writes, reads = [target], [self.model]
        if not options.weights and not self._is_meta:
            arguments += ["--weights", str(weights)]
            writes.append(weights)
        if options.signature:
            arguments += ["--signature", str(options.signature)]
            reads.append(options.signature)
        # A program of torch.export has shapes of its own.
        found = {} if self.model.suffix == ".pt2" else self._found_shapes
        given = {shape.partition("=")[0]: shape for shape in options.shape}
        shapes = list((found | given).values()) or self._recall_shapes()
        for shape in shapes:
            arguments += ["--input", shape]
        self._steps.run("import", "tp-import", arguments, reads=reads, writes=writes, what=str(self.model), renamed={"--input": "--shape"})
        self._steps.remember("shapes", shapes, self.model)
        return target

    @functools.cached_property
    def _found_shapes(self) -> dict[str, str]:
        """The shapes of the files of inputs, as in ids=2x64xi64."""
        shapes = {}
        for given in self._inputs:
            name, equals, path = given.partition("=")
            if not equals:
                name, path = "input", given  # the only one
            if shape := _read_shape(pathlib.Path(path)):
                shapes[name] = f"{name}={shape}"
        return shapes

    def _recall_shapes(self) -> list[str]:
        """The shapes that an earlier command was given for the model."""
        shapes = self._steps.recall("shapes", self.model)
        for shape in shapes:
            found = self._found_shapes.get(shape.partition("=")[0], shape)
            if found != shape:
                self._steps.say(f"note: the shape {shape} is that of an earlier command; --shape {found} is that of the file")
        return shapes

    def find_plan(self) -> pathlib.Path:
        """The plan that is given, or else the fastest one."""
        options = self._options
        if options.plan:
            plan: pathlib.Path = options.plan
            return plan
        target = self.get_path("plan.yaml")
        values: dict[str, object] = {"mesh": options.mesh} if options.mesh else {"ranks": options.ranks}
        values |= {"machine": options.machine or "cpu", "file": target, "report": self.get_path(_ALTERNATIVES)}
        reads = [model := self.import_model(), *filter(None, [self.machine_file])]
        if options.memory_limit:
            values["memory-limit"] = read_bytes(options.memory_limit)
        if options.training:
            values["train"] = options.training
            reads.append(options.training)
        self._steps.run("plan", "tp-opt", [str(model), f"--tp-auto-plan={join(values)}", "-o", "/dev/null"], reads=reads,
                         writes=[target, self.get_path(_ALTERNATIVES)], what=f"the fastest plan for {values['machine']}")
        return target

    @property
    def machine_file(self) -> pathlib.Path | None:
        """The description of the machine, unless it is a preset."""
        machine = self._options.machine
        return pathlib.Path(machine) if machine and os.path.isfile(machine) else None

    def shard(self) -> pathlib.Path:
        """The program of each rank."""
        plan, target, report, options = self.find_plan(), self.get_path("ranks.mlir"), self.get_path("report.json"), self._options
        values: dict[str, object] = {**self._options_of_shard, "plan": plan, "report": report}
        reads = [model := self.import_model(), plan, *filter(None, [self.machine_file])]
        if options.training:
            values["train"] = options.training
            reads.append(options.training)
        if options.machine:
            values["machine"] = options.machine
        self._steps.run("shard", "tp-opt", [str(model), f"--tp-parallelize={join(values)}", "-o", str(target)], reads=reads, writes=[target, report],
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

    def find_alternatives(self) -> pathlib.Path:
        """What tp-auto-plan says about plans for as many ranks, JSON."""
        options, target = self._options, self.get_path(_ALTERNATIVES)
        if not options.plan:
            self.find_plan()
            return target
        model, others, report = self.import_model(), self.get_path("others.yaml"), self.shard().with_name("report.json")
        ranks = json.loads(report.read_text(encoding="utf-8", errors="surrogateescape"))["mesh"]["ranks"]
        self._compare("search", "tp-auto-plan", {"ranks": ranks, "file": others}, [model], [others, target], f"other plans for {ranks} ranks")
        return target

    def scale(self) -> pathlib.Path:
        """What tp-scale-plan says about other numbers of ranks, JSON."""
        plan, model, target = self.find_plan(), self.import_model(), self.get_path("scaling.json")
        self._compare("scale", "tp-scale-plan", {"plan": plan}, [model, plan], [target], "the plan on other numbers of ranks")
        return target

    def _compare(self, step: str, name: str, values: dict[str, object], reads: list[pathlib.Path], writes: list[pathlib.Path],
                 what: str) -> None:
        """Runs the pass `name`, whose report is the last one of `writes`."""
        options = self._options
        values = {**values, "machine": options.machine, "report": writes[-1]}
        reads = [*reads, *filter(None, [self.machine_file])]
        if options.training:
            values["train"] = options.training
            reads.append(options.training)
        self._steps.run(step, "tp-opt", [str(reads[0]), f"--{name}={join(values)}", "-o", "/dev/null"], reads=reads, writes=writes, what=what)

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
    except Exception:  # tp-run says what is wrong with the file
        return None
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
