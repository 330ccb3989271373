"""The recorded calls are those of a step that no mode of ours looks on: the same script runs with PyTorch
alone, in its real allocator, beside the capture. Loudly skipped without PyTorch."""

import json
import sys
import unittest

import test_capture

SCRIPT = '''
import os
import sys

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

class Block(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + F.dropout(self.down(F.gelu(self.up(self.norm(x)))), 0.1)

class Net(nn.Module):
    def __init__(self, checkpoints=False):
        super().__init__()
        self.words, self.checkpoints = nn.Embedding(500, 64), checkpoints
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.head = nn.Linear(64, 500, bias=False)
        self.head.weight = self.words.weight

    def forward(self, ids):
        x = self.words(ids)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpoints else block(x)
        return F.cross_entropy(self.head(x).flatten(0, 1), ids.flatten())

class Cubed(torch.autograd.Function):
    """Its backward adds, too, to what it has made itself: no sum of the engine's."""
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 3

    @staticmethod
    def backward(ctx, gradient):
        x, = ctx.saved_tensors
        return (x * x) * gradient + (x * x) * gradient * 2

class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 64)

    def forward(self, ids):
        x = self.layer(ids.float().unsqueeze(-1).expand(-1, -1, 64))
        y = self.layer(Cubed.apply(x) + x.tanh() + x.exp())
        return (x * y).mean() + y.sigmoid().mean()

def ids():
    return torch.zeros(8, 64, dtype=torch.long, device="cuda")

def loop(model, amp=None, micro=1):
    def make_step():
        made, inputs = model().to("cuda"), ids()
        optimizer = torch.optim.AdamW(made.parameters())
        def step():
            for _ in range(micro):
                with torch.autocast("cuda", amp or torch.bfloat16, enabled=amp is not None):
                    loss = made(inputs) / micro
                loss.backward()
            nn.utils.clip_grad_norm_(made.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        return step
    return make_step

half = loop(Net, torch.bfloat16)
checkpointed = loop(lambda: Net(True), torch.bfloat16)
accumulated = loop(Net, torch.float16, micro=3)
shared = loop(Shared)

if __name__ == "__main__":
    from tidemark.recording import stand_in
    if "TIDEMARK_STAND_IN" not in os.environ:
        os.execve(sys.executable, [sys.executable, *sys.argv], stand_in.environment(80, 108))
    import dataclasses
    import gc
    import json
    from tidemark.recording.history import History
    gc.disable()
    history = History()
    with torch.device("cuda"):
        step = globals()[sys.argv[1]]()
    history.mark()
    step()
    history.mark()
    step()
    history.mark()
    history.mark()
    print(json.dumps(dataclasses.asdict(history.end())))
'''


class OrdinarySteps(test_capture.CaptureTest):
    script = SCRIPT

    def test_calls_are_those_of_pytorch_alone(self):
        for name in ("half", "checkpointed", "accumulated", "shared"):
            with self.subTest(name):
                done = self.capture(name)
                self.assertEqual(done.returncode, 0, done.stderr)
                alone = self.run_python("net.py", name)
                self.assertEqual(alone.returncode, 0, alone.stderr)
                self.assertEqual(self.trace()["allocator_calls"], json.loads(alone.stdout))


if __name__ == "__main__":
    test_capture.CaptureTest.python = test_capture.python_with_torch()
    unittest.main(argv=sys.argv)
