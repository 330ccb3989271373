"""A backward within the forward of another one, with the update that follows it: one op.

    fake = generator(z)
    critic(fake.detach()).mean().backward()     ends nothing: `fake` is needed again
    of_critic.step()
    critic(fake).mean().backward()              goes through what was made before the other one

So does the first of two losses, backward(retain_graph=True). The one that comes last is the trace's
backward; of an earlier one what it makes counts, and its highest point.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import torch

from .compiled import plain_name
from .parts import Op
from .recorder import Operation, Recorder
from .rows import MOST_OPERANDS, add_pass

if TYPE_CHECKING:
    from .tensors import Tensors


@dataclasses.dataclass
class Inside:
    recorder: Recorder
    line: str
    is_open: bool = True
    made: list[int] = dataclasses.field(default_factory=list)  # storages
    names: dict[int, str] = dataclasses.field(default_factory=dict)  # of gradients among them
    live: int = 0  # bytes of storages, at most, beside those that are there in the end
    requested: int = 0  # of the allocator, likewise
    launches: int = 0

    def __post_init__(self) -> None:
        self.recorder.begin_stretch("inside")
        self.stretch = self.recorder.stretch
        self.known, self.at = len(self.recorder.storages), len(self.recorder.operations)
        self.peak = 0

    def end(self, model: torch.nn.Module, nodes_made: int) -> None:
        """`nodes_made`: of the operation at hand, which comes after it."""
        self.is_open = False
        recorder = self.recorder
        there = set(recorder.numbers.values())
        # The gradient that it began with comes first: an op makes something.
        self.made = [number for number in range(self.known, len(recorder.storages))
                     if number in there or number == self.known]
        for number in self.made:
            recorder.storages[number].made_by = self.at
        for name, parameter in model.named_parameters():
            if parameter.grad is not None and recorder.knows(parameter.grad):
                self.names[recorder.number(parameter.grad)] = f"{plain_name(name)}.grad"
        gone = sum(recorder.storages[number].bytes for number in self.made if number not in there)
        self.peak = recorder.live_peaks.pop("inside")
        recorder.live_peaks["forward"] = max(recorder.live_peaks["forward"], self.peak)
        self.live = self.peak - recorder.live - gone
        self.requested = self.stretch.highest - recorder.allocator.requested()[0] - gone
        self.launches = recorder.launches() - self.stretch.launches
        recorder.operations.append(Operation("backward", "", line=self.line, inside=self))
        recorder.phase = "forward"
        recorder.last_number = torch.autograd._get_sequence_nr() - nodes_made

    def resume(self) -> None:
        """It was not over: what was recorded since is of it."""
        self.is_open = True
        recorder = self.recorder
        del recorder.operations[self.at:]
        recorder.calls = [call for call in recorder.calls if call[1] <= self.at and call[2] >= 0]
        for storage in recorder.storages:
            if storage.gone_before is not None:
                storage.gone_before = min(storage.gone_before, self.at)
        recorder.phase = "inside"
        recorder.live_peaks["inside"] = max(self.peak, recorder.live)


def add(builder: Tensors, operation: Operation) -> None:
    """Several ops where it makes more than one may; what it takes is taken when all is there."""
    inside: Inside = operation.inside
    outputs = [builder.whole_of(number, inside.names.get(number, operation.name))
               for number in inside.made]
    while outputs:
        piece, outputs = outputs[-MOST_OPERANDS:], outputs[:-MOST_OPERANDS]
        row: dict[str, Any] = {"operation": operation.name, "runs_once": True,
                               "forward": {"kernels": 0}}
        if not outputs:
            add_pass(row, "forward", inside.live, inside.requested, inside.stretch.flops,
                     inside.stretch.moved, inside.launches)
        builder.ops.append(Op(piece[0].name, "opaque", [], piece, builder.at, row))
