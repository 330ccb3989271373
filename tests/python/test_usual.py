"""What users bring to a capture: models on the meta device, loaders, outputs of several kinds. Loudly skipped without PyTorch."""

import sys
import unittest

import test_capture

SCRIPT = '''
import numpy
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(40, 16), nn.Linear(16, 40, bias=False)
        self.head.weight = self.embedding.weight
        self.register_buffer("places", torch.arange(8))

    def forward(self, ids, targets=None):
        logits = self.head(self.embedding(ids + self.places))
        loss = None if targets is None else F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        return logits, loss

IDS = torch.zeros(4, 8, dtype=torch.long)

def pair():
    return Net(), (IDS, IDS)

def no_loss():
    return Net(), IDS

def on_meta():
    with torch.device("meta"):
        return Net(), (IDS, IDS)

def meta_and_optimizer():
    model, batch = on_meta()
    return model, batch, None, torch.optim.AdamW(model.parameters())

def with_default():
    labels = IDS.flatten()
    return Net(), IDS, lambda output, labels=labels: F.cross_entropy(output[0].flatten(0, 1), labels)

def with_batch():
    return Net(), {"ids": IDS}, lambda output, batch: F.cross_entropy(output[0].flatten(0, 1),
                                                                      batch["ids"].flatten())

def loaded():
    data = TensorDataset(IDS, IDS)
    return Net(), next(iter(DataLoader(data, 2, shuffle=True, num_workers=2, pin_memory=True)))

def loader_loop():
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters())
    loader = DataLoader(TensorDataset(IDS, IDS), batch_size=2, shuffle=True, num_workers=2,
                        pin_memory=True, persistent_workers=True, prefetch_factor=4)
    def step():
        for ids, targets in loader:
            model(ids.cuda(non_blocking=True), targets.cuda())[1].backward()
        optimizer.step()
        optimizer.zero_grad()
    return step

class Packed(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.layer = nn.Embedding(40, 16), nn.GRU(16, 8, batch_first=True)

    def forward(self, ids, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(self.embedding(ids), lengths, batch_first=True)
        return nn.utils.rnn.pad_packed_sequence(self.layer(packed)[0], batch_first=True)[0].mean()

def packed():
    return Packed(), (IDS, torch.tensor([8, 6, 6, 1]))

def pinned_loop():
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters())
    def batch():
        return torch.randint(40, (4, 8)).pin_memory().to("cuda", non_blocking=True)
    ids = batch()
    def step():
        nonlocal ids
        loss = model(ids, ids)[1]
        ids = batch()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return step

def convolutions():
    layers = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3, bias=False))
    return layers, torch.zeros(6, 3, 8, 8), lambda y: y.square().mean()

def with_arguments():
    import sys
    assert sys.argv[1:] == ["--rows", "4", "--", "-o"], sys.argv
    return pair()

class Inside(nn.Module):
    """Enters autocast itself, as a model that Accelerate has prepared does."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(32, 32) for _ in range(2))

    def forward(self, x):
        with torch.autocast("cuda", torch.bfloat16):
            for layer in self.layers:
                x = layer(x).relu()
        return x.float().square().mean()

def inside():
    return Inside(), torch.zeros(6, 4, 32)

def loop(model, forward):
    model = model.cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    def step():
        forward(model).backward()
        optimizer.step()
        optimizer.zero_grad()
    return step

def inside_loop():
    return loop(Inside(), lambda model: model(x=torch.zeros(6, 4, 32, device="cuda")))

def halved():
    torch.set_float32_matmul_precision("high")
    x = torch.zeros(6, 32).half()
    return loop(nn.Linear(32, 32).half(), lambda model: model(x).float().mean())

def of_tf32():
    torch.set_float32_matmul_precision("high")
    return loop(nn.Linear(32, 32), lambda model: model(torch.zeros(6, 32, device="cuda")).mean())

class Adapted(nn.Module):
    """Adapters of fp32 on a base of 16 bits."""

    def __init__(self):
        super().__init__()
        self.base = nn.Linear(64, 64).bfloat16().requires_grad_(False)
        self.down, self.up = nn.Linear(64, 2, bias=False), nn.Linear(2, 64, bias=False)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x.float())).to(x.dtype)

def adapted():
    x = torch.zeros(6, 64).bfloat16()
    return loop(Adapted(), lambda model: model(x).float().mean())

def no_products():
    return loop(nn.LayerNorm(32).bfloat16(), lambda model: model(torch.zeros(6, 32).bfloat16().cuda()).float().mean())

def compiled_loss():
    x = torch.zeros(6, 32)
    def forward(model):
        return torch.compile(lambda x: model(x).mean())(x)
    return loop(nn.Linear(32, 32), forward)

def data_set(**options):
    data = torch.randn(16384, 32, **options)
    batches = iter(DataLoader(TensorDataset(data), 64))
    return loop(nn.Linear(32, 32), lambda model: model(next(batches)[0].cuda()).mean())

def data_set_of_host():
    return data_set(device="cpu")

def first_of_data_set():
    data = torch.zeros(16384, 32)
    return nn.Linear(32, 32), data[:64], lambda output: output.mean()

def averaged():
    """What the update alone reads, what an evaluation does, and what is looked up in part: no data sets."""
    model = nn.Linear(512, 512).cuda()
    teacher = [torch.zeros_like(each) for each in model.parameters()]
    table, held_out, places = torch.zeros(512, 512), torch.zeros(1024, 512), torch.arange(128)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    def step():
        (model(table[:128]) + table[places]).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            torch._foreach_lerp_(teacher, list(model.parameters()), 0.1)
            model(held_out)
    return step

def asks_memory():
    free, total = torch.cuda.mem_get_info()
    of_device = torch.cuda.get_device_properties(0)
    print(total, total - free - torch.cuda.memory_reserved(), of_device.total_memory == total, of_device.name)
    large = torch.empty(48 << 30, dtype=torch.uint8)
    print(torch.cuda.mem_get_info()[0])
    del large
    torch.cuda.empty_cache()
    print(torch.cuda.mem_get_info()[0] == free)
    torch.cuda.set_per_process_memory_fraction(0.5)
    torch.empty(20 << 30, dtype=torch.uint8)
    return pair()

def resumed():
    def parts():
        model = Net().cuda()
        return model, torch.optim.AdamW(model.parameters())
    with torch.device("cpu"):
        trained = Net()
        optimizer = torch.optim.AdamW(trained.parameters())
        for weight in trained.parameters():
            weight.grad = torch.zeros_like(weight)
        optimizer.step()
    torch.save([trained.state_dict(), optimizer.state_dict()], "resumed.pt")
    model, optimizer = parts()
    for part, state in zip((model, optimizer), torch.load("resumed.pt", map_location="cuda")):
        part.load_state_dict(state)
    assert model.places.tolist() == list(range(8))
    assert next(iter(optimizer.state.values()))["step"].is_cuda
    def step():
        model(IDS, IDS)[1].backward()
        optimizer.step()
        optimizer.zero_grad()
    return step

def checked(check):
    model, optimizer = nn.Linear(8, 8), None
    def step():
        check(model(torch.zeros(2, 8, device="cuda")).mean())
    return step

def divides():
    return checked(lambda loss: 1 / loss.item())

def asserts():
    def check(loss):
        assert loss.item() != 0, "dead"
    return checked(check)

def says_loss():
    def check(loss):
        if loss.item() == 0:
            raise ValueError("the loss is 0")
    return checked(check)

def asserts_before():
    assert not IDS.is_cuda, "no GPU"

def of_numpy():
    return Net(), (numpy.zeros((4, 8), dtype="int64"), IDS)
'''


