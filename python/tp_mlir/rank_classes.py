# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The ranks of a report (docs/Report.md), which states what it says about ranks once for each class of ranks that are alike.

This file needs nothing but Python's standard library, so that scripts can read a report without the package."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any


def expand(parts: list[dict[str, Any]]) -> Iterator[int]:
    """The numbers of a set that is given as strided parts: offset + sum of index * stride."""
    for part in parts:
        for indices in itertools.product(*map(range, part["sizes"])):
            yield part["offset"] + sum(index * stride for index, stride in zip(indices, part["strides"]))


class Rank:
    """One rank of a report: what it holds and receives, and what its run is predicted to take."""

    def __init__(self, number: int, rank_class: int, report: dict[str, Any]):
        self.number = number
        self.rank_class = rank_class
        """The index of its class in the report's `rank_classes`."""
        self._report = report

    def __repr__(self) -> str:
        return f"Rank({self.number}, class {self.rank_class})"

    def get_bytes(self, collective: int) -> int:
        """The bytes that it receives from others in the collective with this id."""
        received: int = self._report["collectives"][collective]["bytes_by_class"][self.rank_class]
        return received

    @property
    def bytes_received(self) -> int:
        """The same for all collectives together."""
        return sum(item["bytes_by_class"][self.rank_class] for item in self._report["collectives"])

    def holds(self, tensor: dict[str, Any]) -> bool:
        """Whether it holds a block of a parameter, an input or an output, which is given as the report has it."""
        return self.rank_class in tensor.get("classes", [self.rank_class])

    def get_local_shape(self, tensor: dict[str, Any]) -> tuple[int, ...]:
        """The shape of its block of a parameter, an input or an output."""
        shapes = tensor.get("local_shapes_by_class")
        return tuple(shapes[self.rank_class] if shapes else tensor["local_shape"])

    @property
    def prediction(self) -> dict[str, Any] | None:
        """Its seconds, FLOPs, bytes and memory, as docs/Report.md describes `by_class`; None without a machine."""
        found = self._report.get("prediction")
        return found["by_class"][self.rank_class] if found else None

    def get_seconds(self, collective: int) -> float:
        """The predicted seconds of the collective with this id, once all ranks of its group have arrived."""
        seconds: float = self._report["prediction"]["collectives"][collective]["seconds_by_class"][self.rank_class]
        return seconds


class Ranks(Sequence[Rank]):
    """The ranks of a report, in order."""

    def __init__(self, report: dict[str, Any]):
        """`report` is the JSON."""
        self._report = report
        self._classes = [0] * report["mesh"]["ranks"]
        for index, item in enumerate(report["rank_classes"]):
            for rank in expand(item["ranks"]):
                self._classes[rank] = index

    def __len__(self) -> int:
        return len(self._classes)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        number = range(len(self))[index]
        return Rank(number, self._classes[number], self._report)

    def sum(self, values: Sequence[float]) -> float:
        """The sum over all ranks of a list that has a value for each class, such as `bytes_by_class`."""
        total: float = sum(value * item["count"] for value, item in zip(values, self._report["rank_classes"], strict=True))
        return total
