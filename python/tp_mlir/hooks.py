# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Hooks of modules. Those of the module that is called run around its program; inside a program there are none."""

from __future__ import annotations

import collections
import contextlib
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import torch

from .errors import UnsupportedError
from .huggingface import is_harmless

KINDS = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")
_DICTIONARIES = (*KINDS, "_forward_pre_hooks_with_kwargs", "_forward_hooks_with_kwargs", "_forward_hooks_always_called")
GLOBAL = tuple(getattr(torch.nn.modules.module, f"_global{kind}") for kind in KINDS)
_MARK = "_is_of_tp_mlir"
_Hook = TypeVar("_Hook", bound=Callable[..., Any])


def mark_own(hook: _Hook) -> _Hook:
    """Makes `hook` one of this package, which belongs to no program."""
    setattr(hook, _MARK, True)
    return hook


def _is_foreign(hook: Any) -> bool:
    return not hasattr(hook, _MARK) and not is_harmless(hook)


def check_global() -> None:
    """:raises UnsupportedError: there are hooks of all modules."""
    if any(GLOBAL):
        hook = next(hook for kind in GLOBAL for hook in kind.values())
        raise UnsupportedError(f"{getattr(hook, '__qualname__', hook)!r} is a hook of all modules, and a program can't call it for the modules "
                               "inside it; remove it")


def check(named_modules: Iterable[tuple[str, torch.nn.Module]], name: str) -> None:
    """:raises UnsupportedError: one of the modules, which are inside a program of `name`, has a hook."""
    for fqn, module in named_modules:
        for kind in KINDS:
            for hook in getattr(module, kind).values():
                if _is_foreign(hook):
                    place = f"the module '{fqn}' in {name}" if fqn else name
                    raise UnsupportedError(f"{place} has the {kind[1:-1].replace('_', ' ')} {getattr(hook, '__qualname__', hook)!r}, which "
                                           "a program can't call; only the module that is called may have hooks. Remove it, or write "
                                           "what it does into the module's forward", fqn=fqn)


def check_optimizer(optimizer: torch.optim.Optimizer) -> None:
    """:raises UnsupportedError: the optimizer, or a parameter that it has, has a hook."""
    found = [hook for kind in ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks") for hook in getattr(optimizer, kind).values()]
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            for hooks in (parameter._backward_hooks, parameter._post_accumulate_grad_hooks):
                found += (hooks or {}).values()
    if found:
        raise UnsupportedError(f"the optimizer of a training step, or one of its parameters, has the hook "
                               f"{getattr(found[0], '__qualname__', found[0])!r}, which a program can't call; remove it")


def _is_of_dtensors(hook: Any, fqn: str) -> bool:
    """Whether PyTorch has registered a hook to make DTensors of what a module gets or returns, or to gather its parameters.

    :raises UnsupportedError: the hook does something else, too."""
    home = getattr(hook, "__module__", None) or ""
    if home.startswith("torch.distributed.fsdp._fully_shard."):
        policy = getattr(getattr(hook, "__self__", None), "_mp_policy", None)
        types = {name: value for name in ("param_dtype", "reduce_dtype", "output_dtype") if (value := getattr(policy, name, None)) is not None}
        if types:
            raise UnsupportedError(f"the module '{fqn}' was given to fully_shard with {types}, which a program doesn't have; convert the module "
                                   "instead, as in model.to(torch.bfloat16), or give compute= to train_step", fqn=fqn)
        return True
    if home == "torch.distributed.tensor._api":  # distribute_module, which the styles call, too
        for value in inspect.getclosurevars(hook).nonlocals.values():
            function = value.func if isinstance(value, functools.partial) else value
            if inspect.isroutine(function) and not _is_of_styles(function):
                raise UnsupportedError(f"distribute_module has given the module '{fqn}' the function {function.__qualname__!r} for the tensors of "
                                       "one rank, which a program can't call; leave out input_fn and output_fn", fqn=fqn)
        return True
    return _is_of_styles(hook)


def _is_of_styles(function: Any) -> bool:
    return (getattr(function, "__module__", None) or "").startswith("torch.distributed.tensor.parallel.style")


@contextlib.contextmanager
def without_dtensors(root: torch.nn.Module) -> Iterator[None]:
    """Takes from all modules the hooks with which PyTorch makes DTensors of their inputs and results: a program needs none. After an
    error in it, they are there again.

    :raises UnsupportedError: such a hook calls a function of the user."""
    saved: list[tuple[dict[int, Any], dict[int, Any]]] = []
    try:
        for fqn, module in root.named_modules():
            found = [key for kind in KINDS[:2] for key, hook in getattr(module, kind).items() if _is_of_dtensors(hook, fqn)]
            if found:
                for hooks in (getattr(module, name) for name in _DICTIONARIES):
                    saved.append((hooks, dict(hooks)))
                    for key in found:
                        hooks.pop(key, None)
        yield
    except BaseException:
        for hooks, before in saved:
            hooks.clear()
            hooks.update(before)
        raise


@contextlib.contextmanager
def removed(called: torch.nn.Module) -> Iterator[None]:
    """While in it, `called` has no hooks, and the modules inside it have none of this package."""
    saved = []
    for module in called.modules():
        for name in _DICTIONARIES:
            hooks = getattr(module, name)
            kept = {} if module is called else {key: hook for key, hook in hooks.items() if not hasattr(hook, _MARK)}
            if len(kept) < len(hooks):
                saved.append((module, name, hooks))
                object.__setattr__(module, name, collections.OrderedDict(kept))
    try:
        yield
    finally:
        for module, name, hooks in saved:
            object.__setattr__(module, name, hooks)
