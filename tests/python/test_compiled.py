"""Captures small models under torch.compile, where PyTorch is. Loudly skipped elsewhere."""

import json
import pathlib
import sys
import unittest

import test_capture
import test_zoo

SCRIPT = '''
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(64), nn.Linear(64, 128), nn.Linear(128, 64)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Block() for _ in range(2))
        self.out = nn.Linear(64, 64)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.out(x)

def made(compiled):
    model = Net()
    result = compiled(model)
    return model if result is None else result, torch.zeros(64, 16, 64), lambda y: y.square().mean()

def whole():
    return made(torch.compile)

def blocks():
    def compiled(model):
        for layer in model.layers:
            layer.compile()
    return made(compiled)

def with_graphs():
    return made(lambda model: torch.compile(model, mode="reduce-overhead"))

def hidden():
    torch._dynamo.config.suppress_errors = True
    return with_graphs()

def replicated():
    import torch.distributed as dist
    dist.init_process_group("nccl")
    return made(lambda model: torch.compile(nn.parallel.DistributedDataParallel(model)))

def replicated_then_compiled():
    import torch.distributed as dist
    dist.init_process_group("nccl", world_size=4, rank=3)
    def compiled(model):
        wrapper = nn.parallel.DistributedDataParallel(model)
        wrapper.compile(fullgraph=True)
        return wrapper
    return made(compiled)

def sharded():
    from torch.distributed.fsdp import fully_shard
    def compiled(model):
        model.layers[0] = torch.compile(model.layers[0])
        for layer in model.layers:
            fully_shard(layer)
        return torch.compile(fully_shard(model), backend="eager")
    return made(compiled)

def compiled_update():
    def optimizer(parameters):
        made = torch.optim.Adam(parameters)
        made.step = torch.compile(made.step)
        return made
    return *made(lambda model: model), optimizer

def loop(model, called):
    optimizer = torch.optim.AdamW(model.parameters())
    batches = torch.zeros(3, 64, 16, 64)
    def step():
        for batch in batches:
            with torch.autocast("cuda", torch.bfloat16):
                loss = called(batch).square().mean() / 3
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return step

def whole_in_a_loop():
    model = Net()
    return loop(model, torch.compile(model))

def itself_in_a_loop():
    model = Net()
    model.compile()
    return loop(model, model)

def blocks_in_a_loop():
    model = Net()
    for layer in model.layers:
        layer.compile()
    return loop(model, model)

if __name__ == "__main__":
    import tidemark
    tidemark.capture(*whole()[:2], loss=lambda y: y.mean(), output="api.trace.json")
'''


class Compiled(test_capture.CaptureTest):
    script = SCRIPT

    def rows(self):
        return [op["row"]["operation"] for op in self.trace()["ops"] if op["kind"] == "opaque"]

    def test_a_whole_model(self):
        done = self.capture("whole")
        self.assertEqual(done.returncode, 0, done.stderr)
        trace = self.trace()
        self.assertEqual(trace["model"], "Net")
        self.assertEqual(trace["blocks"], [])
        tensors = {tensor["name"]: tensor for tensor in trace["tensors"]}
        self.assertTrue(tensors["layers.1.up.weight"]["trainable"])
        self.assertEqual(tensors["layers.1.up.addmm"]["shape"], [1024, 128])
        self.assertEqual(self.rows().count("aten::mean"), 1)  # the loss, outside

    def test_blocks_stay_blocks(self):
        done = self.capture("blocks")
        self.assertEqual(done.returncode, 0, done.stderr)
        trace = self.trace()
        self.assertEqual([block["name"] for block in trace["blocks"]], ["layers.0", "layers.1"])
        self.assertIn("aten::addmm", self.rows())  # self.out is eager
        inside = {op["row"]["operation"] for op in trace["ops"] if op.get("block")}
        self.assertEqual(inside, {"torch.compile"})

    def test_loops_of_ones_own(self):
        for function, model, parts in (("whole_in_a_loop", "Net", []), ("itself_in_a_loop", "Net", []),
                                       ("blocks_in_a_loop", "Net", ["layers.0", "layers.1"])):
            with self.subTest(function):
                done = self.capture(function, "--measured", "measured.json")
                self.assertEqual(done.returncode, 0, done.stderr)
                trace = self.trace()
                self.assertEqual([trace["model"], trace["step"]["accumulate"]], [model, 3])
                self.assertEqual([block["name"] for block in trace["blocks"]], parts)
                self.assertIn("torch.compile", self.rows())
                self.assertEqual("aten::addmm" in self.rows(), bool(parts))
                tensors = {tensor["name"]: tensor for tensor in trace["tensors"]}
                self.assertTrue(tensors["layers.1.up.weight"]["trainable"])
                self.require_as_measured()

    def require_as_measured(self):
        if not test_zoo.PROGRAM:
            self.skipTest("no program: TIDEMARK_PROGRAM names it")
        found = test_zoo.load_figures().predicted(pathlib.Path(test_zoo.PROGRAM).resolve(),
                                                  self.path / "step.trace.json")
        measured = json.loads((self.path / "measured.json").read_text())
        self.assertEqual(found["live_peak_bytes"], max(measured["live"].values()))
        self.assertEqual(found["reserved_peak_bytes"], measured["reserved"])
        self.assertEqual(found["saved_unique_bytes"], measured["saved"])

    def test_cuda_graphs_are_refused(self):
        done = self.capture("with_graphs")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^tidemark capture: torch\.compile with CUDA graphs")

        self.assertRegex(self.capture("hidden").stderr, "torch.compile with CUDA graphs")

    def test_wrappers_within_compiled_models(self):
        done = self.capture("replicated", ranks=4)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.trace()["step"]["shard"], "ddp")
        self.assertIn("torch.compile", self.rows())
        done = self.capture("replicated_then_compiled", ranks=4)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.trace()["step"]["shard"], "ddp")
        self.assertIn("torch.compile", self.rows())
        done = self.capture("sharded", ranks=4)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.trace()["step"]["shard"], "fsdp2")

    def test_a_compiled_update(self):
        done = self.capture("compiled_update")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(self.trace()["update"]["moved_bytes"], 0)

    def test_what_is_compiled_does_not_travel(self):
        done = self.run_python("net.py")
        self.assertIn("the model is compiled, which stays in this process", done.stderr)


if __name__ == "__main__":
    test_capture.CaptureTest.python = test_capture.python_with_torch()
    unittest.main(argv=sys.argv)
