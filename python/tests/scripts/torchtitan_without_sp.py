# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# torchtitan's Llama 3 without sequence parallelism, and grouped-query attention.
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


def apply_tp(model, tp_mesh, loss_parallel=False, enable_sp=True, attention_plan={}):
    sp = Shard(1) if enable_sp else Replicate()
    norm = SequenceParallel() if enable_sp else None
    plan = {
        "tok_embeddings": RowwiseParallel(input_layouts=Replicate(), output_layouts=sp),
        "output": ColwiseParallel(input_layouts=sp, output_layouts=Shard(-1) if loss_parallel else Replicate(),
                                  use_local_output=not loss_parallel),
    }
    if norm:
        plan["norm"] = norm
    parallelize_module(model, tp_mesh, plan)
    for transformer_block in model.layers.values():
        layer_plan = {
            "attention": PrepareModuleInput(input_layouts=(sp, None), desired_input_layouts=(Replicate(), None)),
            "attention.wq": ColwiseParallel(),
            "attention.wk": ColwiseParallel(),
            "attention.wv": ColwiseParallel(),
            "attention.wo": RowwiseParallel(output_layouts=sp),
            "feed_forward": PrepareModuleInput(input_layouts=(sp,), desired_input_layouts=(Replicate(),)),
            "feed_forward.w1": ColwiseParallel(),
            "feed_forward.w2": RowwiseParallel(output_layouts=sp),
            "feed_forward.w3": ColwiseParallel(),
            **attention_plan,
        }
        if norm:
            layer_plan |= {"attention_norm": norm, "ffn_norm": norm}
        parallelize_module(module=transformer_block, device_mesh=tp_mesh, parallelize_plan=layer_plan)


model = Transformer(as_dict=True, kv_heads=2)
apply_tp(model, tp_mesh, enable_sp=False)
with torch.no_grad():
    result = model(make_tokens())
