#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Traces or exports a model such that its modules keep the order and the names of forward's arguments.

torch.jit.trace orders the tensor inputs of a submodule by their first use, names them as the caller does, and drops those
that aren't used. So a plan's layouts, which are by position or by name, would reach other tensors than in PyTorch. Here
each module's forward touches its tensors in the order of its arguments first. A trace also has all buffers, and loses which
of them a state_dict has. Here the others become constants of the program, so that a state_dict has all of its weights:

    import tp_trace
    tp_trace.save(model, (ids, mask), "model.pt")       # and model.signature.json

    tp-import model.pt --signature model.signature.json …

A program of torch.export has the tensors that a module's operations use, in the order of their first use:

    tp_trace.export(model, (ids, mask), "model.pt2")    # and model.signature.json
"""

import errno
import io
import json
import os
import pathlib
import sys
import tempfile

import torch

# The package stands beside the tools in the source tree; one that is installed goes first.
sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "python"))
from tp_mlir.signatures import name_calls, ordered, without_unsaved_buffers


def save(model, example_inputs, path, **options):
    """Saves a trace at `path`, and its signatures beside it, as .signature.json; `options` are torch.jit.trace's."""
    with ordered(model) as signatures, without_unsaved_buffers(model):
        traced = torch.jit.trace(model, example_inputs, **({"check_trace": False} | options))
    # What LibTorch writes itself ends the process where a file can't be closed.
    write(path, traced.save_to_buffer(), signatures)
    return traced


def export(model, example_inputs, path, **options):
    """Saves an exported program in the same way; `options` are torch.export.export's."""
    with ordered(model) as signatures:
        program = torch.export.export(model, example_inputs, **options)
    name_calls(signatures, model, program)
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    write(path, buffer.getvalue(), signatures)
    return program


def write(path, model, signatures):
    """Writes both files, or none."""
    path = pathlib.Path(os.path.realpath(path))
    signature = path.with_suffix(".signature.json")
    for target in (path, signature):
        if target.exists() and not target.is_file():
            raise ValueError(f"'{target}' is not a regular file, and a trace replaces only regular files")
    # Both are on the disk, aside, before either takes its name.
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=os.fsdecode(os.fsencode(path.name)[:200]) + ".tmp-") as folder:
        folder = pathlib.Path(folder)
        for target, data in ((path, model), (signature, (json.dumps(signatures, indent=1) + "\n").encode())):
            with open(folder / target.name, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        for target in (path, signature):
            os.replace(folder / target.name, target)
    sync_names(path.parent)


def sync_names(folder):
    """Waits until the names in `folder` would survive a loss of power, where the folder can be read and synced."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except PermissionError:
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EROFS):
            raise
    finally:
        os.close(descriptor)
