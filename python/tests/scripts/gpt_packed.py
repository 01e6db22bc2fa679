# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# nanoGPT: a packed product of query, key and value; tied embeddings stay whole.
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
model = GPT()
for block in model.transformer.h:
    parallelize_module(block, tp_mesh, {
        "attn.c_attn": ColwiseParallel(output_layouts=Replicate()),
        "attn.c_proj": RowwiseParallel(input_layouts=Replicate()),
        "mlp.0": ColwiseParallel(),
        "mlp.2": RowwiseParallel(),
    })
loss = F.cross_entropy(model(make_tokens()).flatten(0, 1), make_tokens().flatten())
loss.backward()
result = [loss, model.lm_head.weight.grad]
