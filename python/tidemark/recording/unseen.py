"""What is made where no dispatch mode looks: by a fused kernel of TorchScript, say.

An operation reads a tensor that nobody has made and that was not there before the step. Where it is
gone when the step is over, it was made in between: by an op of no inputs, right before who reads it
first. Where it stays, it was there before: C++ held it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .parts import Op
from .recorder import UNSEEN, Operation, Recorder
from .rows import MOST_OPERANDS

if TYPE_CHECKING:
    from .tensors import Tensors


def settle(recorder: Recorder) -> None:
    """When the step is over."""
    there = set(recorder.numbers.values())
    for number, storage in enumerate(recorder.storages):
        if storage.found_by is not None and not storage.name and number not in there:
            storage.made_by = storage.found_by


def add_what_it_finds(builder: Tensors, operation: Operation) -> None:
    found = dict.fromkeys(read.storage for read in operation.reads)
    made = [number for number in found if number not in builder.whole and
            builder.storages[number].made_by is not None and
            builder.storages[number].made_by == builder.storages[number].found_by]
    for begin in range(0, len(made), MOST_OPERANDS):
        outputs = [builder.whole_of(number, f"{operation.module}.{UNSEEN}".lstrip("."))
                   for number in made[begin:begin + MOST_OPERANDS]]
        row: dict[str, Any] = {"operation": UNSEEN, "forward": {"kernels": 0}}
        builder.ops.append(Op(outputs[0].name, "opaque", [], outputs, builder.at, row))
