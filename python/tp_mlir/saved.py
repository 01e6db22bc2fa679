# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs in files: an artifact, which tp-run runs as well, and its weights in safetensors' format.

What Python needs beside them, the structure of arguments and results and the reports, is in the metadata of the weights.
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from . import _native, processes
from .capture import Signature, Structure, describe, key_of
from .errors import InputError, UnsupportedError
from .files import named_errors
from .report import Report
from .weights import DTYPES, resolve, to_tensor

if TYPE_CHECKING:
    from .dispatch import Dispatcher

_KEY = "tp_mlir"
_SCHEMA = 2


def save(module: torch.nn.Module, dispatcher: Dispatcher, path: str | os.PathLike[str]) -> None:
    """Writes the artifact of the last program, and of those compiled with it, and the weights."""
    from safetensors.torch import save_file
    path = pathlib.Path(path)
    bundle = dispatcher.get_last().bundle
    programs, signature = {}, Signature(module.forward)
    for executable in bundle.executables:
        captured = executable.sharded.captured
        args, kwargs = captured.arguments.build([torch.empty(0)] * len(captured.inputs))
        leaves, spec = signature.flatten(args, kwargs)
        arguments = Structure(spec, [(False, None) if isinstance(leaf, torch.Tensor) else (True, leaf) for leaf in leaves])
        programs[executable.name] = {
            "arguments": _write_structure(arguments), "names": signature.name(args, kwargs), "inputs": captured.inputs,
            "output": _write_structure(captured.output), "report": executable.report.json}
    weights = bundle.weights.collect()
    weights_path = path.with_suffix(".safetensors")
    if weights_path == path:
        raise InputError(f"'{path}' is the name that the weights get; give the artifact another one, such as '{path.with_suffix('.tpx')}'")
    # Both are complete before either takes its name.
    with named_errors(path), tempfile.TemporaryDirectory(dir=path.parent, prefix=path.name + ".tmp-") as folder:
        artifact_copy, weights_copy = pathlib.Path(folder, "artifact"), pathlib.Path(folder, "weights")
        shutil.copyfile(bundle.artifact.path, artifact_copy)
        save_file(weights, weights_copy, metadata={_KEY: json.dumps({"schema": _SCHEMA, "signature": signature.write(), "programs": programs})})
        os.replace(weights_copy, weights_path)
        os.replace(artifact_copy, path)


def _write_structure(structure: Structure) -> dict[str, Any]:
    for _, value in structure.constants:
        if not isinstance(value, (bool, int, float, str, type(None))):
            raise UnsupportedError(f"the program has {value!r} among its arguments or results, which can't be saved")
    try:
        spec = pytree.treespec_dumps(structure.spec)
    except Exception as error:
        raise UnsupportedError(f"the program has arguments or results of a class that PyTorch can't save: {error}") from error
    return {"spec": spec, "constants": structure.constants}


def _read_structure(data: Mapping[str, Any]) -> Structure:
    try:
        spec = pytree.treespec_loads(data["spec"])
    except Exception as error:
        raise InputError("the program has arguments or results of a class that isn't known here; import what registers it with "
                         f"torch.utils._pytree first: {error}") from error
    return Structure(spec, [(bool(is_constant), value) for is_constant, value in data["constants"]])


def _describe(names: Sequence[str], keys: Sequence[Any]) -> str:
    return f"({', '.join(f'{name}: {describe(key)}' for name, key in zip(names, keys))})"


class LoadedModule:
    """Programs with their weights, without the module that they were made of."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        from safetensors import SafetensorError, safe_open
        self._artifact = _native.Artifact(path)
        weights_path = pathlib.Path(path).with_suffix(".safetensors")
        try:
            with safe_open(weights_path, framework="pt") as file:
                metadata = json.loads((file.metadata() or {}).get(_KEY, "null"))
                self._weights = {name: file.get_tensor(name) for name in file.keys()}
        except (OSError, SafetensorError) as error:
            raise InputError(f"'{path}' has no weights beside it, in '{weights_path}': {error}") from None
        if not metadata:
            raise InputError(f"'{path}' wasn't written by ParallelModule.save, but by tp-compile or tp-mlir, and has no names and structure of "
                             "arguments; run it by tp-run")
        if metadata.get("schema") != _SCHEMA:
            raise InputError(f"'{weights_path}' was written by ParallelModule.save of another version; save the module again")
        self._signature = Signature.read(metadata["signature"])
        manifest = json.loads(self._artifact.manifest)
        self._session = _native.Session(self._artifact, self._weights, processes.get_session_options(manifest["world_size"]))
        self._programs = {}
        self._known: list[str] = []
        shapes = {program["name"]: program["inputs"] for program in manifest["programs"]}
        self._reports = {}
        for name, program in metadata["programs"].items():
            arguments, output = _read_structure(program["arguments"]), _read_structure(program["output"])
            inputs = [(DTYPES[tensor["dtype"]], torch.Size(tensor["shape"])) for tensor in shapes[name]]
            by_leaf = dict(zip(program["inputs"], inputs))
            keys = tuple(key_of(value) if is_constant else by_leaf[leaf] for leaf, (is_constant, value) in enumerate(arguments.constants))
            self._programs[keys, arguments.spec] = name, program["inputs"], output
            self._known.append(_describe(program["names"], keys))
            self._reports[name] = Report.parse(json.dumps(program["report"]))
        self._last = next(iter(self._reports), "")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the program for these arguments, passed by position or by name.

        :raises InputError: there is no program for them.
        :raises UnsupportedError: autograd would need a gradient."""
        known = " or ".join(self._known)
        try:
            leaves, spec = self._signature.flatten(args, kwargs)
        except TypeError as error:
            raise InputError(f"there is no program for these arguments: {error}; the programs are for {known}") from None
        keys = tuple(map(key_of, leaves))
        try:
            found = self._programs.get((keys, spec))
        except TypeError:
            found = None  # a value that can't be hashed
        if found is None:
            raise InputError(f"there is no program for the arguments {_describe(self._signature.name(args, kwargs), keys)}; the programs are "
                             f"for {known}")
        if torch.is_grad_enabled() and any(isinstance(leaf, torch.Tensor) and leaf.requires_grad for leaf in leaves):
            raise UnsupportedError("a program that was loaded has no gradients, and an input requires one; call it under torch.no_grad(), or "
                                   "parallelize the module")
        self._last, inputs, output = found
        outputs = self._session.run_flat([resolve(leaves[i]) for i in inputs], self._last)
        return output.build([to_tensor(array) for array in outputs])

    @property
    def report(self) -> Report:
        """That of the last program."""
        return self._reports[self._last]

    def state_dict(self) -> dict[str, torch.Tensor]:
        """The parameters and buffers, with what the programs have updated."""
        return {name: to_tensor(self._session.get_parameter(name)) for name in self._weights}

    def load_state_dict(self, state: Mapping[str, torch.Tensor], strict: bool = True) -> None:
        """Sets the parameters and buffers.

        :param strict: whether `state` must have all of them, and nothing else.
        :raises InputError: a name or a shape is wrong; nothing is set then."""
        if strict and (missing := sorted(self._weights.keys() - state.keys())):
            raise InputError(f"the state lacks {', '.join(map(repr, missing))}; with strict=False, these keep their values")
        if not strict:
            state = {name: tensor for name, tensor in state.items() if name in self._weights}
        self._session.set_parameters({name: resolve(tensor) for name, tensor in state.items()})
