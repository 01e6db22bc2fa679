"""check_trace.py TRACE REPORT RUN RUNS [FQN ...]: checks that a trace of tp-run is a well-formed JSON trace, and finds every collective
of the report and of the run in it, in each of RUNS runs, with a query of Perfetto's trace processor too where that is
installed: the package `perfetto`, and the program `trace_processor_shell` in PATH (or named by TRACE_PROCESSOR), which
the package would otherwise download. The collectives of the modules FQN, and no others, ran beside computation."""

import json
import os
import pathlib
import shutil
import sys
from collections import Counter

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[4] / "python/tp_mlir"))
import rank_classes

COMPUTE, COMMUNICATION = "compute", "communication"


def is_communication(track):
    """Collectives that are under way at the same time have tracks of their own, "communication 2", and so on."""
    return track is not None and track.split(" ")[0] == COMMUNICATION


def expect(holds, what):
    if not holds:
        sys.exit(f"error: {what}")


def check_form(events):
    """Every event has what its kind needs; slices of a track are nested or apart; arrows begin and end in slices."""
    tracks, slices, flows = {}, {}, {}
    for event in events:
        place = event["pid"], event["tid"]
        expect(all(isinstance(number, int) for number in place), f"no process or thread: {event}")
        kind = event["ph"]
        if kind == "M":
            expect(event["name"] in ("process_name", "thread_name"), f"unknown metadata: {event}")
            if event["name"] == "thread_name":
                tracks[place] = event["args"]["name"]
            else:
                expect(event["args"]["name"] == f"rank {event['pid']}", f"process of no rank: {event}")
            continue
        expect(event["ts"] >= 0 and event["name"] and event["cat"], f"incomplete: {event}")
        if kind == "X":
            expect(event["dur"] >= 0, f"negative duration: {event}")
            slices.setdefault(place, []).append(event)
        else:
            expect(kind in "stf", f"unknown kind: {event}")
            flows.setdefault(event["id"], []).append(event)
    for place, members in slices.items():
        expect(tracks.get(place) == COMPUTE or is_communication(tracks.get(place)), f"track without a name: {place}")
        open_ends = []
        for event in sorted(members, key=lambda e: (e["ts"], -e["dur"])):
            while open_ends and open_ends[-1] <= event["ts"] + 1e-3:
                open_ends.pop()
            end = event["ts"] + event["dur"]
            expect(not open_ends or end <= open_ends[-1] + 1e-3, f"overlaps the slice before it: {event}")
            open_ends.append(end)
    for steps in flows.values():
        steps.sort(key=lambda e: e["ts"])
        expect([e["ph"] for e in steps] == ["s"] + ["t"] * (len(steps) - 2) + ["f"], f"no arrow: {steps}")
        expect(len({e["pid"] for e in steps}) == len(steps), f"arrow back to its rank: {steps}")
        for event in steps:
            around = [s for s in slices[event["pid"], event["tid"]] if s["ts"] <= event["ts"] <= s["ts"] + s["dur"]]
            expect(any(s["name"].startswith(event["name"]) for s in around), f"arrow without a slice: {event}")
    return tracks, flows


def query(path):
    """(rank, run, id, kind, fqn, bytes) of each collective, as Perfetto's trace processor reads them; None without it."""
    shell = os.environ.get("TRACE_PROCESSOR") or shutil.which("trace_processor_shell")
    try:
        from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig
    except ImportError:
        shell = None
    if not shell:
        return None
    processor = TraceProcessor(trace=path, config=TraceProcessorConfig(bin_path=shell))
    names = {"run": "int", "id": "int", "kind": "string", "fqn": "string", "bytes": "int"}
    columns = ", ".join(f"extract_arg(s.arg_set_id, 'args.{name}') as {name}" for name in names)
    rows = processor.query(f"""select p.pid as pid, {columns} from slice s
        join thread_track t on s.track_id = t.id join thread using (utid) join process p using (upid)
        where s.category = 'collective'""")
    found = [(row.pid, row.run, row.id, row.kind, row.fqn, row.bytes) for row in rows]
    processor.close()
    return found


def main():
    path, report, run = sys.argv[1], json.load(open(sys.argv[2])), json.load(open(sys.argv[3]))
    runs = int(sys.argv[4])
    events = json.load(open(path))["traceEvents"]
    tracks, flows = check_form(events)
    ranks = rank_classes.Ranks(report)
    expect(len(ranks) == run["world_size"], f"the report has {len(ranks)} ranks")
    expected = Counter((rank.number, number, item["id"], item["kind"], item["fqn"], rank.get_bytes(item["id"]))
                       for item in report["collectives"] for rank in ranks for number in range(runs))
    slices = [event for event in events if event["ph"] == "X"]
    found = Counter((e["pid"], e["args"]["run"], e["args"]["id"], e["args"]["kind"], e["args"]["fqn"], e["args"]["bytes"])
                    for e in slices if e["cat"] == "collective")
    expect(found and found == expected, f"collectives: found {found}, expected {expected}")
    expect(len(flows) == len(report["collectives"]) * runs, f"found {len(flows)} arrows")
    expect(all(is_communication(tracks[e["pid"], e["tid"]]) == (e["cat"] == "collective") for e in slices),
           "a slice on the wrong track")
    fqns = {e["args"]["fqn"] for e in slices if e["cat"] == "compute"}
    expect({"layers.0.up", "layers.1.down", "head"} <= fqns, f"modules: {fqns}")

    rows = run["profile"]["rows"]
    calls = Counter({(row["fqn"], row["kind"]): row["calls"] for row in rows if not row["op"]})
    expect(calls == Counter((item["fqn"], item["kind"]) for item in report["collectives"]), f"profile: {calls}")
    total = sum(row["seconds"] for row in rows)
    expect(0 < total <= run["profile"]["seconds"], f"profile: {total} of {run['profile']['seconds']} s")
    # Of a collective that was started, what the rank waited for it.
    traced = sum(e["args"].get("waited_us", e["dur"]) for e in slices if e["cat"] != "run") * 1e-6 / runs / len(ranks)
    if len(sys.argv) > 5:
        started = {e["args"]["fqn"] for e in slices if "waited_us" in e["args"]}
        expect(started == set(sys.argv[5:]), f"started: {started}")
    expect(abs(traced - total) < 1e-3 * total + 1e-8, f"profile: {total} s, trace: {traced} s")

    queried = query(path)
    if queried is None:
        print("Perfetto's trace processor isn't installed: the trace was checked without it")
    else:
        expect(Counter(queried) == expected, f"trace processor: found {queried}, expected {expected}")


if __name__ == "__main__":
    main()
