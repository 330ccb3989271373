"""The precision of a step is what its products compute in: autocast may be entered within a model, and
adapters of fp32 may lie on a base of 16 bits."""

from __future__ import annotations

import collections
from typing import Any, Iterable

import torch

from .leaves import tensors_in

AMP = {torch.bfloat16: "amp-bf16", torch.float16: "amp-fp16"}  # float16 as a whole has no name of its own


class Products:
    """FLOPs of the forward by the dtype of what is multiplied."""

    def __init__(self) -> None:
        self.flops: collections.Counter[torch.dtype] = collections.Counter()

    def note(self, flops: int | None, args: Any) -> None:
        operands = [x for x in tensors_in(args) if x.is_floating_point()] if flops else []
        if operands:
            self.flops[operands[0].dtype] += flops or 0


def precision_of(products: Products, weights: Iterable[torch.Tensor]) -> str:
    """Where nothing is multiplied, that of most weights."""
    sizes: collections.Counter[torch.dtype] = collections.Counter()
    for weight in weights:
        if weight.is_floating_point():
            sizes[weight.dtype] += weight.numel()
    of_weights = most_of(sizes)
    dtype = most_of(products.flops) if products.flops else of_weights
    if dtype not in AMP:
        return "tf32" if torch.backends.cuda.matmul.allow_tf32 else "fp32"
    return "bf16" if dtype is of_weights is torch.bfloat16 else AMP[dtype]


def most_of(counts: collections.Counter[torch.dtype]) -> torch.dtype:
    return counts.most_common(1)[0][0] if counts else torch.float32
