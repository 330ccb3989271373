"""Runs the Python files that `tidemark plan` writes, on small networks, where there is PyTorch: what
stays after the forward is what was planned, to the byte, and gradients are those of the model as it
was, to the bit. Loudly skipped elsewhere."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop(1)

CONFIGS = {
    "gpt2": {
        "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": 256, "n_head": 4,
        "n_layer": 4, "n_positions": 128, "vocab_size": 512, "attn_pdrop": 0.0, "embd_pdrop": 0.0,
        "resid_pdrop": 0.0, "activation_function": "gelu_new",
    },
    "llama": {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 256,
        "intermediate_size": 768, "num_attention_heads": 4, "num_key_value_heads": 4,
        "num_hidden_layers": 4, "vocab_size": 512, "max_position_embeddings": 128,
        "rms_norm_eps": 1e-6, "hidden_act": "silu",
    },
    "bert": {
        "architectures": ["BertForMaskedLM"], "model_type": "bert", "hidden_size": 256,
        "intermediate_size": 1024, "num_attention_heads": 4, "num_hidden_layers": 4,
        "vocab_size": 512, "max_position_embeddings": 128, "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0, "hidden_act": "gelu",
    },
    "vit": {
        "architectures": ["ViTForImageClassification"], "model_type": "vit", "hidden_size": 256,
        "intermediate_size": 1024, "num_attention_heads": 4, "num_hidden_layers": 4,
        "image_size": 128, "patch_size": 8, "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0, "hidden_act": "gelu",
    },
}

# Runs in the Python that has PyTorch: FOLDER with config.json, then the script or "-".
STEP = '''
import importlib.util, json, sys
import torch, transformers
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

folder, scripts = sys.argv[1], sys.argv[2:]
torch.set_num_threads(1)
config = transformers.AutoConfig.from_pretrained(folder)
architecture = getattr(transformers, config.architectures[0])


class Made(TorchDispatchMode):
    """Storages that operators make."""

    def __init__(self):
        super().__init__()
        self.made = {}

    def __torch_dispatch__(self, call, types, args=(), kwargs=None):
        result = call(*args, **(kwargs or {}))
        for tensor in torch.utils._pytree.tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                storage = tensor.untyped_storage()
                self.made[storage._cdata] = (StorageWeakRef(storage), storage.nbytes())
        return result

    def held(self, known):
        return sum((size + 511) // 512 * 512 for key, (storage, size) in self.made.items()
                   if key not in known and not storage.expired())


def step(script):
    torch.manual_seed(1)
    model = architecture(config).train()
    model.config.use_cache = False
    if script != "-":
        spec = importlib.util.spec_from_file_location("wrapping", script)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.apply(model)
    known = {t.untyped_storage()._cdata for t in [*model.parameters(), *model.buffers()]}
    torch.manual_seed(2)
    if hasattr(config, "image_size"):
        batch = {"pixel_values": torch.randn(4, 3, config.image_size, config.image_size),
                 "labels": torch.zeros(4, dtype=torch.long)}
    else:
        ids = torch.randint(config.vocab_size, (4, 128))
        # Without a mask, transformers 4.53 to 4.57 take a batch for packed sequences.
        batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": ids}
    made = Made()
    with made:
        loss = model(**batch).loss
    held = made.held(known)
    loss.backward()
    return held, loss.detach(), [p.grad for p in model.parameters()]


first, results = None, []
for script in scripts:
    held, loss, gradients = step(script)
    first = first or (loss, gradients)
    same = torch.equal(loss, first[0]) and all(
        (a is None and b is None) or torch.equal(a, b) for a, b in zip(gradients, first[1]))
    results.append({"held": held, "same": same})
print(json.dumps(results))
'''


def python_with_torch():
    """Exit code 77 means skipped, for ctest."""
    python = os.environ.get("TIDEMARK_TEST_PYTHON", sys.executable)
    check = ("import torch, transformers, sys; "
             "sys.exit(0 if tuple(map(int, torch.__version__.split('.')[:2])) >= (2, 4) else 1)")
    done = subprocess.run([python, "-c", check], capture_output=True, text=True)
    if done.returncode != 0:
        print("SKIPPED: no PyTorch 2.4 with transformers in this Python; TIDEMARK_TEST_PYTHON names "
              "another")
        sys.exit(77)
    return python


class CheckpointScript(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def plan(self, config, *options):
        command = [PROGRAM, "plan", str(config), "--batch", "4", "--precision", "fp32",
                   "--optimizer", "sgd",
                   "--format", "json", *options]
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    @staticmethod
    def padding(name, plan):
        """On a GPU the log-sum-exp of the memory-efficient kernel has rows of a multiple of 32."""
        if name != "vit":
            return 0
        rows, heads, numbers = 4, 4, (128 // 8) ** 2 + 1
        size = [(rows * heads * each * 4 + 511) // 512 * 512
                for each in (numbers, (numbers + 31) // 32 * 32)]
        recomputed = sum(group["blocks"] for group in plan["groups"]
                         if group["decisions"] and "attn.flash" not in group["calls"])
        return recomputed * (size[1] - size[0])

    @staticmethod
    def arguments(name, plan):
        """Checkpoints hold what a block is called with: LLaMA's hands each the positions, 128
        integers, which nobody else holds."""
        wraps = any(group["decisions"] for group in plan["groups"])
        return 128 * 8 if name == "llama" and wraps else 0

    def check(self, name, form):
        config = self.folder / "config.json"
        config.write_text(json.dumps(CONFIGS[name]))
        front = self.plan(config, "--form", form, "--front")["front"]
        self.assertGreater(len(front), 2)
        plans, scripts = [], []
        for at in sorted({0, len(front) // 4, len(front) // 2, 3 * len(front) // 4}):
            script = self.folder / f"wrap_{at}.py"
            plans.append(self.plan(config, "--form", form, "--budget",
                                   f"{front[at]['budget_bytes']}B", "--python-out", str(script)))
            scripts.append(str(script))
        (self.folder / "step.py").write_text(STEP)
        done = subprocess.run([PYTHON, "step.py", str(self.folder), "-", *scripts],
                              cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        plain, *results = json.loads(done.stdout.splitlines()[-1])
        for plan, result, script in zip(plans, results, scripts):
            text = pathlib.Path(script).read_text()
            saved = (sum(group["bytes"] for group in plan["groups"])
                     - self.padding(name, plan) - self.arguments(name, plan))
            self.assertTrue(result["same"], text)
            self.assertEqual(plain["held"] - result["held"], saved, text)
        return plans

    def test_blocks(self):
        for name in CONFIGS:
            with self.subTest(name):
                plans = self.check(name, "blocks")
                self.assertTrue(any(group["decisions"] for group in plans[0]["groups"]))

    def test_policies(self):
        for name in CONFIGS:
            with self.subTest(name):
                plans = self.check(name, "policy")
                calls = [group["calls"] for plan in plans for group in plan["groups"]]
                self.assertTrue(any(calls), "no plan keeps a call")


if __name__ == "__main__":
    PYTHON = python_with_torch()
    unittest.main()
