# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The backend of torch.compile: torch.compile(model, backend="tp_mlir", options={"mesh": …, "plan": …}).

Dynamo gives a flat graph, whose parameters are inputs, and for each of its nodes the modules that it is from. Here this
becomes a tree of modules with the names that the plan uses, which is parallelized like any other module.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch

from .dtensors import is_dtensor
from .errors import UnsupportedError
from .mesh import read_mesh
from .module import parallelize_graph

# Which of the options are whose; the rest are parallelize_module's.
_REQUIRED = "mesh", "plan"
_OPTIONAL = "match", "on_unmatched", "loss_parallel", "cpu", "options"


class _Scope(torch.nn.Module):
    """A module of the graph. A call runs the nodes of one of its calls."""

    _run: Callable[[_Region], None]
    _next: _Region

    def forward(self) -> None:
        self._run(self._next)


class _Region:
    """Nodes of one call of a module, in order; those of modules that it calls are regions of their own."""

    def __init__(self, path: tuple[tuple[str, str], ...]) -> None:
        self.path = path
        self.items: list[torch.fx.Node | _Region] = []

    def add(self, node: torch.fx.Node, path: tuple[tuple[str, str], ...]) -> None:
        if path == self.path:
            self.items.append(node)
            return
        inner, last = path[:len(self.path) + 1], self.items[-1] if self.items else None
        if not isinstance(last, _Region) or last.path != inner:
            last = _Region(inner)
            self.items.append(last)
        last.add(node, path)


def _get_fqn(source: str) -> str:
    """The name behind the root of an expression such as L['self']._modules['layers']._modules['0']._parameters['weight']."""
    name = re.sub(r"^[A-Z]\['[^']*'\]", "", source)
    name = re.sub(r"(?:\._(?:modules|parameters|buffers))?\['?([^]']*)'?\]", r".\1", name)
    return name.strip(".")


def _get_path(node: torch.fx.Node) -> tuple[tuple[str, str], ...]:
    """The FQNs and the classes of the modules around a node, without the root."""
    path: list[tuple[str, str]] = []
    for name, kind in (node.meta.get("nn_module_stack") or {}).values():
        fqn = _get_fqn(name)
        if fqn and (not path or path[-1][0] != fqn):
            path.append((fqn, kind.__name__ if isinstance(kind, type) else str(kind).rsplit(".", 1)[-1]))
    return tuple(path)


