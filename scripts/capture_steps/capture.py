#!/usr/bin/env python3
"""What real training steps take in PyTorch's own caching allocator, without a GPU, as a JSON fixture.

    python3 -m venv venv && venv/bin/pip install torch==2.6.0 torchvision==0.21.0 \
        transformers==4.57.1 timm==1.0.31 peft==0.21.2 accelerate
    venv/bin/python scripts/capture_steps/capture.py > tests/reference/steps_transformers-4.57.json
    venv/bin/python scripts/capture_steps/capture.py --only '^gpt2-bf16' --show

With another version of transformers (4.51.3 and 4.47.1, with tokenizers 0.21) the steps of
steps_transformers-4.51.json and steps_transformers-4.47.json:
    --only '^(gpt2|gpt2-odd-heads|llama|llama-gqa|mistral|bert|vit)-(fp32|bf16|amp-bf16)-(math|sdpa)$'

A C compiler builds the stand-in for the CUDA runtime (stand_in.c), which is then preloaded. Each case
runs three steps of eager training in a child process. The second gives the allocator's numbers. The
third runs under a dispatch mode that sees every storage come and go; it gives what is saved and what
is live. cuDNN is off, because it cannot be stood in for: convolutions run as copies and products.

Per case:
  saved       bytes of storages that the backward nodes hold when the forward is over; parameters,
              buffers and casts of parameters do not count, nor does what lies on the CPU
  live        most bytes of storages at once, per phase: outputs of operators, no scratch inside them
  allocated   most bytes allocated in the second step, per phase, as the allocator counts them
  reserved    most bytes that the allocator held
"""

import argparse
import collections
import ctypes
import gc
import importlib.metadata
import json
import os
import pathlib
import re
import runpy
import subprocess
import sys
import tempfile
import warnings
import weakref

HERE = pathlib.Path(__file__).parent


def run(*command):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True,
                          text=True).stdout


def build_stand_in(folder):
    """The two libraries, and in the first an answer for everything else that PyTorch imports."""
    import importlib.util

    site = pathlib.Path(importlib.util.find_spec("torch").origin).parent.parent
    undefined = set()
    for library in ("libtorch_cuda.so", "libc10_cuda.so", "libtorch_python.so"):
        listing = run("nm", "-D", "--undefined-only", site / "torch/lib" / library)
        undefined |= {line.split()[-1].split("@")[0] for line in listing.splitlines()}
    wanted = {name for name in undefined if name.startswith(("cuda", "cublas")) and
              not name.startswith(("cudaProfiler", "__"))}
    source = (HERE / "stand_in.c").read_text()
    rest = sorted(name for name in wanted if f" {name}(" not in source)
    (folder / "rest.c").write_text("".join(f"int {name}(void) {{ return 0; }}\n" for name in rest))
    flags = ["-shared", "-fPIC", "-O1", "-w", f"-I{site}/nvidia/cuda_runtime/include"]
    run("cc", *flags, HERE / "stand_in.c", folder / "rest.c", "-o", folder / "libstand_in.so")
    run("cc", *flags, HERE / "driver.c", "-o", folder / "libcuda.so.1")


def start_again_with_stand_in(arguments):
    if pathlib.Path("/dev/nvidiactl").exists():
        sys.exit("this machine has a GPU: the stand-in is for machines without one")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        build_stand_in(folder)
        environment = dict(os.environ, LD_PRELOAD=str(folder / "libstand_in.so"),
                           LD_LIBRARY_PATH=name, STAND_IN="ready", HF_HUB_OFFLINE="1",
                           PYTORCH_CUDA_ALLOC_CONF="")
        code = subprocess.run([sys.executable, __file__, *arguments], env=environment).returncode
    sys.exit(code)


# --- the models and what they are fed --------------------------------------------------------------

HEADS = {"vit": "ViTForImageClassification", "deit": "DeiTForImageClassification",
         "swin": "SwinForImageClassification", "bert": "BertForMaskedLM",
         "roberta": "RobertaForMaskedLM", "gpt2": "GPT2LMHeadModel", "llama": "LlamaForCausalLM",
         "mistral": "MistralForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM",
         "gemma": "GemmaForCausalLM", "gemma2": "Gemma2ForCausalLM",
         "gemma3_text": "Gemma3ForCausalLM", "phi": "PhiForCausalLM", "phi3": "Phi3ForCausalLM",
         "gpt_neox": "GPTNeoXForCausalLM", "opt": "OPTForCausalLM",
         "stablelm": "StableLmForCausalLM", "olmo2": "Olmo2ForCausalLM",
         "starcoder2": "Starcoder2ForCausalLM", "distilbert": "DistilBertForMaskedLM",
         "mixtral": "MixtralForCausalLM", "qwen2_moe": "Qwen2MoeForCausalLM",
         "qwen3_moe": "Qwen3MoeForCausalLM", "olmoe": "OlmoeForCausalLM",
         "t5": "T5ForConditionalGeneration",
         "xlm-roberta": "XLMRobertaForMaskedLM", "dinov2": "Dinov2ForImageClassification"}


