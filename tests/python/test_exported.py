"""Captures programs that torch.export wrote down, beside the models that they were."""

import json
import sys
import unittest

from test_capture import CaptureTest, python_with_torch

SCRIPT = '''
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(64)
        self.up = nn.Linear(64, 128)
        self.down = nn.Linear(128, 64)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x):
        positions = torch.arange(x.shape[1], device=x.device)
        x = x + self.dropout(self.down(nn.functional.gelu(self.up(self.norm(x)))))
        return x * (positions < 12)[None, :, None]

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.head = nn.Linear(64, 10)

    def forward(self, x, scale=None):
        for block in self.blocks:
            x = block(x)
        x = self.head(x)
        return x if scale is None else (x * scale).square().mean()

def loss(scores):
    return scores.float().square().mean()

def batch():
    return torch.zeros(4, 16, 64)

def make_step():
    return Net(), batch(), loss

def of_a_file():
    return torch.export.load("net.pt2"), None, loss

def evaluated():
    return torch.export.load("evaluated.pt2"), None, loss

if __name__ == "__main__":
    import tidemark
    def write(name, model, *args, **kwargs):
        program = torch.export.export(model, args, kwargs, strict=False)
        torch.export.save(program, name)
        return program
    program = write("net.pt2", Net(), batch())
    write("with_loss.pt2", Net(), batch(), scale=torch.ones(10))
    write("evaluated.pt2", Net().eval(), batch())
    tidemark.capture(program, None, loss=loss, output="api.trace.json")
'''


class Exported(CaptureTest):
    script = SCRIPT

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        done = cls.run_python(cls(), "net.py")
        if done.returncode != 0:
            raise AssertionError(done.stderr)

    def measured(self, function, *more):
        done = self.capture(function, "--measured", "measured.json", *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads((self.path / "measured.json").read_text())

    def test_takes_what_the_model_took(self):
        # But for variables of forward(), which a program has not: 16 positions and truth values.
        for precision in ("fp32", "amp-bf16"):
            with self.subTest(precision):
                program = self.measured("of_a_file", "--precision", precision)
                model = self.measured("make_step", "--precision", precision)
                for key in ("saved", "parameters", "reserved"):
                    self.assertEqual(program[key], model[key], key)
                for phase, most in model["live"].items():
                    self.assertLessEqual(abs(program["live"][phase] - most), 16 * (8 + 1), phase)

    def test_has_the_names_and_blocks_of_the_model(self):
        def names():
            trace = self.trace()
            return ([op["name"] for op in trace["ops"]], [x["name"] for x in trace["blocks"]])

        self.measured("of_a_file")
        of_file = names()
        self.measured("make_step")
        self.assertEqual(of_file, names())
        self.assertEqual(of_file[1], ["blocks.0", "blocks.1", "blocks.2"])

    def test_a_file_whose_output_is_its_loss_needs_no_script(self):
        done = self.run_python("-m", "tidemark.capture", "with_loss.pt2", "-o", "step.trace.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.trace()["loss"], "mean")

    def test_from_a_session(self):
        self.assertEqual(self.trace("api.trace.json")["step"]["batch"], 4)

    def test_says_what_it_cannot_know(self):
        def said(*arguments):
            return self.run_python("-m", "tidemark.capture", *arguments, "-o", "x.json").stderr

        self.assertIn("run so: 3 aten.dropout", said("net.py:evaluated"))
        self.assertIn("the loss is (4, 16, 10); need a tensor with one number", said("net.pt2"))
        self.assertIn("nothing.pt2: no such file", said("nothing.pt2"))
        (self.path / "broken.pt2").write_bytes(b"PK not a zip")
        self.assertIn("broken.pt2: torch.export.load of PyTorch", said("broken.pt2"))


if __name__ == "__main__":
    CaptureTest.python = python_with_torch()
    unittest.main(argv=sys.argv)
