"""Captures steps of one's own, where PyTorch is: loops, two networks, hooks. Loudly skipped elsewhere."""

import sys
import unittest

import test_capture

SCRIPT = '''
import torch
import torch.utils.checkpoint
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

def recomputed(*others):
    """Of what reentrant checkpoints make again no weight is in the graph: their input is a leaf of the step's."""
    model, x, optimizer = setting()
    def step():
        for each in (model, *(others or [model])):
            y = torch.utils.checkpoint.checkpoint(each, x.clone().requires_grad_(), use_reentrant=True)
            y.square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    optimizer.add_param_group(dict(params=[p for each in others for p in each.parameters()]))
    return step

def recomputed_other():
    return recomputed(net(64, 128, 64, 32).cuda())

def of_one_rollout():
    model, x, optimizer = setting()
    def step():
        for rows in x.split(4):
            model(rows).square().mean().backward()
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
    """As PyTorch's DCGAN tutorial has it, with what it prints between backward() and step()."""
    maker, critic = net(16, 32, 64), Critic()
    of_maker = torch.optim.Adam(maker.parameters())
    of_critic = torch.optim.Adam(critic.parameters())
    z, real = torch.zeros(8, 16), torch.zeros(8, 64)
    said = []
    def step():
        critic.zero_grad()
        critic(real).mean().neg().backward()
        fake = maker(z)
        output = critic(fake.detach())
        output.mean().backward()
        said.append(output.mean().item())
        of_critic.step()
        maker.zero_grad()
        critic(fake).mean().neg().backward()
        of_maker.step()
    return step

def two_losses():
    trunk, one, other = net(64, 128, 128), nn.Linear(128, 8), nn.Linear(128, 16)
    optimizer = torch.optim.AdamW([*trunk.parameters(), *one.parameters(), *other.parameters()])
    x = torch.zeros(8, 64)
    def step():
        y = trunk(x)
        loss, second = one(y).square().mean(), other(y).square().mean()
        loss.backward(retain_graph=True)
        second.backward()
        optimizer.step()
        optimizer.zero_grad()
    return step

def scored():
    """A metric, called between backward() and step(), is no next pass; nor is a loss that is read."""
    model, x, optimizer = setting()
    metric, seen = nn.L1Loss(), []
    def step():
        y = model(x)
        loss = y.square().mean()
        loss.backward()
        seen.append(loss.item())
        metric(y, torch.zeros_like(y))
        optimizer.step()
        optimizer.zero_grad()
    return step

def scaled_by_a_weight():
    """The first operation on what needs a gradient is of the model: a temperature."""
    tower, scale = net(64, 32), nn.Parameter(torch.zeros(()))
    optimizer = torch.optim.AdamW([*tower.parameters(), scale])
    x, y = torch.zeros(8, 64), torch.arange(8)
    def step():
        scores = scale.exp() * tower(x) @ tower(x).T
        nn.functional.cross_entropy(scores, y).backward()
        optimizer.step()
        optimizer.zero_grad()
    return step

def sharpened():
    """Two passes that are alike and add nothing up: between them the gradients are taken."""
    model, x, optimizer = setting()
    def step():
        model(x).square().mean().backward()
        moved = [p.grad * 0.05 for p in model.parameters()]
        with torch.no_grad():
            for p, by in zip(model.parameters(), moved):
                p.add_(by)
        optimizer.zero_grad()
        model(x).square().mean().backward()
        with torch.no_grad():
            for p, by in zip(model.parameters(), moved):
                p.sub_(by)
        optimizer.step()
        optimizer.zero_grad()
    return step

def teacher_in_the_forward():
    """A teacher that follows the student, by values of its own, before the loss (MoCo)."""
    model, x, optimizer = setting()
    teacher = net(64, 128, 64, 32).requires_grad_(False)
    def step():
        y = model(x)
        with torch.no_grad():
            for p, q in zip(model.parameters(), teacher.parameters()):
                q.data = q.data * 0.99 + p.data * 0.01
            z = teacher(x)
        nn.functional.mse_loss(y, z).backward()
        optimizer.step()
        optimizer.zero_grad()
    return step

def chances():
    """A distribution that checks its numbers would find that they mean nothing."""
    model, x, optimizer = setting()
    def step():
        scores = model(x) / torch.zeros((), device="cuda")
        chance = torch.distributions.Categorical(logits=scores)
        chance.log_prob(torch.zeros(8, dtype=torch.long, device="cuda")).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return step

def some_in_backward():
    model, x, _ = setting()
    large = [p for p in model.parameters() if p.dim() == 2]
    each = {p: torch.optim.AdamW([p], foreach=False) for p in large}
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.dim() == 1])
    def update(p):
        each[p].step()
        each[p].zero_grad()
    for p in large:
        p.register_post_accumulate_grad_hook(update)
    def step():
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
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

def updates_in_both_backwards():
    """Of two networks, each in its backward."""
    first, second = net(64, 128, 64), Critic()
    each = {p: torch.optim.SGD([p]) for p in [*first.parameters(), *second.parameters()]}
    def update(p):
        each[p].step()
        p.grad = None
    for p in each:
        p.register_post_accumulate_grad_hook(update)
    x = torch.zeros(8, 64)
    def step():
        first(x).square().mean().backward()
        second(x).square().mean().backward()
    return step

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

def of_the_step_before():
    model = net(64, 32)
    optimizer = torch.optim.AdamW(model.parameters())
    x, state = torch.zeros(8, 64), [torch.zeros(8, 32)]
    def step():
        state[0] = model(x) + state[0]
        state[0].mean().backward(retain_graph=True)
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

def prefetched():
    model, x, optimizer = setting()
    side = torch.cuda.Stream()
    def step():
        with torch.cuda.stream(side):
            following = x + 1
        model(x).square().mean().backward()
        optimizer.step()
        torch.cuda.current_stream().wait_stream(side)
        return following
    return step

def gradients_of_func():
    model, x, optimizer = setting()
    def step():
        weights = dict(model.named_parameters())
        loss = lambda weights: torch.func.functional_call(model, weights, (x,)).square().mean()
        for name, gradient in torch.func.grad(loss)({name: p.detach() for name, p in weights.items()}).items():
            weights[name].grad = gradient
        optimizer.step()
    return step

def nested():
    model, x, optimizer = setting()
    rows = [x[:3], x[3:]]
    def step():
        model(torch.nested.as_nested_tensor(rows, layout=torch.jagged)).values().square().mean().backward()
        optimizer.step()
    return step

def supervised():
    """Stages that are alike, each with a loss and a backward of its own: no micro-batches of one."""
    stages = nn.ModuleList(net(64, 128, 64) for _ in range(3))
    optimizer, x = torch.optim.SGD(stages.parameters()), torch.zeros(8, 64)
    def step():
        given = x
        for stage in stages:
            given = stage(given.detach())
            given.square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return step

def several_at_once():
    """Of weights that are stacked, as torch.func's tutorial has it."""
    from torch.func import functional_call, stack_module_state, vmap
    models = [net(64, 64, 4) for _ in range(3)]
    weights, buffers = stack_module_state(models)
    weights = {name: value.detach().cuda().requires_grad_() for name, value in weights.items()}
    base = net(64, 64, 4).to("meta")
    optimizer = torch.optim.Adam(weights.values())
    x = torch.zeros(8, 64)
    def step():
        called = lambda weights, buffers: functional_call(base, (weights, buffers), (x,))
        vmap(called)(weights, buffers).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return step
'''


