# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor parallelism for PyTorch models, compiled ahead of time.

    import tp_mlir as tp

    mesh = tp.init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
    model = tp.parallelize_module(model, mesh, {"layers.*.w1": tp.ColwiseParallel(), "layers.*.w2": tp.RowwiseParallel()})
    y = model(x)

docs/Python.md describes the package.
"""

import importlib
from typing import TYPE_CHECKING, Any

# Names are imported when they are used: `import tp_mlir` loads neither PyTorch nor the compiler.
_NAMES = {
    "errors": ("CaptureError", "CompileError", "Diagnostic", "Error", "ExecutionError", "InputError", "MeshError", "PlanError",
               "UnsupportedError", "WeightError"),
    "mesh": ("DeviceMesh", "init_device_mesh"),
    "placements": ("Partial", "Placement", "Replicate", "Shard", "_StridedShard"),
    "styles": ("ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleInputOutput", "PrepareModuleOutput",
               "RowwiseParallel", "SequenceParallel"),
    "contexts": ("implicit_replication", "loss_parallel"),
    "module": ("DistributedDataParallel", "FullyShardedDataParallel", "ParallelModule", "fully_shard", "load", "parallelize_module",
               "replicate"),
    "report": ("Collective", "Report"),
    "training": ("TrainStep", "train_step"),
    "auto": ("auto_plan",),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}
__all__ = sorted(name for name in _MODULES if not name.startswith("_"))

if TYPE_CHECKING:
    from .auto import auto_plan
    from .contexts import implicit_replication, loss_parallel
    from .errors import (CaptureError, CompileError, Diagnostic, Error, ExecutionError, InputError, MeshError, PlanError,
                         UnsupportedError, WeightError)
    from .mesh import DeviceMesh, init_device_mesh
    from .module import (DistributedDataParallel, FullyShardedDataParallel, ParallelModule, fully_shard, load,
                         parallelize_module, replicate)
    from .placements import Partial, Placement, Replicate, Shard, _StridedShard
    from .report import Collective, Report
    from .styles import (ColwiseParallel, ParallelStyle, PrepareModuleInput, PrepareModuleInputOutput, PrepareModuleOutput,
                         RowwiseParallel, SequenceParallel)
    from .training import TrainStep, train_step


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return importlib.import_module("._native", __name__).__version__
    if name not in _MODULES:
        raise AttributeError(f"module 'tp_mlir' has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
