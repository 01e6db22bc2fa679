# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Embeddings, split along the vocabulary and along their dimension.
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
ids, result = make_tokens(), []
for style in (RowwiseParallel(input_layouts=Replicate()), RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
              ColwiseParallel(output_layouts=Replicate())):
    embedding = parallelize_module(torch.nn.Embedding(VOCABULARY, DIM), tp_mesh, style)
    y = embedding(ids)
    y.square().sum().backward()
    grad = embedding.weight.grad
    result += [y, grad.full_tensor() if hasattr(grad, "full_tensor") else grad]
