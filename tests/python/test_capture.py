"""Captures small models with PyTorch, where there is one, without a GPU. Loudly skipped elsewhere."""

import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).parent.parent.parent
SCRIPT = '''
import torch
import torch.utils.checkpoint
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(64, 64), nn.GELU()) for _ in range(3))
        self.out = nn.Linear(64, 64, bias=False)
        self.out.weight = self.layers[0][0].weight
        self.register_buffer("mask", torch.tensor([True] * 8))

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x)
        if not self.mask.all():
            raise ValueError("the buffer has lost its value")
        q, k = self.out(x).chunk(2, dim=-1)
        return (q + k).relu_()

def make_step():
    return Net(), torch.zeros(8, 16, 64), lambda y: y.float().mean()

class Named(Net):
    """As ModernBERT makes the masks of its kinds of layers: for each name in a set."""

    def forward(self, x):
        masks = {name: torch.zeros(64, size + 1, device=x.device)
                 for name in {"full", "sliding", "global", "local", "none", "causal"}
                 for size in [len(name)]}
        return super().forward(x) + sum(mask.sum() for mask in masks.values())

def named():
    return Named(), torch.zeros(8, 16, 64), lambda y: y.float().mean()

def with_lengths():
    """The loss reads lengths on the host, of labels that are told from padding by their values."""
    def loss(scores, batch):
        labels = batch[1]
        lengths = (labels >= 0).sum(-1)
        return torch.nn.functional.ctc_loss(
            scores.log_softmax(-1).transpose(0, 1), labels.masked_select(labels >= 0),
            torch.full((4,), 32), lengths)

    class Scores(nn.Module):
        def __init__(self):
            super().__init__()
            self.out = nn.Linear(16, 12)

        def forward(self, x, labels):
            return self.out(x)

    labels = torch.tensor([[3, 4, 5, -1], [1, -1, -1, -1], [6, 7, -1, -1], [2, 2, 2, 2]])
    return Scores(), (torch.zeros(4, 32, 16), labels), loss

def replicated(**options):
    import torch.distributed as dist
    dist.init_process_group("nccl", world_size=4, rank=3)
    model, *rest = make_step()
    wrapped = nn.parallel.DistributedDataParallel(model.cuda(), device_ids=[0], **options)
    return wrapped, *rest

def views():
    return replicated(gradient_as_bucket_view=True, bucket_cap_mb=50)

def sharded(parts=slice(0, 2), whole=True, **options):
    from torch.distributed.fsdp import fully_shard
    model, *rest = make_step()
    for layer in model.layers[parts]:
        fully_shard(layer, **options)
    return fully_shard(model) if whole else model, *rest

def hybrid():
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    dist.init_process_group("nccl")
    from torch.distributed.fsdp import fully_shard
    mesh = init_device_mesh("cuda", (2, 4))
    model, *rest = sharded(whole=False, mesh=mesh, reshard_after_forward=False)
    return fully_shard(model, mesh=mesh), *rest

def flat_hybrid(**options):
    import torch.distributed as dist
    from torch.distributed.fsdp import ShardingStrategy
    return flat(sharding_strategy=ShardingStrategy.HYBRID_SHARD, **options)

def in_a_loop():
    model, batch, loss = sharded()
    optimizer = torch.optim.AdamW(model.parameters())
    def step():
        for last in (False, True):
            model.set_requires_gradient_sync(last)
            model(batch).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return step

def flat_in_a_loop():
    model, batch, loss = flat()
    optimizer = torch.optim.AdamW(model.parameters())
    def step():
        model(batch).square().mean().backward()
        model.clip_grad_norm_(1.0)
        optimizer.step()
        optimizer.zero_grad()
    return step

def prefetching():
    model, batch, loss = sharded()
    model.set_modules_to_forward_prefetch(list(model.layers))
    return model, batch, loss

def hooked():
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook
    wrapped, *rest = replicated()
    wrapped.register_comm_hook(None, bf16_compress_hook)
    return wrapped, *rest

def resharded_to_some():
    return sharded(reshard_after_forward=2)

def kept():
    return sharded(reshard_after_forward=False)

def parts_only():
    return sharded(whole=False)

def mixed():
    from torch.distributed.fsdp import MixedPrecisionPolicy
    return sharded(mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16))

def wide():
    from torch.distributed.fsdp import MixedPrecisionPolicy
    return sharded(parts=slice(0, 3), mp_policy=MixedPrecisionPolicy(torch.bfloat16, torch.float32))

def mixed_everywhere():
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    model, batch, _ = make_step()
    for layer in model.layers:
        fully_shard(layer, mp_policy=MixedPrecisionPolicy(torch.bfloat16, torch.float32))
    whole = MixedPrecisionPolicy(torch.bfloat16, torch.float32, output_dtype=torch.float32)
    return fully_shard(model, mp_policy=whole), batch, lambda y: y.mean()

def flat(**options):
    import torch.distributed as dist
    from torch.distributed.fsdp import FullyShardedDataParallel
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy
    dist.init_process_group("nccl")
    model, *rest = make_step()
    return FullyShardedDataParallel(model, auto_wrap_policy=ModuleWrapPolicy({nn.Sequential}),
                                    device_id=0, use_orig_params=True, **options), *rest

def flat_kept():
    from torch.distributed.fsdp import ShardingStrategy
    return flat(sharding_strategy=ShardingStrategy.SHARD_GRAD_OP)

def flat_mixed():
    from torch.distributed.fsdp import MixedPrecision
    return flat(mixed_precision=MixedPrecision(torch.bfloat16, torch.float32))

def flat_whole():
    from torch.distributed.fsdp import ShardingStrategy
    return flat(sharding_strategy=ShardingStrategy.NO_SHARD)

def flat_offloaded():
    from torch.distributed.fsdp import CPUOffload
    return flat(cpu_offload=CPUOffload(offload_params=True))

class Checkpointed(Net):
    def forward(self, x):
        for layer in self.layers:
            x = torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=True)
        return x

def reentrant():
    return Checkpointed(), torch.zeros(8, 16, 64, requires_grad=True), lambda y: y.mean()

class Chosen(Net):
    def forward(self, x, mask):
        some = self.out(x)[mask]
        x = x.clone()
        x[mask] = some
        x[mask] = 0.0
        nothing = x[torch.zeros_like(mask)].sum()
        return torch.masked_select(x, mask[..., None]).mean() + nothing

def chosen():
    return Chosen(), (torch.zeros(8, 16, 64), torch.arange(16).expand(8, 16) < 5)

class Mixed(Net):
    def forward(self, x):
        return torch.fft.fft2(self.out(x), dim=(-1, -2)).real

def fourier():
    return Mixed(), torch.zeros(8, 16, 64), lambda y: y.mean()

class Penalized(Net):
    def forward(self, x):
        y = super().forward(x.requires_grad_())
        slope, = torch.autograd.grad(y.sum(), x, create_graph=True)
        return y.mean() + (slope.norm(dim=-1) - 1).square().mean()

def penalized():
    return Penalized(), torch.zeros(8, 16, 64)

class Siamese(Net):
    def forward(self, left, right):
        return (super().forward(left) * super().forward(right)).mean()

class Thrice(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 64)

    def forward(self, x):
        y = self.layer(x)
        return y.tanh().sum() + y.sigmoid().sum() + y.exp().sum()

def summed():
    return Thrice(), torch.zeros(8, 16, 64)

def solved():
    model = nn.Linear(64, 64)
    nn.init.orthogonal_(model.weight)
    return model, torch.zeros(8, 64), lambda y: torch.linalg.svdvals(y).sum()

def siamese():
    return Siamese(), (torch.zeros(8, 16, 64), torch.zeros(8, 16, 64))

class Parted(Net):
    def forward(self, x):
        nothing, some, rest = self.out(x).split([0, 48, 16], dim=-1)
        return some.sigmoid().mean() + rest.mean()

def parted():
    return Parted(), torch.zeros(8, 16, 64)

class Pooled(Net):
    def forward(self, x):
        return {"loss": self.layers[1](x).mean(), "pooled": self.out(x[:, 0]).tanh()}

def pooled():
    return Pooled(), torch.zeros(8, 16, 64)

@torch.jit.script
def buckets(places, count: int):
    return torch.where(torch.abs(places) < count, places * 2 + 1, torch.abs(places) - count)

class Scripted(Net):
    def forward(self, x):
        places = torch.arange(64, device=x.device)
        near = buckets(places[:, None] - places[None, :], 8)
        return self.out(x)[:, :, (near + 63) % 64].mean()

def scripted():
    return Scripted(), torch.zeros(8, 16, 64)

def squared():
    target = torch.zeros(8, 16, 32)
    return Net(), torch.zeros(8, 16, 64), lambda y: torch.nn.functional.mse_loss(y, target)

class Dropped(Net):
    def forward(self, x):
        for _ in range(8):
            if torch.rand(()) < 0.5:
                x = self.layers[0](x)
        return self.out(x).mean()

def dropped():
    return Dropped(), torch.zeros(8, 16, 64)

class Unlike(Net):
    steps = 0

    def forward(self, x):
        self.steps += 1
        return self.out(x.sin() if self.steps > 3 else x.cos()).mean()

def unlike():
    return Unlike(), torch.zeros(8, 16, 64)

class Sparse(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(100, 8, sparse=True)

    def forward(self, ids):
        return self.table(ids).mean()

def sparse():
    return Sparse(), torch.arange(9), None, torch.optim.SGD

def elsewhere():
    return Net(), torch.zeros(8, 16, 64), lambda y: nn.functional.l1_loss(y, torch.zeros(8, 16, 32))

def lbfgs():
    return *make_step(), torch.optim.LBFGS

class Momentum:
    def __init__(self, parameters):
        self.parameters = list(parameters)
        self.momenta = [torch.zeros_like(p) for p in self.parameters]

    @torch.no_grad()
    def step(self):
        for p, momentum in zip(self.parameters, self.momenta):
            momentum.mul_(0.9).add_(p.grad)
            p.sub_(momentum, alpha=1e-3)

def own_optimizer():
    return *make_step(), Momentum

def two_optimizers():
    model, *rest = make_step()
    return model, *rest, [torch.optim.SGD(model.layers[0].parameters(), momentum=0.9),
                          torch.optim.AdamW(model.layers[1:].parameters())]

class Accumulating(Net):
    def forward(self, x):
        for part in x.chunk(2):
            super().forward(part).mean().backward()
        return super().forward(x).mean()

def accumulating():
    return Accumulating(), torch.zeros(8, 16, 64)

def no_optimizer():
    return *make_step(), lambda parameters: None

def broken():
    raise KeyError("nothing here")

class Keeper(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.parts = [x + at for at in range(19)]
        return 2 * x

    @staticmethod
    def backward(ctx, gradient):
        return gradient * len(ctx.parts)

class Keeping(Net):
    def forward(self, x):
        return Keeper.apply(super().forward(x)).mean()

def keeping():
    return Keeping(), torch.zeros(8, 16, 64)

class Sloped(Net):
    def forward(self, x):
        y = super().forward(x)
        return y.mean() + torch.func.grad(lambda z: z.sin().square().sum())(y).mean()

def sloped():
    return Sloped(), torch.zeros(8, 16, 64)

def theirs():
    from theirs import Theirs
    return Theirs(4, 4), torch.zeros(2, 4)

def needs(width):
    return Net()

def misspelled():
    return dict(model=Net(), batch=torch.zeros(8, 16, 64), optimiser="sgd")

def named_loss():
    return Net(), torch.zeros(8, 16, 64), "mse"

def of_other_widths():
    return nn.Linear(64, 8), torch.zeros(8, 32), lambda y: y.mean()

def runs_out():
    model, batches = Net(), iter([torch.zeros(8, 16, 64)] * 2)
    optimizer = torch.optim.SGD(model.parameters())
    def step():
        model(next(batches)).mean().backward()
        optimizer.step()
    return step

def flexible():
    from torch.nn.attention.flex_attention import flex_attention
    class Flexible(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(16, 16)

        def forward(self, x):
            x = self.layer(x)
            return flex_attention(x, x, x).mean()
    return Flexible(), torch.zeros(2, 4, 128, 16)

def no_loss():
    return Net(), torch.zeros(8, 16, 64)

if __name__ == "__main__":
    import tidemark
    model, batch, _ = make_step()
    size = 2.0
    print(tidemark.capture(model, batch, loss=lambda y: y.pow(size).mean(), sm=90,
                           optimizer=torch.optim.RMSprop(model.parameters()), output="api.trace.json"))
'''


