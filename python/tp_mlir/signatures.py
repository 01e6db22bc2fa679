# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The arguments of modules, which a trace and a program of torch.export lose, recorded while one is made.

torch.jit.trace orders the tensor inputs of a submodule by their first use, names them as the caller does, and drops those
that aren't used. A program of torch.export has the tensors that a module's operations use, in the same order. So a plan's
layouts, which are by position or by name, would reach other tensors than in PyTorch. Here each module's forward touches its
tensors in the order of its arguments first.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch


def map_tensors(function: Callable[[torch.Tensor], Any], value: Any) -> Any:
    """`value` with each tensor in tuples, lists and dictionaries replaced."""
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(map_tensors(function, element) for element in value))
    if type(value) in (tuple, list):
        return type(value)(map_tensors(function, element) for element in value)
    if type(value) is dict:
        return {key: map_tensors(function, element) for key, element in value.items()}
    return value


@contextlib.contextmanager
def without_unsaved_buffers(model: torch.nn.Module) -> Iterator[None]:
    """While in it, buffers that no state_dict has are plain attributes: a trace forgets which ones are persistent."""
    undo: list[tuple[torch.nn.Module, str, torch.Tensor]] = []
    for module in model.modules():
        if isinstance(module, torch.jit.ScriptModule):
            continue
        for name in sorted(module._non_persistent_buffers_set):
            tensor = module._buffers.get(name)
            if tensor is not None:
                del module._buffers[name]
                object.__setattr__(module, name, tensor)
                undo.append((module, name, tensor))
    try:
        yield
    finally:
        for module, name, tensor in undo:
            object.__delattr__(module, name)
            module._buffers[name] = tensor


@contextlib.contextmanager
def ordered(model: torch.nn.Module) -> Iterator[dict[str, Any]]:
    """While in it, a trace or an exported program of `model` has the inputs of its modules in order; gives what is to be
    written as signatures. Calls from other threads aren't recorded."""
    thread = threading.get_ident()
    state = {id(tensor) for tensor in (*model.parameters(), *model.buffers())}
    signatures: dict[str, Any] = {}
    undo: list[tuple[Any, Any, Any]] = []
    alias = torch.ops.aten.alias

    def wrap(fqn: str, module: torch.nn.Module) -> None:
        inner = module.forward
        signature = inspect.signature(inner)
        entry: dict[str, list[Any]] = {"arguments": list(signature.parameters), "calls": []}
        own = "forward" in vars(module)
        called: list[Any] = []

        def separate(callee: Any, args: Any, kwargs: Any) -> Any:
            # If a module is in two places, torch.export calls stand-ins for modules, which know where they are.
            called[:] = [callee]
            # Still in the caller: a tensor that is passed twice becomes two inputs, a parameter one. torch.export takes this
            # for the module's own, and needs it not.
            if torch._C._get_tracing_state() is None:
                return None
            seen = set(state)

            def once(tensor: torch.Tensor) -> Any:
                if id(tensor) in seen:
                    return alias(tensor)
                seen.add(id(tensor))
                return tensor

            return map_tensors(once, args), map_tensors(once, kwargs)

        @functools.wraps(inner)
        def forward(*args: Any, **kwargs: Any) -> Any:
            # Whether a program is exported is a flag of the process, not of the thread.
            is_exporting = torch.compiler.is_exporting() and threading.get_ident() == thread
            if torch._C._get_tracing_state() is None and not is_exporting:
                return inner(*args, **kwargs)
            callee = called.pop() if called else module
            compute = inner if own or callee is module else type(module).forward.__get__(callee)
            bound = signature.bind(*args, **kwargs)
            tensors: list[str] = []

            def touch(name: str, value: Any) -> Any:
                def use(tensor: torch.Tensor) -> Any:
                    tensors.append(name)
                    return alias(tensor)

                return map_tensors(use, value)

            for name, value in list(bound.arguments.items()):
                if signature.parameters[name].kind != inspect.Parameter.VAR_KEYWORD:
                    bound.arguments[name] = touch(name, value)
                    continue
                entry["arguments"] += [key for key in value if key not in entry["arguments"]]
                bound.arguments[name] = {key: touch(key, element) for key, element in value.items()}
            entry["calls"].append(tensors)
            signatures[fqn] = entry
            # As the caller passes them: what decorates a forward, as in transformers, may look for keywords.
            positional: list[Any] = []
            named: dict[str, Any] = {}
            for name, value in bound.arguments.items():
                kind = signature.parameters[name].kind
                if kind == inspect.Parameter.VAR_POSITIONAL:
                    positional += value
                elif kind == inspect.Parameter.VAR_KEYWORD:
                    named |= value
                elif name in kwargs and kind != inspect.Parameter.POSITIONAL_ONLY:
                    named[name] = value
                else:
                    positional.append(value)
            return compute(*positional, **named)

        hook = module.register_forward_pre_hook(separate, with_kwargs=True)
        module.forward = forward
        undo.append((module, inner if own else None, hook))

    for fqn, module in model.named_modules():
        if not isinstance(module, torch.jit.ScriptModule):
            wrap(fqn, module)
    try:
        yield signatures
    finally:
        for module, inner, hook in undo:
            hook.remove()
            if inner is None:
                del module.forward
            else:
                module.forward = inner


def name_calls(signatures: dict[str, Any], model: torch.nn.Module, program: torch.export.ExportedProgram) -> None:
    """Gives the calls of a module that is in several places to the names by which `program`, an export of `model`, calls it."""
    names: dict[int, list[str]] = {}
    for fqn, module in model.named_modules(remove_duplicate=False):
        names.setdefault(id(module), []).append(fqn)
    shared = {fqn: all_names[0] for all_names in names.values() if len(all_names) > 1 for fqn in all_names}
    if not shared:
        return
    called: dict[str, list[str]] = {}
    seen = set()
    for node in program.graph.nodes:
        for key, (fqn, _) in (node.meta.get("nn_module_stack") or {}).items():
            if fqn in shared and key not in seen:
                seen.add(key)
                called.setdefault(shared[fqn], []).append(fqn)
    for first, order in called.items():
        entry = signatures.get(first)
        if entry is None or len(entry["calls"]) != len(order):
            continue  # the import says so
        del signatures[first]
        for fqn, call in zip(order, entry["calls"]):
            signatures.setdefault(fqn, {"arguments": entry["arguments"], "calls": []})["calls"].append(call)
