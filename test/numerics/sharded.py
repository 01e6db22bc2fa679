"""Checks that what many ranks compute together is what PyTorch computes, for programs with random placements.

  sharded.py [--tools DIRECTORY] [--seed N] [--batches N] [--first N] [--graphs N] [--cases N] [--keep DIRECTORY]

A batch is a random mesh, some random graphs and some of the single-op cases, with random placements on arguments,
parameters and results, and random redistributions in between; in half of them what trades one cost of collectives for
another is turned on. Its outputs must equal PyTorch's on every rank, and the
bytes that tp-run counts those that the report predicts. Exit code 1 when any fails.
"""

import sys

import cases
import execution
import programs

MESHES = (
    (("tp", 1),),
    (("tp", 2),),
    (("tp", 3),),
    (("tp", 4),),
    (("dp", 2), ("tp", 2)),
    (("dp", 2), ("tp", 3)),
    (("dp", 3), ("tp", 2)),
    (("dp", 2), ("tp", 1)),
    (("a", 2), ("b", 2), ("c", 2)),
)


def by_pipeline(report):
    return [f"--tp-parallelize=report={report} machine=cpu"]


def by_passes(source):
    optimize = [
        "sequence-parallel" if source.random() < 0.6 else "",
        f"bucket-bytes={source.choice((64, 512, 100000))}" if source.random() < 0.6 else "",
        f"memory-limit={source.choice((100, 2000))}" if source.random() < 0.4 else "",
    ]
    # Without a latency, bytes alone decide: op by op, other splits than by default.
    passes = ["--tp-propagate=latency-bytes=0", "--tp-partition",
              f"--tp-optimize-collectives={' '.join(filter(None, optimize))}"]
    if source.random() < 0.7:
        passes.append(f"--tp-overlap-collectives=chunks={source.choice((1, 2, 3))}")
    return lambda report: [*passes, "--tp-verify-collectives", "--tp-predict-memory",
                           f"--tp-report=file={report} machine=cpu"]


def draw_batch(options, source, generator):
    mesh = programs.Mesh(source.choice(MESHES))
    placer = programs.Placer(mesh, source)
    batch = [programs.random_graph(f"g{i}", placer, source, generator) for i in range(options.graphs)]
    for i, case in enumerate(source.sample(cases.CASES, options.cases)):
        batch.append(programs.from_case(case, f"c{i}", placer))
    return execution.Batch(mesh, batch, by_pipeline if source.random() < 0.5 else by_passes(source))


def main():
    parser = execution.get_parser(__doc__, batches=10)
    parser.add_argument("--graphs", type=int, default=12, help="random graphs a batch")
    parser.add_argument("--cases", type=int, default=12, help="single-op cases a batch")
    return execution.check_batches(parser.parse_args(), draw_batch)


if __name__ == "__main__":
    sys.exit(main())
