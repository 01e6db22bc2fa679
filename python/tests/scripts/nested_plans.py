# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# A plan whose values are plans.
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
model = Transformer(layers=2)
mlp = {"w[13]": ColwiseParallel(), "w2": RowwiseParallel()}
parallelize_module(model, tp_mesh, {"layers.*.feed_forward": mlp, "layers.*": {"attention.w[qkv]": ColwiseParallel(),
                                                                              "attention.wo": RowwiseParallel()}})
with torch.no_grad():
    result = model(make_tokens())
