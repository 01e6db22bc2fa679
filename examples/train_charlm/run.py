#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Train a small Llama-style decoder on the characters of this repository's documentation, over four ranks: parameters
sharded over two (FSDP), tensor and sequence parallelism over two.

PyTorch trains the same model on the same batches beside it. Exits with 1 where the losses of the first steps differ, or
where the last ones aren't low enough. Then the trained weights write some text, over four tensor-parallel ranks."""

import argparse
import math
import sys
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
import yaml

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import tp_tools
from generate import charlm
from llama import model

BATCH, LENGTH = 8, 128
COMPARED = 50  # steps
TOLERANCE = 1e-4
# Bits a character that the mean over the second half, the second time through the text, must be below. Without training
# they are log2 of the vocabulary, 6.9.
STEPS, BITS = 400, 3.6


class Text:
    """The documents one after the other, as numbers of characters."""

    def __init__(self):
        documents = sorted((tp_tools.ROOT / "docs").glob("*.md"))
        text = "".join(path.read_text(encoding="utf-8") for path in documents)
        self.characters = sorted(set(text))
        self.tokens = self.encode(text)

    def encode(self, text):
        number = {character: i for i, character in enumerate(self.characters)}
        return np.array([number[character] for character in text], dtype="<u2")

    def decode(self, tokens):
        return "".join(self.characters[token] for token in tokens)

    def batch(self, step):
        """What tp-run takes in this step (from 0) with --no-shuffle: the next windows, from the first again after the
        last. The targets are a character further."""
        windows = (len(self.tokens) - 1) // LENGTH
        starts = (step * BATCH + np.arange(BATCH)) % windows * LENGTH
        window = torch.from_numpy(self.tokens[starts[:, None] + np.arange(LENGTH + 1)].astype(np.int64))
        return window[:, :-1], window[:, 1:]


def train_torch(module, text, training, steps):
    """Train in PyTorch as train.yaml says; returns the loss of each step."""
    optimizer, schedule = training["optimizer"], training["schedule"]
    norms = [p for name, p in module.named_parameters() if "norm" in name]
    others = [p for name, p in module.named_parameters() if "norm" not in name]
    adamw = torch.optim.AdamW([{"params": norms, "weight_decay": 0.0}, {"params": others}], lr=optimizer["lr"],
                              betas=optimizer["betas"], weight_decay=optimizer["weight_decay"])
    warmup, total = schedule["warmup_steps"], schedule["total_steps"]
    losses = []
    for step in range(steps):
        cosine = (1 + math.cos(math.pi * (step - warmup) / (total - warmup))) / 2
        decayed = schedule["min_lr"] + (optimizer["lr"] - schedule["min_lr"]) * cosine
        for group in adamw.param_groups:
            group["lr"] = optimizer["lr"] * step / warmup if step < warmup else decayed
        ids, target = text.batch(step)
        loss = F.cross_entropy(module(ids).flatten(0, 1), target.flatten())
        adamw.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(module.parameters(), training["clip_grad_norm"])
        adamw.step()
        losses.append(loss.item())
    return losses


def import_model(arguments, module):
    tools = tp_tools.Tools(arguments.bin, arguments.out / "train")
    inputs = {"ids": torch.zeros(BATCH, LENGTH, dtype=torch.int64)}
    tp_tools.save_torchscript(module, inputs, tools.out / "model.pt")
    return tools.import_model(tools.out / "model.pt", inputs)


def write(arguments, text):
    """Continue the prompt by so many characters, each drawn from what the model expects."""
    trained, _ = charlm.load(arguments.out)
    tools = tp_tools.Tools(arguments.bin, arguments.out / "write")
    prompt = tools.out / "ids.npy"
    np.save(prompt, text.encode(charlm.PROMPT).astype(np.int64))
    generator = tools.import_decoder(trained, cache_length=LENGTH, prompt_lengths=[]).shard(HERE.parent / "generate/tp.yaml", 4)
    [tokens] = generator.generate("--prompt-ids", prompt, "--max-new-tokens", str(arguments.characters), "--temperature", "0.7")
    return charlm.PROMPT + text.decode(tokens)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tp_tools.add_folders(parser, "train_charlm")
    parser.add_argument("--steps", type=int, default=STEPS,
                        help="steps to train; how low losses are matters only after all (default: %(default)s)")
    parser.add_argument("--characters", type=int, default=80, help="characters to write (default: %(default)s)")
    arguments = parser.parse_args()
    beginning = time.perf_counter()

    text = Text()
    config = model.Config(dim=128, n_layers=3, n_heads=8, n_kv_heads=4, hidden_dim=256,
                          vocab_size=len(text.characters), max_seq_len=LENGTH)
    print(f"{len(text.tokens)} characters, {len(text.characters)} different ones", flush=True)
    module = model.build(config).train()
    imported = import_model(arguments, module)
    step = imported.compile(HERE / "plan.yaml", imported.tools.out, f"train={HERE / 'train.yaml'}")
    tokens = arguments.out / "tokens.bin"
    text.tokens.tofile(tokens)
    metrics = step.train(arguments.steps, "--data", tokens, "--token-type", "u16", "--no-shuffle")
    losses = [row["loss"] for row in metrics]

    compared = min(COMPARED, arguments.steps)
    training = yaml.safe_load((HERE / "train.yaml").read_text())
    expected = train_torch(module, text, training, compared)
    difference = max(abs(a - b) / b for a, b in zip(losses, expected))
    print(f"\n{'step':>5} {'loss':>8} {'PyTorch':>8}")
    for i in sorted({*range(0, compared, 10), compared - 1}):
        print(f"{i + 1:>5} {losses[i]:>8.5f} {expected[i]:>8.5f}")
    good = difference <= TOLERANCE
    print(f"largest difference to PyTorch over {compared} steps, relative: {difference:.1e} (limit {TOLERANCE:.0e})")
    last = float(np.mean(losses[-arguments.steps // 2:])) / math.log(2)
    print(f"mean of the second half of {arguments.steps} steps: {last:.2f} bits a character;"
          f" the curve is {step.folder / 'loss.svg'}\n")
    if arguments.steps >= STEPS:
        good &= last <= BITS

    charlm.save_description(arguments.out, config, step.trained, text.characters)
    print(f"\n{write(arguments, text)}\n")
    print(f"{time.perf_counter() - beginning:.0f} s in all")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
