"""What a capture takes for values that depend on weights, and where a backward failed. Loudly skipped without PyTorch."""

import sys
import unittest

import test_capture

SCRIPT = '''
import torch
from torch import nn

ANCHORS = [[10.0 * at, 10.0 * at, 10.0 * at + 40, 10.0 * at + 40] for at in range(8)]

class Detector(nn.Module):
    """Its proposals are anchors that weights move; those near a target are looked at."""

    def __init__(self, many=1):
        super().__init__()
        self.moves, self.scores, self.out = nn.Linear(16, 4), nn.Linear(16, 1), nn.Linear(16, 5)
        self.register_buffer("anchors", torch.tensor(ANCHORS))
        self.many = many

    def forward(self, x, targets):
        boxes = self.anchors + self.moves(x).detach()
        best = self.scores(x).flatten().detach().topk(6).indices
        kept = boxes[best]
        sides = kept[:, 2:] - kept[:, :2]
        kept = kept[torch.where((sides > 1).all(-1))[0]]
        inside = (kept[:, None, :2] >= targets[None, :, :2]).all(-1).any(-1)
        order = torch.randperm(int(inside.sum()), device=x.device)
        chosen = inside.nonzero()[order]
        mask = torch.zeros_like(inside, dtype=torch.uint8)
        mask[chosen] = 1
        rows = x[best][torch.where(mask)[0]]
        assert rows.shape[0] == chosen.shape[0] == 6, (rows.shape, chosen.shape)
        truth = torch.zeros(6, 5, device=x.device)
        truth[inside, inside.long()] = 1.0
        return (self.out(rows) * truth).sum()

def detector():
    return Detector(), (torch.zeros(8, 16), torch.tensor([[-5.0, -5.0, 30.0, 30.0]]))

class Mined(nn.Module):
    """Sorts samples by their losses, and reads numbers on the host."""

    def __init__(self):
        super().__init__()
        self.out = nn.Linear(16, 3)

    def forward(self, x):
        loss = self.out(x).square().sum(-1)
        rank = loss.sort(descending=True)[1].sort()[1]
        hardest = loss[rank < 5]
        assert hardest.shape == (5,), hardest.shape
        if loss.isnan().any() or hardest.mean().item() < -1:
            raise ValueError("no number")
        assert not (loss.cpu() != 0).any()
        here = torch.empty(4, dtype=torch.long, device="cpu")
        there = torch.empty_like(here).copy_(torch.tensor([1, 2, 3, 4], device="cpu"))
        assert here.copy_(there.cuda()).tolist() == there.tolist() == [1, 2, 3, 4]
        return hardest.mean() + x[torch.rand(9, device=x.device) < 2].mean()

def mined():
    return Mined(), torch.zeros(9, 16)

class Pictures(Mined):
    def forward(self, pictures):
        return super().forward(torch.stack([x.flatten(1).mean(0)[:16] for x in pictures] * 3))

def pictures():
    return Pictures(), ([torch.zeros(3, 8, 8) for _ in range(3)],)

class InPlace(Mined):
    def forward(self, x):
        y = self.out(x).exp()
        z = y * 2
        y += 1
        return z.sum()

def in_place():
    return InPlace(), torch.zeros(9, 16)

def in_a_loop():
    model, x = in_place()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    def step():
        model(x).backward()
        optimizer.step()
    return step

class Cut(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, gradient):
        return gradient[:, :2]

class Failing(Cut):
    @staticmethod
    def backward(ctx, gradient):
        raise KeyError("no gamma")

class Cutting(Mined):
    function = Cut

    def forward(self, x):
        return self.function.apply(self.out(x)).sum()

def cutting():
    return Cutting(), torch.zeros(9, 16)

def failing():
    Cutting.function = Failing
    return Cutting(), torch.zeros(9, 16)

class Determined(nn.Module):
    def __init__(self):
        super().__init__()
        self.mixes = nn.Parameter(torch.eye(16))

    def forward(self, x):
        both = x @ self.mixes
        return both.square().mean() - torch.linalg.slogdet(self.mixes)[1] - torch.linalg.det(self.mixes)

def determined():
    return Determined(), torch.zeros(7, 16)

def lazy():
    model = nn.Sequential(nn.LazyConv2d(8, 3), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(10))
    model(torch.zeros(1, 3, 8, 8))
    return model, torch.zeros(5, 3, 8, 8), lambda y: y.square().mean()

def with_generator():
    generator = torch.Generator().manual_seed(0)
    model = nn.Linear(16, 8)
    model.weight.data.uniform_(-1, 1, generator=generator)
    chosen = torch.randperm(16, generator=generator)
    return model, torch.rand(6, 16, generator=generator)[:, chosen], lambda y: y.square().mean()
'''


class Values(test_capture.CaptureTest):
    script = SCRIPT

    def line_of(self, text):
        return next(at for at, line in enumerate(SCRIPT.splitlines(), 1) if text in line)

    def test_models_that_look_at_what_depends_on_weights(self):
        for function, batch in (("detector", 8), ("mined", 9), ("pictures", 3)):
            with self.subTest(function):
                done = self.capture(function)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(self.trace()["step"]["batch"], batch)

    def test_what_a_script_makes_as_on_the_host(self):
        for function, batch in (("determined", 7), ("lazy", 5), ("with_generator", 6)):
            with self.subTest(function):
                done = self.capture(function)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(self.trace()["step"]["batch"], batch)

    def test_a_backward_that_fails_has_the_line_of_what_it_is_of(self):
        for function, line, problem in (
                ("in_place", self.line_of("self.out(x).exp()"), "modified by an inplace operation"),
                ("in_a_loop", self.line_of("self.out(x).exp()"), "modified by an inplace operation"),
                ("cutting", self.line_of("self.function.apply"), "returned an invalid gradient")):
            with self.subTest(function):
                done = self.capture(function)
                self.assertEqual(done.returncode, 1)
                self.assertRegex(done.stderr, f"^tidemark capture: net.py:{line}: the backward of what is "
                                              f"made here fails: RuntimeError: .*{problem}")
                self.assertNotIn("Hint", done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1)

    def test_the_line_of_a_backward_of_ones_own_is_its_own(self):
        done = self.capture("failing")
        self.assertRegex(done.stderr, f"net.py:{self.line_of('no gamma')}: KeyError: 'no gamma'")


if __name__ == "__main__":
    test_capture.CaptureTest.python = test_capture.python_with_torch()
    unittest.main(argv=sys.argv)