class Loops(test_capture.CaptureTest):
    script = SCRIPT

    def captured(self, function, ranks=None):
        done = self.capture(function, ranks=ranks)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.trace(), done.stderr

    def test_passes_of_other_weights_are_no_micro_batches(self):
        trace, said = self.captured("supervised")
        self.assertNotIn("accumulate", trace["step"])
        self.assertIn("of 3 passes of different kinds", said)

    def test_reentrant_checkpoints_of_the_same_weights_are_micro_batches(self):
        trace, said = self.captured("recomputed")
        self.assertEqual((trace["step"]["accumulate"], said), (2, ""))
        trace, said = self.captured("recomputed_other")
        self.assertNotIn("accumulate", trace["step"])
        self.assertIn("of 2 passes of different kinds", said)

    def test_minibatches_that_an_update_each_follows_are_alike(self):
        trace, said = self.captured("of_one_rollout")
        self.assertNotIn("accumulate", trace["step"])
        self.assertRegex(said, "^tidemark capture: of 2 passes that are alike this is number [12], which needs most memory\n$")

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
        self.assertRegex(said, "of 2 passes of different kinds this is number [12], which")
        self.assertIn("allocator_calls", trace)
        tensors = {tensor["name"]: tensor for tensor in trace["tensors"]}
        self.assertTrue(any(name.startswith("Critic.layers.0.weight.exp_avg") for name in tensors))
        self.assertTrue(any(name.startswith("Sequential.0.weight.exp_avg") for name in tensors))

    def test_a_backward_that_another_goes_behind_is_one_op_of_its_forward(self):
        trace, said = self.captured("through_both")
        self.assertIn("of 2 passes of different kinds this is number 2, which", said)
        inner = [op for op in trace["ops"] if op["row"]["operation"] == "backward"]
        self.assertEqual(len(inner), 1)
        self.assertRegex(inner[0]["line"], r"net\.py:\d+")
        self.assertGreater(inner[0]["row"]["forward"]["workspace_bytes"], 0)
        products = [op["name"] for op in trace["ops"] if op["row"]["operation"] == "aten::addmm"]
        self.assertEqual(len(products), 2 + 2 + 2)  # the maker's, the critic's twice
        trained = [x["name"] for x in trace["tensors"] if x.get("trainable")]
        self.assertEqual(len(trained), 4)  # to the critic's gradients it adds
        trace, said = self.captured("two_losses")
        self.assertEqual(said, "")
        self.assertEqual(sum(op["row"]["operation"] == "backward" for op in trace["ops"]), 1)
        grown = [x["name"] for x in trace["tensors"] if x["name"].endswith(".weight.grad")]
        self.assertEqual(len(grown), 3)  # of the first loss: two of the trunk, one of its head

    def test_what_reads_results_before_the_update_is_of_the_update(self):
        trace, said = self.captured("scored")
        self.assertEqual(said, "")
        self.assertEqual(trace["update"]["optimizer"], "AdamW")
        self.assertGreater(trace["update"].get("workspace_bytes", 0), 0)

    def test_a_pass_may_begin_with_an_operation(self):
        trace, _ = self.captured("scaled_by_a_weight")
        self.assertEqual(sum(bool(x.get("trainable")) for x in trace["tensors"]), 3)

    def test_memory_of_several_streams_is_said_with_its_line(self):
        trace, said = self.captured("prefetched")
        self.assertNotIn("allocator_calls", trace)
        number = 1 + SCRIPT.split("\n").index("        with torch.cuda.stream(side):")
        self.assertRegex(said, rf"^tidemark capture: net\.py:{number}: memory of several streams")

    def test_models_that_run_at_once(self):
        trace, _ = self.captured("several_at_once")
        shapes = [x["shape"] for x in trace["tensors"] if x.get("trainable")]
        self.assertIn([3, 64, 64], shapes)

    def test_passes_that_add_nothing_up_are_no_micro_batches(self):
        trace, said = self.captured("sharpened")
        self.assertNotIn("accumulate", trace["step"])
        self.assertIn("of 2 passes that are alike", said)

    def test_what_takes_the_place_of_what_was_is_written_over_it(self):
        trace, said = self.captured("teacher_in_the_forward")
        self.assertEqual(said, "")
        owners = {x.get("storage") for x in trace["tensors"]}
        weights = [x["name"] for x in trace["tensors"] if x["category"] == "parameter" and
                   "storage" not in x and not x.get("trainable")]
        self.assertEqual(len(weights), 6)
        self.assertEqual(set(weights) - owners, set())

    def test_distributions_take_the_numbers_that_there_are(self):
        trace, _ = self.captured("chances")
        self.assertEqual(trace["update"]["optimizer"], "AdamW")

    def test_gradients_that_some_hooks_free_are_temporaries(self):
        trace, _ = self.captured("some_in_backward")
        self.assertNotIn("update_in_backward", trace["step"])
        trained = [x["name"] for x in trace["tensors"] if x.get("trainable")]
        self.assertEqual(len(trained), 3)  # biases

    def test_gradients_that_stay_and_updates_in_the_backward(self):
        trace, _ = self.captured("gradients_stay")
        self.assertTrue(trace["step"]["keep_gradients"])
        for function in ("updates_in_backward", "updates_in_both_backwards"):
            trace, _ = self.captured(function)
            self.assertTrue(trace["step"]["update_in_backward"])

    def test_what_hooks_of_weights_make_is_counted(self):
        trace, _ = self.captured("hooked")
        rows = [op["row"] for op in trace["ops"] if op["kind"] == "opaque" and
                op["row"]["operation"] == "aten::addmm"]
        self.assertGreaterEqual(rows[1]["backward"]["workspace_bytes"], 128 * 64 * 4)

    def test_what_is_not_captured_is_said_with_its_line(self):
        for function, problem in (
                ("of_the_step_before", r"net\.py:\d+: backward\(\) goes through what was made before the step"),
                ("run_again_by_the_optimizer", r"net\.py:\d+: LBFGS runs the model again"),
                ("never_updated", r"net\.py:\d+: the function .* calls no step\(\) of a torch.optim.Optimizer"),
                ("gradients_of_func", r"net\.py:\d+: .* calls no backward\(\), nor torch\.autograd\.grad"),
                ("nested", r"net\.py:\d+: nested tensors are not captured: pad them")):
            done = self.capture(function)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, problem)
        done = self.capture("accumulated", "--precision", "bf16")
        self.assertIn("--precision cannot change a step of one's own", done.stderr)


if __name__ == "__main__":
    Loops.python = test_capture.python_with_torch()
    unittest.main(argv=sys.argv)
