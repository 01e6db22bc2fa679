# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the user's Python code has what it gives to this package.

A plan is a dictionary of objects, which don't know the lines that they come from. The caller's syntax tree does: the call is
found by the position of the running instruction, its argument by name, and if the argument is a variable, the dictionary that
was assigned to it. Where that doesn't lead to an entry, the entry's place is the call's.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import importlib.util
import linecache
import os
import sys
from collections.abc import Iterator
from types import FrameType

def _find_torch() -> str:
    spec = importlib.util.find_spec("torch")
    return (spec and spec.origin) or os.sep


# Code in these folders isn't the user's. PyTorch calls this package for torch.compile.
_FOLDERS = tuple(os.path.dirname(path) + os.sep for path in (os.path.abspath(__file__), _find_torch()))


@dataclasses.dataclass(frozen=True)
class Place:
    """A place in a file of Python; lines and columns count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclasses.dataclass
class EntryPlace:
    """The place of an entry's pattern, and those of the arguments of its style, by name."""

    key: Place
    arguments: dict[str, Place] = dataclasses.field(default_factory=dict)


@functools.lru_cache(maxsize=16)
def _parse(lines: tuple[str, ...]) -> ast.Module | None:
    try:
        return ast.parse("".join(lines))
    except (SyntaxError, ValueError):
        return None


def _get_short_name(file: str) -> str:
    """The name from the current folder, where that is shorter."""
    try:
        relative = os.path.relpath(file)
    except ValueError:
        return file
    return file if file.startswith("<") or relative.startswith("..") else relative


def _find_frame() -> FrameType:
    """The innermost frame of the user's code."""
    frame: FrameType | None = sys._getframe(1)
    while frame and os.path.abspath(frame.f_code.co_filename).startswith(_FOLDERS):
        frame = frame.f_back
    assert frame, "a call begins outside of this package"
    return frame


def find_line() -> str:
    """The file and line that the user's code is at."""
    frame = _find_frame()
    return f"{_get_short_name(frame.f_code.co_filename)}:{frame.f_lineno}"


def is_users(file: str) -> bool:
    """Whether a file, or what Python calls so, is the user's code."""
    return not file.startswith("<") and not os.path.abspath(file).startswith(_FOLDERS)


class CallSite:
    """The call that the user's code is in."""

    def __init__(self) -> None:
        frame = _find_frame()
        self.file = _get_short_name(frame.f_code.co_filename)
        self.tree = _parse(tuple(linecache.getlines(frame.f_code.co_filename, frame.f_globals)))
        line, _, column, _ = self.position = list(frame.f_code.co_positions())[frame.f_lasti // 2]
        self.place = Place(self.file, line or frame.f_lineno, (column or 0) + 1)

    def locate_entries(self, name: str, index: int, keys: list[str]) -> dict[str, EntryPlace]:
        """Places of the entries `keys` of the dictionary that is the call's argument `name`, or argument number `index`."""
        places = {key: EntryPlace(self.place) for key in keys}
        argument = self._find_argument(name, index)
        nodes = list(self._find_items(argument)) if argument is not None else []
        if len(nodes) == len(keys) and not any(isinstance(key, ast.Constant) for key, _ in nodes):
            named = list(zip(keys, nodes))  # names that are computed, one by one
        else:
            named = [(str(key.value), (key, value)) for key, value in nodes if isinstance(key, ast.Constant)]
        for key, (key_node, value_node) in named:
            if key in places:  # the last one counts, as in Python
                places[key] = EntryPlace(self._locate(key_node), self._locate_arguments(value_node))
        return places

    def locate_style(self, name: str, index: int) -> EntryPlace:
        """The place of one style that is an argument of the call."""
        argument = self._find_argument(name, index)
        if argument is None:
            return EntryPlace(self.place)
        return EntryPlace(self._locate(argument), self._locate_arguments(argument))

    def _locate(self, node: ast.expr | ast.keyword) -> Place:
        return Place(self.file, node.lineno, node.col_offset + 1)

    def _locate_arguments(self, node: ast.AST) -> dict[str, Place]:
        if isinstance(node, ast.Call):
            return {keyword.arg: self._locate(keyword) for keyword in node.keywords if keyword.arg}
        if isinstance(node, ast.Dict):
            return {str(key.value): self._locate(key) for key in node.keys if isinstance(key, ast.Constant)}
        return {}

    def _find_argument(self, name: str, index: int) -> ast.expr | None:
        for node in ast.walk(self.tree) if self.tree else ():
            if (isinstance(node, ast.Call)
                    and (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset) == self.position):
                for keyword in node.keywords:
                    if keyword.arg == name:
                        return keyword.value
                if index < len(node.args) and not any(isinstance(argument, ast.Starred) for argument in node.args):
                    return node.args[index]
        return None

    def _find_items(self, node: ast.expr, seen: frozenset[str] = frozenset()) -> Iterator[tuple[ast.expr, ast.expr]]:
        """Keys and values of the dictionary that `node` evaluates to, as far as they can be seen."""
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values):
                if key is not None:
                    yield key, value
                else:  # **other
                    yield from self._find_items(value, seen)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            yield from self._find_items(node.left, seen)
            yield from self._find_items(node.right, seen)
        elif isinstance(node, ast.Name) and node.id not in seen:
            for assigned in self._find_assignments(node.id):
                if isinstance(assigned, tuple):
                    yield assigned
                else:
                    yield from self._find_items(assigned, seen | {node.id})

    def _find_assignments(self, name: str) -> Iterator[ast.expr | tuple[ast.expr, ast.expr]]:
        """What the variable `name` is made of before the call: dictionaries, and single items."""
        for scope in self._find_scopes():
            found: list[ast.expr | tuple[ast.expr, ast.expr]] = []
            statements = [node for node in ast.walk(scope) if isinstance(node, ast.stmt) and node.lineno <= self.place.line]
            for statement in sorted(statements, key=lambda node: node.lineno):
                match statement:
                    case (ast.Assign(targets=[ast.Name(id=target)], value=value)
                          | ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value)) if target == name:
                        found = [value]
                    case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=target), slice=key)], value=value) if target == name:
                        found.append((key, value))
                    case (ast.AugAssign(target=ast.Name(id=target), value=value)
                          | ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=target), attr="update"),
                                                    args=[value]))) if target == name:
                        found.append(value)
            if found:
                yield from found
                return

    def _find_scopes(self) -> list[ast.AST]:
        """The functions around the call, innermost first, and the file."""
        if not self.tree:
            return []
        functions = [node for node in ast.walk(self.tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
                     and node.lineno <= self.place.line <= (node.end_lineno or node.lineno)]
        return [*sorted(functions, key=lambda node: -node.lineno), self.tree]
