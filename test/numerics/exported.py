"""Programs of torch.export from end to end: exported, imported, compiled and run on 1 and 2 ranks, against PyTorch.

  exported.py

Exit code 1 when anything differs.
"""

import copy
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import safetensors.torch
import torch
from torch import nn
from torch.export import Dim

DIM, HEADS, VOCABULARY = 16, 4, 32


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(DIM, 4 * DIM), nn.Linear(4 * DIM, DIM)

    def forward(self, x):
        return self.down(nn.functional.gelu(self.up(x)))


class Tied(nn.Module):
    """The weight of the embedding is that of the head."""

    def __init__(self):
        super().__init__()
        self.embed, self.mlp, self.norm = nn.Embedding(VOCABULARY, DIM), MLP(), nn.LayerNorm(DIM)
        self.head = nn.Linear(DIM, VOCABULARY, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids):
        return self.head(self.norm(self.mlp(self.embed(ids))))


class Patches(nn.Module):
    """A vision transformer whose patches are cut by a reshape."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(3 * 4 * 4, DIM)
        self.layer = nn.TransformerEncoderLayer(DIM, HEADS, 4 * DIM, batch_first=True)
        self.token = nn.Parameter(torch.randn(1, 1, DIM))
        self.head = nn.Linear(DIM, 5)

    def forward(self, images):
        batch, channels, height, width = images.shape
        x = images.view(batch, channels, height // 4, 4, width // 4, 4).permute(0, 2, 4, 1, 3, 5)
        x = self.embed(x.reshape(batch, -1, 3 * 4 * 4))
        x = torch.cat([self.token.expand(batch, -1, -1), x], 1)
        return self.head(self.layer(x)[:, 0])


class Mapped(nn.Module):
    """Its mask is that of one query and one key, mapped over all, as in version 4 of transformers."""

    def __init__(self):
        super().__init__()
        self.mlp = MLP()

    def forward(self, x, mask):
        def is_seen(batch, query, key):
            near = (key <= query).logical_and(query - key < 3)
            return near & torch.ops.aten.index(mask, [batch, key]) & key.new_ones((), dtype=torch.bool)

        batch, length = torch.arange(x.shape[0]), torch.arange(x.shape[1])
        over_keys = torch.vmap(is_seen, in_dims=(None, None, 0))
        over_queries = torch.vmap(over_keys, in_dims=(None, 0, None))
        seen = torch.vmap(over_queries, in_dims=(0, None, None))(batch, length, length)
        scores = (x @ x.transpose(1, 2)).masked_fill(~seen, -1e4)
        return self.mlp(scores.softmax(-1) @ x)


class Viewed(nn.Module):
    """It relies on where PyTorch's kernel of attention puts its results: there the heads come after the tokens."""

    def __init__(self):
        super().__init__()
        self.qkv, self.mlp = nn.Linear(DIM, 3 * DIM), MLP()

    def forward(self, x):
        q, k, v = (y.view(*x.shape[:2], HEADS, -1).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
        y = nn.functional.scaled_dot_product_attention(q, k, v)
        return self.mlp(y.transpose(1, 2).view(x.shape))


class Averaged(nn.Module):
    """It keeps the average of its inputs, in place."""

    def __init__(self):
        super().__init__()
        self.mlp = MLP()
        self.register_buffer("average", torch.zeros(DIM))
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        self.count += 1
        self.average.lerp_(x.mean(0), 0.5)
        return self.mlp(x - self.average) * self.count


class Logits(nn.Module):
    """A model of transformers without the object that it returns."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids, mask=None):
        output = self.model(input_ids=ids, attention_mask=mask, use_cache=False)
        return output.logits if hasattr(output, "logits") else output.last_hidden_state


def make_transformers():
    from transformers import BertConfig, BertModel, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

    llama = LlamaForCausalLM(LlamaConfig(vocab_size=VOCABULARY, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
                                         num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=16))
    gpt2 = GPT2LMHeadModel(GPT2Config(vocab_size=VOCABULARY, n_positions=16, n_embd=32, n_layer=2, n_head=4))
    bert = BertModel(BertConfig(vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                                intermediate_size=64, max_position_embeddings=16))
    return Logits(llama).eval(), Logits(gpt2).eval(), Logits(bert).eval()


MLP_PLAN = {"up": "ColwiseParallel", "down": "RowwiseParallel"}
LLAMA_PLAN = {f"model.model.layers.*.{name}": style for name, style in
              {"self_attn.[qkv]_proj": "ColwiseParallel", "self_attn.o_proj": "RowwiseParallel", "mlp.gate_proj": "ColwiseParallel",
               "mlp.up_proj": "ColwiseParallel", "mlp.down_proj": "RowwiseParallel"}.items()}
BERT_PLAN = {f"model.encoder.layer.*.{name}": style for name, style in
             {"attention.self.*": "ColwiseParallel", "attention.output.dense": "RowwiseParallel",
              "intermediate.dense": "ColwiseParallel", "output.dense": "RowwiseParallel"}.items()}
# GPT-2's projections aren't nn.Linear: their inputs are split.
GPT2_PLAN = {"model.lm_head": "{style: ColwiseParallel, output_layouts: Replicate}"}


def under(prefix, plan):
    return {f"{prefix}.{name}": style for name, style in plan.items()}


def run(*command):
    process = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300)
    if process.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: {process.stderr[:3000]}")


class Case:
    """An imported program, in a folder of its own."""

    def __init__(self, folder, program, specs=()):
        self.folder = folder
        folder.mkdir()
        torch.export.save(program, folder / "model.pt2")
        flags = [flag for spec in specs for flag in ("--input", spec)]
        run("tp-import", folder / "model.pt2", *flags, "-o", folder / "model.mlir", "--weights", folder / "model.safetensors")
        self.inputs = re.findall(r'tp.name = "([^"]+)"}', (folder / "model.mlir").read_text().split(") -> ")[0])

    def compile(self, ranks, plan, options=""):
        entries = "".join(f"\n  {name}: {style}" for name, style in plan.items())
        (self.folder / "plan.yaml").write_text(f"mesh: {{tp: {ranks}}}\nplan:{entries}\n")
        run("tp-opt", self.folder / "model.mlir", "-o", self.folder / "ranks.mlir",
            f"--tp-parallelize=plan={self.folder / 'plan.yaml'} report={self.folder / 'report.json'} {options}")
        run("tp-compile", self.folder / "ranks.mlir", "-o", self.folder / "model.tpx")

    def run(self, inputs, expected, *options):
        np.save(self.folder / "expected.npy", expected.numpy())
        flags = []
        for name, tensor in inputs.items():
            np.save(self.folder / f"{name}.npy", tensor.numpy())
            flags += ["--input", f"{name}={self.folder / name}.npy"]
        run("tp-run", self.folder / "model.tpx", "--weights", self.folder / "model.safetensors", *flags,
            "--expect", self.folder / "expected.npy", "--rtol", "1e-4", "--atol", "1e-5", *options)


def check_models(folder):
    llama, gpt2, bert = make_transformers()
    ids, mask = torch.randint(VOCABULARY, (2, 8)), torch.ones(2, 8, dtype=torch.int64)
    mask[1, 5:] = 0
    x = torch.randn(6, DIM)
    batch = {"x": {0: Dim("batch", min=1, max=64)}}
    cases = [("mlp", MLP(), {"x": x}, MLP_PLAN, None), ("tied", Tied(), {"ids": ids}, under("mlp", MLP_PLAN), None),
             ("vit", Patches(), {"images": torch.randn(2, 3, 8, 8)}, {"layer.linear1": "ColwiseParallel", "layer.linear2": "RowwiseParallel"}, None),
             ("llama", llama, {"ids": ids}, LLAMA_PLAN, None), ("gpt2", gpt2, {"ids": ids}, GPT2_PLAN, None),
             ("viewed", Viewed(), {"x": torch.randn(2, 8, DIM)}, under("mlp", MLP_PLAN), None),
             ("mapped", Mapped(), {"x": torch.randn(2, 8, DIM), "mask": mask.bool()}, under("mlp", MLP_PLAN), None),
             ("bert", bert, {"ids": ids, "mask": mask}, BERT_PLAN, None), ("dynamic", MLP(), {"x": x}, MLP_PLAN, batch)]
    for name, model, inputs, plan, shapes in cases:
        model = model.eval()
        program = torch.export.export(model, tuple(inputs.values()), dynamic_shapes=shapes, strict=name == "mapped")
        specs = ()
        if shapes:
            inputs = {"x": torch.randn(10, DIM)}
            specs = (f"x=10x{DIM}xf32",)
        with torch.no_grad():
            expected = model(*inputs.values())
        forms = {"": program}
        if name not in ("gpt2", "mapped"):  # PyTorch can't decompose them
            forms["-core"] = program.run_decompositions()
        for form, program in forms.items():
            case = Case(folder / f"{name}{form}", program, specs)
            for ranks in 1, 2:
                case.compile(ranks, plan)
                case.run(inputs, expected)
        print(f"{name}: {len(forms)} forms agree on 1 and 2 ranks")


def check_state(folder):
    """The buffers after three runs."""
    model, x = Averaged().eval(), torch.randn(6, DIM)
    program = torch.export.export(model, (x,))
    for form, program in ("in-place", program), ("core", program.run_decompositions()):
        case = Case(folder / f"state-{form}", program)
        for ranks in 1, 2:
            run_model = copy.deepcopy(model)
            with torch.no_grad():
                for _ in range(3):
                    last = run_model(x)
            case.compile(ranks, under("mlp", MLP_PLAN))
            case.run({"x": x}, last, "--repeat", 3, "--output-weights", case.folder / "last.safetensors")
            stored = safetensors.torch.load_file(case.folder / "last.safetensors")
            for name in "average", "count":
                torch.testing.assert_close(stored[name], getattr(run_model, name))
    print("state: the buffers are PyTorch's")


def train_with_torch(model, inputs, target, optimizer, steps, loss=nn.functional.mse_loss):
    """The losses of some steps, which `optimizer` takes."""
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        value = loss(model(*inputs), target)
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return losses


def train_compiled(folder, inputs, target, steps, *options):
    """The losses of model.tpx, a training; `inputs` by their names in the program."""
    data = []
    for name, tensor in {**inputs, "target": target}.items():
        np.save(folder / f"{name}.npy", tensor.numpy())
        data += ["--data", f"{name}={folder / name}.npy"]
    run("tp-run", folder / "model.tpx", "--weights", folder / "model.safetensors", *data, "--steps", steps, "--no-shuffle",
        "--metrics", folder / "metrics.jsonl", *options)
    return [json.loads(line)["loss"] for line in (folder / "metrics.jsonl").read_text().splitlines()]


def check_training(folder):
    """Adam on a program in training mode, as exported and in core ATen: its losses are those of PyTorch."""
    model, ids, target = Tied().train(), torch.randint(VOCABULARY, (4, 8)), torch.randn(4, 8, VOCABULARY)
    program = torch.export.export(model, (ids,))
    trained = copy.deepcopy(model)
    losses = train_with_torch(trained, (ids,), target, torch.optim.Adam(trained.parameters(), lr=0.01, eps=1e-3), steps=3)
    for form, program in ("exported", program), ("core", program.run_decompositions()):
        case = Case(folder / f"training-{form}", program)
        (case.folder / "train.yaml").write_text("loss: mse\noptimizer: {name: Adam, lr: 0.01, eps: 1.0e-3}\n")
        for ranks in 1, 2:
            case.compile(ranks, under("mlp", MLP_PLAN), f"train={case.folder / 'train.yaml'}")
            np.testing.assert_allclose(train_compiled(case.folder, {"ids": ids}, target, 3), losses, rtol=1e-4)
    print("training: 3 losses agree")


class Memory(nn.Module):
    """A part of a model that keeps what another part writes."""

    def __init__(self):
        super().__init__()
        self.register_buffer("memory", torch.zeros(2, 4), persistent=False)


class Writer(Memory):
    def forward(self, x):
        self.memory.copy_(nn.functional.gelu(x))
        return x.sum()


class Reader(Memory):
    def forward(self, y):
        return y * self.memory


def check_shared_state(folder):
    """A program reads what another one of the artifact has written, and isn't compiled with it as if that were a constant."""
    x, y, wrote = torch.randn(2, 4), torch.randn(3, 2, 4), "memory.safetensors"
    for model, name, tensor in (Writer(), "x", x), (Reader(), "y", y):
        np.save(folder / f"{name}.npy", tensor.numpy())
        torch.export.save(torch.export.export(model, (tensor,)), folder / f"{name}.pt2")

    def compile(*options):
        for name, flags, plan in ("x", (), "memory: [Shard(1)]"), ("y", options, "memory: [Shard(1)]" if options else ""):
            (folder / "plan.yaml").write_text(f"mesh: {{tp: 2}}\nplan: {{{plan}}}\n")
            run("tp-import", folder / f"{name}.pt2", *flags, "-o", folder / f"{name}.model.mlir")
            run("tp-opt", folder / f"{name}.model.mlir", f"--tp-parallelize=plan={folder / 'plan.yaml'}", "-o", folder / f"{name}.mlir")
        run("tp-compile", folder / "x.mlir", folder / "y.mlir", "-o", folder / "both.tpx")

    try:
        compile()
    except RuntimeError as error:
        assert "buffer 'memory' is a constant in program 'y', and is updated in 'x'; import the model of 'y' with --state=memory" in str(error)
    else:
        raise AssertionError("a program has a buffer as a constant that another one updates")
    compile("--state=memory")
    run("tp-run", folder / "both.tpx", "--input", f"x={folder}/x.npy", "--state-out", folder / wrote)
    run("tp-run", folder / "both.tpx", "--input", f"y={folder}/y.npy", "--state-in", folder / wrote, "--state-out", folder / "kept.safetensors",
        "--output", folder / "output.npy")
    np.testing.assert_allclose(np.load(folder / "output.npy"), y * nn.functional.gelu(x), rtol=1e-5, atol=1e-6)
    assert (folder / wrote).read_bytes() == (folder / "kept.safetensors").read_bytes()
    print("shared state: a program reads what another one wrote")


def main():
    torch.manual_seed(0)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        check_models(folder)
        check_state(folder)
        check_shared_state(folder)
        check_training(folder)


if __name__ == "__main__":
    sys.exit(main())
