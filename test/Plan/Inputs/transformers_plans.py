"""Applies the plans of all models of transformers, and compares the placements: transformers_plans.py <dir>

A model is made on the meta device, with its configuration's defaults. transformers itself splits its parameters over two
ranks. tp-opt gets the modules and parameters of the same model, without what they compute, and the same plan.
"""

import importlib
import inspect
import json
import os
import pkgutil
import subprocess
import sys
import warnings
from pathlib import Path

os.environ["TRANSFORMERS_VERBOSITY"] = "error"
warnings.simplefilter("ignore")

import torch
import torch.distributed as dist
import transformers.models
from torch.distributed.tensor import Replicate
from torch.testing._internal.distributed.fake_pg import FakeStore
from transformers import PreTrainedModel
from transformers.distributed.expert_parallel import apply_expert_parallelism
from transformers.distributed.parallel_utils import replace_layer_number_by_wildcard as generalize
from transformers.distributed.tensor_parallel import apply_tensor_parallelism

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "numerics"))
from sampling import take

RANKS = 2
DIRECTORY = Path(sys.argv[1])


def find_configurations():
    """The configuration classes that have a plan, each with the module of its models."""
    for package in pkgutil.iter_modules(transformers.models.__path__):
        if not package.ispkg:
            continue
        folder = f"transformers.models.{package.name}"
        for file in pkgutil.iter_modules(importlib.import_module(folder).__path__):
            if not file.name.startswith("configuration_"):
                continue
            module = importlib.import_module(f"{folder}.{file.name}")
            for value in vars(module).values():
                if inspect.isclass(value) and value.__module__ == module.__name__ and getattr(value, "base_model_tp_plan", None):
                    yield value, f"{folder}.{file.name.replace('configuration_', 'modeling_')}"


def untie(model):
    """Gives each module parameters of its own, as they are until the weights are loaded."""
    seen = set()
    for module in model.modules():
        for name, value in list(module.named_parameters(recurse=False)):
            if id(value) in seen:
                module.register_parameter(name, torch.nn.Parameter(value.detach().clone()))
            seen.add(id(value))
    return model


def make_model(configuration, models):
    """A model of the configuration, one with a head and its plan if possible; None if its defaults make none."""
    try:
        models = vars(importlib.import_module(models)).values()
    except ModuleNotFoundError:  # its models are another configuration's
        return None
    classes = [value for value in models if inspect.isclass(value) and issubclass(value, PreTrainedModel)
               and value.config_class is configuration and not value.__name__.endswith("PreTrainedModel")]
    for value in sorted(classes, key=lambda value: not value._tp_plan):
        try:
            with torch.device("meta"):
                return untie(value(configuration()))
        except Exception:  # the defaults don't fit together
            pass
    return None


class Outline:
    """The modules and parameters of a model, as IR."""

    def __init__(self):
        self.lines = []

    def add(self, fqn, name, parameters, is_linear=False, is_embedding=False):
        """A call of a module. `parameters`: shapes by FQN; the weight and the bias of a Linear come first."""
        values = {key: f"%p{i}" for i, key in enumerate(parameters)}
        types = {key: f"tensor<{'x'.join(map(str, (*shape, 'f32')))}>" for key, shape in parameters.items()}
        body = [f'{values[key]} = nn.parameter "{key}" : {types[key]}' for key in parameters]
        keys, input_type, output = list(parameters), "tensor<2x4x8xf32>", "%x"
        output_type = input_type
        if is_linear:
            n, k = parameters[keys[0]]
            input_type, output_type, output = f"tensor<2x4x{k}xf32>", f"tensor<2x4x{n}xf32>", "%y"
            body.append(f"%y = nn.linear %x, {values[keys[0]]} : ({input_type}, {types[keys[0]]}) -> {output_type}")
            if len(keys) > 1:
                output = "%z"
                body.append(f"%z = nn.add %y, {values[keys[1]]} : ({output_type}, {types[keys[1]]}) -> {output_type}")
        elif is_embedding:
            input_type, output = "tensor<2x4xi64>", "%y"
            output_type = f"tensor<2x4x{parameters[keys[0]][1]}xf32>"
            body.append(f"%y = nn.embedding %x, {values[keys[0]]} : ({input_type}, {types[keys[0]]}) -> {output_type}")
        i = len(self.lines)
        self.lines.append(f'%i{i} = "test.input"() : () -> {input_type}\n'
                          f'%m{i} = nn.module "{fqn}" class "{name}" (%i{i} as "input" at 0) {{\n^bb0(%x: {input_type}):\n  '
                          + "\n  ".join([*body, f"nn.yield {output} : {output_type}"])
                          + f"\n}} : ({input_type}) -> {output_type}")

    def write(self, path):
        path.write_text("func.func @main() {\n" + "\n".join(self.lines) + "\nreturn\n}\n")


def is_linear(module):
    weight = getattr(module, "weight", None)
    return hasattr(module, "in_features") and weight is not None and weight.dim() == 2


