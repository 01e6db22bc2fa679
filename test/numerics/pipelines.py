"""The repository's own pipelines: what makes per-rank programs of a model in its examples, tests and benchmarks.

Each is a model, the passes, and the training file, if the programs are a training step. Nothing is compiled or run. The
cases are those of the scripts that do, so that a case that is added there is one here. Tests of a pass on per-rank
programs aren't among them: they have no model.
"""

import dataclasses
import importlib.util
import itertools
import json
import os
import pathlib
import random
import re
import shlex
import subprocess
import sys
import warnings

import torch

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path += [str(ROOT / "examples"), str(ROOT / "benchmarks"), str(ROOT / "tools/tp-import")]

import fsdp_memory
import loss_parallel
import plans
import programs
import redistributions
import sharded
import sums
import tp_trace
import transformer
import upstream
from execution import get_tool

# Options of tp-parallelize that trade one cost of collectives for another.
OPTIONS = ["", "one-shot=false", "one-shot=false memory=true", "sequence-parallel", "bucket-bytes=100000",
           "sequence-parallel bucket-bytes=100000", "overlap", "overlap chunks=2", "overlap chunks=3",
           "sequence-parallel overlap chunks=2", "memory-limit=100000", "strategy=greedy", "latency-bytes=0"]


@dataclasses.dataclass
class Pipeline:
    name: str
    model: pathlib.Path
    # Of tp-opt.
    passes: list
    train: pathlib.Path = None
    # Passes that the reference goes through as well.
    before: list = dataclasses.field(default_factory=list)


