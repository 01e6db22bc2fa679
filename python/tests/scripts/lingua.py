# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The plan of facebookresearch/lingua: the embedding is split along its dimension.
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
model = Transformer()
main_plan = {}
main_plan["tok_embeddings"] = ColwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1))
main_plan["norm"] = SequenceParallel()
main_plan["output"] = ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate())
parallelize_module(model, tp_mesh, main_plan)
for layer in model.layers:
    layer_plan = {}
    layer_plan["attention"] = PrepareModuleInput(input_layouts=(Shard(1), None), desired_input_layouts=(Replicate(), None))
    layer_plan["attention_norm"] = SequenceParallel()
    layer_plan["attention.wq"] = ColwiseParallel()
    layer_plan["attention.wk"] = ColwiseParallel()
    layer_plan["attention.wv"] = ColwiseParallel()
    layer_plan["attention.wo"] = RowwiseParallel(output_layouts=Shard(1))
    layer_plan["feed_forward"] = PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),))
    layer_plan["ffn_norm"] = SequenceParallel()
    layer_plan["feed_forward.w1"] = ColwiseParallel()
    layer_plan["feed_forward.w3"] = ColwiseParallel()
    layer_plan["feed_forward.w2"] = RowwiseParallel(output_layouts=Shard(1))
    parallelize_module(layer, tp_mesh, layer_plan)
with torch.no_grad():
    result = model(make_tokens())
