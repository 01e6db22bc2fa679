# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Patterns with *, ? and [].
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
model = torch.nn.Sequential(MLPModule(), MLPModule(), MLPModule())
parallelize_module(model, tp_mesh, {"[01].net1": ColwiseParallel(), "?.net2": RowwiseParallel(), "2.n*1": ColwiseParallel()})
result = model(torch.rand(4, 10))
