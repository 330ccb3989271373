"""Kernels that a model starts itself, in Triton. Loudly skipped without PyTorch."""

import json
import sys
import unittest

import test_capture

SCRIPT = '''
import torch
from torch import nn

try:
    import triton
    import triton.language as tl
except ImportError:
    raise SystemExit("no Triton here")

@triton.autotune(configs=[triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128}, num_warps=8)], key=["n"])
@triton.jit
def scale_forward(x, weight, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * tl.load(weight + at, mask=at < n), mask=at < n)

@triton.heuristics({"BLOCK": lambda given: triton.next_power_of_2(given["n"])})
@triton.jit
def scale_backward(gradient, x, weight, of_x, of_weight, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(of_x + at, tl.load(gradient + at, mask=at < n) * tl.load(weight + at, mask=at < n), mask=at < n)

class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        y = torch.empty_like(x)
        scale_forward[(x.shape[0],)](x, weight, y, x.shape[1])
        ctx.save_for_backward(x, weight)
        return y

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        of_x, of_weight = torch.empty_like(x), torch.empty(108, x.shape[1], device=x.device)
        scale_backward[(108,)](gradient, x, weight, of_x, of_weight, x.shape[1])
        return of_x, of_weight.sum(0)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(64, 128), nn.Linear(128, 64)
        self.weight = nn.Parameter(torch.ones(128))

    def forward(self, x):
        return self.last(Scaled.apply(self.first(x), self.weight)).square().mean()

def scaled():
    return Net(), torch.zeros(32, 64)

def graphed():
    model, x, graph = Net().cuda(), torch.zeros(32, 64), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model(x)
    return model, x
'''


class Kernels(test_capture.CaptureTest):
    script = SCRIPT

    def test_launches_count_where_they_are(self):
        done = self.capture("scaled", "--measured", "measured.json")
        if "no Triton here" in done.stderr:
            self.skipTest("this PyTorch has no Triton")
        self.assertEqual(done.returncode, 0, done.stderr)
        op = next(op for op in self.trace()["ops"] if op["row"]["operation"] == "Scaled")
        size = 32 * 128 * 4
        self.assertEqual(op["row"]["saved"], ["in0", "in1"])
        self.assertEqual(op["row"]["forward"], {"moved_bytes": 2 * size + 128 * 4})  # 1 kernel
        self.assertEqual(op["row"]["backward"]["kernels"], 2)  # and a sum
        self.assertGreater(op["row"]["backward"]["moved_bytes"], 3 * size + 108 * 128 * 4)
        measured = json.loads((self.path / "measured.json").read_text())
        self.assertGreater(measured["saved"], 2 * size)

    def test_graphs_are_refused_with_their_line(self):
        done = self.capture("graphed")
        self.assertEqual(done.returncode, 1)
        if "no Triton here" not in done.stderr:
            self.assertRegex(done.stderr, r"net\.py:\d+: CUDA graphs have memory pools of their own")


if __name__ == "__main__":
    Kernels.python = test_capture.python_with_torch()
    unittest.main(argv=sys.argv)
