"""Captures steps of one's own, where PyTorch is: loops, two networks, hooks. Loudly skipped elsewhere."""

import sys
import unittest

import test_capture

SCRIPT = '''
import torch
from torch import nn

def net(*widths):
    return nn.Sequential(*(nn.Linear(a, b) for a, b in zip(widths, widths[1:])))

def setting(batch=8):
    model = net(64, 128, 64, 32)
    return model, torch.zeros(batch, 64), torch.optim.AdamW(model.parameters())

def accumulated():
    model, x, optimizer = setting()
    def step():
        for _ in range(3):
            y = model(x)
            (y.square().mean() / 3).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    return step

def scaled():
    model, x, optimizer = setting()
    scaler = torch.amp.GradScaler("cuda")
    def step():
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.float16):
            loss = model(x).float().square().mean()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
    return step

def replicated():
    import torch.distributed as dist
    dist.init_process_group("nccl", world_size=4, rank=0)
    model, x, optimizer = setting()
    model = nn.parallel.DistributedDataParallel(model.cuda(), device_ids=[0])
    def step():
        with model.no_sync():
            model(x).square().mean().backward()
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return step

class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = net(64, 512, 1)

    def forward(self, x):
        return self.layers(x)

def adversaries():
    maker, critic = net(16, 32, 64), Critic()
    of_maker = torch.optim.Adam(maker.parameters())
    of_critic = torch.optim.Adam(critic.parameters())
    real = torch.zeros(8, 64)
    def step():
        with torch.no_grad():
            fake = maker(torch.randn(8, 16, device="cuda"))
        loss = critic(fake).mean() - critic(real).mean()
        of_critic.zero_grad()
        loss.backward()
        of_critic.step()
        loss = -critic(maker(torch.randn(8, 16, device="cuda"))).mean()
        of_maker.zero_grad()
        loss.backward()
        of_maker.step()
    return step

def through_both():
    maker, critic = net(16, 32, 64), Critic()
    optimizer = torch.optim.Adam([*maker.parameters(), *critic.parameters()])
    z = torch.zeros(8, 16)
    def step():
        fake = maker(z)
        critic(fake.detach()).mean().backward()
        critic(fake).mean().backward()
        optimizer.step()
    return step

def averaged():
    model, x, optimizer = setting()
    average = torch.optim.swa_utils.AveragedModel(model)
    def step():
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        average.update_parameters(model)
    return step

def updates_in_backward():
    model, x, _ = setting()
    each = {p: torch.optim.AdamW([p], foreach=False) for p in model.parameters()}
    def update(p):
        each[p].step()
        each[p].zero_grad()
    for p in model.parameters():
        p.register_post_accumulate_grad_hook(update)
    return lambda: model(x).square().mean().backward()

def gradients_stay():
    model, x, optimizer = setting()
    def step():
        optimizer.zero_grad(set_to_none=False)
        model(x).square().mean().backward()
        optimizer.step()
    return step

def hooked():
    model, x, _ = setting()
    for p in model.parameters():
        p.register_hook(lambda gradient: gradient.exp().sin())
    return model, x, lambda y: y.square().mean()

def retained():
    model, x, optimizer = setting()
    def step():
        loss = model(x).square().mean()
        loss.backward(retain_graph=True)
        loss.backward()
        optimizer.step()
    return step

def run_again_by_the_optimizer():
    model, x, _ = setting()
    optimizer = torch.optim.LBFGS(model.parameters())
    def loss():
        optimizer.zero_grad()
        value = model(x).square().mean()
        value.backward()
        return value
    return lambda: optimizer.step(loss)

def never_updated():
    model, x, _ = setting()
    return lambda: model(x).square().mean().backward()
'''


class Loops(test_capture.CaptureTest):
    script = SCRIPT

    def captured(self, function, ranks=None):
        done = self.capture(function, ranks=ranks)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.trace(), done.stderr

    def test_micro_batches_that_are_alike_are_written_once(self):
        for function, count in (("accumulated", 3), ("replicated", 2), ("scaled", None),
                                ("averaged", None)):
            trace, _ = self.captured(function)
            self.assertEqual(trace["step"].get("accumulate"), count, function)
            self.assertEqual(trace["update"]["optimizer"], "AdamW")
            self.assertEqual(trace["step"]["batch"], 8)
            products = [op for op in trace["ops"] if op["kind"] == "opaque" and
                        op["row"]["operation"] == "aten::addmm"]
            self.assertEqual(len(products), 3, function)
            if function == "scaled":
                self.assertEqual(trace["step"]["precision"], "amp-fp16")
            if function == "replicated":
                self.assertEqual(trace["step"]["mesh"], "dp=4")

    def test_a_variable_that_holds_the_output_keeps_it_in_the_backward(self):
        trace, _ = self.captured("accumulated")
        keeping = {op["name"]: op["also_keeps"] for op in trace["ops"] if "also_keeps" in op}
        self.assertEqual(keeping, {})  # square() needs it anyhow
        saved = [op["row"]["saved"] for op in trace["ops"]
                 if op["kind"] == "opaque" and op["row"]["operation"] == "aten::pow"]
        self.assertEqual(saved, [["in0"]])

    def test_of_two_networks_the_pass_that_needs_most(self):
        trace, said = self.captured("adversaries")
        self.assertIn("of 2 passes of different kinds this is the", said)
        tensors = {tensor["name"]: tensor for tensor in trace["tensors"]}
        self.assertTrue(any(name.startswith("Critic.layers.0.weight.exp_avg") for name in tensors))
        self.assertTrue(any(name.startswith("Sequential.0.weight.exp_avg") for name in tensors))

    def test_gradients_that_stay_and_updates_in_the_backward(self):
        trace, _ = self.captured("gradients_stay")
        self.assertTrue(trace["step"]["keep_gradients"])
        trace, _ = self.captured("updates_in_backward")
        self.assertTrue(trace["step"]["update_in_backward"])

    def test_what_hooks_of_weights_make_is_counted(self):
        trace, _ = self.captured("hooked")
        rows = [op["row"] for op in trace["ops"] if op["kind"] == "opaque" and
                op["row"]["operation"] == "aten::addmm"]
        self.assertGreaterEqual(rows[1]["backward"]["workspace_bytes"], 128 * 64 * 4)

    def test_what_is_not_captured_is_said_with_its_line(self):
        for function, problem in (
                ("through_both", r"net\.py:\d+: backward\(\) goes through what was made before"),
                ("retained", r"net\.py:\d+: backward\(retain_graph=True\)"),
                ("run_again_by_the_optimizer", "LBFGS runs the model again"),
                ("never_updated", "calls no step\\(\\) of a torch.optim.Optimizer")):
            done = self.capture(function)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, problem)
        done = self.capture("accumulated", "--precision", "bf16")
        self.assertIn("--precision cannot change a step of one's own", done.stderr)


if __name__ == "__main__":
    Loops.python = test_capture.python_with_torch()
    unittest.main(argv=sys.argv)