def load(name, path):
    """The script at `path`: another one may have its name."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def get_name(text):
    return re.sub(r"[^A-Za-z0-9_.=-]+", "_", text).strip("_")


class Source:
    """Makes pipelines of one kind in a folder of its own."""

    def __init__(self, tools, folder):
        self.tools, self.folder = tools, folder

    def run(self, name, *command):
        command = [get_tool(self.tools, name), *map(str, command)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        if done.returncode:
            raise RuntimeError(f"{name} failed with {done.returncode}: {done.stderr.strip()[:2000]}")

    def write(self, name, text):
        path = self.folder / get_name(name)
        path.write_text(text)
        return path

    def import_model(self, name, module, inputs, script=False):
        """`inputs` are named tensors."""
        archive, model = self.folder / f"{get_name(name)}.pt", self.folder / f"{get_name(name)}.mlir"
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            options = []
            if script:
                torch.jit.script(module).save(archive)
            else:
                tp_trace.save(module, tuple(inputs.values()), archive)
                options = ["--signature", archive.with_suffix(".signature.json")]
        for key, value in inputs.items():
            element = {torch.int64: "i64", torch.float32: "f32", torch.bool: "i1"}[value.dtype]
            options += ["--input", f"{key}={'x'.join([*map(str, value.shape), element])}"]
        self.run("tp-import", archive, *options, "-o", model)
        return model

    def parallelize(self, name, model, plan=None, train=None, options=""):
        """`plan` and `train` are texts, or files."""
        words = [options]
        if plan is not None:
            plan = plan if isinstance(plan, pathlib.Path) else self.write(f"{name}.plan.yaml", plan)
            words.append(f"plan={plan}")
        if train is not None:
            train = train if isinstance(train, pathlib.Path) else self.write(f"{name}.train.yaml", train)
            words.append(f"train={train}")
        return Pipeline(name, model, [f"--tp-parallelize={' '.join(filter(None, words))}"], train)


#===----------------------------------------------------------------------===#
# Examples and benchmarks
#===----------------------------------------------------------------------===#

def get_examples(source):
    """The models of examples/check.py over all its numbers of ranks; and what the training examples compile."""
    import check
    import tp_tools

    for name, case in check.CASES.items():
        model = source.import_model(name, case.build(), case.inputs(), case.script)
        path = ROOT / "examples" / case.plan
        for ranks in check.RANKS:
            yield source.parallelize(f"{name}, {ranks} ranks", model, tp_tools.plan_for(path, ranks))
        for options in OPTIONS[1:]:
            yield source.parallelize(f"{name}, 4 ranks, {options}", model, tp_tools.plan_for(path, 4), options=options)
    yield from get_training_examples(source)


def get_training_examples(source):
    import tp_tools
    from llama import model as llama
    from train_digits import model as digits

    folder = ROOT / "examples/train_digits"
    images = torch.zeros(64, 8, 8)
    train = source.import_model("train_digits", digits.build().train(), {"x": images})
    test = source.import_model("test_digits", digits.build().eval(), {"x": images})
    yield source.parallelize("train_digits, tested", test, folder / "plan.yaml")
    models = [("train_digits", train, folder)]
    folder = ROOT / "examples/train_charlm"
    config = llama.Config(dim=128, n_layers=3, n_heads=8, n_kv_heads=4, hidden_dim=256, vocab_size=120, max_seq_len=128)
    module = llama.build(config)
    ids = lambda batch: {"ids": torch.zeros(batch, 128, dtype=torch.int64)}
    models.append(("train_charlm", source.import_model("train_charlm", module.train(), ids(8), True), folder))
    write = source.import_model("write_charlm", module.eval(), ids(1), True)
    yield source.parallelize("train_charlm, writing", write, tp_tools.plan_for(ROOT / "examples/llama/tp.yaml", 4))
    styles = ("ddp", "fsdp", "{style: fsdp, reshard_after_forward: false}")
    for name, model, folder in models:
        text = (folder / "plan.yaml").read_text()
        for options in OPTIONS:
            yield source.parallelize(f"{name}, {options or 'as it is'}", model, text, folder / "train.yaml", options)
        for style in styles:
            plan = re.sub("data_parallel:.*", f"data_parallel: {{dp: {style}}}", text)
            yield source.parallelize(f"{name}, {style}", model, plan, folder / "train.yaml")
        plan = re.sub("data_parallel:.*", "data_parallel: {a: ddp, b: fsdp}", text).replace("dp: 2", "a: 2, b: 2")
        yield source.parallelize(f"{name}, hsdp", model, plan, folder / "train.yaml")
        for more in ("accumulate: 2", "checkpoint: [layers.*]"):
            own = (folder / "train.yaml").read_text() + f"{more}\n"
            yield source.parallelize(f"{name}, {more}", model, text, own)


def get_benchmarks(source):
    import llama_graphs
    import overlap
    import traffic_block
    import training_peers
    import training_step

    for mesh in ((("tp", 4),), (("dp", 2), ("tp", 4)), (("tp", 8),)):
        for sequence in (False, True):
            config = llama_graphs.Config(2, mesh, sequence)
            name = f"llama_graphs, {mesh}{', sequence' * sequence}"
            model = source.write(f"{name}.mlir", llama_graphs.get_module(config))
            for options in OPTIONS:
                yield source.parallelize(f"{name}{options and f', {options}'}", model, options=options)
    module, x = training_peers.build()
    model = source.import_model("training_peers", module, {"x": x})
    yield source.parallelize("training_step", model, training_step.PLAN, training_step.TRAINING)
    for name, (plan, both, overlapping, _) in overlap.PROGRAMS.items():
        for options in (both, f"{both} {overlapping}"):
            yield source.parallelize(f"overlap, {name}, {options}", model, overlap.PLANS[plan], overlap.TRAINING, options)


#===----------------------------------------------------------------------===#
# Tests that compare with PyTorch
#===----------------------------------------------------------------------===#

def get_trainings(source):
    """Of training.py, beside this file."""
    training = load("numeric_training", HERE / "training.py")
    stacks = list(training.get_stacks())
    random.Random(0).shuffle(stacks)
    models = {}
    for case in [*stacks, *training.get_others(), *map(training.get_decoder, range(20))]:
        key = case.name if not case.name.startswith("stack") else case.name.split(",")[0]
        if key not in models:
            example = case.input[: len(case.input) // case.batches]
            models[key] = source.import_model(key, case.model, {"x": example})
        yield source.parallelize(case.name, models[key], case.plan, json.dumps(case.train), case.passes)


def get_conformance(source):
    """Of test/Conformance/training.py."""
    training = load("conformance_training", ROOT / "test/Conformance/training.py")
    torch.manual_seed(0)
    for get_rows in (training.get_styles, training.get_models, training.get_losses, training.get_dropouts):
        for row in get_rows():
            if row.error is not None:
                continue
            model = source.import_model(row.name, row.model, {f"x{i}": x for i, x in enumerate(row.inputs)})
            yield source.parallelize(row.name, model, row.plan, row.train)
            if row.forward is not None:
                yield source.parallelize(f"{row.name}, forward", model, row.plan)


def get_transformers(source):
    torch.manual_seed(0)
    tokens = torch.zeros(8, 8, dtype=torch.int64)
    model = source.import_model("transformer", transformer.Transformer().eval(), {"tokens": tokens})
    for name, plan, _, _ in transformer.CASES:
        for options in OPTIONS:
            yield source.parallelize(f"{name}{options and f', {options}'}", model, plan, options=options)
            yield source.parallelize(f"{name}, training{options and f', {options}'}", model, plan, transformer.TRAIN, options)
        for data in transformer.DATA:
            mesh = f"mesh: {{dp: 2, tp: {transformer.RANKS}}}\ndata_parallel: {{dp: {data}}}"
            own = plan.replace(f"mesh: {{tp: {transformer.RANKS}}}", mesh)
            yield source.parallelize(f"{name}, {data}", model, own, transformer.TRAIN)


def get_losses(source):
    for shape, reduction, weighted, ranks in itertools.product(loss_parallel.SHAPES, ["none", "mean", "sum"],
                                                               [False, True], [2, 4]):
        target = (shape[0], *shape[2:]) if len(shape) > 1 else ()
        name = f"{shape}, {reduction}{', weights' * weighted}, {ranks} ranks"
        model = source.folder / f"{get_name(name)}.mlir"
        result = target if reduction == "none" else ()
        loss_parallel.write_module(model, shape, target, result, reduction, weighted, ranks)
        yield source.parallelize(name, model)


def get_plans(source):
    for name, (file, *_), _, plan, _ in plans.CASES:
        yield source.parallelize(name, plans.MODELS / file, plan)


def get_fsdp(source):
    for ranks, reshard, overlap in itertools.product((4, 8), ("true", "false"), ("", "overlap")):
        model = source.write(f"model {ranks}.mlir", fsdp_memory.make_model(4, ranks))
        plan = f"mesh: {{dp: {ranks}}}\ndata_parallel: {{dp: {{style: fsdp, reshard_after_forward: {reshard}}}}}\n"
        yield source.parallelize(f"{ranks} ranks, reshard {reshard} {overlap}", model, plan,
                                 "{loss: mse, optimizer: AdamW}\n", overlap)


def get_random(source, count=12):
    """Random programs with random placements, under what sharded.py and proofs.py draw of passes."""
    options = type("Options", (), {"graphs": 12, "cases": 12})
    for number in range(count):
        draw = random.Random(f"share/{number}")
        batch = sharded.draw_batch(options, draw, torch.Generator().manual_seed(draw.getrandbits(60)))
        yield get_batch(source, f"batch {number}", batch.mesh, batch.programs, batch.passes)


def get_batch(source, name, mesh, batch, passes):
    model = source.write(f"{name}.mlir", programs.get_module(mesh, batch))
    return Pipeline(name, model, passes("/dev/null"))


def get_functions(source, name, mesh, batch, passes):
    """Each program a function of its own."""
    header, _, _ = programs.get_module(mesh, batch[:1]).partition("func.func @main")
    functions = [programs.get_module(mesh, [program]).partition("func.func @main")[2] for program in batch]
    text = header + "\n".join(f"func.func @case{i}{body}" for i, body in enumerate(functions))
    return Pipeline(name, source.write(f"{name}.mlir", text), passes)


def get_upstream(source, together=False):
    """Every case of upstream ops over every mesh: each a function, or all in one."""
    for number, sizes in enumerate(upstream.MESHES):
        mesh = programs.Mesh(sizes)
        placer = programs.Placer(mesh, random.Random(f"share/{number}"))
        batch = [upstream.get_program(case, f"c{i}", placer) for i, case in enumerate(upstream.CASES)]
        name = f"upstream ops over {sizes}"
        if together:
            yield get_batch(source, name, mesh, batch, lambda report: ["--tp-parallelize"])
            continue
        yield get_functions(source, name, mesh, batch, ["--tp-parallelize"])


def get_sums(source):
    """Every form of a sum of Partial and whole values, which take one reduction, over every mesh."""
    for axes, is_split in itertools.product(sums.MESHES, (False, True)):
        draw, generator = random.Random(f"share/{axes}"), torch.Generator().manual_seed(1)
        batch = [sums.write(f"s{i}", tree, is_split, varies, draw, generator)
                 for i, (tree, varies) in enumerate(sums.get_forms())]
        name = f"sums over {axes}{', split' * is_split}"
        yield get_functions(source, name, programs.Mesh(axes), batch, ["--tp-parallelize"])


def get_redistributions(source, count=4):
    for number in range(count):
        draw = random.Random(f"share/{number}")
        mesh = redistributions.draw_mesh(draw)
        drawer = redistributions.Drawer(mesh, draw, torch.Generator().manual_seed(number))
        batch = [drawer.draw(f"r{i}") for i in range(40)]
        for options in ("", "one-shot=false", "memory=true"):
            yield get_batch(source, f"random {number} {options}", mesh, batch,
                            lambda report, options=options: [f"--tp-parallelize={options}"])
    rows = load("conformance_redistribute", ROOT / "test/Conformance/redistribute.py")
    for sizes in dict.fromkeys(row[0] for row in rows.ROWS):
        mesh = programs.Mesh(tuple(zip(rows.NAMES, sizes)))
        own = [row for row in rows.ROWS if row[0] == sizes]
        batch = [rows.get_any_program(f"r{i}", mesh, *row[1:4]) for i, row in enumerate(own)]
        yield get_batch(source, f"of PyTorch's tests, {sizes}", mesh, batch, lambda report: ["--tp-parallelize"])


#===----------------------------------------------------------------------===#
# Lines of lit tests
#===----------------------------------------------------------------------===#

PARALLELIZING = re.compile(r"--?tp-(parallelize|partition)\b")
# What places values; what comes before makes another model.
PLACING = re.compile(r"--?tp-(parallelize|partition|propagate|apply-plan)\b")


# Commands that make what the others read.
SETUP = ("split-file", "rm", "mkdir", "cp", "sed", "echo", "cat", "printf")


def get_lines(path):
    """The RUN lines of a test, without those that have to fail; DEFINE lines are replaced."""
    lines, defined = [], {}
    for line in path.read_text().splitlines():
        match = re.search(r"(RUN|DEFINE):(.*)", line)
        if not match:
            continue
        kind, text = match.group(1), match.group(2).strip()
        if kind == "DEFINE":
            name, _, value = text.partition("=")
            defined[name.strip()] = value.strip()
        elif lines and lines[-1].endswith("\\"):
            lines[-1] = lines[-1][:-1] + text
        else:
            lines.append(text)
    for _ in range(3):
        for name, value in defined.items():
            lines = [line.replace(name, value) for line in lines]
    return [line for line in lines if not line.startswith("not ")]


# Between commands, not within quotes.
AND = re.compile(r""" && (?=(?:[^'"]|'[^']*'|"(?:\\.|[^"\\])*")*$)""")


def get_lit(source):
    """What tests make with tp-opt and check with FileCheck."""
    for path in sorted([*ROOT.glob("test/**/*.mlir"), *ROOT.glob("test/**/*.test")]):
        lines = get_lines(path)
        if not any(PARALLELIZING.search(line) for line in lines):
            continue
        name = str(path.relative_to(ROOT / "test"))
        folder = source.folder / get_name(name)
        folder.mkdir(exist_ok=True)
        replaced = {"%s": path, "%S": path.parent, "%t": folder / "t", "%T": folder, "%python": sys.executable,
                    "%examples": ROOT / "examples"}
        at = folder
        for number, line in enumerate(lines):
            for key in sorted(replaced, key=len, reverse=True):
                line = re.sub(rf"{key}\b", lambda _: str(replaced[key]), line)
            for command in AND.split(line):
                words = list(itertools.takewhile(lambda word: word != "|", shlex.split(command)))
                if words[0] == "cd":
                    at = at / words[1]
                elif not at.is_dir():  # commands that aren't followed make it
                    continue
                elif words[0] in SETUP:
                    subprocess.run(command.split("| FileCheck")[0], shell=True, cwd=at, check=False, capture_output=True,
                                   env=os.environ | {"PATH": f"/usr/lib/llvm-22/bin:{os.environ['PATH']}"})
                elif words[0] == "tp-opt" and PARALLELIZING.search(command):
                    yield from get_line(source, f"{name}:{number + 1}", words[1:], at, folder)


def get_line(source, name, words, at, folder):
    passes, model, skip = [], None, False
    for word in words:
        if skip or word == "-o":
            skip = not skip
        elif word.startswith("-"):
            passes.append(word)
        elif not re.search(r"[<>]", word):
            model = at / word
    own = ("split-input-file", "verify-diagnostics", "mlir-print", "tp-report", "tp-print")
    splits = any("split-input-file" in word for word in passes)
    passes = [word for word in passes if word.lstrip("-").split("=")[0].split("-op")[0] not in own
              and not any(part in word.split("=")[0] for part in own)]
    passes = [re.sub(r"\b(plan|train)=(\S+)", lambda m: f"{m[1]}={at / m[2]}", re.sub(r"\breport=\S+", "", word))
              for word in passes]
    if model is None or not model.exists():
        return
    train = next((pathlib.Path(m[1]) for word in passes if (m := re.search(r"\btrain=(\S+)", word))), None)
    first = next(i for i, word in enumerate(passes) if PLACING.match(word))
    texts = model.read_text().split("// -----") if splits else [None]
    for i, text in enumerate(texts):
        file = model if text is None else folder / f"{get_name(name)}.{i}.mlir"
        if text is not None:
            file.write_text(text)
        yield Pipeline(name + (f".{i}" if splits else ""), file, passes[first:], train, passes[:first])


FAMILIES = {
    "examples": get_examples,
    "benchmarks": get_benchmarks,
    "trainings": get_trainings,
    "PyTorch's tests of training": get_conformance,
    "PyTorch's tests' transformer": get_transformers,
    "split losses": get_losses,
    "memory of FSDP": get_fsdp,
    "plans": get_plans,
    "random programs": get_random,
    "upstream ops": get_upstream,
    "upstream ops together": lambda source: get_upstream(source, together=True),
    "sums": get_sums,
    "redistributions": get_redistributions,
    "lit tests": get_lit,
}