def python_with_torch():
    """Exit code 77 means skipped, for ctest."""
    python = os.environ.get("TIDEMARK_TEST_PYTHON", sys.executable)
    check = "import torch, sys; sys.exit(0 if torch.version.cuda else 1)"
    done = subprocess.run([python, "-c", check], capture_output=True, text=True)
    if done.returncode != 0:
        print("SKIPPED: no PyTorch with CUDA in this Python; TIDEMARK_TEST_PYTHON names another")
        sys.exit(77)
    if any(pathlib.Path("/dev").glob("nvidia[0-9]*")):
        print("SKIPPED: this machine has a GPU, and captures are for machines without one")
        sys.exit(77)
    return python


class CaptureTest(unittest.TestCase):
    """Runs captures of functions of one script."""

    script = python = ""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name)
        (cls.path / "net.py").write_text(cls.script)
        cls.environment = dict(os.environ, PYTHONPATH=str(ROOT / "python"))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_python(self, *arguments, job={}):
        return subprocess.run([self.python, *arguments], cwd=self.path, env={**self.environment, **job},
                              capture_output=True, text=True)

    def capture(self, function, *more, ranks=None):
        job = {} if ranks is None else {"WORLD_SIZE": str(ranks)}
        return self.run_python("-m", "tidemark.capture", f"net.py:{function}", "-o",
                               "step.trace.json", *more, job=job)

    def trace(self, name="step.trace.json"):
        return json.loads((self.path / name).read_text())


