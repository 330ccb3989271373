"""The graph of a forward pass: who gets a gradient from whom, and which gradients are no new memory.

A gradient that a node hands on is a view of the one that came in, or that one itself. Only a run
with a hook on each node can tell; the hooks hold gradients a little longer than usual, so this run
is not the one whose memory counts.
"""

from __future__ import annotations

import collections
import functools
from typing import Any, Callable

import torch

from .errors import CaptureError
from .recorder import NO_NODE, Group, Operation, Storage

# An edge's other end: a node and its output, or the storage of a leaf.
End = tuple[str, int, int]


def require_dense(name: str, gradients: Any, place: Callable[[], str]) -> None:
    if any(isinstance(x, torch.Tensor) and x.layout != torch.strided for x in gradients):
        raise CaptureError(f"{place()}{name} makes a sparse gradient, as large as the ids say, which is "
                           "not captured: capture with sparse=False")


class Graph:
    def __init__(self, first_node: int, recorded: list[Operation]) -> None:
        self.first_node, self.recorded = first_node, recorded
        self.ends: dict[int, list[End | None]] = {}  # by node, per input that may get a gradient
        self.handed_on: dict[int, set[int]] = {}  # by node: positions in `ends`
        self.views: dict[int, set[int]] = {}  # by node: of these gradients, the ones that are views

    def number(self, node: Any) -> int:
        return node._sequence_nr() - self.first_node

    def end_of(self, function: Any, output: int) -> End | None:
        if function is None:
            return None
        if function.name().endswith("AccumulateGrad"):
            return "leaf", function.variable.untyped_storage()._cdata, 0
        return "node", self.number(function), output

    def watch(self, loss: torch.Tensor) -> None:
        """Notes every node that the loss depends on, and hangs a hook on it."""
        seen: set[Any] = set()
        stack = [loss.grad_fn]
        while stack:
            node = stack.pop()
            if node is None or node in seen or node.name().endswith("AccumulateGrad"):
                continue
            seen.add(node)
            self.ends[self.number(node)] = [self.end_of(*edge) for edge in node.next_functions]
            node.register_hook(self.hook(self.number(node), node.name()))
            stack += [following for following, _ in node.next_functions]

    @property
    def leaves(self) -> set[int]:
        """Storages that gradients come to."""
        return {end[1] for ends in self.ends.values() for end in ends
                if end is not None and end[0] == "leaf"}

    @property
    def oldest(self) -> int:
        """Of the nodes watched, the number that was given first."""
        return min(self.ends, default=0)

    def hook(self, number: int, name: str) -> Any:
        def note(made: Any, came: Any) -> None:
            require_dense(name, made, lambda: self.place(number))
            incoming = {x.untyped_storage()._cdata for x in came if isinstance(x, torch.Tensor)}
            self.handed_on[number] = {
                at for at, x in enumerate(made)
                if isinstance(x, torch.Tensor) and x.untyped_storage()._cdata in incoming}
            self.views[number] = {at for at, x in enumerate(made)
                                  if isinstance(x, torch.Tensor) and x._is_view()}
        return note

    def place(self, number: int) -> str:
        line = next((x.line for x in self.recorded if x.node == number), "")
        return f"{line}: " if line else ""

    def settle(self, operations: list[Operation], storages: list[Storage],
               groups: list[Group]) -> None:
        """Gives each node the operation that belongs to it.

        Mostly that is the next one. But `silu_` clones what it overwrites first: two nodes are
        made, then the clone runs, then it. And what is done in place on a view becomes part of a
        node that is made when it is done, and of one behind that, of the view as it is from now on.
        What no gradient flows through has no node.
        """
        self.settle_by_results(operations, storages)
        claimed = {x.node for x in operations}
        for group in groups:
            claimed |= set(range(group.first_node, group.last_node))
        unclaimed = sorted(node for node in self.ends if node not in claimed)
        kept: set[int] = set()
        for operation in operations:
            if operation.group is not None:
                continue
            if operation.node not in self.ends:
                kept |= {x for x in operation.kept_reads | operation.kept_writes
                         if storages[x].gone_before is None}
                operation.kept_reads, operation.kept_writes = set(), set()
                may_claim = operation.node == NO_NODE or bool(operation.mutates)
                limit = operation.number + bool(operation.mutates)
                operation.node = NO_NODE
                if operation.mutates and operation.number in unclaimed:
                    operation.node = operation.number
                    unclaimed.remove(operation.node)
                    operation.view_behind = self.view_behind(operation.node, unclaimed)
                elif may_claim and any(operation.wants) and unclaimed and unclaimed[0] < limit:
                    operation.node = unclaimed.pop(0)
            if operation.node == NO_NODE:
                operation.wants = [False] * len(operation.wants)
            else:
                operation.kept_reads |= kept
                kept = set()

    def settle_by_results(self, operations: list[Operation], storages: list[Storage]) -> None:
        """Of forward-mode differentiation a node is made before zeros are that its operation needs, and
        copies see tensors without a node: who made what is read as the node's, is the node's."""
        results: dict[tuple[int, int], int] = {}
        written_over: set[int] = set()  # nodes of what is read then are of who did
        for each in operations:
            results.update((read.source, read.storage) for read in each.reads
                           if read.source and read.storage not in written_over)
            written_over |= each.mutates
        owners = {x.node: x for x in operations if x.node in self.ends}
        for (node, _), number in results.items():
            made_by, owner = storages[number].made_by, owners.get(node)
            if node not in self.ends or made_by is None or (owner is not None and any(owner.wants)):
                continue
            maker = operations[made_by]
            if maker is owner or maker.node in self.ends or maker.group is not None or maker.inside:
                continue
            if owner is not None:
                maker.kept_reads |= owner.kept_reads
                owner.node, owner.kept_reads = NO_NODE, set()
            maker.node = node
            wanted = {results.get((end[1], end[2])) for end in self.ends[node]
                      if end is not None and end[0] == "node"}
            maker.wants = [wants or read.storage in wanted
                           for read, wants in zip(maker.reads, maker.wants)]

    def view_behind(self, node: int, unclaimed: list[int]) -> int:
        """The node that hands a gradient to what was done in place on a view, and to nobody else."""
        following = node + 1
        if following not in unclaimed or self.ends[following] != [("node", node, 0)]:
            return NO_NODE
        unclaimed.remove(following)
        return following

    def hands_on(self, node: int, end: End) -> bool:
        """Is the gradient for this end the memory of the one that the node got?"""
        ends = self.ends.get(node, [])
        return any(ends[at] == end for at in self.handed_on.get(node, ()) if at < len(ends))

    @functools.cached_property
    def edges_to(self) -> collections.Counter[int]:
        """How many gradients come to a node."""
        return collections.Counter(end[1] for ends in self.ends.values() for end in ends
                                   if end is not None and end[0] == "node")

    def arrives_as_view(self, node: int, end: End, passed: set[int]) -> bool:
        """Is what the node makes for this end a view when it comes to the tensor that owns the
        memory? `passed`: nodes of views, which hand gradients on."""
        ends = self.ends.get(node, [])
        if not any(ends[at] == end for at in range(len(ends))):
            return False
        if end[0] == "node" and end[1] in passed:
            following = self.ends.get(end[1], [])
            return bool(following) and following[0] is not None and \
                self.arrives_as_view(end[1], following[0], passed)
        return any(ends[at] == end for at in self.views.get(node, ()) if at < len(ends))