def build_model(case):
    import torch
    import transformers

    config = transformers.AutoConfig.for_model(**case["config"])
    config.use_cache = False
    attention = "eager" if case["attention"] == "math" else "sdpa"
    name = case.get("class") or HEADS[case["config"]["model_type"]]
    with torch.device("cuda"):
        model = getattr(transformers, name)._from_config(config, attn_implementation=attention)
    if case["precision"] == "bf16":
        model = model.to(torch.bfloat16)
    if "lora" in case:
        import peft

        model = peft.get_peft_model(model, peft.LoraConfig(**case["lora"]),
                                    **case.get("peft", {}))
    if case.get("checkpoint"):
        model.gradient_checkpointing_enable(dict(use_reentrant=False))
        if "lora" in case:
            model.enable_input_require_grads()
    return model.train()


def build_inputs(case, model):
    import torch

    batch = case["batch"]
    if "tokens" not in case:
        side = case["config"].get("image_size", 224)
        dtype = torch.bfloat16 if case["precision"] == "bf16" else torch.float32
        return dict(pixel_values=torch.zeros(batch, 3, side, side, dtype=dtype, device="cuda"),
                    labels=torch.zeros(batch, dtype=torch.long, device="cuda"))
    ids = torch.zeros(batch, case["tokens"], dtype=torch.long, device="cuda")
    inputs = dict(input_ids=ids, labels=torch.zeros_like(ids))
    if "target_tokens" in case:
        inputs["labels"] = torch.zeros(batch, case["target_tokens"], dtype=torch.long, device="cuda")
    if "class" in case and "SequenceClassification" in case["class"]:
        inputs["labels"] = torch.zeros(batch, dtype=torch.long, device="cuda")
    # As a tokenizer hands it over. Without it, transformers 4.53 to 4.57 take every batch for packed.
    inputs["attention_mask"] = torch.ones_like(ids)
    if case.get("padded"):
        inputs["attention_mask"][0, -1] = 0
    return inputs


# --- measuring -------------------------------------------------------------------------------------


def storage_sizes(tensors):
    sizes = {}
    for tensor in tensors:
        storage = tensor.untyped_storage()
        if tensor.device.type == "cuda":
            sizes[storage._cdata] = storage.nbytes()
    return sizes