def outline_model(model):
    """The modules of a model; of those that differ only in numbers, the first one."""
    outline, seen = Outline(), set()
    for fqn, module in model.named_modules():
        if isinstance(module, (torch.nn.ModuleList, torch.nn.ModuleDict, torch.nn.ParameterList)):
            continue
        own = sorted(module.named_parameters(recurse=False), key=lambda item: ["weight", "bias", item[0]].index(item[0]))
        parameters = {f"{fqn}.{name}" if fqn else name: tuple(value.shape) for name, value in own}
        signature = (generalize(fqn), type(module), *parameters.values())
        if signature not in seen:
            seen.add(signature)
            outline.add(fqn, type(module).__name__, parameters, is_linear(module),
                        isinstance(module, torch.nn.Embedding))
    return outline


def outline_keys(plan):
    """Modules for the keys of a plan, of a model that can't be made."""
    outline = Outline()
    holders = {key for key in plan if any(other.startswith(key + ".") for other in plan)}
    for key, style in plan.items():
        fqn, (holder, _, name) = key.replace("*", "0"), key.rpartition(".")
        if style == "grouped_gemm" or holder in holders and name in ("gate_up_proj", "down_proj", "sinks"):
            outline.add(fqn + "_holder", "Holder", {fqn: (8,) if name == "sinks" else (4, 8, 8)})
        elif style in ("moe_tp_experts", "local_params", "moe_identity_expert", "ep_dispatch_experts") or key in holders:
            outline.add(fqn, "Module", {})
        elif style.startswith("replicated"):
            outline.add(fqn, "Norm", {fqn + ".weight": (8,)})
        else:
            outline.add(fqn, "Module", {fqn + ".weight": (8, 8)}, not style.startswith("embedding"),
                        style.startswith("embedding"))
    return outline


def apply_plan(name, outline, plan):
    """What tp-opt makes of a plan: its modules and parameters by FQN; or the errors."""
    model, file = DIRECTORY / f"{name}.mlir", DIRECTORY / f"{name}.json"
    outline.write(model)
    file.write_text(json.dumps({"mesh": {"tp": RANKS}, "match": "hf", "plan": plan}, indent=1))
    result = subprocess.run(["tp-opt", model, "--allow-unregistered-dialect", f"--tp-print-plan=plan={file} format=json",
                             "-o", os.devnull], capture_output=True, text=True)
    if result.returncode:
        return result.stderr
    return {module["fqn"]: module for module in json.loads(result.stdout)["modules"]}


def describe(parameter):
    placements = getattr(parameter, "placements", None)
    placement, = placements or [Replicate()]
    if placement.is_replicate():
        return "Replicate"
    text = str(placement)
    if placement.is_shard():
        return f"Shard({placement.dim % parameter.dim()})"
    if hasattr(placement, "split_factor"):
        return f"_StridedShard({placement.dim % parameter.dim()}, split_factor={placement.split_factor})"
    return text


def compare(name, kind, model, plan, apply, mesh):
    outline = outline_model(model)
    modules = apply_plan(f"{name}.{kind}", outline, plan)
    if isinstance(modules, str):
        return [modules]
    expanded = model._expand_parallel_plan(plan)
    try:
        apply(model, expanded)
    except (ValueError, AttributeError) as error:
        print(f"{name}: transformers can't apply its {kind}_plan itself: {error}")
        return []
    parameters = dict(model.named_parameters())
    problems = []
    for fqn, module in modules.items():
        styles = [style["style"] for style in module["styles"]]
        wanted = [expanded[fqn]] if fqn in expanded else []
        if styles != wanted:
            problems.append(f"{fqn}: has {styles}, expected {wanted}")
        for found in module["parameters"]:
            placement = (found["placements"] or ["Replicate"])[0] or "Replicate"
            wanted = describe(parameters[found["fqn"]])
            if placement != wanted:
                problems.append(f"{found['fqn']}: is {placement}, expected {wanted}")
    return problems


def main():
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    dist.init_process_group("fake", rank=0, world_size=RANKS, store=FakeStore())
    mesh = dist.init_device_mesh("cpu", (RANKS,), mesh_dim_names=("tp",))
    count = compared = failed = 0
    for configuration, models in take(find_configurations()):
        name, problems = configuration.__name__, []
        count += 1
        for kind in ("tp", "ep"):
            model = make_model(configuration, models)
            plan = getattr(model or configuration, f"{kind}_plan" if model else f"base_model_{kind}_plan", None)
            if not plan:
                continue
            if not model:
                modules = apply_plan(f"{name}.{kind}", outline_keys(plan), plan)
                problems += [modules] if isinstance(modules, str) else []
                continue
            compared += 1

            def apply(model, expanded):
                if kind == "tp":
                    apply_tensor_parallelism(model, mesh, expanded)
                else:
                    apply_expert_parallelism(model, mesh, mesh, expanded)

            problems += compare(name, kind, model, plan, apply, mesh)
        failed += bool(problems)
        for problem in problems[:4]:
            print(f"{name}: {problem}")
    print(f"{count} configurations, {compared} plans of models compared, {failed} configurations differ")
    sys.exit(1 if failed or not compared else 0)


main()
