"""What PyTorch's allocator says of an ordinary run of the step, per pass."""

from __future__ import annotations

from typing import Any, Sequence

import torch

from . import step
from .watching import End, Watcher


class Meter(Watcher):
    """An ordinary step: the allocator's highest points, per pass."""

    def __init__(self) -> None:
        self.passes: list[step.Measured] = []
        self.reserved = 0
        self.is_between, self.in_backward = True, False
        torch.cuda.reset_peak_memory_stats()

    def most(self) -> int:
        most = torch.cuda.max_memory_allocated()
        self.reserved = max(self.reserved, torch.cuda.max_memory_reserved())
        torch.cuda.reset_peak_memory_stats()
        return most

    def module_called(self, module: Any, inputs: Any) -> None:
        if self.is_between:
            self.begin()

    def optimizer_begins(self) -> None:
        if not self.is_between and not self.in_backward and self.passes[:-1]:  # but a metric's call
            self.passes.pop()
            self.is_between = True

    def begin(self) -> None:
        self.note_update()
        self.is_between = False
        self.passes.append(step.Measured(before=torch.cuda.memory_allocated()))

    def forward_ended(self, end: End) -> None:
        if self.is_between:
            self.begin()
        self.passes[-1].forward = self.most()
        self.in_backward = True

    def backward_ended(self, made: Sequence[torch.Tensor] = ()) -> None:
        self.passes[-1].backward = self.most()
        self.is_between, self.in_backward = True, False

    def note_update(self) -> None:
        most = self.most()
        if self.passes:
            self.passes[-1].optimizer = max(self.passes[-1].optimizer, most)

    def ended(self) -> None:
        if not self.is_between:
            self.passes.pop()  # of modules that were called, and no backward() followed: an evaluation
        self.note_update()
        for each in self.passes:
            each.reserved = self.reserved

    def whole_passes(self, inside: set[int]) -> list[step.Measured]:
        """Those inside of the next one are part of its forward."""
        found: list[step.Measured] = []
        for at, each in enumerate(self.passes):
            if at - 1 in inside:
                before = found.pop()
                each.before = before.before
                each.forward = max(before.most, each.forward)
            found.append(each)
        return found
