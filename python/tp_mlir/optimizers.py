# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch's optimizers, schedules and losses, as a training file has them (docs/Training.md), and an optimizer's state."""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Collection, Mapping
from typing import Any

import torch

from .errors import UnsupportedError

# The state of an optimizer, by PyTorch's names; the programs have the same after "optimizer.".
STATE = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq", "momentum_buffer")
# By optimizer, the options that it shares with a training file. Those that only choose an implementation are left out.
_OPTIONS = {"SGD": ("momentum", "dampening", "nesterov", "maximize"), "Adam": ("betas", "eps", "amsgrad", "maximize"),
            "AdamW": ("betas", "eps", "amsgrad", "maximize")}
_IMPLEMENTATION = {"foreach", "fused", "capturable", "params", "param_names", "lr", "initial_lr", "weight_decay",
                   "decoupled_weight_decay", "differentiable"}


def read_optimizer(optimizer: torch.optim.Optimizer, names: Mapping[int, str], *, is_scheduled: bool) -> dict[str, Any]:
    """The key `optimizer` of a training file.

    :param names: the FQNs of the program's parameters, by the identity of the tensors.
    :raises UnsupportedError: the optimizer, or a difference between its parameter groups, can't be compiled."""
    name = type(optimizer).__name__
    if name not in _OPTIONS or type(optimizer).__module__.split(".")[:2] != ["torch", "optim"]:
        raise UnsupportedError(f"the optimizer must be torch.optim's SGD, Adam or AdamW; found {type(optimizer).__module__}.{name}")
    groups = optimizer.param_groups
    for group in groups:
        for key, value in group.items():
            if key not in _IMPLEMENTATION and key not in _OPTIONS[name] or key == "differentiable" and value:
                raise UnsupportedError(f"{name} with {key}={value!r} can't be compiled")
    read: dict[str, Any] = {"name": "AdamW" if groups[0].get("decoupled_weight_decay") else name,
                            "lr": _get_common(groups, "lr", name, is_scheduled)}
    for key in _OPTIONS[name]:
        value = _get_common(groups, key, name, is_scheduled)
        read[key] = list(map(float, value)) if key == "betas" else value
    decays = {float(group["weight_decay"]) for group in groups}
    if len(decays - {0.0}) > 1:
        raise UnsupportedError(f"{name} has parameter groups with weight_decay {sorted(decays)}; one that isn't 0 is possible")
    read["weight_decay"] = max(decays)
    if read["weight_decay"]:
        if no_decay := [names[id(parameter)] for group in groups if not group["weight_decay"] for parameter in group["params"]
                        if id(parameter) in names]:
            read["no_decay"] = no_decay
    return read


def get_hyperparameters(optimizer: torch.optim.Optimizer, *, is_scheduled: bool) -> list[Any]:
    """All that a program has of an optimizer beside its state and what schedules change: options and parameters of each group."""
    return [[{key: value for key, value in group.items()
              if key not in ("params", "lr") or key == "lr" and is_scheduled and "initial_lr" not in group},
             [(id(parameter), parameter.requires_grad) for parameter in group["params"]]] for group in optimizer.param_groups]


def get_learning_rates(optimizer: torch.optim.Optimizer) -> list[float]:
    return [float(group["lr"]) for group in optimizer.param_groups]


def _get_common(groups: Collection[Mapping[str, Any]], key: str, name: str, is_scheduled: bool) -> Any:
    values = [group.get("initial_lr", group["lr"]) if key == "lr" and is_scheduled else group[key] for group in groups]
    values = [float(value) if isinstance(value, torch.Tensor) else value for value in values]
    if any(value != values[0] for value in values):
        raise UnsupportedError(f"{name} has parameter groups with {key} {values}; all groups must have the same")
    return values[0]


