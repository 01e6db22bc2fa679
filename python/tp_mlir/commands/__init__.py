# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tp-mlir run model.pt2 --ranks 2 …`: from a model to a result in one command (docs/CommandLine.md).

Each command makes the steps that it needs by the tools (steps.py).
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pathlib
import sys
from collections.abc import Callable

from .. import tools
from .._native import InputError
from ..files import write_file
from .build import Build, UsageError, add_options, join, list_inputs, read_path
from .children import start
from .steps import Failure


@dataclasses.dataclass(frozen=True)
class Command:
    """A command. `execute` gets the arguments that no option takes, and returns the exit code."""

    description: str
    execute: Callable[[Build, argparse.Namespace, list[str]], int]
    add_options: Callable[[argparse.ArgumentParser], None] = lambda _: None
    passes_on: str | None = None
    """What the tool is whose options the command has, too, and which."""
    unused: tuple[str, ...] = ()
    """Options of all commands that have no meaning for this one."""


def _run(build: Build, options: argparse.Namespace, rest: list[str]) -> int:
    weights = build.weights
    with build.lock():
        artifact = build.compile()
    if weights:
        rest = ["--weights", str(weights), *rest]
    if build.machine_file and "--profile" in rest:  # an option of tp-run, too
        rest = ["--machine", str(build.machine_file), *rest]
    return tools.run("tp-run", [str(artifact), *rest])


def _train(build: Build, options: argparse.Namespace, rest: list[str]) -> int:
    if not options.training:
        raise UsageError("--training FILE is needed, which names the loss and the optimizer (docs/Training.md)")
    if not any(argument == "--steps" or argument.startswith("--steps=") for argument in rest):
        raise UsageError("--steps N is needed")
    return _run(build, options, rest)


def _plan(build: Build, options: argparse.Namespace, rest: list[str]) -> int:
    with build.lock():
        text = build.find_plan().read_text(encoding="utf-8", errors="surrogateescape")
    if options.output and str(options.output) != "-":
        write_file(options.output, text)
    else:
        sys.stdout.write(text)
    return 0


def _report(build: Build, options: argparse.Namespace, rest: list[str]) -> int:
    from ..report import Explanation, Report
    if options.trace and not options.html:
        raise UsageError("--trace is shown on the page, which --html FILE writes")
    if options.compare and not (options.html and options.machine):
        raise UsageError("--compare is shown on the page, by predicted costs: --html FILE and --machine NAME are needed")
    if options.compare and options.option:
        raise UsageError("--compare predicts plans without further options of tp-parallelize; leave --option out")
    with build.lock():
        build.shard()
        text = build.get_path("report.json").read_text(encoding="utf-8", errors="surrogateescape")
        explained = build.explain().read_text(encoding="utf-8", errors="surrogateescape") if options.html and build.is_explained else None
        compared = {"alternatives": build.find_alternatives(), "scaling": build.scale()} if options.compare else {}
    report = Report.parse(text)
    if options.html:
        try:
            page = report.html(Explanation("", json.loads(explained)) if explained else None, options.trace, **compared)
        except InputError as error:
            if options.trace:  # the other inputs are the command's own
                raise InputError(f"'{options.trace}': {error}") from error
            raise
        write_file(options.html, page)
    print(text.rstrip() if options.json else report)
    return 0


def _explain(build: Build, options: argparse.Namespace, rest: list[str]) -> int:
    with build.lock():
        plan, model = build.find_plan(), build.import_model()
    values: dict[str, object] = {"plan": plan, "format": "json" if options.json else "text"}
    if options.value:
        values["value"] = options.value
    command = [*tools.get_command("tp-opt"), str(model), f"--tp-explain={join(values)}", "-o", "/dev/null"]
    with start(command) as process:
        code = process.wait()
    return code if code >= 0 else 128 - code


def _compile(build: Build, options: argparse.Namespace, rest: list[str]) -> int:
    with build.lock():
        artifact = build.compile()
    print(artifact)
    return 0


def _add_target(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the code")
    group.add_argument("--target-cpu", metavar="NAME,…", help="the CPUs to compile for; by default this one")
    group.add_argument("--target", metavar="TARGET", help="a device to compile for, as in cuda:sm_90")


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def _add_report(parser: argparse.ArgumentParser) -> None:
    _add_json(parser)
    parser.add_argument("--html", type=read_path, metavar="FILE", help="also write the report as a page for a web browser (docs/Report.md)")
    parser.add_argument("--trace", type=read_path, metavar="FILE",
                        help="show on the page what the ranks did in a run, by what the command run wrote with --trace; with --machine, "
                        "beside what is predicted")
    parser.add_argument("--compare", action="store_true",
                        help="show on the page other plans for as many ranks, and what the plan costs on other numbers of ranks, as predicted for "
                        "--machine")


def _add_explain(parser: argparse.ArgumentParser) -> None:
    _add_json(parser)
    parser.add_argument("--value", metavar="NAME", help="explain only the module, parameter, argument or op of this name")


def _add_plan(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", type=read_path, metavar="FILE", help="write the plan here; it is printed by default")


COMMANDS = {
    "run": Command("runs a model on several ranks", _run, _add_target, "tp-run: --input ids=ids.npy --output y.npy"),
    "train": Command("trains a model on several ranks", _train, _add_target, "tp-run: --steps 100 --data x=x.npy"),
    "plan": Command("finds the fastest plan that fits into the memory", _plan, _add_plan,
                    unused=("plan", "option")),
    "report": Command("lists what the ranks exchange, and why", _report, _add_report),
    "explain": Command("says why values are split as they are, and what would communicate less", _explain, _add_explain,
                       unused=("training", "option")),
    "compile": Command("makes the artifact, which tp-run runs", _compile, _add_target),
}


def run(name: str, arguments: list[str]) -> int:
    """Executes a command. Returns its exit code: a tool's, 1 for an input that is wrong, or 2 for wrong usage."""
    command = COMMANDS[name]
    usage = f"tp-mlir {name} MODEL [OPTION…]" + (f" [OPTION of {command.passes_on.split(':')[0]}…]" if command.passes_on else "")
    parser = argparse.ArgumentParser(
        f"tp-mlir {name}", usage, f"{command.description[0].upper()}{command.description[1:]}. MODEL is a program of torch.export (.pt2), of "
        "TorchScript (.pt), or MLIR.", allow_abbrev=False,
        epilog=f"Further options are those of {command.passes_on}" if command.passes_on else None)
    add_options(parser, command.unused)
    command.add_options(parser)
    if not arguments or arguments[0] in ("-h", "--help"):
        print(parser.format_help(), end="")
        return 0 if arguments else 2
    model, *others = arguments
    if model.startswith("-"):
        parser.error(f"the model comes first; found '{model}'" + (f". A file of this name is './{model}'" if os.path.exists(model) else ""))
    options, rest = parser.parse_known_args(others)
    if rest and not command.passes_on:
        parser.error(f"unknown option '{rest[0]}'")
    try:
        for unused in command.unused:
            if getattr(options, unused):
                raise UsageError(f"--{unused} has no meaning for this command")
        return command.execute(Build(read_path(model), options, list_inputs(rest)), options, rest)
    except UsageError as error:
        parser.error(str(error))
    except (InputError, OSError) as error:
        print(f"tp-mlir {name}: error: {error}", file=sys.stderr)
        return 1
    except Failure as error:
        return error.code
    except KeyboardInterrupt:
        return 130
