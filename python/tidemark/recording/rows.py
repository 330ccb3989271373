"""Rows of opaque ops: what an operation's backward keeps and makes, and what each pass takes."""

from __future__ import annotations

from typing import Any

from .parts import Tensor
from .regions import DTYPES, PAIRS

MOST_OPERANDS = 16


def row_of(name: str, inputs: list[Tensor], outputs: list[Tensor], wants: list[bool],
           handed: list[bool], kept_reads: set[int], kept_writes: set[int]) -> dict[str, Any]:
    def is_float(tensor: Tensor) -> bool:
        return tensor.dtype.is_floating_point and tensor.dtype in DTYPES or \
            tensor.dtype in PAIRS

    gradients = [at for at, wanted in enumerate(wants) if wanted and is_float(inputs[at])]
    kept = kept_reads | kept_writes
    saved = [f"in{at}" for at, x in enumerate(inputs) if x.number in kept_reads]
    saved += [f"out{at}" for at, x in enumerate(outputs)
              if x.number in kept and (x.number in kept_writes or x.storage is None)]
    row: dict[str, Any] = {"operation": name}
    if gradients:
        row["gradients"] = [f"in{at}" for at in gradients]
        shared = [f"in{at}" for at in gradients if at < len(handed) and handed[at] and
                  is_float(outputs[0]) and inputs[at].dtype == outputs[0].dtype]
        if shared:
            row["handed_on"] = shared
        if saved:
            row["saved"] = saved
    return row


def add_pass(row: dict[str, Any], key: str, live: int, requested: int, flops: int | None,
             moved: int, launches: int) -> None:
    """`live` and `requested`: what there was at most beyond the op's own tensors."""
    figures: dict[str, int] = {}
    if live > 0:
        figures["workspace_bytes"] = live
    if requested > max(live, 0):
        figures["scratch_bytes"] = requested - max(live, 0)
    if launches and flops:
        figures["flops"] = flops
    if launches:
        figures["moved_bytes"] = moved
    if launches != 1:
        figures["kernels"] = launches
    row[key] = figures
