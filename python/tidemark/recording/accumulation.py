"""Sums of gradients, as the engine makes them where no dispatch mode looks on.

A gradient that comes to where one is already is added to that one in place, if nobody else holds it
and it is no view (can_accumulate_inplace() of torch/csrc/autograd/input_buffer.cpp). In PyTorch 2.15
every storage that a mode has asked for is held by Python, too, so that the engine adds out of place: a
third tensor, which an ordinary step does not have. Here the sum is made as in an ordinary step.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .leaves import tensors_in

ATEN = torch.ops.aten
IN_PLACE = "AccumulateGrad"  # the node that adds to a weight's gradient, always in place


def counts(tensor: torch.Tensor) -> tuple[int, int]:
    """How often the tensor is held, and its storage."""
    return (tensor._use_count(),
            torch._C._storage_Use_Count(tensor.untyped_storage()._cdata))  # type: ignore[attr-defined]


class Counted(TorchDispatchMode):
    """What counts() says, within a mode that asks for storages, of a gradient that only the engine holds;
    nothing where the engine adds in place all the same."""

    def __init__(self) -> None:
        super().__init__()
        self.found: tuple[int, int] | None = None

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (),
                           kwargs: Any = None) -> Any:
        if function is ATEN.add.Tensor:
            self.found = counts(args[0])
        result = function(*args, **(kwargs or {}))
        for made in tensors_in(result):
            made.untyped_storage()
        return result


def free_counts() -> tuple[int, int] | None:
    """Learned of a sum that is known to be in place: they are PyTorch's own affair."""
    leaf = torch.zeros(2, device="cpu", requires_grad=True)
    with torch.enable_grad(), Counted() as mode:
        used_twice = leaf.exp()
        together = used_twice.square().sum() + used_twice.cos().sum()
        mode.found = None
        together.backward()
    return mode.found


FREE: list[tuple[int, int] | None] = []


def learn() -> None:
    """Before any of it is asked: not while a mode is at work, nor before a process parts."""
    if not FREE:
        FREE.append(free_counts())


def is_dense(tensor: torch.Tensor) -> bool:
    """No gaps, and no element twice, in whatever order."""
    count = 1
    for stride, size in sorted((stride, size) for stride, size in zip(tensor.stride(), tensor.shape)
                               if size != 1):
        if stride != count:
            return False
        count *= size
    return True


def is_free(tensor: torch.Tensor) -> bool:
    return counts(tensor) == FREE[0] and is_dense(tensor)


def in_place(function: Any, args: Any, kwargs: Any, node: Any, was_there: Any) -> torch.Tensor | None:
    """What the sum is added to, or nothing: it is none of the engine's, or it is out of place.
    `was_there`: whether a tensor was, before the node's own run."""
    if function is not ATEN.add.Tensor or kwargs or len(args) != 2 or node is None or \
            torch.is_grad_enabled():
        return None
    old, new = args
    if not isinstance(new, torch.Tensor) or old.device.type != "cuda" or \
            old.shape != new.shape or old.dtype != new.dtype:
        return None
    if node.name().endswith(IN_PLACE):
        return old
    return old if was_there(old) and is_free(old) else None  # else: out of place, or a formula's own sum


class Sums:
    """Finds the engine's sums for a mode that numbers no storages: it remembers what the node at hand
    has made."""

    def __init__(self) -> None:
        self.node = -1
        self.made: set[int] = set()  # storages

    def target(self, function: Any, args: Any, kwargs: Any, node: Any) -> torch.Tensor | None:
        if not node.name().endswith(IN_PLACE) and node._sequence_nr() != self.node:
            self.node, self.made = node._sequence_nr(), set()
        return in_place(function, args, kwargs, node, self.was_there)

    def was_there(self, tensor: torch.Tensor) -> bool:
        return tensor.untyped_storage()._cdata not in self.made

    def note(self, args: Any, result: Any) -> None:
        made = {x.untyped_storage()._cdata for x in on_device(result)}
        if made:
            self.made |= made - {x.untyped_storage()._cdata for x in on_device(args)}


def on_device(values: Any) -> list[torch.Tensor]:
    return [x for x in tensors_in(values) if x.device.type == "cuda" and x.layout == torch.strided and
            not torch._C._functorch.is_functorch_wrapped_tensor(x)]


def added(target: torch.Tensor, args: Any) -> torch.Tensor:
    target.add_(args[1] if target is args[0] else args[0])
    return target