def make_values():
    """A dispatch mode that gives small tensors values: masks and ids, whatever depends on no weight.

    Kernels do nothing, but a model may ask `if mask.all()`. So every small tensor that is made from
    such tensors alone has a twin on the CPU, and questions are answered by the twin. Which experts
    a token goes to depends on weights: they take turns, so that all have as many tokens.
    """
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves, tree_map

    most = 1 << 20

    class Values(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.twins = torch.utils.weak.WeakIdKeyDictionary()

        def twin(self, value):
            if isinstance(value, torch.Tensor):
                return self.twins.get(value, value)
            return torch.device("cpu") if isinstance(value, torch.device) else value

        def on_twins(self, function, args, kwargs):
            tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
            known = all(x in self.twins or x.device.type == "cpu" for x in tensors)
            small = all(x.numel() <= most for x in tensors)
            random = torch.Tag.nondeterministic_seeded in function.tags
            if not known or not small or random or function._schema.name.startswith("aten::empty"):
                return None
            try:
                return function(*tree_map(self.twin, args), **tree_map(self.twin, kwargs))
            except (RuntimeError, NotImplementedError):  # an operator of CUDA alone
                return None

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            value = self.on_twins(function, args, kwargs)
            if function is torch.ops.aten._local_scalar_dense.default and value is not None:
                return value
            result = function(*args, **kwargs)
            if function is torch.ops.aten.topk.default and value is None and args[0].dim() == 2:
                rows, experts, slots = *args[0].shape, args[1]
                turns = torch.arange(rows * slots, device="cpu") % experts
                value = (None, turns.view(rows, slots))
            if function is torch.ops.aten.nonzero.default and value is not None:
                result = value.to(result.device)  # how many there are is known to the twin only
            for made, twin in zip(tree_leaves(result), tree_leaves(value)):
                if isinstance(made, torch.Tensor) and isinstance(twin, torch.Tensor) and \
                        made.device.type == "cuda" and made.shape == twin.shape and \
                        twin.numel() <= most:
                    self.twins[made] = twin
            return result

    return Values()


def make_watcher(known, parameters):
    """A dispatch mode that keeps count of the storages that are there."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    class Watcher(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.alive = dict(known)
            self.now = self.most = sum(known.values())
            self.saved, self.casts = {}, set()

        def end_of_phase(self):
            most, self.most = self.most, self.now
            return most

        def gone(self, key):
            self.now -= self.alive.pop(key, 0)

        def pack(self, tensor):
            storage = tensor.untyped_storage()
            if tensor.device.type == "cuda":
                self.saved[storage._cdata] = storage.nbytes()
            return tensor

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            for tensor in tree_leaves(result):
                if not isinstance(tensor, torch.Tensor) or tensor.device.type != "cuda":
                    continue
                storage = tensor.untyped_storage()
                key = storage._cdata
                if key in self.alive:
                    continue
                self.alive[key] = storage.nbytes()
                weakref.finalize(storage, self.gone, key)
                self.saved.pop(key, None), self.casts.discard(key)
                self.now += storage.nbytes()
                self.most = max(self.most, self.now)
                if function is torch.ops.aten._to_copy.default and \
                        args[0].untyped_storage()._cdata in parameters:
                    self.casts.add(key)
            return result

    return Watcher()


def measure(case):
    import torch

    warnings.filterwarnings("ignore")
    torch.backends.cudnn.enabled = False
    with make_values():
        return measure_with_values(case)


def measure_with_values(case):
    import contextlib

    import torch

    model = build_model(case)
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizers = {"adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}
    optimizer = optimizers[case.get("optimizer", "adamw")](trained, lr=1e-4)
    inputs = build_inputs(case, model)
    amp = {"amp-bf16": torch.bfloat16, "amp-fp16": torch.float16}.get(case["precision"])
    gc.collect()
    gc.disable()

    def forward():
        autocast = torch.autocast("cuda", amp) if amp else contextlib.nullcontext()
        with autocast:
            return model(**inputs).loss

    allocated = {}

    def phase(name):
        allocated[name] = torch.cuda.max_memory_allocated()
        torch.cuda.reset_peak_memory_stats()

    for step in range(2):
        torch.cuda.reset_peak_memory_stats()
        begin, reserved = torch.cuda.memory_allocated(), 0
        loss = forward()
        after = torch.cuda.memory_allocated()
        reserved = max(reserved, torch.cuda.max_memory_reserved())
        phase("forward")
        loss.backward()
        reserved = max(reserved, torch.cuda.max_memory_reserved())
        phase("backward")
        optimizer.step()
        reserved = max(reserved, torch.cuda.max_memory_reserved())
        phase("optimizer")
        optimizer.zero_grad(set_to_none=True)
        del loss

    parameters = storage_sizes([*model.parameters(), *model.buffers()])
    states = [t for state in optimizer.state.values() for t in state.values()
              if isinstance(t, torch.Tensor)]
    watcher = make_watcher({**parameters, **storage_sizes(states),
                            **storage_sizes(inputs.values())}, parameters)
    live = {"begin": watcher.now}
    with watcher:
        with torch.autograd.graph.saved_tensors_hooks(watcher.pack, lambda tensor: tensor):
            loss = forward()
        kept = {key: size for key, size in watcher.saved.items()
                if key in watcher.alive and key not in parameters and key not in watcher.casts}
        live["forward"] = watcher.end_of_phase()
        loss.backward()
        live["backward"] = watcher.end_of_phase()
        optimizer.step()
        live["optimizer"] = watcher.end_of_phase()
        optimizer.zero_grad(set_to_none=True)
        del loss
    groups = collections.Counter(kept.values())
    return dict(saved=sum(kept.values()), live=live,
                allocated=dict(begin=begin, after_forward=after, **allocated), reserved=reserved,
                parameters=sum(p.numel() for p in model.parameters()),
                trainable=sum(p.numel() for p in trained)), groups


def measure_in_child(case):
    """In a process of its own: the allocator's cache and cuBLAS's workspaces start anew."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            os.environ["STAND_IN_SM"] = str(case.get("sm", 80))
            result = measure(case)
        except Exception as error:  # said by the parent
            import traceback

            traceback.print_exc()
            result = (str(error), None)
        with os.fdopen(writer, "w") as pipe:
            json.dump(result, pipe)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else ("the process died", None)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", default=HERE / "cases.py", type=pathlib.Path,
                        help="a Python file that names the steps CASES")
    parser.add_argument("--only", default="", help="cases whose name matches this expression")
    parser.add_argument("--show", action="store_true", help="numbers for people, saved storages too")
    arguments = parser.parse_args()
    if os.environ.get("STAND_IN") != "ready":
        start_again_with_stand_in(sys.argv[1:])
    import torch  # imported once, before the processes of the cases
    import transformers  # noqa: F401

    torch.set_num_threads(1)
    packages = ("torch", "transformers", "peft")
    versions = {name: importlib.metadata.version(name) for name in packages}
    rows = []
    for case in runpy.run_path(str(arguments.cases))["CASES"]:
        if not re.search(arguments.only, case["name"]):
            continue
        result, groups = measure_in_child(case)
        print(case["name"], result, file=sys.stderr, flush=True)
        if isinstance(result, str):
            continue
        if arguments.show:
            for size, count in sorted(groups.items(), key=lambda item: -int(item[0])):
                print(f"  {count} x {size}", file=sys.stderr)
        config = json.dumps(case["config"], separators=(",", ":"))  # text, as in its own file
        rows.append({**case, "config": config, **result})
    print(json.dumps(dict(versions=versions), separators=(",", ":"))[:-1] + ',"steps":[')
    print(",\n".join(json.dumps(row, separators=(",", ":")) for row in rows) + "\n]}")


if __name__ == "__main__":
    main()
