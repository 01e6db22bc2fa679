# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The compiler and the runtime, in this process.

A `Program` is MLIR: a model, or the program of one rank. An `Artifact` is compiled programs, and a `Session` runs them
with weights. Functions that compute release the GIL. All objects may be used by several threads; calls that use the same
program or the same session wait for each other.

Tensors are given as objects of the DLPack protocol (`__dlpack__`) or of the buffer protocol, in the host's memory, and
come back as `Array`. Element types are f32, f64, f16, bf16, i64, i32, i16, i8, ui8 and bool.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias, final

__version__: str
"""The version of the package, as in "0.1.0"."""

class _SupportsDLPack(Protocol):
    def __dlpack__(self, /, *, stream: Any = ...) -> Any: ...
    def __dlpack_device__(self, /) -> tuple[int, int]: ...

_Tensor: TypeAlias = _SupportsDLPack | Array | Any
"""A tensor in the host's memory: of PyTorch, of NumPy, or any object of the DLPack or the buffer protocol."""

@final
class Array:
    """A dense, row-major tensor in the host's memory that nothing writes to any more.

    `torch.from_dlpack(array)` and, unless it is bf16, `numpy.from_dlpack(array)` are the same memory, which lives as long
    as one of them does.
    """

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str:
        """The element type as the compiler names it: "f32", "bf16", "i64", "i1", …"""
    @property
    def nbytes(self) -> int: ...
    def __dlpack__(self, *, stream: None = None, **_: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

# ---- Guards

@final
class ModuleGuard:
    """Guards the structure of `modules`: what is inside them, their hooks and `global_hooks`, and which parameters and buffers
    they have, whatever the values of these."""

    def __init__(self, modules: list[Any], global_hooks: list[Any]) -> None: ...
    def check(self) -> bytes | None:
        """For each module, whether it is in training: a byte, 0 or 1. None if something may have changed."""

@final
class TensorGuard:
    """Guards the values of tensors: that each is the same one, and that nothing was written to it or given to it as data.

    `slots` are containers and keys, where `tensors` were when their `versions` and `pointers` were read."""

    def __init__(self, slots: list[tuple[Any, Any]], tensors: list[Any], versions: list[Any], pointers: list[int]) -> None: ...
    def holds(self) -> bool:
        """False if something may have changed, and always if a tensor isn't of PyTorch's own classes."""

def requires_grad(dictionaries: list[Any]) -> bool:
    """Whether a tensor in one of the dictionaries, whose other values are None, requires a gradient."""

# ---- Errors

@final
class Diagnostic:
    """A message of the compiler."""

    @property
    def severity(self) -> Literal["error", "warning", "remark", "note"]: ...
    @property
    def location(self) -> str:
        """ "file:line:column", or the location as MLIR prints it."""
    @property
    def file(self) -> str | None:
        """The file of the location; None if it isn't in a file."""
    @property
    def line(self) -> int | None: ...
    @property
    def column(self) -> int | None: ...
    @property
    def message(self) -> str: ...
    @property
    def notes(self) -> list[Diagnostic]: ...
    def __str__(self) -> str:
        """The message and its notes as the tools print them, one per line."""

class Error(RuntimeError):
    """The base of the errors below."""

class CompileError(Error):
    """A program, a plan or an option is wrong. The text is that of the errors."""

    diagnostics: list[Diagnostic]
    """All messages of the call, with the errors among them."""

    outputs: dict[str, str]
    """Of `Program.run_pipeline`: what the passes had written before the failure."""

class InputError(Error, ValueError):
    """A file, a weight or an input is wrong."""

class ExecutionError(Error):
    """A rank failed, or the ranks made no progress. The session can be used further, but if the program updates
    parameters, these don't belong to any one step."""

class AbortedError(ExecutionError):
    """Raised by a transport: another rank has failed. The text is what it said."""

# ---- The compiler

def import_program(
    source: str | os.PathLike[str] | bytes,
    weights: bool = True,
    *,
    inputs: Sequence[str] = (),
    signature: str | os.PathLike[str] | None = None,
    name: str | None = None,
    without: Sequence[str] = (),
) -> Program:
    """Imports a program of `torch.export` (or TorchScript): the path of its archive, or the bytes of one, as
    `torch.export.save` writes them to an `io.BytesIO`.

    Imports `torch`, whose LibTorch does part of the work. With `weights`, `Program.weights` has the tensors.

    :param inputs: the shapes of inputs that the program doesn't fix, as in "ids=2x64xi64".
    :param signature: the path of the signatures that tp_trace.py writes.
    :param without: the names of tensors that `Program.weights` doesn't need.
    :param name: the model's name in messages; by default the path.
    :raises InputError: the file isn't a model, or has an op or a type that isn't supported. The text lists all of them.
    """

@final
class Program:
    """A module of MLIR, with the weights that were imported with it."""

    @staticmethod
    def parse(text: str | bytes, name: str = "<string>") -> Program:
        """A program from MLIR text or bytecode. `name` is the source's name in messages.

        :raises CompileError: the text isn't a valid program.
        """
    @property
    def weights(self) -> dict[str, Array]:
        """The parameters, buffers and constants, by the names that the program has for them; empty if none were
        imported. A copy or a result of `parallelize` has the same ones."""
    @property
    def weight_names(self) -> list[str]:
        """The names of all parameters, buffers and constants of the model that was imported."""
    @property
    def notes(self) -> str:
        """What the import had to say about the model; empty if nothing."""
    @property
    def diagnostics(self) -> list[Diagnostic]:
        """The warnings and remarks of the call that made this program, or of the last `run_pipeline`."""
    def text(self, *, locations: bool = False) -> str:
        """The program as MLIR text, with `loc(…)` if asked for."""
    def bytecode(self) -> bytes:
        """The program as MLIR bytecode, which `parse` reads faster than text, with its locations."""
    def clone(self) -> Program: ...
    def parallelize(
        self,
        options: Mapping[str, str | bool | int] = ...,
        *,
        files: Mapping[str, str | bytes] = ...,
    ) -> Program:
        """One rank's program. The model isn't changed.

        :param options: those of `tp-opt --tp-parallelize`, as in {"plan": "plan.yaml", "sequence-parallel": True}.
        :param files: files in memory, by name: wherever an option names a file that is among them, this text is read
            instead of a file of the system. Messages have the name.
        :raises InputError: there is no option of this name.
        :raises CompileError: the value of an option, the plan or the model have an error.
        """
    def run_pipeline(
        self,
        pipeline: str,
        *,
        files: Mapping[str, str | bytes] = ...,
        outputs: Sequence[str] = (),
    ) -> dict[str, str]:
        """Runs passes, as in "builtin.module(tp-explain{planPath=plan.yaml format=json file=out.json})", on this
        program. If they fail, the program isn't changed.

        :param files: as in `parallelize`. Use it for the `reference` of tp-verify-spmd, too: bytecode can be read.
        :param outputs: the names of files that passes write and that are wanted in memory. No file is written.
        :returns: the text of each of `outputs` that was written.
        :raises CompileError: a pass failed. `error.outputs` has the outputs that were written before.
        """
    def report(self) -> str:
        """The report of a per-rank program, JSON (docs/Report.md)."""
    def compile(
        self,
        path: str | os.PathLike[str],
        *,
        cpu: str = "native",
        opt_level: int = 3,
        target: str = "",
        name: str = "main",
    ) -> None:
        """Compiles a per-rank program, which isn't changed, and writes the artifact: all of it, or nothing.

        :param cpu: CPUs to compile for, as LLVM names them, separated by commas.
        :param target: as in "cuda:sm_80,sm_90"; the CPU by default.
        :param name: the program's name in the artifact.
        """

def compile_programs(
    programs: Sequence[tuple[str, Program]],
    path: str | os.PathLike[str],
    *,
    cpu: str = "native",
    opt_level: int = 3,
    target: str = "",
) -> list[Diagnostic]:
    """Compiles several per-rank programs, such as those for several lengths, to one artifact, in which they share their
    parameters. Returns the warnings."""

def report_page(
    report: str, explanation: str = "", trace: str = "", alternatives: str = "", scaling: str = ""
) -> str:
    """The page that shows a report, HTML; `explanation`: JSON of tp-explain about the same program, `trace`: JSON of
    tp-run's trace of it, `alternatives` and `scaling`: JSON of tp-auto-plan and tp-scale-plan (docs/Report.md).

    :raises InputError: one of them isn't what the compiler or tp-run writes, or they are of different programs."""

# ---- The runtime

@final
class Artifact:
    """Compiled programs. The file is mapped, and must not be written to; a file that replaces it is no problem.

    An artifact contains native code: load only artifacts from sources that you trust.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """:raises InputError: the file isn't an artifact, is damaged, or is for another machine."""
    @property
    def path(self) -> str: ...
    @property
    def manifest(self) -> str:
        """The manifest, JSON (docs/Artifact.md)."""

@final
class CollectiveCount:
    """What one rank did in one collective within one run."""

    @property
    def calls(self) -> int: ...
    @property
    def bytes(self) -> int:
        """Bytes received from other ranks."""

@final
class RunInfo:
    """What is known about a run."""

    @property
    def program(self) -> str:
        """The name of the program that ran."""
    @property
    def seconds(self) -> float:
        """From the first rank's start to the last rank's end."""
    @property
    def counts(self) -> list[list[CollectiveCount]]:
        """By rank, and by the collectives of all programs in the order of the manifest."""

class _Transport(Protocol):
    """What moves the bytes of ranks that are processes, of which each runs one rank (`tprt/Transport.h`). Only the thread
    of the rank calls it. An exception ends the run, in all processes."""

    name: str
    """For reports, as in "gloo"."""
    rank: int
    world_size: int

    def connect(self, groups: Sequence[Sequence[int]]) -> None:
        """Makes the groups that `all_to_all` gets by their indices: lists of ranks, the first one of all ranks. Called by
        the first run, and by the first one after a run that has failed."""
    def all_to_all(
        self, group: int, sent: memoryview, sent_sizes: list[int], received: memoryview, received_sizes: list[int]
    ) -> None:
        """Sends `sent_sizes[i]` bytes to member i of a group, and receives `received_sizes[i]` bytes from it. The parts
        follow each other in memory, which is valid during the call.

        :raises AbortedError: another rank has called `abort`.
        """
    def abort(self, reason: str) -> None:
        """Ends the calls of the other ranks with this reason."""

@final
class Session:
    """Programs with their weights, on the ranks of this process."""

    def __init__(
        self,
        artifact: Artifact | str | os.PathLike[str],
        weights: Mapping[str, _Tensor] = ...,
        options: Mapping[str, str | bool | int | float | _Transport] = ...,
        blocks: Mapping[str, _Tensor] = ...,
    ) -> None:
        """Shards the weights. Those that aren't used are ignored. Contiguous shards are used in place, so the tensors
        must not be written to while the session lives, which keeps them alive; `set_parameters` gives new values.
        Floats of another type are converted. In a process that runs one rank, `blocks` may have the dense blocks of that
        rank instead of whole weights.

        Options, all optional:

        - "backend": "local"
        - "transport": a Transport, if this process runs one rank. Then `run`, `get_parameter` and `set_parameters` are
          called in all processes, in the same order and with the same values
        - "timeout": seconds that a rank may wait for others; 0: forever. 120 by default
        - "pin_ranks": whether each rank's thread has cores of its own. True by default
        - "max_packed_weight_bytes": a limit on weights in the layout that matrix products read
        - "gemm_library": "tiles", "openblas" or "onednn", for all products; by default the fastest, by measurement
        - "gemm_file": where the choices of libraries are kept; by default beside the artifact
        - "gemm_seconds": how long to measure at most. 0.3 by default
        - "cuda_device", "cuda_tf32", "cuda_graphs": for programs of CUDA devices, as tp-run's options

        :raises InputError: an option is wrong, or weights are missing or wrong: the text lists all of them.
        """
    def run(
        self,
        inputs: Mapping[str, _Tensor],
        *,
        program: str = "",
        pad: Mapping[str, float] = ...,
    ) -> dict[str, Array]:
        """Runs the program that takes these inputs, or the one named `program`. Each run has its own outputs, which no
        later run changes. A tensor that isn't dense is copied, others are read in place.

        `pad` names inputs that may be smaller than the program's, with the value of new elements (docs/Runtime.md).

        An interrupt (SIGINT) during a run raises KeyboardInterrupt when the run is complete.

        :raises InputError: an input is missing, unknown or wrong.
        :raises ExecutionError: a rank failed.
        """
    def run_flat(self, inputs: Sequence[_Tensor], program: str = "", blocks: Sequence[int] = ()) -> tuple[Array, ...]:
        """The same with the inputs and the outputs in the order of the program, without names: for callers to whom
        microseconds matter. An artifact with several programs needs `program`.

        In a process that runs one rank, `blocks` are the numbers of the outputs of which the block of that rank is
        returned, instead of the whole tensor."""
    @property
    def last_run(self) -> RunInfo | None:
        """About the last run that was completed."""
    @property
    def manifest(self) -> str:
        """The artifact's manifest, JSON."""
    @property
    def weight_bytes(self) -> list[int]:
        """By rank: bytes of the parameters that it reads, that is, of its shards."""
    @property
    def copied_weight_bytes(self) -> int:
        """Bytes of parameters that had to be copied; the rest are read in place."""
    @property
    def packed_weight_bytes(self) -> int:
        """Bytes of weights that are packed for matrix products, beside the parameters. 0 before the first run."""
    def get_parameter(self, name: str) -> Array:
        """A copy of a parameter's current global value.

        :raises InputError: there is no such parameter.
        """
    def get_block(self, name: str) -> Array:
        """A copy of a parameter's block of the only rank of this process. It needs no other process.

        :raises InputError: there is no such parameter, or this process runs several ranks.
        """
    def set_parameters(self, values: Mapping[str, _Tensor], blocks: Mapping[str, _Tensor] = ...) -> None:
        """Sets global values of parameters, and blocks of the only rank of this process: all of them, or none if one is
        wrong."""
    def reset_state(self) -> None:
        """Sets all parameters that programs update to their initial values.

        :raises InputError: one of them has no initial value.
        """
