# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The tutorial of tensor parallelism: the logits stay split for the loss.
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
model = parallelize_module(Transformer(), tp_mesh, {
    "tok_embeddings": RowwiseParallel(input_layouts=Replicate()),
    "output": ColwiseParallel(output_layouts=Shard(-1), use_local_output=False),
})
input_ids, labels = make_tokens(), make_tokens()
with loss_parallel():
    pred = model(input_ids)
    loss = F.cross_entropy(pred.flatten(0, 1), labels.flatten(0, 1))
    loss.backward()
result = [loss, model.layers[0].feed_forward.w1.weight.grad]
