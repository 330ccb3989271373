"""Which part of a storage a tensor covers, whatever the order of its axes; and shapes for files."""

from __future__ import annotations

import torch

from .recorder import Reference

MOST_AXES = 6
DTYPES = {torch.float32: "float32", torch.float16: "float16", torch.bfloat16: "bfloat16",
          torch.float64: "float64", torch.int64: "int64", torch.uint8: "uint8",
          torch.bool: "bool"}
# What has no name in the format is written as elements that have, and one more axis.
PAIRS = {torch.complex64: "float32", torch.complex128: "float64"}

Region = tuple[int, tuple[tuple[int, int], ...]]


def region_of(reference: Reference) -> Region:
    """Offset, and strides with sizes, neighbours that follow each other without a gap as one."""
    axes = sorted((stride, size) for size, stride in zip(reference.shape, reference.strides)
                  if size != 1 and stride != 0)
    merged: list[tuple[int, int]] = []
    for stride, size in axes:
        if merged and merged[-1][0] * merged[-1][1] == stride:
            merged[-1] = (merged[-1][0], merged[-1][1] * size)
        else:
            merged.append((stride, size))
    return reference.offset, tuple(merged)


def physical_shape(reference: Reference) -> tuple[int, ...]:
    return tuple(size if stride != 0 else 1
                 for size, stride in zip(reference.shape, reference.strides))


def elements(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def written_shape(shape: tuple[int, ...], dtype: torch.dtype) -> tuple[list[int], str]:
    """As the format has it: at most six axes, of a dtype that it knows."""
    sizes = list(shape)
    name = DTYPES.get(dtype)
    if name is None:
        name = PAIRS.get(dtype, "uint8")
        sizes.append(2 if dtype in PAIRS else dtype.itemsize)
    while len(sizes) > MOST_AXES:
        sizes[:2] = [sizes[0] * sizes[1]]
    return sizes, name
