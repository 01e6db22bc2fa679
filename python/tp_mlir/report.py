# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the compiler says about a program, as objects: its report, explanations and proofs."""

from __future__ import annotations

import dataclasses
import functools
import html
import json
import os
import pathlib
import tempfile
import webbrowser
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from . import _native
from ._native import InputError
from .files import write_file
from .rank_classes import Ranks

if TYPE_CHECKING:
    import pandas


@dataclasses.dataclass(frozen=True)
class Collective:
    """A collective that every rank issues."""

    id: int
    kind: str
    mesh_dim: str
    dtype: str
    shape: tuple[int, ...]
    bytes_per_rank: int
    """Bytes that the rank which receives most receives from others."""
    fqn: str
    """The module that required it, or the parameter whose gradient it reduces."""
    reason: str
    """The place in the user's code, the style, the argument and the placement; or the op and what it needed."""


@dataclasses.dataclass(frozen=True)
class Tensor:
    """A parameter, an input or an output."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    local_shape: tuple[int, ...]
    """The shape of rank 0's block."""
    bytes_per_rank: int
    placements: tuple[str, ...]
    """One for each mesh dimension."""


@dataclasses.dataclass(frozen=True)
class Prediction:
    """A run on the machine that the option 'machine' names (docs/Prediction.md)."""

    machine: str
    seconds: float
    bytes_per_rank: int
    """Memory of the rank that needs most."""


def _select(kind: type, values: dict[str, Any]) -> Any:
    names = [field.name for field in dataclasses.fields(kind)]
    values = {"name": values.get("fqn"), **values}
    return kind(**{name: tuple(values[name]) if isinstance(values[name], list) else values[name] for name in names})


def _read_detail(path: str | os.PathLike[str] | None, writer: str) -> str:
    """What else a page shows: the text of the file at `path`, which isn't empty; without a path, "". `writer` is what writes it.

    :raises InputError: it isn't text, or is empty."""
    if path is None:
        return ""
    try:
        text = pathlib.Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"this isn't what {writer}: it isn't text") from error
    if not text:
        raise InputError(f"this isn't what {writer}: it is empty")
    return text


