"""Checks that programs of upstream ops (linalg, tensor, arith, math, tosa; alone and with nn ops), which many ranks run with
random placements of arguments and results, compute what PyTorch computes, with and without rewrites of collectives.

  upstream.py [--tools DIRECTORY] [--seed N] [--batches N] [--first N] [--filter REGEX] [--keep DIRECTORY]

A batch is all cases over one mesh. Its outputs must equal PyTorch's on every rank, and the bytes that tp-run counts those
that the report predicts. Exit code 1 when any fails.
"""

import re
import sys

import execution
import programs
from upstream_cases import CASES

MESHES = (
    (("tp", 2),),
    (("tp", 4),),
    (("tp", 1),),
    (("dp", 2), ("tp", 2)),
    (("tp", 3),),
    (("dp", 2), ("tp", 4)),
)
# Options of tp-parallelize; a batch has the next ones.
REWRITES = (
    "",
    "one-shot=false bucket-bytes=4096 sequence-parallel",
    "",
    "overlap chunks=2",
    "bucket-bytes=1000000 memory-limit=4096",
)


def get_program(case, prefix, placer):
    """`case` with its names made the program's own, its arguments and results placed at random."""
    own = lambda text: re.sub(r"([%^])@", rf"\1{prefix}_", text)
    program = programs.Program(case.name, exact=case.exact)
    for i, value in enumerate(case.inputs):
        program.arguments.append((f"{prefix}_{i}", value, case.placement or placer.maybe(value.shape)))
    program.body = own(case.ir).splitlines()
    for i, expected in enumerate(case.expected):
        name = "r" if i == 0 else f"r{i}"
        program.results.append((f"%{prefix}_{name}", f"{prefix}_{name}", expected, case.placement or placer.maybe(expected.shape, 0.5)))
    return program


def main():
    parser = execution.get_parser(__doc__, batches=len(MESHES))
    parser.add_argument("--filter", default="", help="only cases whose name matches this regular expression")
    options = parser.parse_args()
    number = options.first

    def draw_batch(options, source, generator):
        nonlocal number
        mesh = programs.Mesh(MESHES[number % len(MESHES)])
        rewrites = REWRITES[number % len(REWRITES)]
        number += 1
        placer = programs.Placer(mesh, source)
        # One op of nn would make the ops that rewrites add nn's.
        cases = [case for case in CASES if re.search(options.filter, case.name) and not (rewrites and "nn." in case.ir)]
        batch = [get_program(case, f"c{i}", placer) for i, case in enumerate(cases)]
        return execution.Batch(mesh, batch, lambda report: [f"--tp-parallelize=report={report} machine=cpu {rewrites}"])

    return execution.check_batches(options, draw_batch)


if __name__ == "__main__":
    sys.exit(main())
