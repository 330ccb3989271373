"""What variables hold beyond the forward, or from step to step, is there beside PyTorch's own allocator:
live memory to the byte. Loudly skipped without PyTorch or the program."""

import json
import pathlib
import sys
import unittest

import test_capture
import test_zoo

SCRIPT = '''
import functools
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

class Codebook(nn.Module):
    """A buffer that the forward gives a new value; the distances, a variable, hold the old one."""

    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(48, 32), nn.Linear(32, 48)
        self.register_buffer("codes", torch.randn(512, 32))

    def forward(self, x):
        z = self.encoder(x)
        distances = torch.cdist(z, self.codes)
        nearest = distances.argmin(1)
        with torch.no_grad():
            self.codes = self.codes * 0.99
        chosen = self.codes[nearest]
        return F.mse_loss(self.decoder(z + (chosen - z).detach()), x) + F.mse_loss(z, chosen)

def codebook():
    return Codebook(), torch.zeros(256, 48)

def normed():
    """As of old weight_norm has it: the weight is an attribute, computed anew in each forward."""
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.utils.weight_norm(nn.Linear(64, 256))), \\
        torch.zeros(8, 64), lambda y: y.square().mean()

class Penalized(nn.Module):
    """The batch has a gradient, too, which nobody gives up."""

    def __init__(self):
        super().__init__()
        self.critic = nn.Sequential(nn.Linear(256, 512), nn.Tanh(), nn.Linear(512, 1))

    def forward(self, x):
        y = self.critic(x.requires_grad_())
        slope, = torch.autograd.grad(y.sum(), x, create_graph=True)
        return y.mean() + (slope.norm(dim=1) - 1).square().mean()

def penalized():
    return Penalized(), torch.zeros(64, 256), None, "sgd"

class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.scores = nn.Linear(24, 6)

    def forward(self, seen, part):
        return self.scores(seen[part])

def rolled_out():
    """Of four passes the first makes, without gradients, what variables hold in all of them."""
    actor = Actor()
    optimizer = torch.optim.Adam(actor.parameters())
    def step():
        everything = torch.arange(4096, device="cuda")
        with torch.no_grad():
            seen = torch.randn(4096, 24, device="cuda")
            scores = actor(seen, everything)
            done, worth = scores.argmax(-1), scores.amax(-1)
        for begin in range(0, 4096, 1024):
            part = everything[begin:begin + 1024]
            scores = actor(seen, part)
            loss = F.cross_entropy(scores, done[part], reduction="none") * worth[part]
            loss.mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    return step

def logits():
    """As a loop has it that also wants a metric: what the loss is of is there until the step is over."""
    model = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 512))
    optimizer = torch.optim.AdamW(model.parameters())
    x, y = torch.zeros(256, 24), torch.zeros(256, dtype=torch.long)
    def step():
        with torch.autocast("cuda", torch.bfloat16):
            scores = model(x)
        loss = F.cross_entropy(scores.float(), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return (scores.argmax(-1) == y).float().mean()
    return step

class Stage(nn.Module):
    """What an instance norm gives is a view, on which the activation is done in place."""

    def __init__(self, channels, made):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(channels, made, 3, padding=1, bias=False),
                                    nn.InstanceNorm2d(made, affine=True), nn.LeakyReLU(0.01, inplace=True))

    def forward(self, x):
        return self.layers(x)

def over_views():
    return nn.Sequential(Stage(3, 16), Stage(16, 16), Stage(16, 8), nn.Conv2d(8, 4, 1)), \\
        torch.zeros(2, 3, 64, 64), lambda y: y.square().mean()

def curved():
    """A state of the optimizer is averaged in the forward, from slopes of slopes (Sophia)."""
    model = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 10))
    optimizer = torch.optim.SGD(model.parameters(), momentum=0.9)
    weights, x, y = list(model.parameters()), torch.zeros(128, 64), torch.zeros(128, dtype=torch.long)
    def step():
        slopes = torch.autograd.grad(F.cross_entropy(model(x), y), weights, create_graph=True)
        bent = torch.autograd.grad(sum(slope.sum() for slope in slopes), weights)
        with torch.no_grad():
            for weight, each in zip(weights, bent):
                optimizer.state[weight].setdefault("curvature", torch.ones_like(weight)).lerp_(each, 0.01)
        del slopes, bent, each
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()
    return step

def in_eight_bits():
    """What nodes keep is what the user's own hooks make of it; their operations are no node's."""
    model = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 64))
    optimizer, x = torch.optim.SGD(model.parameters()), torch.zeros(64, 64)
    def pack(value):
        if isinstance(value, nn.Parameter):
            return value
        scale = value.abs().amax() / 127
        return (value / scale).round().to(torch.int8), scale
    def unpack(kept):
        return kept if isinstance(kept, torch.Tensor) else kept[0].float() * kept[1]
    def step():
        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return step

def denoised():
    """The loss, which is as large as the picture, is a variable of the function alone."""
    model = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.SiLU(), nn.Conv2d(32, 3, 3, padding=1))
    optimizer = torch.optim.AdamW(model.parameters())
    pictures = torch.zeros(4, 3, 32, 32)
    def step():
        noise = torch.randn_like(pictures)
        loss = F.mse_loss(model(0.6 * pictures + 0.8 * noise), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return step

def distilled():
    """Scores of a teacher, which no node keeps, are variables until the step is over."""
    teacher, model = nn.Linear(64, 100), nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 100))
    optimizer, x = torch.optim.SGD(model.parameters()), torch.zeros(512, 64)
    def step():
        with torch.no_grad():
            wanted = teacher(x)
        given = model(x)
        loss = F.kl_div(given.log_softmax(-1), wanted.softmax(-1), reduction="batchmean")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return step

class Energy(nn.Module):
    """What is made of positions alone keeps something, too: they are told to require a gradient."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(1, 64), nn.Softplus(), nn.Linear(64, 1))

    def forward(self, places):
        places = places.clone().requires_grad_()
        one, other = torch.triu_indices(12, 12, 1, device=places.device)
        apart = (places[:, one] - places[:, other]).norm(dim=-1, keepdim=True)
        slope, = torch.autograd.grad(self.layers(apart).sum(), places, create_graph=True)
        return slope.square().mean()

@torch.jit.script
def bias_gelu(bias, y):
    x = bias + y
    return x * 0.5 * (1.0 + torch.tanh(0.79788456 * x * (1 + 0.044715 * x * x)))

class Fused(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.bias = nn.LayerNorm(64), nn.Parameter(torch.zeros(256))
        self.a, self.b = nn.Linear(64, 256, bias=False), nn.Linear(256, 64)

    def forward(self, x):
        return x + self.b(bias_gelu(self.bias, self.a(self.norm(x))))

def scripted():
    return nn.Sequential(Fused(), torch.jit.script(nn.Sequential(nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 10)))), \\
        torch.zeros(8, 33, 64), lambda y: y.square().mean()

def traced():
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)).cuda()
    return torch.jit.trace(model, torch.zeros(8, 64, device="cuda"), check_trace=False), torch.zeros(8, 64), \\
        lambda y: y.square().mean()

class Masked(nn.Module):
    """As RT-DETR masks its queries: of the first group those before it, which are none."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 64)

    def forward(self, x):
        mask = torch.ones(x.shape[1], x.shape[1], device=x.device)
        for at in range(0, 8, 4):
            mask[at:at + 4, :at] = 0
            mask[at:at + 4, 8:8 + at] = 0
        return (mask @ self.layer(x)).square().mean()

def masked():
    return Masked(), torch.zeros(4, 12, 64)

def truncated():
    """Through time in pieces: what a piece gives is put together of more than an op may read, and a variable."""
    cells, head = nn.GRU(32, 64, batch_first=True), nn.Linear(64, 10)
    optimizer = torch.optim.Adam([*cells.parameters(), *head.parameters()])
    x, y = torch.zeros(8, 60, 32), torch.zeros(8, 60, dtype=torch.long)
    def step():
        state = None
        for at in range(0, 60, 20):
            given, state = cells(x[:, at:at + 20], state)
            state = state.detach()
            loss = F.cross_entropy(head(given).flatten(0, 1), y[:, at:at + 20].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return step

class Pushed(nn.Module):
    """How the result changes along a direction, by forward-mode differentiation."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 64))

    def forward(self, x):
        y, along = torch.func.jvp(self.layers, (x,), (torch.ones_like(x),))
        return y.square().mean() + along.square().mean()

def pushed():
    return Pushed(), torch.zeros(128, 64)

class Scaled(torch.autograd.Function):
    """Most is there in its backward, behind others of its module."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return torch.cat([gradient] * 8).view(8, *gradient.shape).sum(0)

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.wide, self.narrow = nn.Linear(64, 128), nn.Linear(128, 64)

    def forward(self, x):
        return self.narrow(Scaled.apply(self.wide(x)))

class Followed(nn.Module):
    """Hooks of modules, which hold the gradient of what a module gives until that of what it is given is there."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(4))
        for block in (*self.blocks, self):
            block.register_full_backward_hook(lambda module, given, taken: None)

    def forward(self, x):
        for block in self.blocks:
            x = block(x).relu()
        return x.square().mean()

def followed():
    return Followed(), torch.zeros(8, 32, 64)

def looked_at():
    """A hook's variable, and an activation, have gradients until the update is over."""
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU())
    head, taken = nn.Linear(256, 10), []
    optimizer = torch.optim.AdamW([*model.parameters(), *head.parameters()])
    model[1].register_full_backward_hook(lambda module, given, gradients: taken.append(gradients[0]))
    x, y = torch.zeros(128, 64), torch.zeros(128, dtype=torch.long)
    def step():
        found = model(x)
        found.retain_grad()
        F.cross_entropy(head(found), y).backward()
        optimizer.step()
        optimizer.zero_grad()
        taken.clear()
    return step

def of_one_fake():
    """What is real the critic's own backward has let go when the generator's begins."""
    maker = nn.Sequential(nn.Linear(16, 128), nn.ReLU(), nn.Linear(128, 64))
    critic = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 1))
    of_maker, of_critic = torch.optim.Adam(maker.parameters()), torch.optim.Adam(critic.parameters())
    real, noise = torch.zeros(64, 64), torch.zeros(64, 16)
    def step():
        fake = maker(noise)
        of_critic.zero_grad()
        (F.softplus(-critic(real)).mean() + F.softplus(critic(fake.detach())).mean()).backward()
        of_critic.step()
        of_maker.zero_grad()
        F.softplus(-critic(fake)).mean().backward()
        of_maker.step()
    return step

def attacked():
    """The first step of an attack goes before the slope is made that a variable has until the update is over."""
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    x, y = torch.zeros(64, 64), torch.zeros(64, dtype=torch.long)
    def step():
        moved = torch.zeros_like(x).requires_grad_()
        for _ in range(2):
            slope, = torch.autograd.grad(F.cross_entropy(model(x + moved), y), moved)
            moved = (moved + 0.01 * slope.sign()).clamp(-0.1, 0.1).detach().requires_grad_()
        loss = F.cross_entropy(model(x + moved.detach()), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return step

def reported():
    """A step's results of which the loss is none: their graph is there until the update is over."""
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = torch.optim.Adam(model.parameters())
    x, y = torch.zeros(128, 64), torch.zeros(128, dtype=torch.long)
    def training_step():
        loss = F.cross_entropy(model(x), y)
        return {"loss": loss, "scores": model(x), "right": (model(x).argmax(-1) == y).float().mean()}
    def step():
        found = training_step()
        def closure():
            optimizer.zero_grad()
            found["loss"].backward()
        optimizer.step(closure)
    return step

def retained():
    """Graphs that nothing goes through again: one is there to the end of its backward, one until the update is over."""
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256))
    one, other = nn.Linear(256, 10), nn.Linear(256, 12)
    optimizer = torch.optim.AdamW([*model.parameters(), *one.parameters(), *other.parameters()])
    x = torch.zeros(256, 64)
    def step():
        optimizer.zero_grad()
        one(model(x)).square().mean().backward(retain_graph=True)
        optimizer.step()
        loss = other(model(x)).square().mean()
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
    return step

def by_hand():
    """Without backward(): gradients of torch.autograd.grad, put beside those of before."""
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = torch.optim.AdamW(model.parameters())
    x, y = torch.zeros(256, 64), torch.zeros(256, dtype=torch.long)
    def step():
        gradients = torch.autograd.grad(F.cross_entropy(model(x), y), list(model.parameters()))
        for weight, gradient in zip(model.parameters(), gradients):
            weight.grad = gradient
        optimizer.step()
    return step

def of_two_tasks():
    """Gradients of shared weights alone, put together by hand; of the heads' weights there are none."""
    model, heads = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256)), \\
        nn.ModuleList([nn.Linear(256, 10), nn.Linear(256, 12)])
    shared, x = list(model.parameters()), torch.zeros(256, 64)
    optimizer = torch.optim.AdamW([*shared, *heads.parameters()])
    def step():
        found = model(x)
        one, other = (torch.autograd.grad(head(found).square().mean(), shared, retain_graph=True) for head in heads)
        for weight, a, b in zip(shared, one, other):
            weight.grad = a + b - (a * b).sum().clamp(max=0) * b
        optimizer.step()
        optimizer.zero_grad()
    return step

def accumulated():
    """Micro-batches of which each has results of the one before until it has its own; most is there in a forward."""
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 512))
    optimizer = torch.optim.SGD(model.parameters())
    batches = [(torch.zeros(128, 64), torch.zeros(128, dtype=torch.long)) for _ in range(3)]
    def step():
        for x, y in batches:
            scores = model(x)
            loss = F.cross_entropy(scores, y) / 3 + torch.cat([scores.detach()] * 16).mean()
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return step

def within():
    """A step begins with a checkpoint that has others in it."""
    layers = nn.ModuleList(nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64)) for _ in range(4))
    optimizer, x = torch.optim.AdamW(layers.parameters()), torch.zeros(64, 64)
    def both(one, other, x):
        return checkpoint(other, checkpoint(one, x, use_reentrant=False), use_reentrant=False)
    def step():
        y = checkpoint(both, layers[0], layers[1], x, use_reentrant=False)
        checkpoint(both, layers[2], layers[3], y, use_reentrant=False).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return step

class Scanned(nn.Module):
    """What it gives is written piece by piece over zeros that are made like what has a gradient (linear attention)."""

    def __init__(self):
        super().__init__()
        self.given, self.out = nn.Linear(32, 64), nn.Linear(64, 64)

    def forward(self, x):
        x = self.given(x)
        y, state = torch.zeros_like(x), torch.zeros(8, 64, device=x.device)
        for at in range(4):
            state = state * 0.9 + x[:, at].tanh()
            y[:, at] = state * x[:, at]
        return self.out(y)

def scanned():
    return Scanned(), torch.zeros(8, 4, 32), lambda y: y.square().mean()

def on_the_host():
    """Weights, gradients and states of the optimizer are the host's (ZeRO-Offload, by hand)."""
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
    there = [p.detach().cpu().clone().requires_grad_() for p in model.parameters()]
    optimizer = torch.optim.AdamW(there)
    x, y = torch.zeros(64, 64), torch.zeros(64, dtype=torch.long)
    def step():
        F.cross_entropy(model(x), y).backward()
        for p, q in zip(model.parameters(), there):
            q.grad, p.grad = p.grad.cpu(), None
        optimizer.step()
        with torch.no_grad():
            for p, q in zip(model.parameters(), there):
                p.copy_(q)
    return step

class Rerun(nn.Module):
    """What checkpoints are given by keyword they keep. A ring of references has it beyond the update."""

    def __init__(self):
        super().__init__()
        self.given = nn.Linear(16, 64)
        self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(3))

    def forward(self, x):
        mask = torch.arange(64, device=x.device).add(1.0).expand(64, 64).contiguous()
        run = lambda layer, x, mask: layer(x).relu() @ mask
        run.ring = (run, mask)
        x = self.given(x)
        for layer in self.layers:
            x = checkpoint(functools.partial(run, layer, mask=mask), x, use_reentrant=False)
        return x

def rerun():
    return Rerun(), torch.zeros(256, 16), lambda y: y.square().mean()

def noised():
    """What is made before the model is called, and kept by a node alone, goes with that."""
    model = nn.Sequential(nn.Linear(65, 256), nn.ReLU(), nn.Linear(256, 64))
    optimizer, x = torch.optim.AdamW(model.parameters()), torch.zeros(64, 64)
    def step():
        when, noise = torch.rand(64, 1, device="cuda"), torch.randn_like(x)
        loss = F.mse_loss(model(torch.cat([when * x + (1 - when) * noise, when], -1)), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return step

def balanced():
    """A hook solves for the gradient through a graph of its own, which a variable has (an equilibrium)."""
    model, head = nn.Sequential(nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 64)), nn.Linear(64, 10)
    optimizer = torch.optim.AdamW([*model.parameters(), *head.parameters()])
    x, y = torch.zeros(64, 64), torch.zeros(64, dtype=torch.long)
    def step():
        z = model(torch.zeros_like(x)) + x
        here = z.clone().detach().requires_grad_()
        there = model(here) + x
        def solved(gradient):
            found = gradient
            for _ in range(4):
                found = torch.autograd.grad(there, here, found, retain_graph=True)[0] + gradient
            return found
        z.register_hook(solved)
        optimizer.zero_grad()
        F.cross_entropy(head(z), y).backward()
        optimizer.step()
    return step

def staged():
    """Stages with a loss and a backward each."""
    stages = nn.ModuleList(nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64)) for _ in range(3))
    optimizer, x = torch.optim.AdamW(stages.parameters()), torch.zeros(128, 64)
    def step():
        optimizer.zero_grad()
        given = x
        for stage in stages:
            given = stage(given.detach())
            given.square().mean().backward()
        optimizer.step()
    return step

def taught():
    """Of weights as large as each other each takes the place of the one that it is of; the loss, as large
    as what it is of, is in no variable."""
    sizes = 64, 128, 64, 32
    model, teacher = (nn.Sequential(*(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))) for _ in range(2))
    optimizer, x = torch.optim.AdamW(model.parameters()), torch.zeros(8, 64)
    def step():
        y = model(x)
        with torch.no_grad():
            for p, q in zip(model.parameters(), teacher.parameters()):
                q.data = q.data * 0.99 + p.data * 0.01
            z = teacher(x)
        F.mse_loss(y, z).backward()
        optimizer.step()
        optimizer.zero_grad()
    return step

def evaluated():
    """Most is there in an evaluation behind the update."""
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer, held_out = torch.optim.AdamW(model.parameters()), torch.zeros(512, 64)
    x, y = torch.zeros(64, 64), torch.zeros(64, dtype=torch.long)
    def step():
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            return model(held_out).argmax(-1)
    return step

class Reversed(torch.autograd.Function):
    """Gives what it is given; its gradient is one of its own."""

    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient.neg() * 0.3

class Noted(torch.autograd.Function):
    """Gives what it is given, and keeps something beside."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x.exp())
        return x

    @staticmethod
    def backward(ctx, gradient):
        return gradient

class Adversary(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256))
        self.classes, self.domains = nn.Linear(256, 10), nn.Sequential(nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, x):
        found = self.features(x)
        domains = self.domains(Noted.apply(Reversed.apply(found)))
        return self.classes(found).square().mean() + domains.square().mean()

def adversary():
    return Adversary(), torch.zeros(512, 64)

def forced():
    return Energy(), torch.zeros(8, 12, 3)
'''


