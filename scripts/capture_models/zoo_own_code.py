"""Code as people write it, which nothing was tuned for: functions of autograd, checkpoints within
checkpoints, hooks, functional calls, results in place, ties, loops (capture_all.py --zoo, zoo_figures.py).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
import torch.utils.checkpoint
from torch import nn


def ids(b, t):
    return torch.zeros(b, t, dtype=torch.long)


class TwoFn(torch.autograd.Function):

    @staticmethod
    def forward(ctx, x, w, flag):
        ctx.flag = flag
        h = x @ w
        ctx.save_for_backward(x, w, h.relu())
        return (h.relu(), h.sum(-1))

    @staticmethod
    def backward(ctx, g, gs):
        x, w, r = ctx.saved_tensors
        g = g * (r > 0) + gs.unsqueeze(-1)
        return (g @ w.t(), x.flatten(0, -2).t() @ g.flatten(0, -2), None)


class FnNet(nn.Module):

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(48, 96))
        self.w2 = nn.Parameter(torch.randn(96, 48))
        self.n = nn.LayerNorm(48)

    def forward(self, x):
        y, a = TwoFn.apply(self.n(x), self.w, True)
        z, b = TwoFn.apply(y, self.w2, False)
        return (z + x).square().mean() + a.mean() + b.mean()


def function():
    return (FnNet(), torch.zeros(3, 17, 48))


class NoGradFn(torch.autograd.Function):

    @staticmethod
    def forward(x):
        y = x.clamp(-1, 1).round()
        return y

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, g):
        return g


class STE(nn.Module):

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(64, 128)
        self.b = nn.Linear(128, 64)

    def forward(self, x):
        return self.b(NoGradFn.apply(self.a(x)).relu_()).pow(2).mean()


def ste():
    return (STE(), torch.zeros(5, 9, 64))


class MLP(nn.Module):

    def __init__(self, w=64):
        super().__init__()
        self.n = nn.LayerNorm(w)
        self.a = nn.Linear(w, 4 * w)
        self.b = nn.Linear(4 * w, w)

    def forward(self, x):
        return x + self.b(F.gelu(self.a(self.n(x))))


class Nested(nn.Module):

    def __init__(self, w=64):
        super().__init__()
        self.l = nn.ModuleList((MLP(w) for _ in range(4)))
        self.h = nn.Linear(w, 10)

    def two(self, x, i):
        x = torch.utils.checkpoint.checkpoint(self.l[i], x, use_reentrant=False)
        return self.l[i + 1](x)

    def forward(self, x):
        for i in (0, 2):
            x = torch.utils.checkpoint.checkpoint(self.two, x, i, use_reentrant=False)
        return self.h(x).square().mean()


def nested():
    return (Nested(), torch.zeros(8, 33, 64))


class Reentrant(Nested):

    def forward(self, x):
        x = self.l[0](x)
        x = torch.utils.checkpoint.checkpoint_sequential(
            nn.Sequential(*self.l[1:]), 2, x, use_reentrant=True
        )
        return self.h(x).square().mean()


def reentrant():
    return (Reentrant(), torch.zeros(8, 33, 64))


class Selective(Nested):

    def forward(self, x):
        from torch.utils.checkpoint import create_selective_checkpoint_contexts, CheckpointPolicy
        import functools

        def policy(ctx, op, *a, **k):
            return (
                CheckpointPolicy.MUST_SAVE
                if op is torch.ops.aten.addmm.default
                else CheckpointPolicy.PREFER_RECOMPUTE
            )

        f = functools.partial(create_selective_checkpoint_contexts, policy)
        for l in self.l:
            x = torch.utils.checkpoint.checkpoint(l, x, use_reentrant=False, context_fn=f)
        return self.h(x).square().mean()


def selective():
    return (Selective(), torch.zeros(8, 33, 64))


class Hooks(nn.Module):

    def __init__(self, w=64):
        super().__init__()
        self.l = nn.ModuleList((MLP(w) for _ in range(3)))
        self.h = nn.Linear(w, 10)
        self.kept = {}
        for i, l in enumerate(self.l):
            l.register_forward_hook(lambda m, a, o, i=i: self.kept.__setitem__(i, o))
        self.l[1].register_full_backward_hook(lambda m, gi, go: (gi[0] * 0.5,))
        self.h.register_forward_pre_hook(lambda m, a: (a[0].contiguous() * 2,))

    def forward(self, x):
        for l in self.l:
            x = l(x)
        x.register_hook(lambda g: g.clamp(-1, 1))
        return self.h(x).square().mean() + sum((v.mean() for v in self.kept.values()))


def hooks():
    return (Hooks(), torch.zeros(8, 33, 64))


class Func(nn.Module):

    def __init__(self):
        super().__init__()
        self.net = MLP(32)
        self.w = nn.Parameter(torch.zeros(3, 32, 32))

    def forward(self, x):
        y = torch.func.vmap(lambda w, z: torch.tanh(z @ w), in_dims=(0, None))(self.w, self.net(x))
        p = dict(self.net.named_parameters())
        z = torch.func.functional_call(self.net, {k: v * 2 for k, v in p.items()}, (y.sum(0),))
        j = torch.func.grad(lambda t: t.sin().square().sum())(z)
        return z.square().mean() + j.mean()


def func():
    return (Func(), torch.zeros(6, 11, 32))


class Frozen(nn.Module):

    def __init__(self, w=64):
        super().__init__()
        self.e = nn.Embedding(100, w)
        self.l = nn.ModuleList((MLP(w) for _ in range(4)))
        self.h = nn.Linear(w, 10)
        self.e.requires_grad_(False)
        for l in self.l[:2]:
            l.requires_grad_(False)
        self.l[3].a.weight.requires_grad_(False)
        self.l[2].n.requires_grad_(False)

    def forward(self, x):
        with torch.no_grad():
            x = self.l[0](self.e(x))
        for l in self.l[1:]:
            x = l(x)
        return self.h(x).logsumexp(-1).mean()


def frozen():
    return (Frozen(), ids(8, 33))


class InPlace(nn.Module):

    def __init__(self, w=64):
        super().__init__()
        self.c = nn.Conv1d(w, w, 3, padding=1)
        self.b = nn.BatchNorm1d(w)
        self.a = nn.Linear(w, w)
        self.h = nn.Linear(w, 7)
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        self.count += 1
        y = F.gelu(self.b(self.c(x.transpose(1, 2))))
        y += 1
        y.mul_(0.5)
        z = self.a(y.transpose(1, 2))
        z[:, ::2].add_(x[:, ::2])
        z[:, 0] = 0
        z.clamp_(min=-3)
        out = torch.empty_like(z)
        out.copy_(z)
        out.index_add_(1, torch.arange(3, device=z.device), z[:, :3].clone())
        buf = torch.zeros(z.shape[0], 4, z.shape[2], device=z.device, dtype=z.dtype).scatter_(
            1, torch.zeros(z.shape[0], 2, z.shape[2], dtype=torch.long, device=z.device), out[:, :2]
        )
        return self.h(torch.cat([out, buf], 1)).square().mean()


def inplace():
    return (InPlace(), torch.zeros(8, 33, 64))


class Tied(nn.Module):

    def __init__(self, w=64):
        super().__init__()
        self.e = nn.Embedding(301, w)
        self.l = nn.ModuleList([MLP(w)] * 3)
        self.d = nn.Linear(w, 301, bias=False)
        self.d.weight = self.e.weight
        self.l2 = MLP(w)
        self.l2.a.weight = self.l[0].a.weight
        self.l2.b.weight = nn.Parameter(self.l[0].a.weight.detach().t().clone())

    def forward(self, x):
        y = self.e(x)
        for l in self.l:
            y = l(y)
        y = self.l2(y)
        return F.cross_entropy(self.d(y).transpose(1, 2), x)


def tied():
    return (Tied(), ids(4, 29))


class DynMoe(nn.Module):

    def __init__(self, w=64):
        super().__init__()
        self.g = nn.Linear(w, 4)
        self.e = nn.ModuleList((MLP(w) for _ in range(4)))

    def forward(self, x):
        f = x.flatten(0, 1)
        p = self.g(f).softmax(-1)
        v, i = p.topk(2, -1)
        out = torch.zeros_like(f)
        for k, e in enumerate(self.e):
            r, c = torch.where(i == k)
            if r.numel() == 0:
                continue
            out.index_add_(0, r, e(f[r]) * v[r, c, None])
        return out.square().mean() + p.mean()


def moe():
    return (DynMoe(), torch.zeros(3, 21, 64))


class Rnn(nn.Module):

    def __init__(self):
        super().__init__()
        self.g = nn.GRU(32, 48, 2, bidirectional=True, batch_first=True, dropout=0.1)
        self.l = nn.LSTM(96, 40, proj_size=20, batch_first=True)
        self.h = nn.Linear(20, 5)

    def forward(self, x):
        p = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([9, 7, 4]), batch_first=True)
        y, _ = self.g(p)
        y, n = nn.utils.rnn.pad_packed_sequence(y, batch_first=True)
        return self.h(self.l(y)[0]).square().mean()


def rnn():
    return (Rnn(), torch.zeros(3, 9, 32))


def transformer():

    class T(nn.Module):

        def __init__(self):
            super().__init__()
            self.t = nn.Transformer(64, 4, 2, 2, 128, batch_first=True)
            self.h = nn.Linear(64, 9)

        def forward(self, a, b):
            return (
                self.h(
                    self.t(
                        a,
                        b,
                        tgt_mask=nn.Transformer.generate_square_subsequent_mask(
                            b.shape[1], device=b.device
                        ),
                        tgt_is_causal=True,
                    )
                )
                .square()
                .mean()
            )

    return (T(), (torch.zeros(3, 17, 64), torch.zeros(3, 11, 64)))


def losses():

    class T(nn.Module):

        def __init__(self):
            super().__init__()
            self.e = nn.EmbeddingBag(100, 32, mode="mean")
            self.b = nn.Bilinear(32, 32, 16)
            self.h = nn.Linear(16, 4)

        def forward(self, x):
            y = self.e(x)
            y = self.b(y, y.flip(0))
            o = self.h(F.normalize(y, dim=-1))
            return (
                F.kl_div(o.log_softmax(-1), o.detach().softmax(-1), reduction="batchmean")
                + F.huber_loss(o, torch.zeros_like(o))
                + torch.linalg.vector_norm(o)
                + o.std()
                + torch.cdist(y, y).mean()
            )

    return (T(), ids(6, 12))


def parametrized():

    class T(nn.Module):

        def __init__(self):
            super().__init__()
            self.a = nn.utils.parametrizations.spectral_norm(nn.Linear(64, 64))
            self.b = nn.utils.parametrizations.weight_norm(nn.Linear(64, 64))
            self.c = nn.Linear(64, 64, bias=False)

        def forward(self, x):
            y = self.b(F.silu(self.a(x)))
            f = torch.fft.rfft(y, dim=1)
            y = torch.fft.irfft(
                f * torch.view_as_complex(torch.ones(*f.shape, 2, device=y.device)), n=x.shape[1], dim=1
            )
            return (self.c(y) * x.cumsum(1)).logsumexp((0, 1)).mean()

    return (T(), torch.zeros(4, 18, 64))


def unfold():

    class T(nn.Module):

        def __init__(self):
            super().__init__()
            self.c = nn.ConvTranspose2d(8, 16, 4, 2, 1)
            self.p = nn.PixelShuffle(2)
            self.g = nn.GroupNorm(4, 16)
            self.i = nn.InstanceNorm2d(4, affine=True)
            self.m = nn.MultiheadAttention(16, 4, batch_first=True)

        def forward(self, x):
            y = self.g(self.c(x))
            z = self.i(self.p(y))
            z = F.interpolate(z, scale_factor=0.5, mode="bilinear")
            z = F.grid_sample(
                z, torch.zeros(z.shape[0], 8, 8, 2, device=z.device, dtype=z.dtype), align_corners=False
            )
            u = F.unfold(y, 2, stride=2).transpose(1, 2)[..., :16]
            a, _ = self.m(u, u, u)
            return (
                z.square().mean() + a.mean() + F.max_pool2d(y, 2).mean() + F.adaptive_avg_pool2d(y, 3).std()
            )

    return (T(), torch.zeros(2, 8, 8, 8))


def two_losses():
    m = Nested()
    o = torch.optim.AdamW(m.parameters())
    a, b = (torch.zeros(8, 33, 64), torch.zeros(4, 33, 64))

    def step():
        x = a.cuda()
        y = b.cuda()
        l1 = m(x)
        l1.backward()
        l2 = m(y) * 0.3
        l2.backward()
        o.step()
        o.zero_grad()

    return step


def accumulation():
    m = Hooks()
    o = torch.optim.SGD(m.parameters(), 0.1, momentum=0.9)
    a = [torch.zeros(8, 33, 64) for _ in range(3)]

    def step():
        for x in a:
            (m(x) / 3).backward()
        torch.nn.utils.clip_grad_value_(m.parameters(), 1.0)
        o.step()
        o.zero_grad(set_to_none=False)

    return step


def ddp():
    import torch.distributed as d
    from torch.testing._internal.distributed.fake_pg import FakeStore

    d.init_process_group("fake", store=FakeStore(), rank=0, world_size=4)
    m = nn.parallel.DistributedDataParallel(Nested().cuda(), device_ids=[0])
    return (m, torch.zeros(8, 33, 64))


def ddp_loop():
    import torch.distributed as d
    from torch.testing._internal.distributed.fake_pg import FakeStore

    d.init_process_group("fake", store=FakeStore(), rank=0, world_size=4)
    m = nn.parallel.DistributedDataParallel(Frozen().cuda(), device_ids=[0])
    o = torch.optim.AdamW([p for p in m.parameters() if p.requires_grad])
    x = ids(8, 33)

    def step():
        m(x).backward()
        o.step()
        o.zero_grad()

    return step


CASES = [
    ("function", "fp32"),
    ("ste", "amp-bf16"),
    ("nested", "bf16"),
    ("reentrant", "bf16"),
    ("selective", "bf16"),
    ("hooks", "amp-bf16"),
    ("func", "amp-bf16"),
    ("frozen", "fp32"),
    ("inplace", "fp32"),
    ("tied", "amp-bf16"),
    ("moe", "fp32"),
    ("rnn", "bf16"),
    ("transformer", "fp32"),
    ("losses", "fp32"),
    ("parametrized", "fp32"),
    ("unfold", "fp32"),
    ("two_losses", None),
    ("accumulation", None),
    ("ddp", "fp32"),
    ("ddp_loop", None),
]
