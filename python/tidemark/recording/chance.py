"""What a step does by chance on the host, it does in each of the steps that a capture runs.

Layers that are dropped, augmentations, branches: memory of the steps is compared, and nodes of one
are matched with operations of another.
"""

from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING, Any

import torch

from .errors import CaptureError
from .recorder import UNSEEN

if TYPE_CHECKING:
    from .recorder import Operation


class Chance:
    """The state of the host's random numbers when it was made."""

    def __init__(self) -> None:
        self.python, self.torch = random.getstate(), torch.get_rng_state()
        numpy: Any = sys.modules.get("numpy")
        self.numpy = numpy.random.get_state() if numpy else None

    def again(self) -> None:
        random.setstate(self.python)
        torch.set_rng_state(self.torch)
        if self.numpy is not None:
            sys.modules["numpy"].random.set_state(self.numpy)


def what_ran(operation: Operation) -> Any:
    return (operation.name, [x.shape for x in operation.reads],
            [x.shape for x in operation.writes])


def seen(operations: list[Operation]) -> list[Operation]:
    return [x for x in operations if x.name != UNSEEN]


def are_alike(ones: list[Operation], others: list[Operation]) -> bool:
    return list(map(what_ran, seen(ones))) == list(map(what_ran, seen(others)))


def require_alike(ones: list[Operation], others: list[Operation]) -> None:
    """Two runs of one step: nodes of the first are those of the second."""
    ones, others = seen(ones), seen(others)
    for one, other in zip(ones, others):
        if what_ran(one) != what_ran(other):
            place = other.line or one.line
            raise CaptureError(f"{place + ': ' if place else ''}the step runs {other.name} here, "
                               f"and {one.name} at another time: capture one that is always alike")
    if len(ones) != len(others):
        raise CaptureError(f"the step has {len(ones)} operations at one time and {len(others)} at "
                           "another: capture one that is always alike")