class Held(test_capture.CaptureTest):
    script = SCRIPT

    def test_live_memory_is_what_there_was(self):
        figures = test_zoo.load_figures()
        for function in ("codebook", "normed", "penalized", "rolled_out", "logits", "over_views",
                         "curved", "in_eight_bits", "denoised", "distilled", "forced",
                         "scripted", "traced", "masked", "truncated", "pushed", "followed",
                         "looked_at", "of_one_fake", "attacked", "adversary", "evaluated", "reported",
                         "retained", "by_hand", "of_two_tasks", "accumulated", "on_the_host",
                         "rerun", "within", "scanned", "noised", "balanced",
                         "staged", "taught"):
            with self.subTest(function):
                done = self.capture(function, "--measured", "measured.json")
                self.assertEqual(done.returncode, 0, done.stderr)
                found = figures.predicted(pathlib.Path(test_zoo.PROGRAM).resolve(),
                                          self.path / "step.trace.json")
                measured = json.loads((self.path / "measured.json").read_text())
                one_number = 4 if function == "forced" else 0  # which stands for its leaves
                self.assertEqual(found["live_peak_bytes"] - one_number, max(measured["live"].values()))
                self.assertEqual(found["saved_unique_bytes"], measured["saved"])
                self.assertEqual(found["reserved_peak_bytes"], measured["reserved"])
                self.assertEqual(found["allocated_peak_bytes"],
                                 max(measured["allocated"][phase]
                                     for phase in ("forward", "backward", "optimizer")))


if __name__ == "__main__":
    if not test_zoo.PROGRAM:
        print("SKIPPED: no program: TIDEMARK_PROGRAM names it")
        sys.exit(77)
    Held.python = test_capture.python_with_torch()
    unittest.main(argv=sys.argv)
