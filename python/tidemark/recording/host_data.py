"""Data sets that lie on the host while a training runs, and on the device here, as make_step made them so.

They are told by what is read: large tensors of before the step of which no operation reads, at once,
more than a small part, or anything.
"""

from __future__ import annotations

import sys
import weakref
from typing import Any

import torch

from .leaves import tensors_in
from .lines import Lines
from .recorder import Recorder, is_fake, plain

LEAST = 1 << 20  # bytes: of smaller ones a step's memory has many
# A table that is looked up and a batch that is cut out of its data set are both read in part. With
# fewer batches than this the two cannot be told.
FEWEST_PARTS = 8


class Origins:
    """Lines that made large tensors on the device, of those that are there."""

    def __init__(self) -> None:
        self.lines, self.by_address = Lines(), dict[int, str]()

    def note(self, given: Any, made: Any) -> None:
        found = {storage.data_ptr(): storage for storage in large(made)}
        if not found:
            return
        before = {storage.data_ptr() for storage in large(given)}
        for address, storage in found.items():
            if address not in before:
                self.by_address[address] = self.lines.current()
                weakref.finalize(storage, self.by_address.pop, address, None)


def large(values: Any) -> list[torch.UntypedStorage]:
    tensors = (plain(x) for x in tensors_in((values,)) if not is_fake(x))
    storages = (x.untyped_storage() for x in tensors if x.device.type == "cuda" and x.layout == torch.strided)
    return [storage for storage in storages if storage.nbytes() >= LEAST]


def say(recorders: list[Recorder], recorder: Recorder, origins: Origins) -> None:
    """`recorder`: of the pass that is written, one of `recorders`, which are all."""
    taken: dict[int, int] = {}  # by address
    for each in recorders:
        for number, size in each.taken.items():
            address = each.storages[number].address
            taken[address] = max(taken.get(address, 0), size)
    found: dict[str, tuple[int, int]] = {}  # by line: bytes, and those that are read of them
    for storage in recorder.storages:
        line = origins.by_address.get(storage.address)
        read = taken.get(storage.address, 0)
        if line and storage.name and storage.category == "input" and not storage.is_gradient and \
                storage.bytes >= max(LEAST, FEWEST_PARTS * read):
            size, read_there = found.get(line, (0, 0))
            found[line] = size + storage.bytes, read_there + read
    for line, (size, read) in found.items():
        part = f"reads at most {mib(read)} of it at once" if read else "does not read it"
        print(f"tidemark capture: {line}: {mib(size)} made here lie on the device, and the step {part}: if they are the "
              "host's, as a data set, say device=\"cpu\"", file=sys.stderr)


def mib(size: int) -> str:
    return f"{size / (1 << 20):.3g} MiB"