class Usual(test_capture.CaptureTest):
    script = SCRIPT

    def captured(self, function):
        done = self.capture(function)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.trace()

    def refused(self, function, problem):
        done = self.capture(function)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, problem)

    def test_the_one_number_of_a_tuple_is_the_loss(self):
        self.assertEqual(self.captured("pair")["step"]["batch"], 4)
        self.refused("no_loss", "the loss is the model's output, a tuple; need a tensor with one number")

    def test_a_model_on_the_meta_device_is_as_any_other(self):
        there = self.captured("pair")
        meta = self.captured("on_meta")
        self.assertEqual([x["name"] for x in meta["tensors"]], [x["name"] for x in there["tensors"]])
        self.refused("meta_and_optimizer", "give a function of the parameters")

    def test_a_loss_takes_the_batch_where_it_has_a_place_for_it(self):
        for function in ("with_default", "with_batch"):
            self.captured(function)

    def test_loaders_have_no_processes(self):
        self.assertEqual(self.captured("loaded")["step"]["batch"], 2)
        self.assertEqual(self.captured("loader_loop")["step"]["accumulate"], 2)

    def test_what_lies_on_the_host_in_a_run_on_a_gpu(self):
        read = [op["row"]["operation"] for op in self.captured("packed")["ops"] if "row" in op]
        self.assertIn("aten::_pack_padded_sequence", read)
        self.assertEqual(self.captured("pinned_loop")["step"]["batch"], 4)

    def test_a_convolution_is_as_many_launches_as_cudnn_makes(self):
        ops = [op["row"] for op in self.captured("convolutions")["ops"]
               if op["row"]["operation"] == "aten::convolution"]
        # One for all samples, one for the bias; a gradient each, of which the picture asks for none.
        self.assertEqual([(row["forward"].get("kernels", 1), row["backward"].get("kernels", 1))
                          for row in ops], [(2, 2), (1, 2)])
        self.assertRegex(self.capture("convolutions").stderr,
                         r"one of which takes [0-9.]+ MiB beside what it makes: what cuDNN takes")

    def test_a_script_has_its_arguments(self):
        done = self.capture("with_arguments", "--", "--rows", "4", "--", "-o")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_module_of_a_package_imports_from_its_own(self):
        (self.path / "pkg").mkdir()
        (self.path / "pkg" / "parts.py").write_text(self.script)
        (self.path / "pkg" / "train.py").write_text("from .parts import pair\n")
        of_module = self.run_python("-m", "tidemark.capture", "pkg.train:pair", "-o", "step.trace.json")
        self.assertEqual(of_module.returncode, 0, of_module.stderr)
        of_file = self.run_python("-m", "tidemark.capture", "pkg/train.py:pair", "-o", "step.trace.json")
        self.assertIn("no known parent package; from the folder that holds the package, capture it by its "
                      "module's name, as package.train:FUNCTION", of_file.stderr)

    def test_the_precision_is_what_products_compute_in(self):
        for function, precision in (("inside", "amp-bf16"), ("inside_loop", "amp-bf16"), ("adapted", "bf16"),
                                    ("halved", "amp-fp16"), ("of_tf32", "tf32"), ("no_products", "bf16")):
            self.assertEqual(self.captured(function)["step"]["precision"], precision, function)

    def test_samples_of_what_is_called_by_keyword_or_is_compiled(self):
        for function in ("inside_loop", "compiled_loss"):
            self.assertEqual(self.captured(function)["step"]["batch"], 6, function)

    def test_a_data_set_on_the_device_is_said_with_its_line(self):
        lines = SCRIPT.split("\n")
        for function, text, part in (
                ("data_set", "    data = torch.randn(16384, 32, **options)", "does not read it"),
                ("first_of_data_set", "    data = torch.zeros(16384, 32)", "reads at most 0.00781 MiB of it at once")):
            done = self.capture(function)
            self.assertEqual((done.returncode, done.stderr), (
                0, f"tidemark capture: net.py:{1 + lines.index(text)}: 2 MiB made here lie on the device, and the step "
                f"{part}: if they are the host's, as a data set, say device=\"cpu\"\n"))
        for function in ("data_set_of_host", "averaged"):
            done = self.capture(function)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_memory_and_name_of_the_device_are_told_and_limit_nothing(self):
        done = self.capture("asks_memory", "--device", "rtx-4090")
        self.assertEqual((done.returncode, done.stdout.splitlines()),
                         (0, ["25250627584 0 True NVIDIA GeForce RTX 4090", "0", "True"]), done.stderr)
        done = self.capture("asks_memory", "--sm", "89")
        self.assertEqual(done.stdout.splitlines()[0], "1099511627776 0 True stand-in")

    def test_an_optimizer_that_is_loaded_onto_the_device_goes_on(self):
        self.assertEqual(self.captured("resumed")["update"]["optimizer"], "AdamW")

    def test_who_asks_for_numbers_of_weights_is_told_that_they_are_zero(self):
        hint = "; numbers that depend on weights count as zero in a capture: leave out what asks for others (TIDE"
        for function, error in (("divides", "ZeroDivisionError: float division by zero"),
                                ("asserts", "AssertionError: dead"), ("says_loss", "ValueError: the loss is 0")):
            self.assertIn(error + hint, self.capture(function).stderr)
        self.assertIn("AssertionError: no GPU (TIDE", self.capture("asserts_before").stderr)

    def test_arrays_of_numpy_are_no_tensors(self):
        self.refused("of_numpy", "numpy ndarray.*torch.from_numpy")


if __name__ == "__main__":
    test_capture.CaptureTest.python = test_capture.python_with_torch()
    unittest.main(argv=sys.argv)
