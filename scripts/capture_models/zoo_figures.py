#!/usr/bin/env python3
"""How far captures are off what PyTorch's own allocator said, in one table.

    venv/bin/python scripts/capture_models/capture_all.py build/tidemark /tmp/zoo --zoo
    python3 scripts/capture_models/zoo_figures.py build/tidemark /tmp/zoo

Per step: bytes that *saved*, *live* and what is replayed of the allocator are off by, and per cent of
allocated and reserved memory as they follow from the ops alone.
"""

import argparse
import json
import pathlib
import subprocess
import tempfile


def predicted(program, trace):
    done = subprocess.run([program, "compare", trace, "--strategies", "vanilla", "--device", "a100-80gb",
                           "--format", "json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["rows"][0]


def without_calls(program, trace, scratch):
    plain = scratch / "step.trace.json"
    subprocess.run([program, "trace", trace, "-q", "-o", plain], check=True)
    document = json.loads(plain.read_text())
    document.pop("allocator_calls", None)
    plain.write_text(json.dumps(document))
    return plain


def figures(program, folder, step, scratch):
    trace = folder / f"{step['name']}.trace.json.zst"
    replayed = predicted(program, trace)
    derived = predicted(program, without_calls(program, trace, scratch))
    allocated = max(step["allocated"][phase] for phase in ("forward", "backward", "optimizer"))

    def per_cent(value, of):
        return round(100 * (value / of - 1), 2)

    return dict(name=step["name"], saved=replayed["saved_unique_bytes"] - step["saved"],
                live=replayed["live_peak_bytes"] - max(step["live"].values()),
                replayed=[replayed["allocated_peak_bytes"] - allocated,
                          replayed["reserved_peak_bytes"] - step["reserved"]],
                derived=[per_cent(derived["allocated_peak_bytes"], allocated),
                         per_cent(derived["reserved_peak_bytes"], step["reserved"])])


def spread(values):
    ordered = sorted(abs(value) for value in values)
    return f"{ordered[len(ordered) // 2]:g} · {ordered[len(ordered) * 9 // 10]:g} · {ordered[-1]:g}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=pathlib.Path, help="build/tidemark")
    parser.add_argument("folder", type=pathlib.Path, help="what capture_all.py wrote")
    arguments = parser.parse_args()
    steps = json.loads((arguments.folder / "measured.json").read_text())["steps"]
    with tempfile.TemporaryDirectory() as scratch:
        rows = [figures(arguments.program.resolve(), arguments.folder, step, pathlib.Path(scratch))
                for step in steps]
    for row in rows:
        print(json.dumps(row))
    print(f"median · ninth of ten · worst of {len(rows)}: saved {spread(x['saved'] for x in rows)} bytes, "
          f"live {spread(x['live'] for x in rows)} bytes, "
          f"replayed {spread(x['replayed'][0] for x in rows)} bytes, "
          f"derived allocated {spread(x['derived'][0] for x in rows)} %, "
          f"reserved {spread(x['derived'][1] for x in rows)} %")


if __name__ == "__main__":
    main()
