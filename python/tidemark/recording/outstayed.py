"""Gradients that somebody has beyond their last use.

    block.register_full_backward_hook(hook)      holds the gradient of the block's output until that of its input is there

A node's gradients go when it is done, so what a node takes is told from what is there when it begins. What is
there for no node any more counts as taken by each node that begins meanwhile. What no node is seen to read, beside making views
of it, waits for one whose kernels no mode sees.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .recorder import NodeRun


class Outstayed:
    def __init__(self, nodes: dict[int, NodeRun], known: int) -> None:
        """`nodes`: in the order in which they begin. `known`: storages that the backward does not make."""
        self.nodes, self.known = nodes, known
        self.made: dict[int, int] = {}  # by storage that is there: nodes begun by then
        self.read: dict[int, int] = {}  # by nodes behind the one that made it, at last

    def note_used(self, number: int) -> None:
        if not self.nodes:
            self.known = number + 1  # what backward() begins with, which it has until it is over
        elif number >= self.known and len(self.nodes) > self.made.setdefault(number, len(self.nodes)):
            self.read[number] = len(self.nodes)

    def note_gone(self, number: int, size: int) -> None:
        self.made.pop(number, None)
        self.count(self.read.pop(number, len(self.nodes)), size)

    def note_left(self, number: int, size: int) -> None:
        """The backward is over."""
        made = self.made.pop(number)
        self.count(self.read.pop(number, made), size)

    def count(self, used: int, size: int) -> None:
        if used < len(self.nodes):
            for run in itertools.islice(self.nodes.values(), used, None):
                run.outstayed += size