class Graph(torch.nn.Module):
    """A graph of Dynamo as a tree of modules."""

    def __init__(self, graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> None:
        super().__init__()
        self._region = _Region(())
        self._held: dict[torch.fx.Node, tuple[torch.nn.Module, str]] = {}
        self._free: list[torch.fx.Node] = []
        self._interpreter = torch.fx.Interpreter(graph, garbage_collect_values=False)
        self._positions: list[tuple[int, torch.fx.Node]] = []
        self._items: dict[torch.fx.Node, torch.fx.Node] = {}
        """The values of Python's floats. Dynamo passes a float that varies as a tensor, whose item the graph takes."""
        placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
        for position, (node, value) in enumerate(zip(placeholders, inputs)):
            source = _get_source(node)
            if isinstance(value, torch.Tensor) and re.search(r"\._(parameters|buffers)\['[^']*'\]$", source):
                self._hold(node, _get_fqn(source), value)
                self._positions.append((position, node))
            else:
                self._free.append(node)
                if isinstance(value, torch.Tensor) and node.users and all(map(_is_item, node.users)):
                    self._items.update(dict.fromkeys(node.users, node))
        self._floats = set(self._items.values())
        self._free_positions = [position for position, node in enumerate(placeholders) if node not in self._held]
        for node in graph.graph.nodes:
            if node.op not in ("placeholder", "output") and node not in self._items:
                self._region.add(node, _get_path(node))
            elif node.op == "output":
                self._result = node
        self._make_scopes(self._region.items)

    def _hold(self, node: torch.fx.Node, fqn: str, value: torch.Tensor) -> None:
        owner, _, name = fqn.rpartition(".")
        module = self._get_scope(owner, "Module")
        if isinstance(value, torch.nn.Parameter):
            module.register_parameter(name, value)
        else:
            module.register_buffer(name, value)
        self._held[node] = module, name

    def _get_scope(self, fqn: str, kind: str) -> torch.nn.Module:
        module: torch.nn.Module = self
        for name in fqn.split(".") if fqn else ():
            if name not in module._modules:
                module.add_module(name, _Scope())
            module = module.get_submodule(name)
        if kind != "Module":
            module.__class__ = type(kind, (_Scope,), {"__module__": _Scope.__module__})
        return module

    def _make_scopes(self, items: Iterable[torch.fx.Node | _Region]) -> None:
        for item in items:
            if isinstance(item, _Region):
                vars(self._get_scope(*item.path[-1]))["_run"] = self._run
                self._make_scopes(item.items)

    def hold(self, values: Sequence[Any]) -> list[Any]:
        """Takes the parameters among a call's inputs; returns the rest, with numbers, which a program depends on by value."""
        for position, node in self._positions:
            module, name = self._held[node]
            kept = module._parameters if name in module._parameters else module._buffers
            if kept[name] is not values[position]:
                kept[name] = values[position]
        return [values[position].item() if node in self._floats else values[position]
                for position, node in zip(self._free_positions, self._free)]

    def forward(self, *inputs: Any) -> Any:
        environment = self._interpreter.env = dict(zip(self._free, inputs))
        for node, (module, name) in self._held.items():
            environment[node] = getattr(module, name)
        environment.update({item: environment[node] for item, node in self._items.items()})
        self._run(self._region)
        result = torch.fx.node.map_arg(self._result.args[0], environment.__getitem__)
        environment.clear()
        return result

    def _run(self, region: _Region) -> None:
        for item in region.items:
            if isinstance(item, _Region):
                scope = self._get_scope(item.path[-1][0], "Module")
                vars(scope)["_next"] = item
                scope()
            else:
                self._interpreter.env[item] = self._interpreter.run_node(item)


def _is_item(node: torch.fx.Node) -> bool:
    return node.op == "call_method" and node.target == "item" or node.target is torch.ops.aten.item.default


def _get_source(node: torch.fx.Node) -> str:
    argument = node.meta.get("grapharg")
    if argument is None or argument.source is None:
        return ""
    name = argument.source.name
    return str(name() if callable(name) else name)


def compile_graph(graph: torch.fx.GraphModule, inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None) -> Callable[..., Any]:
    """The backend. `options`: "mesh" and "plan", as parallelize_module takes them, and its "match", "on_unmatched",
    "loss_parallel", "cpu" and "options".

    Programs are compiled when they are called first, for the shapes of the call. If the model has graph breaks, each graph
    must have a module for every pattern, unless "on_unmatched" is "warn"."""
    options = dict(options or {})
    if missing := [name for name in _REQUIRED if name not in options]:
        raise UnsupportedError("the backend tp_mlir needs options with a mesh and a plan; there is no "
                               + " and no ".join(map(repr, missing)))
    if unknown := options.keys() - {*_REQUIRED, *_OPTIONAL}:
        raise UnsupportedError(f"the backend tp_mlir has no option {', '.join(map(repr, sorted(unknown)))}; it has "
                               f"{', '.join((*_REQUIRED, *_OPTIONAL))}")
    if any(map(is_dtensor, (*inputs, *graph.parameters(), *graph.buffers()))):
        raise UnsupportedError("PyTorch has traced what this process does with DTensors, which isn't the model; instead of torch.compile, call "
                               "tp_mlir.parallelize_module(model), which takes the placements of its DTensors")
    module = Graph(graph, inputs)
    parallelize_graph(module, read_mesh(options.pop("mesh")), options.pop("plan"), **options)

    def run(*values: Any) -> Any:
        return module(*module.hold(values))

    return run
