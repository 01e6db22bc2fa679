# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Two mesh dimensions as one.
import os

import torch
import torch.nn.functional as F
from tiny import *
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Partial, Replicate, Shard
from torch.distributed.tensor.parallel import (ColwiseParallel, PrepareModuleInput, PrepareModuleInputOutput,
                                               PrepareModuleOutput, RowwiseParallel, SequenceParallel, loss_parallel,
                                               parallelize_module)
from torch.distributed.fsdp import fully_shard

world_mesh = init_device_mesh("cpu", (int(os.environ["DP_SIZE"]), int(os.environ["TP_SIZE"])), mesh_dim_names=("dp", "tp"))
tp_mesh, dp_mesh = world_mesh["tp"], world_mesh["dp"]
flat = world_mesh["dp", "tp"]._flatten("flat")
model = parallelize_module(MLPModule(), flat, {"net1": ColwiseParallel(), "net2": RowwiseParallel()})
result = model(torch.rand(4, 10))
