# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""distribute: the parameters of a module become DTensors of the blocks that its programs' ranks hold."""

from __future__ import annotations

import torch

from . import processes
from .capture import get_class_name
from .dtensors import is_dtensor
from .errors import Error, UnsupportedError, WeightError
from .executable import Bundle
from .module import ParallelModule
from .source import CallSite
from .weights import collect_tensors


def distribute(module: torch.nn.Module) -> torch.nn.Module:
    """Makes DTensors of the parameters that the module's programs read, without a gather. Each process keeps its rank's block and
    frees the rest. The mesh is that of the plan, and the placements are those of the program that ran last, or of the training step
    that has run. The optimizers of the module's training steps get the new parameters, and their states become DTensors, too.
    Make other optimizers after this call, as with PyTorch's fully_shard. Parameters that are DTensors already, parameters that no
    program reads, and buffers stay as they are.

    :param module: from parallelize_module or fully_shard; it is changed and returned. All processes call this function.
    :raises Error: the module has no program yet.
    :raises UnsupportedError: the ranks are threads of this process, or a parameter has a gradient or a hook.
    :raises WeightError: the placements of DTensor can't say which elements the ranks have; nothing is changed then."""
    place = CallSite().place
    if not isinstance(module, ParallelModule):
        raise UnsupportedError(f"{get_class_name(module)} isn't parallelized: distribute takes a module from parallelize_module or fully_shard",
                               place=place, fqn="")
    dispatcher = module.__dict__["_tp_mlir"]
    steps = list(dispatcher.steps)
    with dispatcher.lock:
        loaded = [step.loaded for step in steps if step.loaded is not None]
        if not loaded and not dispatcher.executables:
            raise Error("the module has no program yet, so nothing says which blocks its ranks hold: call it, or a training step, first")
        bundle: Bundle = (loaded[0] if loaded else dispatcher.get_last()).bundle
        weights = bundle.weights
        if processes.count() == 1 and weights.world_size > 1:
            raise UnsupportedError(f"the {weights.world_size} ranks of the program are threads of this process, and a DTensor has one process for "
                                   "each rank: start the script with torchrun", place=place, fqn="")
        if not torch.distributed.is_initialized():
            raise UnsupportedError("DTensors need a process group: start the script with torchrun, or call "
                                   "torch.distributed.init_process_group first", place=place, fqn="")
        for step in steps:
            if step.loaded is not None and step.loaded is not loaded[0]:
                step.pull()
        weights.push()
        slots = collect_tensors(module)
        made: dict[int, torch.nn.Parameter] = {}
        for name in bundle.names:
            kept, key = slots[name]
            old = kept[key]
            if not isinstance(old, torch.nn.Parameter) or is_dtensor(old) or id(old) in made:
                continue
            if old.grad is not None or old._backward_hooks or getattr(old, "_post_accumulate_grad_hooks", None):
                raise UnsupportedError(f"the parameter '{name}' has a gradient or a hook, which its DTensor wouldn't have; call "
                                       "optimizer.zero_grad() before distribute, and register hooks after it", place=place, fqn=name)
            try:
                made[id(old)] = torch.nn.Parameter(weights.get_dtensor(name), requires_grad=old.requires_grad)
            except WeightError as error:
                raise WeightError(error.message, place=place, fqn=name) from None
        for kept, key in slots.values():
            if kept[key] is not None and id(kept[key]) in made:
                kept[key] = made[id(kept[key])]
        for step in sorted(steps, key=lambda step: step.loaded is None):
            step.replace_parameters(made)
        # The sessions have kept the whole tensors so far.
        executables = [*dispatcher.executables, *(executable for step in steps for executable in step.executables)]
        for bundle in dict.fromkeys(executable.bundle for executable in executables):
            bundle.weights.push()
    return module


__all__ = ["distribute"]
