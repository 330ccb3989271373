#!/usr/bin/env python3
"""Repeats the step of a timeline file until it has so many runs and memory events.

    tidemark explain vit-b-16 -b 64 -o small.timeline.json
    scripts/make_large_timeline.py small.timeline.json 50000000 | zstd -q > large.timeline.json.zst
    tidemark view large.timeline.json.zst

What is persistent is there once; all else comes again in every repetition, that much later.
"""

import json
import sys


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        small = json.load(file)
    events = len(small["runs"]["step"]) + len(small["memory"]["buffer"])
    write(small, -(-int(sys.argv[2]) // events))


def write(small, times):
    buffers, steps, runs = small["buffers"], small["steps"], small["runs"]
    memory, run_steps = small["memory"], small["run_steps"]
    lasting = [b for b, persistent in enumerate(buffers["persistent"]) if persistent]
    passing = [b for b, persistent in enumerate(buffers["persistent"]) if not persistent]
    # By buffer of the small file: its number in the first repetition; in others those that pass
    # have as many more as pass in one.
    number = {b: i for i, b in enumerate(lasting + passing)}
    of_buffer = [small["names"]["step"][kind] in ("allocate", "free", "copy_out", "copy_in")
                 for kind in steps["kind"]]
    of_event = [small["names"]["step"][kind] in ("record", "wait", "synchronize")
                for kind in steps["kind"]]
    duration, events = small["duration_ns"], small["events"]

    def moved_buffer(b, i):
        return number[b] + (i * len(passing) if number[b] >= len(lasting) else 0)

    def moved_of(s, i):
        of = steps["of"][s]
        if of_buffer[s]:
            return moved_buffer(of, i)
        return of + i * events if of_event[s] else of

    out = sys.stdout
    head = {key: small[key] for key in ("format", "version", "source", "strategy", "device",
                                        "streams", "names")}
    for key in ("capacity_bytes", "planned_bytes"):
        head[key] = small.get(key, 0)
    for key in ("duration_ns", "host_ns", "idle_ns", "waits_for_host_ns", "overlap_ns"):
        head[key] = small[key] * times
    head["events"] = events * times
    for key in ("encodings", "decisions", "trace"):
        if key in small:
            head[key] = small[key]
    out.write(json.dumps(head)[:-1])

    def column(before, name, values):
        """Of each repetition: values(i), or the same list for all."""
        out.write(f'{before}"{name}":[')
        same = None if callable(values) else ",".join(map(str, values))
        for i in range(times):
            text = same if same is not None else ",".join(map(str, values(i)))
            out.write(("," if i > 0 and text else "") + text)
        out.write("]")

    before = ',"buffers":{'
    for name, values in buffers.items():
        first = ",".join(str(values[b]) for b in lasting)
        out.write(f'{before}"{name}":[{first}')
        again = "".join("," + str(values[b]) for b in passing)
        again_first = again if lasting else again[1:]
        out.write(again_first)
        for _ in range(times - 1):
            out.write(again)
        out.write("]")
        before = ","
    out.write("}")
    column(',"steps":{', "kind", steps["kind"])
    column(",", "of", lambda i: [moved_of(s, i) for s in range(len(steps["of"]))])
    column(",", "stream", steps["stream"])
    out.write("}")
    before = ',"run_steps":{'
    for name, values in run_steps.items():
        column(before, name, values)
        before = ","
    out.write("}")
    column(",", "operands", lambda i: [moved_buffer(b, i) for b in small["operands"]])
    count = len(steps["kind"])
    column(',"runs":{', "step", lambda i: [s + i * count for s in runs["step"]])
    column(",", "begin_ns", lambda i: [t + i * duration for t in runs["begin_ns"]])
    column(",", "end_ns", lambda i: [t + i * duration for t in runs["end_ns"]])
    column('},"memory":{', "time_ns", lambda i: [t + i * duration for t in memory["time_ns"]])
    column(",", "buffer", lambda i: [moved_buffer(b, i) for b in memory["buffer"]])
    column(",", "appears", memory["appears"])
    out.write("}}\n")


if __name__ == "__main__":
    main()
