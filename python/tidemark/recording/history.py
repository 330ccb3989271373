"""What PyTorch's allocator was asked for, call by call, from the first tensor to the end of the second
step: whoever repeats these calls has the same blocks, and so the same reserved memory.

A call is a number: bytes that were asked for, or of a free, below zero, how many allocations ago it
was made. -1 frees what was allocated last.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import torch

from . import streams

MOST_EVENTS = 1 << 22


@dataclasses.dataclass
class Calls:
    """`setup` makes the model, `first_step` its optimizer's state; `step` is an ordinary one, of
    which `work` calls come before the gradients are given up."""

    setup: list[int]
    first_step: list[int]
    step: list[int]
    work: int


class History:
    """Runs from when it is made."""

    def __init__(self) -> None:
        torch.cuda.init()
        torch.cuda.memory._record_memory_history(enabled="all", context=None, stacks="python",
                                                 max_entries=MOST_EVENTS)
        self.begin = self.position()
        self.marks: list[int] = []
        self.order: dict[int, int] = {}  # of what is there at the end, by address

    @staticmethod
    def position() -> int:
        """Allocations and frees until now."""
        counts = torch._C._cuda_memoryStats(torch.cuda.current_device())["allocation"]["all"]
        return counts["allocated"] + counts["freed"]

    def mark(self) -> None:
        self.marks.append(self.position() - self.begin)

    def end(self) -> Calls | None:
        """Between four marks: the first step begins, the second does, its work is done, it ends. None
        where several streams have memory, or the recording does not have all."""
        events = torch.cuda.memory._snapshot()["device_traces"][0]
        torch.cuda.memory._record_memory_history(enabled=None)
        events = [x for x in events if x["action"] in ("alloc", "free_requested")]
        self.order = {event["addr"]: at for at, event in enumerate(events)
                      if event["action"] == "alloc"}
        if len({event["stream"] for event in events}) > 1:
            streams.say_that_calls_are_missing()
            return None
        calls = numbered(events)
        first, second, work, end = self.marks
        if calls is None or len(calls) < end:
            return None
        setup, first_step, step, rest = (
            in_order(calls[begin:end]) for begin, end in
            ((0, first), (first, second), (second, work), (work, end)))
        return Calls(setup, first_step, step + rest, len(step))


def numbered(events: list[dict[str, Any]]) -> list[int] | None:
    calls: list[int] = []
    made: dict[int, int] = {}  # number of the allocation by its address
    count = 0
    for event in events:
        if event["action"] == "alloc":
            made[event["addr"]] = count
            count += 1
            calls.append(event["size"])
        elif event["addr"] in made:
            calls.append(made.pop(event["addr"]) - count)
        else:
            return None
    return calls


def in_order(calls: list[int]) -> list[int]:
    """Frees that nothing interrupts, latest allocation first: autocast's cache of casts gives up its
    tensors in the order of a hash of their addresses, which is another one in each process.

    For whoever repeats the calls any order is the same. A free merges its block with the free ones
    beside it, so what is left are the longest free stretches of each segment; the free lists are
    sorted by size and address; ages of blocks are counted in allocations; and segments go back to
    the device where one is made. Only the highest point of free bytes in segments that are partly
    in use may differ, which nobody reads.
    """
    ordered: list[int] = []
    for is_free, run in itertools.groupby(calls, lambda call: call < 0):
        ordered += sorted(run, reverse=True) if is_free else run
    return ordered
