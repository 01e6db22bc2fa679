"""Random models of linears, norms and sums, with random plans: each edit that tp-explain proposes does what it says."""

import random
import subprocess
import sys
from pathlib import Path

folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
check = Path(__file__).with_name("check_edits.py")
SIZE, ROWS = 16, 8
WHOLE = f"tensor<{ROWS}x{SIZE}xf32>"


def make_model(rng):
    """A chain of modules in which some take a sum of two values before."""
    lines, values, names = [], ["%a"], []
    for i in range(rng.randint(2, 4)):
        value = rng.choice(values[-2:])
        kind = rng.choice(["linear", "linear", "norm"])
        name = f"{kind}{i}"
        weight = f"tensor<{SIZE}x{SIZE}xf32>" if kind == "linear" else f"tensor<{SIZE}xf32>"
        body = (f"%y = nn.linear %input, %w : ({WHOLE}, {weight}) -> {WHOLE}" if kind == "linear" else
                f"%y = nn.mul %input, %w : ({WHOLE}, {weight}) -> {WHOLE}")
        lines += [f'    %{name} = nn.module "{name}" class "{kind.title()}" ({value} as "input" at 0) {{',
                  f"    ^bb0(%input: {WHOLE}):",
                  f'      %w = nn.parameter "{name}.weight" : {weight}',
                  f"      {body}", f"      nn.yield %y : {WHOLE}", f"    }} : ({WHOLE}) -> {WHOLE}"]
        names.append(name)
        values.append(f"%{name}")
        if rng.random() < 0.5:
            values.append(f"%act{i}")
            lines.append(f"    %act{i} = nn.relu %{name} : {WHOLE}")
        elif len(values) > 2 and rng.random() < 0.5:
            lines.append(f"    %sum{i} = nn.add {values[-1]}, {values[-2]} : ({WHOLE}, {WHOLE}) -> {WHOLE}")
            values.append(f"%sum{i}")
    return names, "\n".join([f"func.func @main(%x: {WHOLE}) -> {WHOLE} {{",
                             '  %r = nn.module "" class "Model" (%x as "x" at 0) {', f"  ^bb0(%a: {WHOLE}):", *lines,
                             f"    nn.yield {values[-1]} : {WHOLE}", f"  }} : ({WHOLE}) -> {WHOLE}",
                             f"  return %r : {WHOLE}", "}"]) + "\n"


def make_plan(rng, names):
    layouts = ["Replicate", "Shard(0)", "Shard(1)"]
    lines = [f"mesh: {{tp: {rng.choice([2, 4])}}}", "plan:"]
    for name in names:
        if rng.random() < 0.2:
            continue
        styles = ["ColwiseParallel", "RowwiseParallel"] if name.startswith("linear") else ["SequenceParallel"]
        entry = f"style: {rng.choice(styles)}"
        if name.startswith("linear"):
            for argument in ("input_layouts", "output_layouts"):
                if rng.random() < 0.4:
                    entry += f", {argument}: {rng.choice(layouts)}"
        else:
            entry += f", sequence_dim: {rng.choice([0, 1])}"
        lines.append(f"  {name}: {{{entry}}}")
    return "\n".join(lines) + "\n" if len(lines) > 2 else None


total = 0
for seed in range(12):
    rng = random.Random(seed)
    names, model = make_model(rng)
    plan = make_plan(rng, names)
    if plan is None:
        continue
    (folder / "model.mlir").write_text(model)
    (folder / "plan.yaml").write_text(plan)
    done = subprocess.run([sys.executable, check, folder / "model.mlir", folder / "plan.yaml", folder / "edits"],
                          capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"seed {seed}: {done.stdout}{done.stderr}\n{plan}{model}")
    total += int(done.stdout.split()[0])
if not total:
    sys.exit("no edit was proposed")
print(f"{total} edits do what they say")
