#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Print a program's kernels as Nsight Compute measured them: a row of a table for each launch of the last of some equal runs.

    ncu --csv --log-file FILE --metrics METRICS tp-run PROGRAM --no-graphs --repeat N …
    ncu_table.py FILE N

`ncu_table.py --metrics` prints METRICS.
"""

import csv
import sys

TIME, BYTES = "gpu__time_duration.sum", "dram__bytes.sum"
DRAM, SM = (f"{unit}__throughput.avg.pct_of_peak_sustained_elapsed" for unit in ("dram", "sm"))
REGISTERS, GRID, BLOCK = "launch__registers_per_thread", "launch__grid_size", "launch__block_size"
METRICS = [TIME, BYTES, DRAM, SM, REGISTERS, GRID, BLOCK]
UNITS = {"ns": 1e-3, "nsecond": 1e-3, "us": 1, "usecond": 1, "ms": 1e3, "msecond": 1e3,
         "byte": 1e-6, "Kbyte": 1e-3, "Mbyte": 1, "Gbyte": 1e3}


def read(path):
    """The launches in order, each a dict of its name and its metrics, in microseconds and megabytes."""
    launches = {}
    with open(path) as file:
        for row in csv.DictReader(line for line in file if line.startswith('"')):
            launch = launches.setdefault(row["ID"], {"name": row["Kernel Name"]})
            value = row["Metric Value"].replace(",", "")
            launch[row["Metric Name"]] = float(value or 0) * UNITS.get(row["Metric Unit"], 1)
    return list(launches.values())


def main():
    if sys.argv[1:] == ["--metrics"]:
        return print(",".join(METRICS))
    launches = read(sys.argv[1])
    runs = int(sys.argv[2])
    if not launches or len(launches) % runs:
        sys.exit(f"error: {len(launches)} launches aren't {runs} equal runs")
    launches = launches[-len(launches) // runs:]
    print("| kernel | µs | MB | % of DRAM | % of SM | registers | blocks × threads |\n|---|---|---|---|---|---|---|")
    for launch in launches:
        time, size, dram, sm, registers, grid, block = (launch.get(metric, 0) for metric in METRICS)
        name = launch["name"].split("(")[0][-48:].replace("|", "/")
        print(f"| `{name}` | {time:.1f} | {size:.2f} | {dram:.0f} | {sm:.0f} | {registers:.0f} | {grid:.0f} × {block:.0f} |")
    print(f"| {len(launches)} launches | {sum(launch[TIME] for launch in launches):.1f} | {sum(launch[BYTES] for launch in launches):.1f} | | | | |")


if __name__ == "__main__":
    main()
