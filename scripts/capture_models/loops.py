"""Whole steps of training loops, as people write them: `tidemark capture loops.py:dcgan`."""

from __future__ import annotations

import copy

import torch
import torch.nn.functional as F
from torch import nn

import models


def mlp(*widths):
    layers = []
    for one, other in zip(widths, widths[1:]):
        layers += [nn.Linear(one, other), nn.GELU()]
    return nn.Sequential(*layers[:-1])


def random(*shape):
    return torch.randn(*shape, device="cuda")


# --- two networks, two optimizers -----------------------------------------------------------------


class Generator(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        layers, before = [], 32
        for at, after in enumerate((4 * width, 2 * width, width)):
            layers += [nn.ConvTranspose2d(before, after, 4, 2 if at else 1, 1 if at else 0, bias=False),
                       nn.BatchNorm2d(after), nn.ReLU(True)]
            before = after
        self.main = nn.Sequential(*layers, nn.ConvTranspose2d(before, 3, 4, 2, 1, bias=False),
                                  nn.Tanh())

    def forward(self, noise):
        return self.main(noise)


class Discriminator(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        layers, before = [], 3
        for after in (width, 2 * width, 4 * width):
            layers += [nn.Conv2d(before, after, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True)]
            before = after
        self.main = nn.Sequential(*layers, nn.Conv2d(before, 1, 4, 1, 0, bias=False), nn.Sigmoid())

    def forward(self, pictures):
        return self.main(pictures).view(-1)


def dcgan():
    """PyTorch's tutorial: one `fake` for both steps, and numbers read before the update."""
    makes, judges = Generator(), Discriminator()
    of_maker = torch.optim.Adam(makes.parameters(), lr=2e-4, betas=(0.5, 0.999))
    of_judge = torch.optim.Adam(judges.parameters(), lr=2e-4, betas=(0.5, 0.999))
    real, loss, scores = torch.zeros(16, 3, 32, 32), nn.BCELoss(), []

    def step():
        judges.zero_grad()
        label = torch.full((16,), 1.0, device="cuda")
        output = judges(real)
        of_real = loss(output, label)
        of_real.backward()
        scores.append(output.mean().item())
        fake = makes(random(16, 32, 1, 1))
        label.fill_(0.0)
        output = judges(fake.detach())
        of_fake = loss(output, label)
        of_fake.backward()
        scores.append(output.mean().item())
        of_judge.step()
        makes.zero_grad()
        label.fill_(1.0)
        loss(judges(fake), label).backward()
        of_maker.step()

    return step


def gan_of_one_fake(scaled=False):
    makes, judges = mlp(64, 256, 512, 784), mlp(784, 1024, 512, 1)
    of_maker = torch.optim.AdamW(makes.parameters())
    of_judge = torch.optim.AdamW(judges.parameters())
    scaler = torch.amp.GradScaler("cuda", enabled=scaled)
    real, loss = torch.zeros(128, 784), nn.BCEWithLogitsLoss()
    ones, zeros = torch.ones(128, 1), torch.zeros(128, 1)

    def step():
        of_judge.zero_grad()
        with torch.autocast("cuda", torch.float16, enabled=scaled):
            fake = makes(random(128, 64))
            both = loss(judges(real), ones) + loss(judges(fake.detach()), zeros)
        scaler.scale(both).backward()
        scaler.step(of_judge)
        of_maker.zero_grad()
        with torch.autocast("cuda", torch.float16, enabled=scaled):
            fooled = loss(judges(fake), ones)
        scaler.scale(fooled).backward()
        scaler.step(of_maker)
        scaler.update()

    return step


def gan_under_one_scaler():
    return gan_of_one_fake(scaled=True)


def penalized_gan():
    """Wasserstein, with a penalty of the slope: three steps of the critic, one of the generator."""
    makes, judges = mlp(64, 256, 512, 784), mlp(784, 1024, 512, 1)
    of_maker = torch.optim.RMSprop(makes.parameters())
    of_judge = torch.optim.RMSprop(judges.parameters())
    real = torch.zeros(64, 784)

    def step():
        for _ in range(3):
            with torch.no_grad():
                fake = makes(random(64, 64))
            part = torch.rand(64, 1, device="cuda")
            between = (part * real + (1 - part) * fake).requires_grad_()
            slope, = torch.autograd.grad(judges(between).sum(), between, create_graph=True)
            loss = judges(fake).mean() - judges(real).mean()
            loss = loss + 10 * (slope.norm(2, dim=1) - 1).square().mean()
            of_judge.zero_grad()
            loss.backward()
            of_judge.step()
        of_maker.zero_grad()
        judges(makes(random(64, 64))).mean().neg().backward()
        of_maker.step()

    return step


def actor_and_critics():
    """Soft actor-critic: critics with targets that follow them, an actor."""
    actor, one, other = mlp(64, 256, 256, 16), mlp(80, 256, 256, 1), mlp(80, 256, 256, 1)
    targets = [copy.deepcopy(x).requires_grad_(False) for x in (one, other)]
    of_actor = torch.optim.Adam(actor.parameters())
    of_critics = torch.optim.Adam([*one.parameters(), *other.parameters()])
    state, action, reward = torch.zeros(256, 64), torch.zeros(256, 16), torch.zeros(256, 1)

    def step():
        with torch.no_grad():
            following = torch.cat([state, actor(state)], 1)
            wanted = reward + 0.99 * torch.min(*(x(following) for x in targets))
        taken = torch.cat([state, action], 1)
        loss = F.mse_loss(one(taken), wanted) + F.mse_loss(other(taken), wanted)
        of_critics.zero_grad()
        loss.backward()
        of_critics.step()
        would = torch.cat([state, actor(state)], 1)
        loss = -torch.min(one(would), other(would)).mean()
        of_actor.zero_grad()
        loss.backward()
        of_actor.step()
        with torch.no_grad():
            for model, target in zip((one, other), targets):
                for p, q in zip(model.parameters(), target.parameters()):
                    q.mul_(0.995).add_(p, alpha=0.005)

    return step


# --- two losses -----------------------------------------------------------------------------------


def two_losses():
    trunk, one, other = mlp(256, 512, 512), nn.Linear(512, 10), nn.Linear(512, 200)
    optimizer = torch.optim.AdamW([*trunk.parameters(), *one.parameters(), *other.parameters()])
    x, y = torch.zeros(96, 256), torch.zeros(96, dtype=torch.long)

    def step():
        optimizer.zero_grad()
        shared = trunk(x)
        first, second = F.cross_entropy(one(shared), y), F.cross_entropy(other(shared), y)
        first.backward(retain_graph=True)
        second.backward()
        optimizer.step()

    return step


def weighted_losses():
    """Weights of losses that are learned, two optimizers under one scaler."""
    trunk, one, other = mlp(256, 512, 512), nn.Linear(512, 10), nn.Linear(512, 200)
    doubt = nn.Parameter(torch.zeros(2))
    first = torch.optim.AdamW(trunk.parameters())
    second = torch.optim.SGD([*one.parameters(), *other.parameters(), doubt], 0.1, momentum=0.9)
    scaler = torch.amp.GradScaler("cuda")
    x, y = torch.zeros(96, 256), torch.zeros(96, dtype=torch.long)

    def step():
        first.zero_grad()
        second.zero_grad()
        with torch.autocast("cuda", torch.float16):
            shared = trunk(x)
            losses = torch.stack([F.cross_entropy(one(shared), y), F.cross_entropy(other(shared), y)])
            loss = (losses * torch.exp(-doubt) + doubt).sum()
        scaler.scale(loss).backward()
        for optimizer in (first, second):
            scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(trunk.parameters(), 1.0)
        for optimizer in (first, second):
            scaler.step(optimizer)
        scaler.update()

    return step


# --- representations ------------------------------------------------------------------------------


class Tower(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = mlp(width, 512, 512, 128)

    def forward(self, x):
        return F.normalize(self.layers(x), dim=-1)


def two_towers():
    """CLIP's loss: each other pair of the batch is a negative; a temperature of no module."""
    asks, answers, scale = Tower(300), Tower(700), nn.Parameter(torch.tensor(2.6))
    optimizer = torch.optim.AdamW([*asks.parameters(), *answers.parameters(), scale])
    one, other, y = torch.zeros(96, 300), torch.zeros(96, 700), torch.arange(96)

    def step():
        optimizer.zero_grad()
        scores = scale.exp() * asks(one) @ answers(other).T
        loss = (F.cross_entropy(scores, y) + F.cross_entropy(scores.T, y)) / 2
        loss.backward()
        optimizer.step()

    return step


def momentum_teacher():
    """MoCo: keys of a teacher that gets new weights in the forward, and a queue."""
    student = Tower(300)
    teacher = copy.deepcopy(student).requires_grad_(False)
    queue = F.normalize(torch.randn(128, 4096), dim=0)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.03, momentum=0.9)
    one, other = torch.zeros(64, 300), torch.zeros(64, 300)

    def step():
        asked = student(one)
        with torch.no_grad():
            for p, q in zip(student.parameters(), teacher.parameters()):
                q.data = q.data * 0.999 + p.data * 0.001
            found = teacher(other)
        positive = torch.einsum("nc,nc->n", asked, found).unsqueeze(-1)
        negative = torch.einsum("nc,ck->nk", asked, queue.clone().detach())
        scores = torch.cat([positive, negative], 1) / 0.07
        loss = F.cross_entropy(scores, torch.zeros(64, dtype=torch.long, device="cuda"))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        queue[:, :64] = found.T

    return step


def autoencoder():
    """A closure, as Lightning calls it; its loss is kept, in storage as large as the batch."""
    encoder, decoder, kept = mlp(784, 512, 64), mlp(64, 512, 784), {}
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()])
    x = torch.zeros(64, 1, 28, 28)

    def step():
        def closure():
            flat = x.view(64, -1)
            loss = F.mse_loss(decoder(encoder(flat)), flat)
            kept["loss"] = loss.detach()
            optimizer.zero_grad()
            loss.backward()
            return loss

        optimizer.step(closure)

    return step


