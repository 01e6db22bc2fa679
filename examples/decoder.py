# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the decoder examples share: import, shard, run, compare with PyTorch."""

import numpy as np
import torch

import tp_tools


def token_ids(vocab_size, batch=2, length=24, seed=0):
    """The decoder's input `ids`: random tokens, the same for the same seed."""
    generator = torch.Generator().manual_seed(seed)
    return {"ids": torch.randint(vocab_size, (batch, length), generator=generator)}


def import_decoder(arguments, module, vocab_size, script):
    """Import `module` and write PyTorch's logits to y_ref.npy beside it."""
    inputs = token_ids(vocab_size)
    tools = tp_tools.Tools(arguments.bin, arguments.out)
    with torch.no_grad():
        np.save(arguments.out / "y_ref.npy", module(**inputs).numpy())
    archive = arguments.out / "model.pt"
    tp_tools.save_torchscript(module, inputs, archive, script)
    return tools.import_model(archive, inputs)


def compare(imported, plan, ranks):
    """Shard and run; tp-run itself compares with y_ref.npy (exit code 3 if different)."""
    print(f"\n== {plan.name}, {ranks} ranks")
    artifact = imported.shard(plan, ranks)
    reference = imported.tools.out / "y_ref.npy"
    logits = artifact.run("--expect", reference, "--rtol", "1e-4", "--atol", "1e-5")
    difference = tp_tools.relative_difference(logits, np.load(reference))
    print(f"largest difference to PyTorch, relative: {difference:.1e}\n")
    tp_tools.print_collectives(artifact.report)
