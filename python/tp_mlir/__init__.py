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
    "distribution": ("distribute",),
    "report": ("Collective", "Report"),
    "training": ("TrainStep", "train_step"),
    "auto": ("auto_plan",),
    "plan": ("AutoPlan",),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}
__all__ = sorted(name for name in _MODULES if not name.startswith("_"))

if TYPE_CHECKING:
    from .auto import auto_plan as auto_plan
    from .contexts import implicit_replication as implicit_replication, loss_parallel as loss_parallel
    from .distribution import distribute as distribute
    from .errors import (CaptureError as CaptureError, CompileError as CompileError, Diagnostic as Diagnostic, Error as Error,
                         ExecutionError as ExecutionError, InputError as InputError, MeshError as MeshError,
                         PlanError as PlanError, UnsupportedError as UnsupportedError, WeightError as WeightError)
    from .mesh import DeviceMesh as DeviceMesh, init_device_mesh as init_device_mesh
    from .module import (DistributedDataParallel as DistributedDataParallel,
                         FullyShardedDataParallel as FullyShardedDataParallel, ParallelModule as ParallelModule,
                         fully_shard as fully_shard, load as load, parallelize_module as parallelize_module,
                         replicate as replicate)
    from .plan import AutoPlan as AutoPlan
    from .placements import (Partial as Partial, Placement as Placement, Replicate as Replicate, Shard as Shard,
                             _StridedShard as _StridedShard)
    from .report import Collective as Collective, Report as Report
    from .styles import (ColwiseParallel as ColwiseParallel, ParallelStyle as ParallelStyle,
                         PrepareModuleInput as PrepareModuleInput, PrepareModuleInputOutput as PrepareModuleInputOutput,
                         PrepareModuleOutput as PrepareModuleOutput, RowwiseParallel as RowwiseParallel,
                         SequenceParallel as SequenceParallel)
    from .training import TrainStep as TrainStep, train_step as train_step


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
