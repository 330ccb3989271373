#!/usr/bin/env python3
"""What PyTorch's MemTracker (torch/distributed/_tools/mem_tracker.py) says of the models of models.py.

    venv/bin/python scripts/capture_models/mem_tracker.py > tests/reference/mem_tracker.json
    venv/bin/python scripts/capture_models/mem_tracker.py --only '^gpt2'

in an environment of capture_all.py. Each model runs in a process of its own over the stand-in for the CUDA
runtime and takes two steps (the second finds the optimizer's states); "peak" are the most bytes of storages
that the tracker saw at once. Beside it the same model is captured. "seconds" and "capture_seconds" are
processor time of the whole processes, of which imports take 4 to 5 s.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
PYTHON = HERE.parent.parent / "python"
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(PYTHON))


def peak(function, precision, optimizer):
    """Bytes of two steps' largest moment, where the CUDA device is the stand-in."""
    import models
    import torch
    from tidemark.recording.optimizers import BY_NAME
    from tidemark.recording.step import forward, place, step_in
    from torch.distributed._tools.mem_tracker import MemTracker

    torch.backends.cudnn.enabled = False  # as in a capture
    with torch.device("cuda"):  # labels, too, which a loss function has
        step = step_in(getattr(models, function)())
    step.precision = precision
    place(step)
    update = BY_NAME[optimizer]([p for p in step.model.parameters() if p.requires_grad])
    tracker = MemTracker()
    tracker.track_external(step.model, update)
    with tracker:
        for _ in range(2):
            loss = forward(step)
            loss.backward()
            update.step()
            update.zero_grad(set_to_none=True)
            tracker.reset_mod_stats()
            del loss
    moment = tracker.get_tracker_snapshot("peak")
    return next(sizes["Total"] for device, sizes in moment.items() if device.type == "cuda")


def run(command, environment=None):
    """What a process printed, or None with its last line on stderr; and its processor seconds."""
    before = os.times()
    done = subprocess.run([str(part) for part in command], cwd=PYTHON, env=environment,
                          capture_output=True, text=True)
    after = os.times()
    seconds = (after.children_user - before.children_user
               + after.children_system - before.children_system)
    if done.returncode != 0:
        print(done.stderr.strip().splitlines()[-1], file=sys.stderr)
    return done.stdout if done.returncode == 0 else None, round(seconds, 2)


def compared(case, scratch):
    from tidemark.recording import stand_in

    name, function, precision, optimizer = case
    said, seconds = run([sys.executable, HERE / "mem_tracker.py", "--peak", function, precision, optimizer],
                        stand_in.environment(80))
    options = ["--precision", precision, "--optimizer", optimizer, "-o", scratch / "trace.json"]
    captured, capture_seconds = run(
        [sys.executable, "-m", "tidemark.capture", f"{HERE / 'models.py'}:{function}", *options])
    row = dict(name=name, seconds=seconds)
    if said is not None:
        row["peak"] = int(said)
    if captured is not None:
        row["capture_seconds"] = capture_seconds
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="cases whose name matches this expression")
    parser.add_argument("--peak", nargs=3, metavar=("FUNCTION", "PRECISION", "OPTIMIZER"),
                        help="print the bytes of one, in this process")
    arguments = parser.parse_args()
    if arguments.peak:
        return print(peak(*arguments.peak))

    import models
    import torch
    from tidemark.recording import stand_in

    if stand_in.has_gpu():
        sys.exit("this machine has a GPU: the stand-in is for machines without one")
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        for case in models.CASES:
            if re.search(arguments.only, case[0]):
                rows.append(compared(case, pathlib.Path(scratch)))
                print(rows[-1], file=sys.stderr)
    text = json.dumps(dict(torch=torch.__version__))[:-1] + ', "steps": [\n'
    print(text + ",\n".join(json.dumps(row) for row in rows) + "\n]}")


if __name__ == "__main__":
    main()
