#!/usr/bin/env python3
"""Step time and peak memory of ViT-B/16 in PyTorch, eager and compiled, to stand beside Tidemark's
own on the same device: batch 64, bf16 throughout, AdamW, synthetic data, flash attention.

    torch_step.py RESULT.json [--eager]
"""
import json
import statistics
import sys

import torch
from torch import nn
from torch.nn import functional as F

BATCH, WIDTH, HEADS, LAYERS, PATCH, IMAGE, CLASSES = 64, 768, 12, 12, 16, 224, 1000
WARM_UP, STEPS = 5, 20


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        b, t, _ = x.shape
        qkv = self.qkv(self.norm1(x)).reshape(b, t, 3, HEADS, WIDTH // HEADS)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v)
        x = x + self.out(mixed.transpose(1, 2).reshape(b, t, WIDTH))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class ViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, PATCH, PATCH)
        self.token = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.position = nn.Parameter(torch.zeros(1, (IMAGE // PATCH) ** 2 + 1, WIDTH))
        self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, CLASSES)

    def forward(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.position
        return self.head(self.norm(self.blocks(x))[:, 0])


def measure(compiled):
    torch.manual_seed(0)
    model = ViT().to("cuda", torch.bfloat16)
    forward = torch.compile(model) if compiled else model
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    images = torch.randn(BATCH, 3, IMAGE, IMAGE, device="cuda", dtype=torch.bfloat16)
    labels = torch.randint(CLASSES, (BATCH,), device="cuda")
    times = []
    for step in range(WARM_UP + STEPS):
        if step == WARM_UP:
            torch.cuda.reset_peak_memory_stats()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(forward(images).float(), labels).backward()
        optimizer.step()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return {
        "step_ns": round(statistics.median(times[WARM_UP:]) * 1e6),
        "step_ns_all": [round(t * 1e6) for t in times[WARM_UP:]],
        "peak_allocated_bytes": torch.cuda.max_memory_allocated(),
        "peak_reserved_bytes": torch.cuda.max_memory_reserved(),
    }


def save(result):
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(result, file, indent=2)
        file.write("\n")


def main():
    if not torch.cuda.is_available():
        sys.exit("PyTorch sees no GPU")
    result = {
        "model": "vit-b-16",
        "batch": BATCH,
        "precision": "bf16",
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name(),
        "eager": measure(compiled=False),
    }
    save(result)  # the compiler may take longer than there is time
    print(f"eager: {result['eager']['step_ns'] / 1e6:.2f} ms", flush=True)
    if "--eager" in sys.argv:
        return
    try:
        result["compiled"] = measure(compiled=True)
    except Exception as error:  # no compiler on this machine, say: told instead of measured
        result["compiled"] = {"error": (str(error).splitlines() or [repr(error)])[0]}
    save(result)
    print("compiled:", result["compiled"])


if __name__ == "__main__":
    main()
