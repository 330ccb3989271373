"""From a recording to a trace: all of its operations in order, and the blocks that they make."""

from __future__ import annotations

from . import blocks as block_finder
from . import compiled_ops, held, inside, roots, sums, unseen
from .groups import add_group
from .operations import Operations
from .parts import Block, Tensor, Trace
from .step import Recording


class Builder(Operations):
    def __init__(self, recording: Recording) -> None:
        super().__init__(recording)
        self.unexplained: list[str] = []
        self.block_inputs: dict[int, Tensor] = {}
        self.to_the_end: list[Tensor] = []  # variables have them until the update is over

    def leave_out_what_is_added_to(self) -> None:
        """A gradient that is there before is an input; what is added to it, a temporary of the
        backward that makes it. So is what a hook frees at once.
        What no gradient is asked of has none."""
        left_out, not_asked = set(self.recorder.added_to), self.recorder.not_asked
        for number in left_out | not_asked:
            self.storages[number].trainable = False
        for operation in self.recorder.operations:
            operation.wants = [wants and read.storage not in not_asked
                               for read, wants in zip(operation.reads, operation.wants)]
            wanted = any(operation.wants)
            operation.wants = [wants and read.storage not in left_out
                               for read, wants in zip(operation.reads, operation.wants)]
            operation.adds_only = wanted and not any(operation.wants)

    def take_states_that_are_read(self) -> None:
        """By the forward (curvature that is averaged there, say): an optimizer's alone no operation reads."""
        reads = [read for each in self.recorder.operations for read in each.reads]
        reads += [read for each in self.recorder.groups for read in each.arguments]
        for read in reads:
            if self.storages[read.storage].category == "optimizer_state":
                self.storages[read.storage].category = "input"

    def there_before(self) -> list[int]:
        """In the order in which the allocator was asked for them, where that is known."""
        order, unknown = self.recording.order, 1 << 62
        numbers = [number for number, storage in enumerate(self.storages)
                   if storage.name and not held.goes(storage)]
        return sorted(numbers, key=lambda number: order.get(self.storages[number].address, unknown))

    def build(self, classes: dict[str, str]) -> Trace:
        self.recording.graph.settle(self.recorder.operations, self.storages,
                                    self.recorder.groups)
        self.leave_out_what_is_added_to()
        self.take_states_that_are_read()
        unseen.settle(self.recorder)
        for number in self.there_before():
            self.whole_of(number)
        held.add_what_goes(self)
        calls = [call[:3] for call in self.recorder.calls]
        replicas = self.recording.replicas
        chosen = block_finder.blocks_of(classes, calls, replicas.groups if replicas else None)
        begins = {call[1]: self.recorder.calls[at][3] for at, call in chosen}
        operations = self.recorder.operations
        self.at = 0
        while self.at < len(operations):
            begin = begins.get(self.at)
            if begin is not None:
                self.block_inputs[self.at] = self.look_up(begin, may_cut=False)
            operation = operations[self.at]
            self.module = operation.module
            if operation.group is None or operation.group >= len(self.recorder.groups):
                unseen.add_what_it_finds(self, operation)
                if operation.region is not None:
                    compiled_ops.add(self, operation)
                elif operation.inside is not None:
                    inside.add(self, operation)
                else:
                    self.add_operation(operation)
                self.called_at(operation.line)
                self.at += 1
                continue
            end = self.at
            while end < len(operations) and operations[end].group == operation.group:
                end += 1
            add_group(self, operation.group, operations[self.at:end])
            self.called_at(self.recorder.groups[operation.group].line)
            self.at = end
        self.loss = self.look_up(self.recording.loss)
        held.hold_rest_of_loss(self, self.loss)
        roots.add_roots(self)
        sums.show_views(self)
        held.hold(self)
        beside_update = held.count_to_the_end(self)
        return Trace(self.tensors, self.ops, self.mark_blocks([call for _, call in chosen]), self.loss,
                     self.unexplained, beside_update)

    def called_at(self, line: str) -> None:
        """The ops of the recorded operation at hand, which are the last ones."""
        for op in reversed(self.ops):
            if op.recorded != self.at:
                return
            op.line = line

    def mark_blocks(self, calls: list[tuple[str, int, int]]) -> list[Block]:
        found: list[Block] = []
        for name, begin, end in calls:
            mine = [op for op in self.ops if begin <= op.recorded < end]
            if not mine or begin not in self.block_inputs:
                continue
            block = Block(self.unique_block(name, found), self.block_inputs[begin])
            for op in mine:
                op.block = block.name
            found.append(block)
        return found

    @staticmethod
    def unique_block(name: str, found: list[Block]) -> str:
        names = {block.name for block in found}
        count, unique = 1, name
        while unique in names:
            unique, count = f"{name}.{count}", count + 1
        return unique


def trace_of(recording: Recording, classes: dict[str, str]) -> Trace:
    return Builder(recording).build(classes)
