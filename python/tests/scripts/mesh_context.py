# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The mesh of a with statement.
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
with tp_mesh:
    model = parallelize_module(MLPModule(), None, {"net1": ColwiseParallel(), "net2": RowwiseParallel()})
result = model(torch.rand(4, 10))