# --- updates --------------------------------------------------------------------------------------


def sharpness_aware():
    """SAM: uphill by the first gradient, and from there the step."""
    model = mlp(256, 512, 512, 512, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x, y = torch.zeros(96, 256), torch.zeros(96, dtype=torch.long)

    def step():
        F.cross_entropy(model(x), y).backward()
        with torch.no_grad():
            norm = torch.stack([p.grad.norm() for p in model.parameters()]).norm()
            moved = [p.grad * (0.05 / (norm + 1e-12)) for p in model.parameters()]
            for p, by in zip(model.parameters(), moved):
                p.add_(by)
                p.grad = None
        F.cross_entropy(model(x), y).backward()
        with torch.no_grad():
            for p, by in zip(model.parameters(), moved):
                p.sub_(by)
        optimizer.step()
        optimizer.zero_grad()

    return step


def updates_in_backward(every=True):
    model = mlp(256, 512, 512, 512, 512, 10)
    early = [p for p in model.parameters() if every or p.dim() == 2]
    late = [p for p in model.parameters() if not every and p.dim() == 1]
    each = {p: torch.optim.AdamW([p], foreach=False) for p in early}
    optimizer = torch.optim.AdamW(late) if late else None

    def update(p):
        each[p].step()
        each[p].zero_grad()

    for p in early:
        p.register_post_accumulate_grad_hook(update)
    x, y = torch.zeros(96, 256), torch.zeros(96, dtype=torch.long)

    def step():
        F.cross_entropy(model(x), y).backward()
        if optimizer:
            optimizer.step()
            optimizer.zero_grad()

    return step


def some_updates_in_backward():
    return updates_in_backward(every=False)


# --- language models ------------------------------------------------------------------------------


def preferences():
    """DPO: a policy beside a frozen reference, log-probabilities of a chosen and a rejected text."""
    policy = models.llama()[0].to(torch.bfloat16)
    reference = copy.deepcopy(policy).eval().requires_grad_(False)
    optimizer = torch.optim.RMSprop(policy.parameters(), lr=5e-7)
    texts = models.words(2, 149), models.words(2, 149)

    def likelihood(model, text):
        given = {key: text[key] for key in ("input_ids", "attention_mask")}
        scores = model(**given).logits[:, :-1].log_softmax(-1)
        return scores.gather(2, text["labels"][:, 1:, None]).squeeze(2).sum(-1)

    def step():
        optimizer.zero_grad()
        chosen, rejected = (likelihood(policy, text) for text in texts)
        with torch.no_grad():
            expected, other = (likelihood(reference, text) for text in texts)
        loss = -F.logsigmoid(0.1 * ((chosen - rejected) - (expected - other))).mean()
        loss.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 10.0)
        optimizer.step()

    return step


