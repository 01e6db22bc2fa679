# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# A vision transformer, whose MLP is split.
import os

import torch
import torch.nn.functional as F
from tiny import *
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Partial, Replicate, Shard
from torch.distributed.tensor.parallel import (ColwiseParallel, PrepareModuleInput, PrepareModuleInputOutput,
                                               PrepareModuleOutput, RowwiseParallel, SequenceParallel, loss_parallel,
                                               parallelize_module)

tp_mesh = init_device_mesh("cpu", (int(os.environ["TP_SIZE"]),), mesh_dim_names=("tp",))
model = VisionTransformer()
model = parallelize_module(model, tp_mesh, {
    "block.mlp.0": ColwiseParallel(),
    "block.mlp.2": RowwiseParallel(),
    "head": ColwiseParallel(output_layouts=Replicate()),
})
with torch.inference_mode():
    result = model(torch.randn(2, 3, 8, 8))
