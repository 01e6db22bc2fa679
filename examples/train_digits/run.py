#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Train a small vision transformer on scikit-learn's digits: two data-parallel groups of two tensor-parallel ranks.

The images that it hasn't seen are classified by the trained weights in the model without dropout, compiled for the
same ranks, and by PyTorch. Exits with 1 below 97 % or where the two differ."""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import safetensors.torch
import torch
from sklearn.datasets import load_digits

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import tp_tools
from train_digits import model

BATCH = 64
STEPS = 800  # as the schedule in train.yaml
TESTED = 360  # of 1797 images
ACCURACY = 0.97
TOLERANCE = 1e-4


def split_digits(seed=0):
    """Images (N×8×8, from 0 to 1) and classes: those to train on, and those to test with."""
    digits = load_digits()
    order = np.random.default_rng(seed).permutation(len(digits.images))
    images = (digits.images[order] / 16).astype(np.float32)
    classes = digits.target[order].astype(np.int64)
    return (images[:-TESTED], classes[:-TESTED]), (images[-TESTED:], classes[-TESTED:])


def import_model(arguments, name, module, images):
    """Import the module, in its present mode, for a batch of the images."""
    tools = tp_tools.Tools(arguments.bin, arguments.out / name)
    inputs = {"x": torch.from_numpy(images)}
    tp_tools.save_torchscript(module, inputs, tools.out / "model.pt")
    return tools.import_model(tools.out / "model.pt", inputs)


def train(arguments, module, images, classes):
    """Returns the artifact with the trained weights."""
    imported = import_model(arguments, "train", module.train(), images[:BATCH])
    step = imported.compile(HERE / "plan.yaml", imported.tools.out, f"train={HERE / 'train.yaml'}")
    np.save(arguments.out / "images.npy", images)
    np.save(arguments.out / "classes.npy", classes)
    start = time.perf_counter()
    metrics = step.train(STEPS, "--data", f"x={arguments.out / 'images.npy'}",
                         "--data", f"target={arguments.out / 'classes.npy'}")
    seconds = time.perf_counter() - start
    print(f"loss {metrics[0]['loss']:.3f} → {metrics[-1]['loss']:.3f} in {seconds:.0f} s,"
          f" drawn in {step.folder / 'loss.svg'}\n")
    return step


def test(arguments, module, weights, images, classes):
    """Classify the images on the ranks and in PyTorch; returns whether both do well, and alike."""
    imported = import_model(arguments, "test", module.eval(), images)
    artifact = imported.compile(HERE / "plan.yaml", imported.tools.out)
    logits = artifact.run(weights=weights)
    module.load_state_dict(safetensors.torch.load_file(weights))
    with torch.no_grad():
        expected = module(torch.from_numpy(images)).numpy()
    difference = tp_tools.relative_difference(logits, expected)
    print(f"largest difference to PyTorch, relative: {difference:.1e} (limit {TOLERANCE:.0e})")
    accuracy = {name: (values.argmax(1) == classes).mean()
                for name, values in (("4 ranks", logits), ("PyTorch", expected))}
    for name, value in accuracy.items():
        print(f"accuracy on {TESTED} images that it wasn't trained on, {name}: {value:.1%} (at least {ACCURACY:.0%})")
    return difference <= TOLERANCE and min(accuracy.values()) >= ACCURACY


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tp_tools.add_folders(parser, "train_digits")
    arguments = parser.parse_args()
    start = time.perf_counter()
    module = model.build()
    to_train, to_test = split_digits()
    step = train(arguments, module, *to_train)
    good = test(arguments, module, step.trained, *to_test)
    print(f"{time.perf_counter() - start:.0f} s in all")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