def find_frozen(module: torch.nn.Module, optimizer: torch.optim.Optimizer, names: Collection[str]) -> list[str]:
    """The parameters of a program that the optimizer doesn't have."""
    trained = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    return [name for name, parameter in module.named_parameters(remove_duplicate=False)
            if name in names and parameter.requires_grad and id(parameter) not in trained]


def read_schedule(schedule: Any) -> Any:
    """The key `schedule`: what a training file has, or a scheduler of PyTorch or of transformers.

    :raises UnsupportedError: the scheduler can't be compiled."""
    if schedule is None or isinstance(schedule, (str, Mapping)):
        return schedule
    name = type(schedule).__name__
    if type(schedule) is torch.optim.lr_scheduler.CosineAnnealingLR:
        return {"name": "cosine", "total_steps": schedule.T_max, "min_lr": float(schedule.eta_min)}
    if type(schedule) is torch.optim.lr_scheduler.LambdaLR:
        functions = [function for function in schedule.lr_lambdas if isinstance(function, functools.partial)]
        if len(functions) == len(schedule.lr_lambdas):
            if any((function.func, function.args, function.keywords) != (functions[0].func, functions[0].args, functions[0].keywords)
                   for function in functions):
                raise UnsupportedError("the schedule LambdaLR has different functions for the optimizer's parameter groups, which can't be "
                                       "compiled; give all groups the same one")
            name, values = functions[0].func.__name__, functions[0].keywords
            if name == "_get_constant_schedule_with_warmup_lr_lambda":
                return {"name": "constant", "warmup_steps": values["num_warmup_steps"]}
            if name == "_get_cosine_schedule_with_warmup_lr_lambda" and values["num_cycles"] == 0.5:
                return {"name": "cosine", "warmup_steps": values["num_warmup_steps"], "total_steps": values["num_training_steps"]}
        name = "LambdaLR with a function of its own"
    raise UnsupportedError(f"the schedule {name} can't be compiled; use CosineAnnealingLR, transformers' "
                           "get_constant_schedule_with_warmup or get_cosine_schedule_with_warmup, or a map such as "
                           "{'name': 'cosine', 'warmup_steps': 20, 'total_steps': 200}")


def count_steps(optimizer: torch.optim.Optimizer, schedule: Any) -> int:
    """The steps that an optimizer has done before the first one of a program.

    :raises UnsupportedError: its scheduler has done others."""
    steps = max((int(values["step"]) for values in optimizer.state.values() if "step" in values), default=None)
    done: int | None = getattr(schedule, "last_epoch", None)
    if done is None:
        return steps or 0
    if steps is not None and steps != done or steps is None and done and type(optimizer).__name__ != "SGD":
        raise UnsupportedError(f"the scheduler has done {done} steps, and the optimizer {steps or 0}: a program counts both as one; "
                               "load the state of both, or make the scheduler with last_epoch")
    return done


def get_last_step(schedule: Any) -> int | None:
    """The last step at which a program has the learning rate of PyTorch's scheduler."""
    # After T_max steps PyTorch's rises again, and that of a program stays.
    return schedule.T_max if isinstance(schedule, torch.optim.lr_scheduler.CosineAnnealingLR) else None


def read_loss(loss: Any) -> dict[str, Any]:
    """The key `loss`: a name, a map, or a loss of torch.nn.

    :raises UnsupportedError: the loss can't be compiled."""
    functional = torch.nn.functional
    if isinstance(loss, str):
        return {"name": {"mse_loss": "mse"}.get(loss, loss)}
    if isinstance(loss, Mapping):
        return dict(loss)
    if loss is functional.mse_loss:
        return {"name": "mse"}
    if loss is functional.cross_entropy:
        return {"name": "cross_entropy", "class_dim": 1}
    reduction = getattr(loss, "reduction", None)
    if type(loss) in (torch.nn.MSELoss, torch.nn.CrossEntropyLoss) and reduction in ("mean", "sum"):
        if type(loss) is torch.nn.MSELoss:
            return {"name": "mse", "reduction": reduction}
        read = {"name": "cross_entropy", "class_dim": 1, "reduction": reduction, "ignore_index": loss.ignore_index,
                "label_smoothing": loss.label_smoothing}
        return read if loss.weight is None else read | {"weight": loss.weight.tolist()}
    raise UnsupportedError(f"the loss must be 'cross_entropy', 'mse', or 'output' for a model that returns its loss; or torch.nn's "
                           f"CrossEntropyLoss or MSELoss with the reduction 'mean' or 'sum'; found {loss!r}")


