#!/usr/bin/env python3
"""Captures the models of models.py, and writes what PyTorch's own allocator said of the same steps.

    python3 -m venv venv && venv/bin/pip install torch==2.6.0 torchvision==0.21.0 \
        transformers==4.57.1 timm==1.0.31 peft==0.21.2 accelerate
    venv/bin/python scripts/capture_models/capture_all.py build/tidemark tests/reference/captures
    venv/bin/python scripts/capture_models/capture_all.py build/tidemark /tmp/some --only '^gpt2'

and with torch 2.15.0, torchvision 0.29.2, transformers 5.23.0 to tests/reference/captures_torch-2.15.
Those under torch.compile (--compiled) go to captures_compiled and captures_compiled_torch-2.15 there,
whole steps of loops.py (--loops) to captures_loops. The zoo (--zoo: zoo_packages.py and zoo_own_code.py,
which also want diffusers==0.35.2) is of models that nothing was tuned for; small ones of it are in
captures_zoo, and zoo_figures.py says how far all of it is off.

Per model a trace and, in measured.json, of the second of the steps that a capture runs, which is an
ordinary one in the real caching allocator (docs/capture.md):
  saved       bytes of storages that the graph holds when the forward is over, without parameters
              and buffers
  live        most bytes of storages at once, per phase: outputs of operators, no scratch inside them
  allocated   most bytes allocated, per phase, as the allocator counts them
  reserved    most bytes that the allocator held
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))


def capture(program, case, folder, scratch):
    name, target, *options = case
    trace, measured = scratch / f"{name}.trace.json", scratch / f"{name}.json"
    command = [sys.executable, "-m", "tidemark.capture", HERE / target, *options, "-o", trace,
               "--measured", measured]
    done = subprocess.run([str(part) for part in command], cwd=HERE.parent.parent / "python",
                          capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{name}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return None
    subprocess.run([program, "trace", trace, "-q", "-o", folder / f"{name}.trace.json.zst"],
                   check=True)
    return json.loads(measured.read_text())


def cases(arguments):
    """Name, SCRIPT.py:FUNCTION, and options."""
    import loops
    import models
    import zoo_own_code
    import zoo_packages

    if arguments.zoo:
        return [(f"{function}-{precision or ''}".strip("-").replace("_", "-"),
                 f"{script.__name__}.py:{function}", *(["--precision", precision] if precision else []))
                for script in (zoo_packages, zoo_own_code) for function, precision in script.CASES]
    if arguments.loops:
        return [(made.__name__.replace("_", "-"), f"loops.py:{made.__name__}")
                for made in loops.CASES]
    return [(name, f"models.py:{function}", "--precision", precision, "--optimizer", optimizer)
            for name, function, precision, optimizer in
            (models.COMPILED if arguments.compiled else models.CASES)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=pathlib.Path, help="build/tidemark")
    parser.add_argument("folder", type=pathlib.Path, help="where traces and measured.json go")
    parser.add_argument("--only", default="", help="cases whose name matches this expression")
    parser.add_argument("--compiled", action="store_true", help="the cases under torch.compile")
    parser.add_argument("--loops", action="store_true", help="whole steps of training loops")
    parser.add_argument("--zoo", action="store_true", help="models that nothing was tuned for")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    rows, versions = [], {}
    with tempfile.TemporaryDirectory() as scratch:
        for case in cases(arguments):
            if not re.search(arguments.only, case[0]):
                continue
            measured = capture(arguments.program.resolve(), case, arguments.folder.resolve(),
                               pathlib.Path(scratch))
            if measured is not None:
                versions.update(measured.pop("versions"))
                rows.append(dict(name=case[0], **measured))
                print(json.dumps(rows[-1]), file=sys.stderr)
    text = json.dumps(dict(versions=versions), separators=(",", ":"))[:-1] + ',"steps":[\n'
    text += ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows) + "\n]}\n"
    (arguments.folder / "measured.json").write_text(text)


if __name__ == "__main__":
    main()
