"""Compares the order of passes in the stages' programs with PyTorch's schedules.

For each number of ranks, stages per rank and microbatches, writes a program of one op per pass, marked with its stage and
pass, cuts it into stages, and reads the order from each rank's program. Each backward pass has an op that the stage before
waits for, and one that it doesn't, which stands for the gradients of weights.
"""

import itertools
import re
import subprocess
import sys

from torch.distributed.pipelining import schedules

CLASSES = {"Interleaved1F1B": schedules.ScheduleInterleaved1F1B, "InterleavedZeroBubble": schedules.ScheduleInterleavedZeroBubble}
LETTERS = {"FORWARD": "F", "FULL_BACKWARD": "B", "BACKWARD_INPUT": "B", "BACKWARD_WEIGHT": "W"}


def get_program(schedule, ranks, stages, microbatches):
    lines = [f"tp.mesh @mesh(pp = {ranks})",
             f'tp.pipeline @mesh over "pp" schedule "{schedule}" microbatches {microbatches} stages {stages}',
             "func.func @main(%x: tensor<4xf32>) {"]
    type1, type2 = "tensor<4xf32>", "(tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>"

    def add(result, op, operands, kind, stage, batch):
        is_backward = int(kind != "F")
        attrs = f'tp.fqn = "{stage}{kind}{batch}", tp.pass = {2 * batch + is_backward} : i64, tp.stage = {stage} : i64'
        lines.append(f"  {result} = {op} {operands} {{{attrs}}} : {type1 if op == 'nn.exp' else type2}")

    for stage in range(stages):
        lines.append(f'  %w{stage} = nn.parameter "{stage}" : {type1}')
    for batch in range(microbatches):
        value = "%x"
        for stage in range(stages):
            add(f"%f{stage}_{batch}", "nn.mul", f"{value}, %w{stage}", "F", stage, batch)
            value = f"%f{stage}_{batch}"
        for stage in reversed(range(stages)):
            add(f"%b{stage}_{batch}", "nn.mul", f"{value}, %f{stage}_{batch}", "B", stage, batch)
            value = f"%b{stage}_{batch}"
            add(f"%g{stage}_{batch}", "nn.exp", value, "W", stage, batch)
    for stage in range(stages):
        for batch in range(1, microbatches):
            earlier = f"%g{stage}_0" if batch == 1 else f"%s{stage}_{batch - 1}"
            lines.append(f"  %s{stage}_{batch} = nn.add {earlier}, %g{stage}_{batch} : {type2}")
        total = f"%s{stage}_{microbatches - 1}" if microbatches > 1 else f"%g{stage}_0"
        lines.append(f'  nn.assign "{stage}", {total} : {type1}')
    return "\n".join([*lines, "  return", "}", ""])


def get_ours(schedule, ranks, stages, microbatches):
    program = get_program(schedule, ranks, stages, microbatches)
    command = ["tp-opt", "-", "--tp-cut-stages", "--tp-verify-collectives"]
    text = subprocess.run(command, input=program, stdout=subprocess.PIPE, text=True, check=True).stdout
    functions = re.split(r"func\.func @main\w*", text)[1:]
    return [re.findall(r'= nn\.\w+ .*tp\.fqn = "(\d+[FBW]\d+)"', function) for function in functions]


def get_expected(schedule, ranks, stages, microbatches):
    if schedule == "1F1B":
        # Schedule1F1B has no such list: min(ranks - rank, microbatches) forward passes, then one of each.
        expected = []
        for rank in range(ranks):
            warmup = min(ranks - rank, microbatches)
            order = [f"{rank}F{batch}" for batch in range(warmup)]
            for batch in range(microbatches):
                order.append(f"{rank}B{batch}")
                order += [f"{rank}F{batch + warmup}"] * (batch + warmup < microbatches)
            expected.append(order)
        return expected
    if schedule == "GPipe":
        return [[f"{rank}{kind}{batch}" for kind in "FB" for batch in range(microbatches)] for rank in range(ranks)]
    theirs = CLASSES[schedule].__new__(CLASSES[schedule])
    theirs.pp_group_size, theirs.n_local_stages, theirs._n_microbatches = ranks, stages // ranks, microbatches
    theirs.number_of_rounds = max(1, microbatches // ranks)
    theirs.microbatches_per_round = microbatches // theirs.number_of_rounds
    orders = [theirs._calculate_single_rank_operations(rank) for rank in range(ranks)]
    return [[f"{action.stage_index}{LETTERS[action.computation_type.name]}{action.microbatch_index}" for action in order if action]
            for order in orders]


def main():
    count = 0
    for schedule, ranks, local, microbatches in itertools.product(
            ("GPipe", "1F1B", "Interleaved1F1B", "InterleavedZeroBubble"), (2, 3, 4), (1, 2, 3), (1, 2, 3, 4, 6, 8)):
        isSingle, isMulti = schedule in ("GPipe", "1F1B"), schedule == "Interleaved1F1B"
        if (local > 1 if isSingle else local == 1 and isMulti) or microbatches % max(1, microbatches // ranks):
            continue
        ours = get_ours(schedule, ranks, ranks * local, microbatches)
        if schedule != "InterleavedZeroBubble":  # gradients of weights are part of the backward pass
            ours = [[each for each in order if "W" not in each] for order in ours]
        expected = get_expected(schedule, ranks, ranks * local, microbatches)
        # Nothing waits for the first stage, so all of its backward pass are gradients of weights.
        for order in (*ours, *expected):
            if schedule == "InterleavedZeroBubble":
                order[:] = [each for each in order if not each.startswith("0B")]
        if ours != expected:
            sys.exit(f"{schedule}, {ranks} ranks of {local} stages, {microbatches} microbatches: {ours}, must be {expected}")
        count += 1
    print(f"{count} schedules are PyTorch's")


if __name__ == "__main__":
    main()
