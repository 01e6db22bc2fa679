# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""train_step: forward pass, loss, backward pass and the optimizer's update as one program (docs/Training.md)."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
import threading
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from . import _native, dtensors, hooks, optimizers
from .capture import Captured, Signature, capture, check_context, check_tensors, get_class_name, key_of
from .contexts import is_loss_parallel
from .errors import CompileError, Error, InputError, PlanError
from .executable import Bundle, Executable, shard
from .module import ParallelModule, parallelize_module, read_examples, restoring
from .optimizers import SharedState
from .plan import PlanText
from .report import Proof, Report
from .source import CallSite, Place
from .snapshot import Snapshot
from .weights import Outdated, collect_tensors, to_tensor

# The name of the training file in the compiler's messages.
_FILE = "train_step"
# The step whose programs have an optimizer's state.
_owners: weakref.WeakKeyDictionary[torch.optim.Optimizer, weakref.ref[TrainStep]] = weakref.WeakKeyDictionary()


@dataclasses.dataclass(frozen=True)
class Step:
    """What a step reports."""

    loss: float
    """Of this batch, before the step's update."""
    lr: float
    grad_norm: float | None
    """Before clipping; only with clip_grad_norm."""


@dataclasses.dataclass
class _TrainingPlan(PlanText):
    """A plan whose messages may also be about the training file."""

    call: Place = dataclasses.field(kw_only=True)

    def translate(self, text: str) -> str:
        return re.sub(rf"\b{_FILE}:\d+:\d+", str(self.call), super().translate(text))


def _make_hook(method: Callable[[], None]) -> Callable[..., None]:
    """A hook that calls a method, and doesn't keep its object."""
    weak = weakref.WeakMethod(method)

    def hook(*_: Any) -> None:
        if (method := weak()) is not None:
            method()

    return hook


