"""Checks that a model computes the same under each of many plans, and that every rank ends with the block that the
plan's output layout means, as PyTorch's ranks would.

  plans.py [--keep DIRECTORY]

Exit code 1 when any differs.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import safetensors.numpy

import execution

MODELS = pathlib.Path(__file__).parent.parent / "Plan" / "Inputs"
RANDOM = np.random.default_rng(0)


def linear(x, weights, name):
    y = x @ weights[f"{name}.weight"].T
    return y + weights[f"{name}.bias"] if f"{name}.bias" in weights else y


def mlp(x, w):
    return linear(np.maximum(linear(x, w, "net1"), 0), w, "net2")


def gated(x, w):
    gate, up = np.split(linear(x, w, "gate_up"), 2, axis=1)
    return linear(gate * up, w, "down")


# The model's file, input shape, parameters and function.
MLP = ("mlp.mlir", (8, 10), {"net1.weight": (16, 10), "net1.bias": (16,), "net2.weight": (10, 16), "net2.bias": (10,)}, mlp)
GATED = ("fused.mlir", (2, 8), {"gate_up.weight": (32, 8), "gate_up.bias": (32,), "down.weight": (8, 16)}, gated)


def whole(y, rank):
    return y


def chunk(dim, ranks, index=lambda rank: rank):
    """The block of torch.chunk: of equal size, the last ones shorter or empty."""
    def block(y, rank):
        size = -(-y.shape[dim] // ranks)
        return np.take(y, range(min(index(rank) * size, y.shape[dim]), min((index(rank) + 1) * size, y.shape[dim])), axis=dim)
    return block


# Name, model, number of ranks, plan, the rank's block of the result.
CASES = [
    ("pair", MLP, 2, "{mesh: {tp: 2}, plan: PairwiseParallel}", whole),
    ("sequence of 2.0", MLP, 4, "{mesh: {tp: 4}, plan: SequenceParallel}", chunk(0, 4)),
    ("root entry", MLP, 2,
     "{mesh: {tp: 2}, plan: {'': {style: PrepareModuleInputOutput, input_layouts: Replicate, desired_input_layouts: Shard(0),"
     " output_layouts: Shard(0), desired_output_layouts: Replicate}, net1: {style: ColwiseParallel, input_layouts: Shard(0)},"
     " net2: {style: RowwiseParallel, output_layouts: Shard(0)}}}", whole),
    ("columns at the end", MLP, 2, "{mesh: {tp: 2}, plan: {net2: ColwiseParallel}}", chunk(1, 2)),
    ("uneven", MLP, 4, "{mesh: {tp: 4}, plan: {net2: ColwiseParallel}}", chunk(1, 4)),
    ("empty ranks", MLP, 6, "{mesh: {tp: 6}, plan: {net2: {style: RowwiseParallel, output_layouts: Shard(0)}}}", chunk(0, 6)),
    ("two dimensions", MLP, 4,
     "{mesh: {dp: 2, tp: 2}, parallelize: [{mesh_dim: tp, plan: {net1: ColwiseParallel, net2: RowwiseParallel}},"
     " {mesh_dim: dp, plan: {'': {style: PrepareModuleInputOutput, input_layouts: Shard(0), desired_input_layouts: Shard(0),"
     " output_layouts: Shard(0), desired_output_layouts: Shard(0)}}}]}", chunk(0, 2, lambda rank: rank // 2)),
    ("flattened", MLP, 4, "{mesh: {dp: 2, tp: 2}, mesh_dim: [dp, tp], plan: {net1: ColwiseParallel,"
     " net2: {style: RowwiseParallel, output_layouts: Shard(0)}}}", chunk(0, 4)),
    ("order of ranks", MLP, 4, "{mesh: {dims: {dp: 2, tp: 2}, devices: [0, 2, 1, 3]}, mesh_dim: tp,"
     " plan: {net1: ColwiseParallel, net2: {style: RowwiseParallel, output_layouts: Shard(1)}}}",
     chunk(1, 2, lambda rank: rank // 2)),
    ("strided", MLP, 4, "{mesh: {dp: 2, tp: 2}, parallelize: [{mesh_dim: tp, plan: {net1.weight: Shard(0)}},"
     " {mesh_dim: dp, plan: {net1.weight: '_StridedShard(0, split_factor=2)'}}]}", whole),
    ("functions of 2.0", MLP, 2,
     "{mesh: {tp: 2}, plan: {net1: {style: ColwiseParallel, _prepare_input: make_input_shard_1d(1), _prepare_output: make_output_tensor},"
     " net2: {style: RowwiseParallel, _prepare_input: make_input_replicate_1d, _prepare_output: make_output_shard_1d(1)}}}",
     chunk(1, 2)),
    ("packed", GATED, 2, "{mesh: {tp: 2}, match: hf, plan: {gate_up: packed_colwise, down: rowwise}}", whole),
    ("packed, uneven", GATED, 3, "{mesh: {tp: 3}, plan: {gate_up: {style: packed_colwise, segments: [16, 16]}, down: rowwise}}",
     whole),
    ("fused, but split plainly", GATED, 2, "{mesh: {tp: 2}, match: hf, plan: {gate_up: colwise, down: colwise}}", chunk(1, 2)),
    ("loss", GATED, 2, "{mesh: {tp: 2}, loss_parallel: true, plan: {down: {style: ColwiseParallel, use_local_output: false}}}",
     chunk(1, 2)),
]


def run(*command):
    process = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300)
    if process.returncode:
        raise RuntimeError(f"{command[0]} failed with {process.returncode}: {process.stderr.strip()[:2000]}")


def check(case, folder):
    """What is wrong with a case, or None."""
    _, (file, shape, parameters, function), ranks, plan, block = case
    weights = {name: RANDOM.standard_normal(size, dtype=np.float32) for name, size in parameters.items()}
    x = RANDOM.standard_normal(shape, dtype=np.float32)
    y = function(x.astype(np.float64), weights)
    (folder / "plan.yaml").write_text(plan)
    safetensors.numpy.save_file(weights, folder / "w.safetensors")
    np.save(folder / "x.npy", x)
    inputs = ["--input", f"arg0={folder / 'x.npy'}"]
    outputs = ["result0"]
    if file == "fused.mlir":
        target = np.array([3, 5])
        np.save(folder / "t.npy", target)
        inputs += ["--input", f"arg1={folder / 't.npy'}"]
        outputs.append("result1")
    run("tp-opt", MODELS / file, f"--tp-parallelize=plan={folder / 'plan.yaml'} report={folder / 'report.json'} machine=cpu",
        "-o", folder / "ranks.mlir")
    run("tp-compile", folder / "ranks.mlir", "-o", folder / "model.tpx")
    run("tp-run", folder / "model.tpx", "--weights", folder / "w.safetensors", *inputs, "--blocks", folder / "blocks",
        "--json", folder / "run.json")
    execution.check_prediction(folder / "report.json", folder / "run.json")
    for rank in range(ranks):
        expected = {"result0": block(y, rank)}
        if "result1" in outputs:
            logits = y - y.max(1, keepdims=True)
            losses = np.log(np.exp(logits).sum(1)) - logits[np.arange(2), target]
            expected["result1"] = losses.mean()
        for name in outputs:
            actual = np.load(folder / "blocks" / f"{name}.{rank}.npy")
            if actual.shape != expected[name].shape:
                return f"rank {rank} has a block of {actual.shape} of {name}, expected {expected[name].shape}"
            if not np.allclose(actual, expected[name], rtol=1e-5, atol=1e-5):
                return f"rank {rank} has another block of {name}: by {np.abs(actual - expected[name]).max()}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", type=pathlib.Path, help="where the files of all cases stay")
    arguments = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as temporary:
        for number, case in enumerate(CASES):
            folder = (arguments.keep or pathlib.Path(temporary)) / str(number)
            folder.mkdir(parents=True, exist_ok=True)
            try:
                problem = check(case, folder)
            except RuntimeError as error:
                problem = str(error)
            if problem:
                failed += 1
                print(f"{case[0]}: {problem}", file=sys.stderr)
    print(f"{len(CASES) - failed} of {len(CASES)} plans give what the model computes")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