def adapters():
    """LoRA under Accelerate, three micro-batches."""
    import accelerate

    accelerator = accelerate.Accelerator(mixed_precision="bf16", gradient_accumulation_steps=3)
    model, batch = models.lora()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)
    model, optimizer = accelerator.prepare(model, optimizer)

    def step():
        for _ in range(3):
            with accelerator.accumulate(model):
                accelerator.backward(model(**batch).loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()

    return step


def trainer():
    """transformers' Trainer, two micro-batches and what its loop does around training_step()."""
    import tempfile

    import transformers

    batch = models.words(3, 149)
    options = transformers.TrainingArguments(tempfile.mkdtemp(), gradient_accumulation_steps=2,
                                             bf16=True, report_to=[], optim="adamw_torch")
    made = transformers.Trainer(models.llama()[0], options, train_dataset=[batch])
    made.create_optimizer_and_scheduler(100)
    made.current_gradient_accumulation_steps = 2
    model, optimizer = made.accelerator.prepare(made.model, made.optimizer)

    def step():
        for _ in range(2):
            with made.accelerator.accumulate(model):
                made.training_step(model, dict(batch))
        made.accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        made.lr_scheduler.step()
        model.zero_grad()

    return step


CASES = [dcgan, gan_of_one_fake, gan_under_one_scaler, penalized_gan, actor_and_critics, two_losses,
         weighted_losses, two_towers, momentum_teacher, autoencoder, sharpness_aware,
         updates_in_backward, some_updates_in_backward, preferences, adapters, trainer]