def read_state(optimizer: torch.optim.Optimizer, names: Mapping[int, str]) -> dict[str, torch.Tensor]:
    """The optimizer's state, by the names of a program; empty before its first step.

    :raises UnsupportedError: parameters have done different numbers of steps."""
    state: dict[str, torch.Tensor] = {}
    steps = set()
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]
                  if id(parameter) in names and parameter.requires_grad]
    for parameter in parameters:
        values = optimizer.state.get(parameter, {})
        if not values and type(optimizer).__name__ != "SGD":
            steps.add(0)
        if "step" in values:  # SGD has none
            steps.add(int(values["step"]))
        state |= {f"optimizer.{key}.{names[id(parameter)]}": values[key] for key in STATE if values.get(key) is not None}
    if len(steps) > 1:
        raise UnsupportedError(f"the optimizer's parameters have done different numbers of steps: {sorted(steps)}; all must have done the same")
    return state | {"optimizer.step": torch.tensor(steps.pop())} if steps else state


def write_state(optimizer: torch.optim.Optimizer, names: Mapping[int, str], state: Mapping[str, torch.Tensor]) -> None:
    """Gives the optimizer a program's state, in PyTorch's form."""
    step = state["optimizer.step"].to(torch.float32)
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            name = names.get(id(parameter))
            values = {key: state[f"optimizer.{key}.{name}"] for key in STATE if f"optimizer.{key}.{name}" in state}
            if values and step:
                optimizer.state[parameter] = values if "momentum_buffer" in values else {"step": step.clone(), **values}


def replace_parameters(optimizer: torch.optim.Optimizer, made: Mapping[int, torch.nn.Parameter], *, state: Mapping[Any, Any] | None) -> bool:
    """Gives the optimizer new parameters, by the identities of those that they replace; returns whether it had one of these.

    :param state: what becomes of its state; by default, it is that of the new parameters."""
    if not any(id(parameter) in made for group in optimizer.param_groups for parameter in group["params"]):
        return False
    if state is None:
        state = {made.get(id(key), key): values for key, values in optimizer.state.items()}
    optimizer.state = collections.defaultdict(dict, state)
    for group in optimizer.param_groups:
        group["params"] = [made.get(id(parameter), parameter) for parameter in group["params"]]
    return True


class SharedState(collections.defaultdict[Any, Any]):
    """The `state` of an optimizer while programs have it: `show` brings it here before anyone looks at it."""

    def __init__(self, show: Callable[[], None], values: Mapping[Any, Any]) -> None:
        super().__init__(dict, values)
        self.show = show

    def __reduce__(self) -> Any:  # a copy has the values of now
        self.show()
        return collections.defaultdict, (dict, dict(super().items()))


def _show_before(name: str) -> Callable[..., Any]:
    method = getattr(collections.defaultdict, name)

    @functools.wraps(method)
    def access(self: SharedState, *args: Any, **kwargs: Any) -> Any:
        self.show()
        return method(self, *args, **kwargs)

    return access


for _name in ("__contains__", "__delitem__", "__eq__", "__getitem__", "__ior__", "__iter__", "__len__", "__or__", "__repr__", "__ror__",
              "__setitem__", "clear", "copy", "get", "items", "keys", "pop", "popitem", "setdefault", "update", "values"):
    setattr(SharedState, _name, _show_before(_name))
