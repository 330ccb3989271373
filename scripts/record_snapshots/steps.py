#!/usr/bin/env python3
"""Training steps of one small model, as captured and as recorded, to hold beside each other in tests.

    venv/bin/python scripts/record_snapshots/steps.py tests/reference/beside    # torch 2.6.0 and 2.15.0

On the stand-in for the CUDA runtime (python/tidemark/recording/stand_in.c) allocator, Python and stacks
are real, kernels do nothing. Writes step-VERSION.trace.json.zst, and NAME-VERSION.pickle of three steps:

  same          the step as it was captured
  batch         twice the batch
  outputs       a list keeps the model's output of every step
  average       a second copy of the model beside it
  gradients     zero_grad(set_to_none=False)
  checkpointed  torch.utils.checkpoint around each block

and outputs-VERSION.json.gz, what torch.profiler says of the same steps as `outputs`.
"""

import copy
import gzip
import json
import os
import pathlib
import pickle
import subprocess
import sys

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

HERE = pathlib.Path(__file__).parent
WORDS, WIDTH, TOKENS, BATCH = 500, 64, 48, 4
CASES = ["same", "batch", "outputs", "average", "gradients", "checkpointed"]


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        y = self.up(self.norm(x))
        y = F.gelu(y)
        return x + self.down(y)


class Net(nn.Module):
    def __init__(self, checkpointed=False):
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.head = nn.Linear(WIDTH, WORDS)
        self.checkpointed = checkpointed

    def forward(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            if self.checkpointed:
                x = checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x)
        return self.head(x)


def loss_of(output, ids):
    return F.cross_entropy(output.flatten(0, 1), ids.flatten())


def make_step():
    ids = torch.zeros(BATCH, TOKENS, dtype=torch.long)
    return Net(), (ids,), lambda output, batch: loss_of(output, batch[0])


def train(case):
    """Three steps; returns what is kept beyond them."""
    model = Net(case == "checkpointed").cuda()
    kept = [copy.deepcopy(model)] if case == "average" else []
    optimizer = torch.optim.AdamW(model.parameters())
    batch = 2 * BATCH if case == "batch" else BATCH
    ids = torch.zeros(batch, TOKENS, dtype=torch.long, device="cuda")
    for _ in range(3):
        output = model(ids)
        loss = loss_of(output, ids)
        if case == "outputs":
            kept.append(output)
        del output
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=case != "gradients")
    return kept


def cut(path):
    behind = path.split("site-packages/")
    return "site-packages/" + behind[-1] if len(behind) > 1 else os.path.basename(path)


class Shared:
    """Copies a snapshot: paths cut, equal frames and stacks one object, which a pickle has once."""

    def __init__(self):
        self.frames, self.stacks = {}, {}

    def frame(self, frame):
        key = cut(frame["filename"]), frame["line"], frame["name"]
        return self.frames.setdefault(key, dict(zip(("filename", "line", "name"), key)))

    def stack(self, frames):
        mine = [self.frame(frame) for frame in frames]
        return self.stacks.setdefault(tuple(map(id, mine)), mine)

    def copy(self, value):
        if isinstance(value, dict):
            return {key: self.stack(item) if key == "frames" else self.copy(item)
                    for key, item in value.items()}
        return [self.copy(item) for item in value] if isinstance(value, list) else value


def profile(folder):
    torch.backends.cudnn.enabled = False
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU],
                                profile_memory=True) as profiler:
        train("outputs")
    path = folder / f"outputs-{torch.__version__.split('+')[0]}.json"
    profiler.export_chrome_trace(str(path))
    content = json.loads(path.read_text())
    for key in ("traceName", "host_name", "trace_id"):  # say where it was written
        content.pop(key, None)
    path.unlink()
    packed = gzip.compress(json.dumps(content).encode(), mtime=0)
    path.with_name(path.name + ".gz").write_bytes(packed)


def record(folder, case):
    torch.backends.cudnn.enabled = False
    torch.cuda.memory._record_memory_history(stacks="python", max_entries=100_000)
    kept = train(case)
    snapshot = Shared().copy(torch.cuda.memory._snapshot())
    name = f"{case}-{torch.__version__.split('+')[0]}"
    (folder / f"{name}.pickle").write_bytes(pickle.dumps(snapshot, protocol=4))
    peak = torch.cuda.memory_stats()["allocated_bytes.all.peak"]
    print(json.dumps({"case": name, "allocated_peak_bytes": peak, "kept": len(kept)}))


def main():
    sys.path.insert(0, str(HERE.parent.parent / "python"))
    from tidemark.recording import stand_in

    folder = pathlib.Path(sys.argv[1])
    if len(sys.argv) > 2:
        return profile(folder) if sys.argv[2] == "profile" else record(folder, sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    version = torch.__version__.split("+")[0]
    paths = dict(os.environ, PYTHONPATH=str(HERE.parent.parent / "python"))
    trace = folder / f"step-{version}.trace.json"
    subprocess.run([sys.executable, "-m", "tidemark.capture", f"{__file__}:make_step", "-o", str(trace)],
                   env=paths, check=True)
    subprocess.run(["zstd", "-q", "-19", "--rm", "-f", str(trace)], check=True)
    for case in [*CASES, "profile"]:  # one process each: statistics begin at nothing
        subprocess.run([sys.executable, __file__, str(folder), case],
                       env=dict(stand_in.environment(80)), check=True)


if __name__ == "__main__":
    main()
