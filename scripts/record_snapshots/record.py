#!/usr/bin/env python3
"""Memory snapshots of PyTorch's own caching allocator, without a GPU, as samples for tests.

    venv/bin/python scripts/record_snapshots/record.py tests/reference/snapshots   # torch 2.6.0

A C compiler builds the stand-in for the CUDA runtime (python/tidemark/recording/stand_in.c), which is
then preloaded: allocator, Python and stacks are real, kernels do nothing. Beside each NAME.pickle lies
NAME.expected.json with what the allocator's own statistics say. Paths are cut to what lies behind
site-packages, or to the file's name, and written again with the same kind of pickler.

  two_streams   three steps on one stream, buffers that another one still uses (record_stream)
  ring          the same, of which only the last 20 events were kept
  out_of_memory an allocation that fails, in a pool with gaps
"""

import collections
import json
import os
import pathlib
import pickle
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent.parent / "python"))  # the stand-in is that of the package


def start_again_with_stand_in(arguments):
    from tidemark.recording import stand_in

    if stand_in.has_gpu():
        sys.exit("this machine has a GPU: the stand-in is for machines without one")
    environment = dict(stand_in.environment(80))
    sys.exit(subprocess.run([sys.executable, __file__, *arguments], env=environment).returncode)


def two_streams(torch):
    class Scale(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.empty(1 << 20, device="cuda"))

        def forward(self, x):
            return ((x * self.weight).relu() * 2).sum()

    model = Scale()
    x = torch.empty(1 << 20, device="cuda", requires_grad=True)
    side, kept = torch.cuda.Stream(), []
    for i in range(3):
        model(x).backward()
        model.weight.grad = x.grad = None
        with torch.cuda.stream(side):
            passed_on = torch.empty(3 << 20, device="cuda")
            kept.append(torch.empty(513 * (i + 1), device="cuda"))
            passed_on.record_stream(torch.cuda.default_stream())
        del passed_on
    return model, x, kept[-1]


def out_of_memory(torch):
    limit = 64 << 20
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(limit / total)
    kept = [torch.empty(5 << 20, dtype=torch.uint8, device="cuda") for _ in range(8)]
    del kept[1::2]  # every second one: 20 MiB free, in pieces of 5
    try:
        torch.empty(30 << 20, dtype=torch.uint8, device="cuda")
    except torch.cuda.OutOfMemoryError:
        pass
    return kept


CASES = {"two_streams": (two_streams, 1000), "ring": (two_streams, 20),
         "out_of_memory": (out_of_memory, 1000)}


def cut(path):
    behind = path.split("site-packages/")
    return "site-packages/" + behind[-1] if len(behind) > 1 else os.path.basename(path)


def without_paths(value):
    if isinstance(value, dict):
        return {key: cut(item) if key == "filename" else without_paths(item)
                for key, item in value.items()}
    if isinstance(value, list):
        return [without_paths(item) for item in value]
    return value


def record(name, folder):
    import torch

    run, entries = CASES[name]
    torch.cuda.memory._record_memory_history(stacks="python", max_entries=entries)
    kept = run(torch)
    snapshot = without_paths(torch.cuda.memory._snapshot())
    statistics = torch.cuda.memory_stats()
    (folder / f"{name}.pickle").write_bytes(pickle.dumps(snapshot, protocol=4))
    if name == "ring":  # the others that Python can write
        for protocol in (2, 3, 5):
            path = folder / f"{name}_protocol_{protocol}.pickle"
            path.write_bytes(pickle.dumps(snapshot, protocol=protocol))
    keys = [f"{what}_bytes.all.{when}" for what in ("allocated", "active", "reserved", "requested")
            for when in ("current", "peak")]
    actions = collections.Counter(event["action"] for event in snapshot["device_traces"][0])
    expected = {"torch": torch.__version__, **{key: statistics[key] for key in keys},
                "segments": len(snapshot["segments"]), "events": actions}
    (folder / f"{name}.expected.json").write_text(json.dumps(expected, indent=1) + "\n")
    del kept


def main():
    if "LD_PRELOAD" not in os.environ:
        start_again_with_stand_in(sys.argv[1:])
    folder = pathlib.Path(sys.argv[1])
    if len(sys.argv) > 2:
        return record(sys.argv[2], folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name in CASES:  # one process each: statistics begin at nothing
        subprocess.run([sys.executable, __file__, str(folder), name], check=True)


if __name__ == "__main__":
    main()
