"""Random numbers in models: random_ops.py <directory> [--all]

Ops, with uses of their results, are exported, exported and decomposed, or scripted. A result that is used is an error, whatever the op
reads and wherever its result goes: it must never be drawn at import. Prints which programs aren't refused so.
"""

import itertools
import pathlib
import subprocess
import sys
import warnings

import torch
from torch import nn

warnings.simplefilter("ignore")

FORMS = ("exported", "decomposed", "scripted")
OPS = {
    "rand": "torch.rand([2, 4])",
    "rand_on": "torch.rand([2, 4], device='cpu')",
    "randn": "torch.randn([2, 4])",
    "randint": "torch.randint(0, 3, [2, 4]).float()",
    "randperm": "torch.randperm(8).reshape(2, 4).float()",
    "rand_like": "torch.rand_like(x)",
    "rand_like_constant": "torch.rand_like(torch.ones(2, 4))",
    "bernoulli": "torch.bernoulli(torch.full([2, 4], 0.5))",
    "bernoulli_input": "torch.bernoulli(x.sigmoid())",
    "normal": "torch.normal(torch.zeros(2, 4), 1.0)",
    "multinomial": "torch.multinomial(torch.ones(2, 4), 4).float()",
    "poisson": "torch.poisson(torch.ones(2, 4))",
    "uniform": "torch.zeros(2, 4).uniform_()",
    "normal_": "torch.empty(2, 4).normal_()",
}
USES = {
    "sum": "return x + r",
    "output": "return x, r",
    "view": "return x * r.t().reshape(4, 2).t()",
    "index": "return x[r[:, 0].long() * 0]",
    "shape": "return x + torch.zeros_like(r)",
    "write": "y = x.clone()\n        y[:] = r\n        return y",
    "buffer": "self.b.copy_(r)\n        return x + 1",
    "constant": "t = torch.zeros(2, 4)\n        t += r\n        return x + t",
}
HARMLESS = {"shape"}  # a program that imports nevertheless is right


def make(name, op, use):
    code = f"""
class {name}(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("b", torch.zeros(2, 4))

    def forward(self, x):
        r = {op}
        {use}
"""
    path = directory / f"{name}.py"
    path.write_text("import torch\nfrom torch import nn\n" + code)
    scope = {}
    exec(compile(path.read_text(), str(path), "exec"), scope)
    return scope[name]().eval()


def save(model, file, form):
    """PyTorch's file of the model; None if it makes none."""
    try:
        if form == "scripted":
            torch.jit.script(model).save(file)
        else:
            program = torch.export.export(model, (torch.randn(2, 4),))
            torch.export.save(program.run_decompositions() if form == "decomposed" else program, file)
    except Exception:
        return None
    return file


def choose(takes_all):
    """Each op, each use and each form several times; all of them together take minutes."""
    cases = list(itertools.product(OPS, USES, FORMS))
    return cases if takes_all else cases[::11]


directory = pathlib.Path(sys.argv[1])
directory.mkdir(parents=True, exist_ok=True)
count, wrong = 0, []
for op, use, form in choose("--all" in sys.argv):
    name = f"M_{op}_{use}_{form}"
    file = save(make(name, OPS[op], USES[use]), directory / (name + (".pt" if form == "scripted" else ".pt2")), form)
    if not file:
        continue
    count += 1
    run = subprocess.run(["tp-import", file, "-o", "-", *(["--input", "x=2x4xf32"] if form == "scripted" else [])],
                         capture_output=True, text=True)
    if run.returncode == 0 and use in HARMLESS:
        continue
    if run.returncode != 1 or "its result is random" not in run.stderr:
        wrong.append(f"{name}: exit code {run.returncode}, {run.stderr[:200]}")
print(f"{count} programs, {len(wrong)} wrong", *wrong, sep="\n")