class TrainStep:
    """A step of training: `step(*inputs, target=…)` reads a batch, and updates the module and the optimizer's state.

    The state of the optimizer is in the programs. `optimizer.state_dict()` has it, and `optimizer.load_state_dict` sets it."""

    def __init__(self, module: torch.nn.Module, optimizer: torch.optim.Optimizer, settings: dict[str, Any], schedule: Any, place: Place,
                 update_module: bool) -> None:
        self.module = module
        self.optimizer = optimizer
        self._settings = settings
        self._is_scheduled = schedule is not None
        self._last_step = optimizers.get_last_step(schedule)
        self._place = place
        self._update_module = update_module
        self._signature = Signature(module.forward)
        self._executables: dict[Any, tuple[Executable, list[int]]] = {}
        self._active: Executable | None = None
        """The program that ran last."""
        self._loaded: Executable | None = None
        """The program that has the state, unless it is that of another step."""
        self._names: dict[int, str] = {}
        self._outputs: list[str] = []
        self._steps = optimizers.count_steps(optimizer, schedule)
        self._is_behind = False  # whether the module lacks what the last steps have updated
        self._lock = threading.RLock()
        self._rates = optimizers.get_learning_rates(optimizer)
        self._snapshot: Snapshot | None = None
        self._hyperparameters: list[Any] = []
        self._revisions: tuple[int, int] | None = None
        self._is_shown = True  # whether the optimizer has the state, and programs have to read it again
        self._state: SharedState | None = None
        pull, store, reload = (_make_hook(method) for method in (self._pull, self.store, self._reload))
        any_module: Any = module  # PyTorch has no types of these functions
        handles = [optimizer.register_state_dict_pre_hook(store), optimizer.register_load_state_dict_post_hook(reload),
                   any_module.register_state_dict_pre_hook(pull), any_module.register_load_state_dict_pre_hook(pull),
                   module.register_forward_pre_hook(hooks.mark_own(pull))]
        module.__dict__["_tp_mlir"].steps.add(self)
        weakref.finalize(self, lambda: [handle.remove() for handle in handles]).atexit = False

    @property
    def executables(self) -> list[Executable]:
        """Its programs, one for each set of input shapes."""
        return [executable for executable, _ in self._executables.values()]

    @property
    def loaded(self) -> Executable | None:
        """The program that has the state of the optimizer and the newest parameters."""
        return self._loaded

    def replace_parameters(self, made: Mapping[int, torch.nn.Parameter]) -> None:
        """Gives the optimizer new parameters, which the module has already, by the identities of those that they replace. They have
        the values that the programs have."""
        with self._lock:
            others: dict[Any, Any] | None = None
            if self._loaded is not None:
                if self._is_shown or self.optimizer.state is not self._state:
                    self._load(keeps_steps=self._is_scheduled)
                others = {key: values for key, values in dict.items(self.optimizer.state) if id(key) not in self._names}
            self._names = {id(made[old]) if old in made else old: name for old, name in self._names.items()}
            if optimizers.replace_parameters(self.optimizer, made, state=others) and others is not None:
                self._state = self.optimizer.state = SharedState(_make_hook(self.store), others)
            self._hyperparameters = optimizers.get_hyperparameters(self.optimizer, is_scheduled=self._is_scheduled)

    def pull(self) -> None:
        """Gives the module the parameters that the programs have."""
        with self._lock:
            self._pull()

    def __del__(self) -> None:
        """Gives module and optimizer what the programs have."""
        if getattr(self, "_loaded", None) is not None and not sys.is_finalizing():
            self._clear()

    def __call__(self, *args: Any, target: torch.Tensor | None = None, **kwargs: Any) -> Step:
        """Trains with one batch: the arguments of the module, and the loss's target.

        :raises InputError: the arguments don't fit, a learning rate has been changed, or the schedule has ended.
        :raises UnsupportedError: autocast or a transform of torch.func is active, or the module has a hook."""
        check_context()
        with self._lock:
            if optimizers.get_learning_rates(self.optimizer) != self._rates and not self._is_scheduled:
                raise InputError(f"the optimizer's learning rates were {self._rates} when the step was made, and are "
                                 f"{optimizers.get_learning_rates(self.optimizer)} now. They are a part of the program: give schedule= to "
                                 "train_step instead of changing them")
            try:
                outputs = self._run(args, kwargs, target)
            except Outdated:
                self._clear()
                outputs = self._run(args, kwargs, target)
            values = dict(zip(self._outputs, (output.item() for output in outputs)))
            return Step(values["loss"], values["lr"], values.get("grad_norm"))

    def _run(self, args: Sequence[Any], kwargs: Mapping[str, Any], target: torch.Tensor | None) -> list[torch.Tensor]:
        self._look()
        executable, inputs = self._find(args, kwargs, target)
        self._activate(executable)
        if self._is_shown or self.optimizer.state is not self._state:
            self._load(keeps_steps=self._is_scheduled)
        if self._last_step is not None and (steps := self._count_steps()) > self._last_step:
            raise InputError(f"CosineAnnealingLR has ended: {steps} steps are done, and its T_max is {self._last_step}. PyTorch's learning "
                             "rate would rise now, and a program's can't; give train_step a schedule for more steps")
        executable.bundle.weights.push()
        self._is_behind = True  # even if the run is interrupted
        outputs = executable.run_without_update(inputs)
        if self._update_module:
            self._pull()
        return outputs

    def _look(self) -> None:
        """Forgets the programs if the module or the optimizer doesn't fit them any more."""
        hooks.check([("", self.module)], f"{get_class_name(self.module)}, of which a training step is made,")
        hooks.check_optimizer(self.optimizer)
        hyperparameters = optimizers.get_hyperparameters(self.optimizer, is_scheduled=self._is_scheduled)
        self._refresh()
        if self._snapshot is None or self._snapshot.has_changed() or hyperparameters != self._hyperparameters:
            self._clear()
            snapshot = Snapshot(self.module)
            snapshot.check_hooks()
            self._hyperparameters = hyperparameters
            self._signature = Signature(self.module.forward)
            self._snapshot = snapshot

    def _refresh(self) -> None:
        """Does what `ParallelModule.refresh` has asked for."""
        dispatcher = self.module.__dict__["_tp_mlir"]
        before, self._revisions = self._revisions, (dispatcher.program_revision, dispatcher.weight_revision)
        if before is None:
            return
        if before[0] != self._revisions[0]:
            self._clear()
        if before[1] != self._revisions[1] and not self._is_behind:
            for executable, _ in self._executables.values():
                executable.bundle.weights.forget()

    def _clear(self) -> None:
        """Forgets the programs, whose state the module and the optimizer get."""
        if self._loaded is not None:
            self.store()
            self._pull()
        self._executables.clear()
        self._snapshot = self._loaded = None

    def _count_steps(self) -> int:
        """The steps that were done."""
        if self._loaded is not None:
            self._steps = int(to_tensor(self._loaded.bundle.weights.session.get_parameter("optimizer.step")))
        return self._steps

    def _find(self, args: Sequence[Any], kwargs: Mapping[str, Any], target: torch.Tensor | None) -> tuple[Executable, list[torch.Tensor]]:
        needs_target = self._settings["loss"]["name"] != "output"
        if needs_target != (target is not None):
            raise InputError(f"the loss '{self._settings['loss']['name']}' " + ("needs a target: step(…, target=…)" if needs_target
                             else "is an output of the module, and has no target"))
        leaves, spec = self._signature.flatten(args, kwargs)
        key = self._make_key(leaves, spec)
        if key not in self._executables:
            check_tensors(self.module, args, kwargs)
            self._executables[key] = self._compile(args, kwargs)
        executable, indices = self._executables[key]
        return executable, [leaves[i] for i in indices] + ([target] if target is not None else [])

    def _make_key(self, leaves: Sequence[Any], spec: pytree.TreeSpec) -> Any:
        assert self._snapshot is not None
        trained = tuple(name for name, parameter in self.module.named_parameters() if parameter.requires_grad)
        return (spec, is_loss_parallel(), trained, self._snapshot.modes, *map(key_of, leaves))

    def compile(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Compiles for the shapes of these arguments, without running."""
        with self._lock:
            check_context()
            self._look()
            leaves, spec = self._signature.flatten(args, kwargs)
            key = self._make_key(leaves, spec)
            self._executables[key] = self._compile(args, kwargs)
            self._activate(self._executables[key][0])

    def _compile(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Executable, list[int]]:
        captured = capture(self.module, *self._take_part(args, kwargs), is_step=True)
        captured.derivatives.check(get_class_name(self.module))
        known = captured.program.weight_names
        self._names = {id(parameter): name for name, parameter in self.module.named_parameters(remove_duplicate=False) if name in known}
        dispatcher = self.module.__dict__["_tp_mlir"]
        base, common = dispatcher.write_plan(self.module)
        plan = _TrainingPlan(base.text, base.places, base.layout, base.names, call=self._place)
        options = {**common.options, "train": _FILE}
        sharded = shard(captured, plan, options, files={_FILE: self._write_settings(captured)})
        executable = Bundle([sharded], collect_tensors(self.module), cpu=common.cpu).executables[0]
        assert self._snapshot is not None
        self._snapshot.keep_constants([executable.bundle.names, *(other.bundle.names
                                                                 for other, _ in self._executables.values())])
        (program,) = json.loads(executable.bundle.artifact.manifest)["programs"]
        self._outputs = [output["name"] for output in program["outputs"]]
        return executable, captured.inputs

    def _write_settings(self, captured: Captured) -> str:
        settings = dict(self._settings)
        settings["optimizer"] = optimizers.read_optimizer(self.optimizer, self._names, is_scheduled=self._is_scheduled)
        frozen = optimizers.find_frozen(self.module, self.optimizer, captured.program.weight_names)
        if frozen:
            settings["frozen"] = frozen
        return json.dumps(settings, indent=1)

    def _take_part(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Sequence[Any], Mapping[str, Any]]:
        """The arguments of one part of the batch, of which a step takes several."""
        count = self._settings.get("accumulate", 1)
        if count == 1:
            return args, kwargs
        leaves, spec = pytree.tree_flatten((tuple(args), dict(kwargs)))
        size = next((leaf.shape[0] for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.ndim), None)
        if size is None or size % count:
            raise InputError(f"{size} examples can't be divided into the {count} parts of accumulate")
        part = [leaf[:size // count] if isinstance(leaf, torch.Tensor) and leaf.ndim and leaf.shape[0] == size else leaf for leaf in leaves]
        args, kwargs = pytree.tree_unflatten(part, spec)
        return args, kwargs

    def _activate(self, executable: Executable) -> None:
        """Gives the program the state, if another one had it."""
        self._active = executable
        owner = _owners.get(self.optimizer, lambda: None)()
        if self._loaded is executable and owner is self:
            return
        for step in {self, owner or self}:
            if step._loaded is not None:
                step.store()
                step._pull()
                step._loaded = None
                self._steps = step._steps
        _owners[self.optimizer] = weakref.ref(self)
        self._loaded = executable
        try:
            self._load()
        except BaseException:
            self._loaded = None
            raise

    def _reload(self) -> None:
        """Takes what `optimizer.load_state_dict` has set."""
        with self._lock:
            rates = optimizers.get_learning_rates(self.optimizer)
            if rates != self._rates:
                self._rates, self._hyperparameters = rates, []
            if self._loaded is None and type(self.optimizer).__name__ != "SGD":
                self._steps = optimizers.count_steps(self.optimizer, None)
            self._load()

    def _read_steps(self, state: Mapping[str, torch.Tensor]) -> int:
        """The steps that were done, by an optimizer's state."""
        if "optimizer.step" in state:
            return int(state["optimizer.step"])
        if type(self.optimizer).__name__ != "SGD":
            return 0
        return max(self._steps, 1) if state else self._steps  # SGD doesn't count

    def _load(self, *, keeps_steps: bool = False) -> None:
        """Gives the active program the state that the optimizer has.

        :param keeps_steps: whether it is an error if these are of another number of steps."""
        if self._loaded is None:
            return
        self._is_shown = True
        state = optimizers.read_state(self.optimizer, self._names)
        steps = self._read_steps(state)
        if keeps_steps and steps != self._count_steps():
            raise InputError(f"the optimizer's state has been changed from {self._count_steps()} steps to {steps}, and the schedule of a program "
                             "follows these; use optimizer.load_state_dict, which sets both")
        self._steps = steps
        state["optimizer.step"] = torch.tensor(self._steps)
        weights = self._loaded.bundle.weights
        weights.set({name: state.get(name) for name in self._get_state(weights.session)})
        self._state = self.optimizer.state = SharedState(_make_hook(self.store), dict(self.optimizer.state))
        self._is_shown = False

    @staticmethod
    def _get_state(session: _native.Session) -> list[str]:
        return [parameter["name"] for parameter in json.loads(session.manifest)["parameters"] if parameter["name"].startswith("optimizer.")]

    def store(self) -> None:
        """Gives the optimizer the state that the active program has, as `optimizer.state_dict()` does."""
        if self._loaded is None or self._is_shown:
            return
        with self._lock:
            self._is_shown = True
            weights = self._loaded.bundle.weights
            parameters = dict(self.module.named_parameters(remove_duplicate=False))
            # The name of a parameter's state ends with that of the parameter.
            state = {name: weights.get(name, parameters.get(name.split(".", 2)[-1])) for name in self._get_state(weights.session)}
            self._steps = int(state["optimizer.step"])
            optimizers.write_state(self.optimizer, self._names, state)

    def _pull(self) -> None:
        """Gives the module the parameters that the active program has."""
        if self._loaded is not None and self._is_behind:
            weights = self._loaded.bundle.weights
            weights.push()  # what was written to the module since
            weights.pull()
            self._is_behind = False

    def state_dict(self) -> dict[str, Any]:
        """The state of module and optimizer, each in PyTorch's form, and the number of steps."""
        return {"model": self.module.state_dict(), "optimizer": self.optimizer.state_dict(), "steps": self._count_steps()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from what `state_dict` returned."""
        self.module.load_state_dict(state["model"])
        self._steps = int(state["steps"])
        self.optimizer.load_state_dict(state["optimizer"])

    @property
    def report(self) -> Report:
        """What the ranks of the last program exchange and hold."""
        return self._get_active().report

    def prove(self) -> Proof:
        """Proves for all batches that the ranks compute what the training step of the module does."""
        sharded = self._get_active().sharded
        files: dict[str, str | bytes] = {"model": sharded.captured.program.bytecode(), _FILE: self._write_settings(sharded.captured)}
        program = sharded.program.clone()
        try:
            program.run_pipeline(f"builtin.module(tp-verify-spmd{{reference=model train={_FILE}}})", files=files)
        except CompileError as error:
            raise sharded.plan.convert(error) from None
        return Proof(tuple(diagnostic.message for diagnostic in program.diagnostics if diagnostic.severity == "remark"))

    def _get_active(self) -> Executable:
        if self._active is None:
            raise Error("there is no program yet: call the step, or give example_inputs to train_step")
        return self._active


def train_step(module: torch.nn.Module, device_mesh: Any = None, parallelize_plan: Any = None, *, loss: Any,
               optimizer: torch.optim.Optimizer, schedule: Any = None, clip_grad_norm: float | None = None, accumulate: int = 1,
               compute: str | torch.dtype | None = None, checkpoint: Collection[str] = (), seed: int = 0, example_inputs: Any = None,
               update_module: bool = True, **options: Any) -> TrainStep:
    """Makes a step of training for `module`.

    :param device_mesh: as in parallelize_module, with `parallelize_plan`. Both may be left out if the module has a plan, from
        parallelize_module or fully_shard, or if its parameters are DTensors.
    :param loss: "cross_entropy", "mse", or "output" for a module whose result is its loss; a map such as {"name":
        "cross_entropy", "label_smoothing": 0.1} (docs/Training.md); or torch.nn's CrossEntropyLoss or MSELoss.
    :param optimizer: torch.optim's SGD, Adam or AdamW of the module's parameters. Parameters that it doesn't have aren't trained.
    :param schedule: a scheduler for the optimizer, or a map such as {"name": "cosine", "warmup_steps": 20, "total_steps": 200}.
        Don't call its step: the program counts.
    :param clip_grad_norm: the largest norm of all gradients together.
    :param accumulate: the number of parts of a batch whose gradients are added up in a step.
    :param compute: the type of forward and backward pass, such as torch.bfloat16.
    :param checkpoint: patterns of modules that are computed again for the backward pass.
    :param seed: for dropout.
    :param example_inputs: the arguments of the module for one batch: the step is compiled now. Otherwise, when it is called.
    :param update_module: whether the module has the new parameters after each step. Otherwise, after `module.state_dict()`.
    :param options: those of parallelize_module.
    """
    site = CallSite()
    settings: dict[str, Any] = {"loss": optimizers.read_loss(loss)}
    if (read := optimizers.read_schedule(schedule)) is not None:
        settings["schedule"] = read
    if clip_grad_norm is not None:
        if not isinstance(clip_grad_norm, (int, float)):
            raise InputError(f"clip_grad_norm is a number above 0; found {clip_grad_norm!r}")
        settings["clip_grad_norm"] = float(clip_grad_norm)
    if type(accumulate) is not int or accumulate < 1:
        raise InputError(f"accumulate is the number of parts of a batch, an int of at least 1; found {accumulate!r}")
    if isinstance(checkpoint, str) or not isinstance(checkpoint, Collection) or not all(isinstance(name, str) for name in checkpoint):
        raise InputError(f"checkpoint is a list of patterns of modules, as in ['layers.*']; found {checkpoint!r}")
    if accumulate != 1:
        settings["accumulate"] = accumulate
    if compute is not None:
        names = {torch.bfloat16: "bf16", torch.float16: "f16", torch.float32: "f32"}
        settings["compute"] = names.get(compute, compute) if isinstance(compute, torch.dtype) else compute
    if checkpoint:
        settings["checkpoint"] = list(checkpoint)
    if seed:
        settings["seed"] = seed
    optimizers.read_optimizer(optimizer, {}, is_scheduled=schedule is not None)  # reports what can't be compiled
    optimizers.count_steps(optimizer, schedule)
    with restoring(module):
        if parallelize_plan is not None or not isinstance(module, ParallelModule) and dtensors.list_dtensors(module):
            parallelize_module(module, device_mesh, parallelize_plan, **options)
        elif options or device_mesh is not None:
            raise PlanError("a mesh and options need a parallelize_plan", place=site.place)
        if not isinstance(module, ParallelModule):
            raise PlanError(f"{get_class_name(module)} has no plan: give a mesh and a parallelize_plan, or call parallelize_module or "
                            "fully_shard before", place=site.place)
        known = set(map(id, module.parameters()))
        if not any(id(parameter) in known for group in optimizer.param_groups for parameter in group["params"]):
            raise InputError(f"the optimizer has no parameter of {get_class_name(module)}; if they were replaced since it was made, as by "
                             "distribute or fully_shard, make it again")
        step = TrainStep(module, optimizer, settings, schedule, site.place, update_module)
        if example_inputs is not None:
            for example in read_examples(example_inputs):
                step.compile(*example)
    return step


__all__ = ["Step", "TrainStep", "train_step"]
