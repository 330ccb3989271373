"""What mamba_ssm's scan requests of PyTorch's allocator, for tests/traces/scan_ops_test.cpp: its own Python runs on CPU tensors, and its
kernels, which request nothing, are left out. Written with PyTorch 2.15 and state-spaces/mamba e9594ce (2026-07-23).

    git clone https://github.com/state-spaces/mamba && pip install torch einops packaging
    PYTHONPATH=mamba python make_scan_fixture.py

Each line: sizes, what the forward has at once beside its inputs, what the backward has beside the gradients that it returns."""
import contextlib
import sys
import types

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

PROCESSORS = 132  # of an H100
# batch, tokens, heads, width of one, groups, state, chunk, width behind the product (0: none), dtype
CASES = [(1, 1024, 16, 64, 4, 128, 128, 0, torch.bfloat16), (2, 1000, 16, 64, 8, 64, 128, 0, torch.bfloat16),
         (1, 1024, 16, 64, 4, 128, 256, 0, torch.bfloat16), (1, 8192, 64, 64, 8, 128, 128, 0, torch.bfloat16),
         (1, 512, 8, 32, 1, 64, 64, 0, torch.float32), (1, 1024, 16, 64, 4, 128, 128, 512, torch.bfloat16),
         (2, 1000, 8, 64, 2, 128, 128, 256, torch.bfloat16), (1, 8192, 64, 64, 8, 128, 128, 2688, torch.bfloat16)]


class LeftOut:
    """A kernel of Triton, tuned: the sizes of blocks decide how much of a buffer is summed, not how large it is."""
    best_config = types.SimpleNamespace(kwargs={"BLOCK_SIZE_M": 64, "BLOCK_SIZE": 512})

    def __getitem__(self, grid):
        return lambda *args, **kwargs: None


def convolution(x, weight, bias, seq_idx, initial_states, final_states, silu):
    return torch.empty_like(x)


def convolution_backward(x, weight, bias, dy, seq_idx, initial_states, final_states, dx, returns_states, silu):
    gradients = [torch.zeros_like(parameter, dtype=torch.float32).to(parameter.dtype) for parameter in (weight, bias)]
    return dx, *gradients, None


def without_a_device():
    torch.cuda.device = lambda *args: contextlib.nullcontext()
    torch.cuda.get_device_properties = lambda *args: types.SimpleNamespace(multi_processor_count=PROCESSORS)
    functions = types.ModuleType("causal_conv1d.cpp_functions")
    functions.causal_conv1d_fwd_function = convolution
    functions.causal_conv1d_bwd_function = convolution_backward
    functions.causal_conv1d_update_function = None
    package = types.ModuleType("causal_conv1d")
    package.causal_conv1d_fn = None
    package.cpp_functions = functions
    sys.modules |= {"causal_conv1d": package, "causal_conv1d.cpp_functions": functions}
    for name in ("mamba_ssm", "mamba_ssm.ops", "mamba_ssm.ops.triton"):  # whose __init__ loads compiled code
        package = types.ModuleType(name)
        package.__path__ = [f"{folder}/{name.replace('.', '/')}" for folder in sys.path]
        sys.modules[name] = package


def scan_without_kernels():
    from mamba_ssm.ops.triton import ssd_combined
    for name, module in list(sys.modules.items()):
        if name.startswith("mamba_ssm.ops.triton."):
            for member in vars(module):
                if member.startswith("_") and member.endswith("_kernel"):
                    setattr(module, member, LeftOut())
    return ssd_combined.mamba_split_conv1d_scan_combined


class Requests(TorchDispatchMode):
    """The bytes of all storages that operators have returned and somebody still has, at their highest; not those of `given` tensors."""

    def __init__(self, given):
        super().__init__()
        self.given = {tensor.untyped_storage()._cdata for tensor in given}
        self.storages, self.peak = {}, 0

    def now(self):
        self.storages = {key: (ref, size) for key, (ref, size) in self.storages.items() if not ref.expired()}
        return sum(size for _, size in self.storages.values())

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        for tensor in made if isinstance(made, (tuple, list)) else [made]:
            if isinstance(tensor, torch.Tensor) and tensor.untyped_storage()._cdata not in self.given:
                storage = tensor.untyped_storage()
                self.storages[storage._cdata] = StorageWeakRef(storage), storage.nbytes()
        self.peak = max(self.peak, self.now())
        return made


def requests_of(scan, batch, tokens, heads, width, groups, state, chunk, out, dtype):
    def parameter(*shape, dtype=dtype):
        return torch.zeros(*shape, dtype=dtype, requires_grad=True)

    inner, channels = heads * width, heads * width + 2 * groups * state
    given = [parameter(batch, tokens, inner + channels + heads), parameter(channels, 4), parameter(channels), parameter(heads),
             parameter(heads, dtype=torch.float32), parameter(heads)]
    options = {"chunk_size": chunk, "headdim": width, "ngroups": groups, "norm_before_gate": False}
    if out:
        gain, weight = parameter(inner), parameter(out, inner)
        given += [gain, weight]
        options |= {"rmsnorm_weight": gain, "outproj_weight": weight, "return_final_states": True}
    requests = Requests(given)
    with requests:
        results = scan(*given[:6], **options)
        forward = requests.peak
        y = results[0] if out else results
        of_y = torch.zeros_like(y)
        del results
        before = requests.peak = requests.now()
        gradients = torch.autograd.grad(y, given, of_y)
    return forward, requests.peak - before - sum(gradient.untyped_storage().nbytes() for gradient in gradients)


if __name__ == "__main__":
    without_a_device()
    scan = scan_without_kernels()
    for case in CASES:
        print(*case, *requests_of(scan, *case))