class Capture(CaptureTest):
    script = SCRIPT

    def test_wrappers_say_how_ranks_share_and_are_taken_off(self):
        names = {}
        for function, mesh, shard in (("make_step", None, None), ("replicated", "dp=4", "ddp"),
                                      ("views", "dp=4", "ddp:bucket-view,bucket-mb=50"),
                                      ("sharded", "dp=8", "fsdp2"),
                                      ("kept", "dp=8", "fsdp2:no-reshard"),
                                      ("hybrid", "dp=8", "fsdp2:no-reshard,shard=4"),
                                      ("flat", "dp=8", "fsdp1"),
                                      ("flat_kept", "dp=8", "fsdp1:no-reshard")):
            done = self.capture(function, ranks=8)
            self.assertEqual(done.returncode, 0, done.stderr)
            trace = self.trace()
            self.assertEqual((trace["step"].get("mesh"), trace["step"].get("shard")), (mesh, shard))
            names[function] = [tensor["name"] for tensor in trace["tensors"]]
            self.assertEqual(names[function], names["make_step"])
            groups = ["layers.0", "layers.1", "layers.2"][:2 if "fsdp2" in str(shard) else 3]
            self.assertEqual([block["name"] for block in trace["blocks"]], groups)

    def test_what_loops_call_of_sharded_modules_is_run(self):
        for function, shard, micro_batches in (("in_a_loop", "fsdp2", 2), ("flat_in_a_loop", "fsdp1", None)):
            done = self.capture(function, ranks=8)
            self.assertEqual(done.returncode, 0, done.stderr)
            step = self.trace()["step"]
            self.assertEqual((step["shard"], step.get("accumulate")), (shard, micro_batches))

    def test_what_is_not_captured_of_wrappers_is_said(self):
        for function, problem in (("parts_only", "call it on the model itself as well"),
                                  ("mixed", r"MixedPrecisionPolicy\(param_dtype=torch.bfloat16, "
                                            r"reduce_dtype=None\) is not captured"),
                                  ("wide", "different wrappers or policies"),
                                  ("flat_whole", r"NO_SHARD is not captured.*DistributedDataParallel"),
                                  ("flat_hybrid", "give a device_mesh of two axes"),
                                  ("prefetching", r"net\.py:\d+: set_modules_to_forward_prefetch\(\) of"),
                                  ("hooked", r"net\.py:\d+: a communication hook changes"),
                                  ("resharded_to_some", r"net\.py:\d+: fully_shard with reshard_after_forward as"),
                                  ("flat_offloaded", "with cpu_offload is not captured")):
            done = self.capture(function, ranks=8)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, problem)
        self.assertIn("Put WORLD_SIZE=8 before the command", self.capture("sharded").stderr)

    def test_mixed_precision_of_shards_is_computed_with_what_is_gathered(self):
        for function, shard in (("mixed_everywhere", "fsdp2"), ("flat_mixed", "fsdp1")):
            done = self.capture(function, ranks=8)
            self.assertEqual(done.returncode, 0, done.stderr)
            trace = self.trace()
            self.assertEqual([trace["step"].get(key) for key in ("precision", "shard", "master_weights")],
                             ["bf16", shard, True])
            dtypes = {tensor["name"]: tensor["dtype"] for tensor in trace["tensors"]}
            self.assertEqual(dtypes["layers.1.0.weight"], "bfloat16")
            self.assertEqual(dtypes["input"], "float32")
            casts = [op for op in trace["ops"] if op.get("row", {}).get("operation") == "aten::_to_copy"]
            self.assertEqual(casts[0]["inputs"], ["input"])  # where it enters
        self.assertRegex(self.capture("flat_mixed", "--precision", "amp-bf16", ranks=8).stderr,
                         "beside a policy of mixed precision")
        self.assertIn("on one rank", self.capture("flat_mixed", ranks=1).stderr)

    def test_lengths_that_a_loss_reads_on_the_host(self):
        done = self.capture("with_lengths")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("ctc_loss", [op["name"] for op in self.trace()["ops"]])

    def test_a_script(self):
        done = self.capture("make_step", "--measured", "measured.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        trace = self.trace()
        tensors = {tensor["name"]: tensor for tensor in trace["tensors"]}
        self.assertEqual([block["name"] for block in trace["blocks"]],
                         ["layers.0", "layers.1", "layers.2"])
        self.assertNotIn("out.weight", tensors)  # tied
        self.assertTrue(tensors["layers.1.0.weight"]["trainable"])
        self.assertEqual(tensors["layers.1.0.weight.exp_avg"]["category"], "optimizer_state")
        kinds = [op["kind"] for op in trace["ops"]]
        self.assertEqual(kinds.count("split"), 1)
        in_place = [op for op in trace["ops"] if op.get("row", {}).get("operation") == "aten::relu_"]
        self.assertIn("storage", tensors[in_place[0]["outputs"][0]])

    def test_masks_choose_as_many_rows_as_they_have(self):
        done = self.capture("chosen")
        self.assertEqual(done.returncode, 0, done.stderr)
        shapes = {tensor["name"]: tensor["shape"] for tensor in self.trace()["tensors"]}
        self.assertEqual(shapes["index"], [40, 64])
        self.assertEqual(shapes["masked_select"], [40 * 64])
        rows = {op["name"]: op["row"] for op in self.trace()["ops"] if "row" in op}
        self.assertIn("scratch_bytes", rows["index_put"]["forward"])
        fill = rows.get("index_put.1") or rows["masked_fill"]  # the latter in newer versions
        self.assertNotIn("scratch_bytes", fill["forward"])  # no indices

    def test_optimizers_of_ones_own_and_several(self):
        for function, name, states in (
                ("own_optimizer", "Momentum", ["Momentum.momenta", "Momentum.momenta.1"]),
                ("two_optimizers", "SGD+AdamW",
                 ["layers.0.0.weight.momentum_buffer", "layers.2.0.bias.exp_avg_sq"])):
            done = self.capture(function)
            self.assertEqual(done.returncode, 0, done.stderr)
            trace = self.trace()
            self.assertEqual(trace["update"]["optimizer"], name)
            found = {tensor["name"]: tensor["category"] for tensor in trace["tensors"]}
            self.assertEqual([found.get(state) for state in states], ["optimizer_state"] * 2)

    def test_fourier_transforms(self):
        done = self.capture("fourier")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("aten::_fft_c2c", [op["row"]["operation"] for op in self.trace()["ops"]
                                        if "row" in op])

    def test_a_reentrant_checkpoint_makes_gradients_of_weights(self):
        done = self.capture("reentrant")
        self.assertEqual(done.returncode, 0, done.stderr)
        for op in self.trace()["ops"]:
            if op["name"].startswith("checkpoint"):
                trained = [op["inputs"][int(x[2:])] for x in op["row"]["gradients"]]
                self.assertEqual([x.rpartition(".")[2] for x in trained[-2:]], ["weight", "bias"])

    def test_operations_have_the_line_that_called_them(self):
        done = self.capture("make_step")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = {op["name"]: op["line"] for op in self.trace()["ops"] if "line" in op}
        number = 1 + SCRIPT.split("\n").index("            x = x + layer(x)")
        self.assertEqual(lines["layers.1.1.gelu"], f"net.py:{number}")
        number = 1 + SCRIPT.split("\n").index("    return Net(), torch.zeros(8, 16, 64), "
                                              "lambda y: y.float().mean()")
        self.assertEqual(lines["mean"], f"net.py:{number}")

    def test_the_allocator_was_asked_for_what_is_there(self):
        self.assertEqual(self.capture("make_step", "--measured", "measured.json").returncode, 0)
        calls = self.trace()["allocator_calls"]
        sizes, made = {}, 0

        def play(name):
            nonlocal made
            for call in calls[name]:
                if call > 0:
                    sizes[made], made = call, made + 1
                else:
                    del sizes[made + call]  # what it frees is there
            return sum(-(-size // 512) * 512 for size in sizes.values())  # as blocks are cut

        play("setup")
        before = play("first_step")
        measured = json.loads((self.path / "measured.json").read_text())
        self.assertEqual(before, measured["allocated"]["before"])
        self.assertEqual(play("step"), before)  # each step is as the one before
        self.assertLess(calls["work"], len(calls["step"]))
        self.assertEqual(calls["step"][calls["work"]:], sorted(calls["step"][calls["work"]:], reverse=True))

    def test_kernels_are_counted(self):
        self.assertEqual(self.capture("make_step").returncode, 0)
        rows = [op["row"] for op in self.trace()["ops"] if op.get("row", {}).get("operation") ==
                "aten::gelu"]
        self.assertEqual(len(rows), 3)
        for row in rows:
            self.assertEqual([row[key].get("kernels", 1) for key in ("forward", "backward")], [1, 1])
            self.assertGreater(row["backward"]["moved_bytes"], 0)

    def test_gradients_are_added_in_place(self):
        # tanh, sigmoid and exp make their gradient and no other tensor; PyTorch adds the three up in
        # the memory of one, unless a mode looks on.
        self.assertEqual(self.capture("summed").returncode, 0)
        rows = {op["row"]["operation"]: op["row"] for op in self.trace()["ops"] if "row" in op}
        for name in ("aten::tanh", "aten::sigmoid", "aten::exp"):
            self.assertEqual(rows[name]["backward"].get("workspace_bytes", 0), 0, name)

    def test_solvers_make_what_they_make(self):
        done = self.capture("solved")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("aten::_linalg_svd", [op["row"]["operation"] for op in self.trace()["ops"]
                                            if "row" in op])

    def test_weights_used_again_have_gradients_that_are_views(self):
        self.assertEqual(self.capture("siamese").returncode, 0)
        viewed = [op["inputs"][0] for op in self.trace()["ops"] if op["kind"] == "view"]
        self.assertIn("layers.1.0.weight", viewed)
        self.assertEqual(len(viewed), len(set(viewed)))  # the first gradient of each

    def test_what_is_saved_is_what_nodes_hold(self):
        for function in ("make_step", "siamese", "penalized"):
            with self.subTest(function):
                self.require_saved_as_measured(function)

    def require_saved_as_measured(self, function):
        self.assertEqual(self.capture(function, "--measured", "measured.json").returncode, 0)
        trace, measured = self.trace(), json.loads((self.path / "measured.json").read_text())
        tensors = {tensor["name"]: tensor for tensor in trace["tensors"]}
        sizes = dict(float32=4, bool=1)
        kept = {}
        for op in trace["ops"]:
            for label in op.get("row", {}).get("saved", []):
                side = op["inputs"] if label.startswith("in") else op["outputs"]
                tensor = tensors[side[int(label[3 if label.startswith("out") else 2:])]]
                owner = tensors[tensor.get("storage", tensor["name"])]
                if owner["category"] in ("activation", "input"):
                    kept[owner["name"]] = sizes[owner["dtype"]] * math.prod(owner["shape"])
        self.assertEqual(sum(kept.values()), measured["saved"])

    def test_a_function_keeps_more_tensors_than_an_op_has(self):
        self.assertEqual(self.capture("keeping", "--measured", "measured.json").returncode, 0)
        ops = self.trace()["ops"]
        keeper = next(op for op in ops if op.get("row", {}).get("operation") == "Keeper")
        self.assertEqual(len(keeper["outputs"]), 16)
        within = [op for op in ops if "within" in op.get("row", {}).get("operation", "")]
        self.assertEqual([len(op["outputs"]) for op in within], [4])
        self.require_saved_as_measured("keeping")

    def test_slopes_of_functions_are_part_of_a_model(self):
        done = self.capture("sloped")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_the_shells_settings_of_the_allocator_are_for_a_real_device(self):
        said = "expandable_segments:True"
        self.assertEqual(self.capture("make_step").returncode, 0)
        expected = self.trace()
        done = self.run_python("-m", "tidemark.capture", "net.py:make_step", "-o", "step.trace.json",
                               job=dict(PYTORCH_CUDA_ALLOC_CONF=said, PYTORCH_ALLOC_CONF=said))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.trace(), expected)

    def test_nodes_that_no_backward_goes_through_go_with_their_results(self):
        self.require_saved_as_measured("pooled")
        self.assertNotIn("tanh.before", {tensor["name"] for tensor in self.trace()["tensors"]})

    def test_parts_that_are_empty_have_their_place_among_the_others(self):
        self.assertEqual(self.capture("parted").returncode, 0)
        shapes = {tensor["name"]: tensor["shape"] for tensor in self.trace()["tensors"]}
        read = next(op["inputs"][0] for op in self.trace()["ops"] if op["name"] == "sigmoid")
        self.assertEqual(shapes[read], [8, 16, 48])

    def test_what_is_there_before_the_step_is_what_was_there(self):
        # What a fused kernel of TorchScript makes was not, and is; mse_loss's whole result was, in the
        # variable of the last loss.
        for function in ("make_step", "scripted", "squared"):
            with self.subTest(function):
                self.assertEqual(self.capture(function, "--measured", "measured.json").returncode, 0)
                sizes = dict(float32=4, float64=8, int64=8, bool=1)
                there = sum(sizes[x["dtype"]] * math.prod(x["shape"]) for x in self.trace()["tensors"]
                            if "storage" not in x and x["category"] != "activation")
                measured = json.loads((self.path / "measured.json").read_text())
                self.assertEqual(there, measured["live"]["begin"])

    def test_what_goes_by_chance_goes_alike_in_all_steps(self):
        self.require_saved_as_measured("dropped")

    def test_a_step_that_is_not_always_alike_is_refused_with_its_line(self):
        done = self.capture("unlike")
        self.assertEqual(done.returncode, 1)
        number = 1 + SCRIPT.split("\n").index("        return self.out(x.sin() if self.steps > 3 else "
                                              "x.cos()).mean()")
        self.assertIn(f"net.py:{number}: the step runs aten::sin here, and aten::cos at another time",
                      done.stderr)

    def test_autocast_casts_for_the_device(self):
        self.assertEqual(self.capture("make_step", "--precision", "amp-bf16").returncode, 0)
        self.assertIn("bfloat16", {tensor["dtype"] for tensor in self.trace()["tensors"]})

    def test_captures_have_equal_bytes(self):
        # Autocast's cache frees its casts in the order of a hash of addresses, and sets of strings are
        # in the order of theirs: another one in each process.
        for made in ("make_step", "named"):
            found = set()
            for _ in range(2):
                self.assertEqual(self.capture(made, "--precision", "amp-bf16").returncode, 0)
                found.add((self.path / "step.trace.json").read_bytes())
            self.assertEqual(len(found), 1, made)

    def test_objects(self):
        done = self.run_python("net.py")
        self.assertEqual(done.returncode, 0, done.stderr)
        trace = self.trace("api.trace.json")
        self.assertEqual(trace["update"]["optimizer"], "RMSprop")
        self.assertEqual(trace["step"]["compute_capability"], 90)

    def fail_in_a_package(self):
        with tempfile.TemporaryDirectory() as folder:
            package = pathlib.Path(folder) / "site-packages"
            package.mkdir()
            (package / "theirs.py").write_text("import torch\nclass Theirs(torch.nn.Linear):\n"
                                               "    def forward(self, x):\n"
                                               "        raise KeyError('deep inside')\n")
            paths = os.pathsep.join([str(ROOT / "python"), str(package)])
            return self.run_python("-m", "tidemark.capture", "net.py:theirs", "-o", "step.trace.json",
                                   job=dict(PYTHONPATH=paths)).stderr

    def test_errors_say_where(self):
        done = self.capture("broken")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"net\.py:\d+: KeyError: 'nothing here'")
        self.assertRegex(self.fail_in_a_package(), r"tidemark capture: theirs\.py:4: KeyError: 'deep inside'")
        self.assertIn("no function named 'nothing'", self.capture("nothing").stderr)
        self.assertRegex(self.capture("sparse").stderr, r"net\.py:\d+: EmbeddingBackward0 makes a sparse")
        self.assertRegex(self.capture("elsewhere").stderr, r'net\.py:\d+: .*same device.*; what is made '
                         r'later, by the model, its loss or the step, needs device="cuda"')
        self.assertIn("LBFGS runs the model again", self.capture("lbfgs").stderr)
        self.assertIn("is NoneType; need a torch.optim.Opt", self.capture("no_optimizer").stderr)
        self.assertRegex(self.capture("accumulating").stderr, r"net\.py:\d+: backward\(\) is called")
        self.assertIn("the loss is (8, 16, 32)", self.capture("no_loss").stderr)
        self.assertIn("no device named 'a1000'",
                      self.capture("make_step", "--device", "a1000").stderr)
        for option, known in (("optimizer", "adamw, adam, sgd; or give a function of the parameters"),
                              ("precision", "fp32, tf32, amp-bf16, amp-fp16, bf16")):
            done = self.run_python("-c", "import sys; sys.modules['torch'] = None; from tidemark.capture import main; "
                                   f"sys.exit(main(['net.py:make_step', '--{option}', 'lion-8bit']))")
            self.assertEqual((done.returncode, done.stderr), (
                1, f"tidemark capture: no {option} named 'lion-8bit' (known: {known})\n"))

    def test_what_make_step_gets_wrong_is_one_sentence(self):
        for function, problem in (
                ("needs", r"net\.py:\d+: a capture calls needs\(\) with nothing: missing a required argument: "
                          r"'width'; give it a default$"),
                ("misspelled", r"make_step returned a dict with 'optimiser' \(known: model, batch, loss, opt"),
                ("named_loss", r"the loss is a str; need a function of the model's output"),
                ("of_other_widths", r"net\.py:\d+: RuntimeError: (addmm: )?mat1 and mat2 shapes cannot be multiplied"),
                ("runs_out", r"net\.py:\d+: the data ends here, and a capture runs a step up to five times"),
                ("flexible", r"net\.py:\d+: flex_attention is captured within torch\.compile alone")):
            with self.subTest(function):
                done = self.capture(function)
                self.assertEqual(done.returncode, 1)
                self.assertRegex(done.stderr.strip(), "^tidemark capture: [^\n]*" + problem)


if __name__ == "__main__":
    CaptureTest.python = python_with_torch()
    unittest.main(argv=sys.argv)
