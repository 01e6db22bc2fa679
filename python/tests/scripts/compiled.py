# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# torch.compile around the split model.
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
model = parallelize_module(ToyModel(), tp_mesh, {"in_proj": ColwiseParallel(), "out_proj": RowwiseParallel()})
with torch.no_grad():
    result = torch.compile(model, backend="eager")(torch.rand(4, 10))
