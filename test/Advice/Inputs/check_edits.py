"""Does each edit that tp-explain proposes: writes it into the plan, whose entries have a line each.

What it says of the program's bytes and collectives must be what comes out, a redistribution that it removes
must be gone, no edit may leave more to move, and what is said of the program before and after is what
tp-report counts: as propagated, and after tp-optimize-collectives.
"""

import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "python/tp_mlir"))
from rank_classes import Ranks

model, plan, folder = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
folder.mkdir(parents=True, exist_ok=True)
report = folder / "report.json"


def explain(path):
    done = subprocess.run(["tp-opt", model, f"--tp-explain=plan={path} format=json"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    explained = json.loads(done.stdout)
    totals = explained["totals"]
    for stage, total, passes in (
            ("propagated", totals,
             [f"--tp-apply-plan=plan={path}", "--tp-propagate", "--tp-partition", f"--tp-report=file={report}"]),
            ("optimized", totals["optimized"], [f"--tp-parallelize=plan={path} report={report}"])):
        subprocess.run(["tp-opt", model, *passes, "-o", "/dev/null"], stderr=subprocess.DEVNULL, check=True)
        data = json.loads(report.read_text())
        collectives, ranks = data["collectives"], Ranks(data)
        counted = {"bytes": sum(ranks.sum(one["bytes_by_class"]) for one in collectives), "collectives": len(collectives)}
        for key, value in counted.items():
            if total[key] != value:
                sys.exit(f"{path}: {stage}, explained {key} {total[key]}, reported {value}")
    return explained


def write(edit, path):
    lines = plan.read_text().splitlines()
    line, column = map(int, edit["place"].split(":")[-2:])
    if edit["action"] == "replace":
        lines[line - 1] = lines[line - 1][:column - 1] + edit["text"]
    elif edit["action"] == "remove":
        del lines[line - 1]
    else:
        lines.append("  " + edit["text"])
    path.write_text("\n".join(lines) + "\n")


def is_same(a, b):
    return all(a.get(key) == b.get(key) for key in ("op", "fqn", "operand", "location"))


before = explain(plan)
done = 0
for redistribution in before["redistributions"]:
    for edit in redistribution["edits"]:
        changed = folder / "changed.yaml"
        write(edit, changed)
        after = explain(changed)
        for key in ("bytes", "collectives"):
            delta = after["totals"][key] - before["totals"][key]
            if delta != edit[key]:
                sys.exit(f"{edit}: changes {key} by {delta}\n{changed.read_text()}")
        if edit["bytes"] > 0 or (edit["bytes"] == 0 and edit["collectives"] >= 0):
            sys.exit(f"{edit}: leaves no less to move")
        left = [other for other in after["redistributions"]
                if other["value"] == redistribution["value"] and other["shape"] == redistribution["shape"]]
        if edit["removes"]:
            if any(is_same(other, redistribution) for other in left):
                sys.exit(f"{edit}: leaves {redistribution}")
            if -edit["bytes"] < redistribution["bytes"] * redistribution["times"]:
                sys.exit(f"{edit}: moves {redistribution} elsewhere")
        done += 1
print(f"{done} edits do what they say")
