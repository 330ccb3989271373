"""Convolutions run PyTorch's own kernels here, since cuDNN cannot be stood in for: one product for each
sample, of columns that are made of it. On a GPU cuDNN serves all samples at once, so launches are
counted as its own; what it takes beside is known to a GPU alone, and what stands for it here is said."""

from __future__ import annotations

import sys
from typing import Any

import torch

aten = torch.ops.aten
FORWARD, BACKWARD = aten.convolution.default, aten.convolution_backward.default


def launches_of(function: Any, args: Any, counted: int) -> int:
    """A kernel and the sum of a bias; one for each gradient that is asked for."""
    if function is FORWARD:
        return 1 + (args[2] is not None)
    if function is BACKWARD:
        return sum(map(bool, args[-1]))
    return counted


def is_one(function: Any) -> bool:
    return function in (FORWARD, BACKWARD)


def report(scratch: int) -> None:
    if scratch == 0:
        return
    print("tidemark capture: convolutions run PyTorch's own kernels here, one of which takes "
          f"{scratch / 2**20:.1f} MiB beside what it makes: what cuDNN takes in its place is known to "
          "a GPU alone", file=sys.stderr)