@dataclasses.dataclass(frozen=True)
class Report:
    """What the ranks of a program exchange and hold (docs/Report.md)."""

    mesh: dict[str, int]
    collectives: tuple[Collective, ...]
    parameters: tuple[Tensor, ...]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    prediction: Prediction | None
    json: dict[str, Any]
    """All of it."""

    @staticmethod
    def parse(text: str, translate: Callable[[str], str] = str) -> Report:
        """The report in JSON, as the compiler writes it; `translate` gives the places in the user's code."""
        data = json.loads(text)
        for item in (*data["collectives"], *data["redistributions"]):
            item["reason"] = translate(item["reason"])
        prediction = None
        if found := data.get("prediction"):
            memory = [item["memory"]["total"] for item in found["by_class"] if "memory" in item]
            prediction = Prediction(found["machine"]["name"], found["seconds"], max(memory, default=0))
        parameters, inputs, outputs = (tuple(_select(Tensor, item) for item in data[kind]) for kind in ("parameters", "inputs", "outputs"))
        return Report({axis["name"]: axis["size"] for axis in data["mesh"]["axes"]},
                      tuple(_select(Collective, item) for item in data["collectives"]), parameters, inputs, outputs, prediction, data)

    @functools.cached_property
    def ranks(self) -> Ranks:
        """The ranks, in order: what each of them holds, receives and is predicted to take."""
        return Ranks(self.json)

    @property
    def bytes_per_rank(self) -> int:
        """Bytes that a rank receives from others in one run."""
        return sum(collective.bytes_per_rank for collective in self.collectives)

    @property
    def parameter_bytes_per_rank(self) -> int:
        return sum(parameter.bytes_per_rank for parameter in self.parameters)

    def count(self) -> dict[str, int]:
        """The number of collectives, by kind."""
        return dict(Counter(collective.kind for collective in self.collectives))

    def to_pandas(self, what: str = "collectives") -> pandas.DataFrame:
        """A frame of `what`: collectives, parameters, inputs or outputs. Needs pandas."""
        if what not in ("collectives", "parameters", "inputs", "outputs"):
            raise ValueError(f"a report has collectives, parameters, inputs and outputs; found {what!r}")
        import pandas
        return pandas.DataFrame([dataclasses.asdict(item) for item in getattr(self, what)])

    def html(self, explanation: Explanation | None = None, trace: str | os.PathLike[str] | None = None,
             alternatives: str | os.PathLike[str] | None = None, scaling: str | os.PathLike[str] | None = None) -> str:
        """A page for people, which is one file and loads nothing (docs/Report.md). With an explanation of the same program it shows
        the graph of its layers, and says with each collective why it is there, and which edits of the plan remove it. With the path
        of a trace that tp-run has written, it shows what ranks did beside what is predicted. With the paths of JSON that tp-auto-plan
        and tp-scale-plan have written, it shows what other plans cost, and what this one costs on other numbers of ranks.

        :raises InputError: one of them isn't what these tools write, or is of another program."""
        if explanation is not None and not isinstance(explanation, Explanation):
            raise InputError(f"explanation is an Explanation, as ParallelModule.explain() returns it; found {explanation!r}")
        details = [_read_detail(path, writer) for path, writer in ((trace, "tp-run writes with --trace"),
            (alternatives, "tp-auto-plan writes with 'report'"), (scaling, "tp-scale-plan writes with 'report'"))]
        return _native.report_page(json.dumps(self.json), json.dumps(explanation.json) if explanation else "", *details)

    def show(self, path: str | os.PathLike[str] | None = None, explanation: Explanation | None = None,
             trace: str | os.PathLike[str] | None = None, alternatives: str | os.PathLike[str] | None = None,
             scaling: str | os.PathLike[str] | None = None) -> pathlib.Path:
        """Writes the page to `path`, or else to a new temporary file, and opens it in the web browser. Returns the path."""
        page = self.html(explanation, trace, alternatives, scaling)
        if path is None:
            file, path = tempfile.mkstemp(prefix="tp-mlir-report-", suffix=".html")
            os.close(file)
        target = pathlib.Path(path).resolve()
        write_file(target, page)
        webbrowser.open(target.as_uri())
        return target

    def _get_tables(self) -> dict[str, tuple[Sequence[str], list[Sequence[Any]]]]:
        def describe(tensor: Tensor) -> Sequence[Any]:
            return (tensor.name, "x".join(map(str, tensor.shape)), "x".join(map(str, tensor.local_shape)), tensor.dtype,
                    ", ".join(tensor.placements), tensor.bytes_per_rank)

        columns = "name", "shape", "of rank 0", "type", "placements", "bytes per rank"
        groups = Counter((item.kind, item.mesh_dim, item.bytes_per_rank, item.fqn, item.reason) for item in self.collectives)
        return {
            "collectives": (("count", "kind", "over", "bytes per rank", "module", "reason"),
                            [(count, *group) for group, count in groups.items()]),
            "parameters": (columns, list(map(describe, self.parameters))),
            "inputs": (columns, list(map(describe, self.inputs))),
            "outputs": (columns, list(map(describe, self.outputs))),
        }

    def _get_title(self) -> str:
        mesh = ", ".join(f"{name}={size}" for name, size in self.mesh.items())
        title = (f"mesh {mesh}: {len(self.collectives)} collectives, {self.bytes_per_rank} bytes received per rank, "
                 f"{self.parameter_bytes_per_rank} bytes of parameters per rank")
        if self.prediction:
            title += f"; predicted on {self.prediction.machine}: {self.prediction.seconds:.3g} s"
        return title

    def __str__(self) -> str:
        columns, rows = self._get_tables()["collectives"]
        return "\n".join([self._get_title(), *_format(columns, rows)])

    def _repr_html_(self) -> str:
        parts = [f"<p>{html.escape(self._get_title())}</p>"]
        for name, (columns, rows) in self._get_tables().items():
            body = "".join("<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
            head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
            shown = " open" if name == "collectives" else ""
            parts.append(f"<details{shown}><summary>{name} ({len(rows)})</summary><table><thead><tr>{head}</tr></thead>"
                         f"<tbody>{body}</tbody></table></details>")
        return "".join(parts)


def _format(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    """Rows of text with aligned columns; numbers are aligned to the right."""
    table = [columns, *rows]
    widths = [max(len(str(row[i])) for row in table) for i in range(len(columns))]
    return ["  ".join(str(cell).rjust(width) if isinstance(table[-1][i], int) else str(cell).ljust(width)
                      for i, (cell, width) in enumerate(zip(row, widths))).rstrip() for row in table]


@dataclasses.dataclass(frozen=True)
class Explanation:
    """Why values have their placements, and which edits of the plan would communicate less (docs/Explain.md)."""

    text: str
    json: dict[str, Any]

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.text)}</pre>"


@dataclasses.dataclass(frozen=True)
class Proof:
    """That the ranks compute what the model does, for all inputs (docs/Proof.md)."""

    messages: tuple[str, ...]
    """What was proven and how, for each program."""

    @staticmethod
    def join(proofs: Iterable[Proof]) -> Proof:
        return Proof(tuple(message for proof in proofs for message in proof.messages))

    def __str__(self) -> str:
        return "\n".join(self.messages)
