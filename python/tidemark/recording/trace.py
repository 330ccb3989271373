"""From a recording to a trace: operations with rows, views, results in place, blocks.

Views are not recorded as such. An operation that reads all of a storage, in whatever order of axes,
reads the tensor that owns it; one that reads a part gets a `select` before it. Only where a view's
gradient is memory of its own (a slice, a sum over what was expanded) does the view itself count.
"""

from __future__ import annotations

from typing import Any

import torch

from . import blocks as block_finder
from . import compiled_ops, sums
from .errors import CaptureError
from .graph import End
from .parts import Block, Op, Tensor, Trace
from .recorder import NO_NODE, Operation, Reference, Storage, physical_bytes
from .regions import DTYPES, PAIRS, Region, elements, physical_shape, region_of, written_shape
from .step import Recording

MOST_OPERANDS = 16


class Builder:
    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.recorder = recording.recorder
        self.storages = self.recorder.storages
        self.tensors: list[Tensor] = []
        self.ops: list[Op] = []
        self.taken: set[str] = set()
        self.names: dict[str, int] = {}  # how often a name was asked for again
        self.whole: dict[int, Tensor] = {}  # by storage: its latest version
        self.parts: dict[tuple[int, Region], Tensor] = {}
        self.by_source: dict[tuple[int, int], Tensor] = {}
        self.leaf_of = {number: key for key, number in recording.leaves.items()}
        self.module, self.at = "", 0
        self.unexplained: list[str] = []
        self.block_inputs: dict[int, Tensor] = {}
        self.passed: set[int] = set()  # nodes of views that hand gradients on

    # --- tensors --------------------------------------------------------------------------------

    def unique(self, name: str) -> str:
        """The name, or with the first number behind it that nobody has."""
        name = name or "tensor"
        found = name
        while found in self.taken:
            self.names[name] = self.names.get(name, 0) + 1
            found = f"{name}.{self.names[name]}"
        self.taken.add(found)
        return found

    def add(self, tensor: Tensor) -> Tensor:
        self.tensors.append(tensor)
        return tensor

    def is_whole(self, reference: Reference) -> bool:
        storage = self.storages[reference.storage]
        return physical_bytes(reference) == storage.bytes

    def whole_of(self, number: int, name: str = "") -> Tensor:
        """The storage's latest version; made here for what is there before the step."""
        if number in self.whole:
            return self.whole[number]
        storage = self.storages[number]
        shape, dtype = storage.shape, storage.dtype
        if elements(shape) * dtype.itemsize != storage.bytes:
            shape = (storage.bytes // dtype.itemsize,)
            if storage.bytes % dtype.itemsize:
                shape, dtype = (storage.bytes,), torch.uint8
        is_made = storage.made_by is not None
        category = "activation" if is_made else storage.category
        if not is_made and category == "activation":
            category = "input"
        label = name if is_made else storage.name or "constant"
        tensor = Tensor(self.unique(label), shape, dtype, category, number, storage.trainable)
        self.whole[number] = tensor
        return self.add(tensor)

    def version_over(self, number: int, name: str) -> Tensor:
        """A result in place: what is read of the storage from now on."""
        old = self.whole_of(number)
        tensor = Tensor(self.unique(name), old.shape, old.dtype, old.owner.category, number,
                        storage=old.owner)
        self.whole[number] = tensor
        self.parts = {key: part for key, part in self.parts.items() if key[0] != number}
        return self.add(tensor)

    def look_up(self, reference: Reference, may_cut: bool = True) -> Tensor:
        if reference.source in self.by_source:
            found = self.by_source[reference.source]  # type: ignore[index]
            if found.number == reference.storage:
                return found
        whole = self.whole_of(reference.storage)
        if self.is_whole(reference) or not may_cut:
            return whole
        key = reference.storage, region_of(reference)
        if key not in self.parts:
            self.cut(reference, whole, self.module)
        return self.parts[key]

    def cut(self, reference: Reference, whole: Tensor, module: str) -> Tensor:
        """A `select` op: some elements of a tensor, in the same memory."""
        part = self.add(self.part_of(reference, whole, f"{module}.select"))
        self.parts[reference.storage, region_of(reference)] = part
        self.ops.append(Op(part.name, "select", [whole], [part], self.at))
        return part

    def part_of(self, reference: Reference, whole: Tensor, name: str) -> Tensor:
        shape, dtype = physical_shape(reference), reference.dtype
        if dtype != whole.owner.dtype:
            dtype = whole.owner.dtype
            shape = (max(1, physical_bytes(reference) // dtype.itemsize),)
        if elements(shape) > elements(whole.shape):  # overlapping windows
            shape = whole.shape
        return Tensor(self.unique(name.lstrip(".")), shape, dtype, whole.owner.category,
                      reference.storage, storage=whole.owner)

    # --- views ----------------------------------------------------------------------------------

    def end_of(self, reference: Reference) -> End:
        if reference.source is not None:
            return "node", *reference.source
        return "leaf", self.leaf_of.get(reference.storage, 0), 0

    def add_view(self, operation: Operation) -> None:
        if not operation.reads or not operation.writes or operation.node == NO_NODE or \
                not any(operation.wants):
            return  # what reads it finds its part of the storage
        read = operation.reads[0]
        whole = self.look_up(read)
        if len(operation.writes) > 1:
            return self.add_split(operation, whole)
        written = operation.writes[0]
        is_same = physical_bytes(written) >= physical_bytes(read)
        if is_same and self.recording.graph.hands_on(operation.node, self.end_of(read)):
            self.by_source[operation.node, 0] = whole
            self.passed.add(operation.node)
            return
        part = self.add(self.part_of(written, whole, self.name_of(operation)))
        self.by_source[operation.node, 0] = part
        self.ops.append(Op(part.name, "select", [whole], [part], self.at))

    def add_split(self, operation: Operation, whole: Tensor) -> None:
        name = self.name_of(operation)
        pieces = [self.part_of(written, whole, f"{name}.{at}" if at else name)
                  for at, written in enumerate(operation.writes)]
        is_all = sum(elements(piece.shape) for piece in pieces) == elements(whole.shape)
        for at, piece in enumerate(pieces):
            self.by_source[operation.node, at] = self.add(piece)
        if is_all and len(pieces) <= MOST_OPERANDS:
            self.ops.append(Op(pieces[0].name, "split", [whole], pieces, self.at))
            return
        for piece in pieces:
            self.ops.append(Op(piece.name, "select", [whole], [piece], self.at))

    # --- operations -----------------------------------------------------------------------------

    def name_of(self, operation: Operation) -> str:
        short = operation.name.split("::")[-1].strip("_") or operation.name
        return f"{operation.module}.{short}" if operation.module else short

    def add_operation(self, operation: Operation) -> None:
        if not operation.allocates and not operation.mutates:
            return self.add_view(operation)
        inputs, wants, handed = self.operands(operation)
        self.add_kept(operation.kept_reads, inputs, wants)
        outputs = self.results(operation)
        if not outputs:
            return
        row = self.row_of(operation.name, inputs, outputs, wants, handed,
                          operation.kept_reads, operation.kept_writes)
        moved = sum(physical_bytes(x) for x in operation.reads + operation.writes)
        self.add_pass(row, "forward", 0, operation.peak - operation.after, operation.flops, moved,
                      operation.launches)
        self.add_backward(row, [operation.node], inputs, self.views_of_leaves(operation))
        self.append_split(Op(outputs[0].name, "opaque", inputs, outputs, self.at, row,
                             viewed=self.viewed(operation, inputs)))

    def viewed(self, operation: Operation, inputs: list[Tensor]) -> set[int]:
        """Inputs whose gradient is a view of what the node makes."""
        arrives = self.recording.graph.arrives_as_view
        found = {read.storage for read in operation.reads
                 if arrives(operation.node, self.end_of(read), self.passed)}
        return {at for at, tensor in enumerate(inputs) if tensor.number in found}

    def operands(self, operation: Operation) -> tuple[list[Tensor], list[bool], list[bool]]:
        inputs: list[Tensor] = []
        wants: list[bool] = []
        handed: list[bool] = []
        for read, wanted in zip(operation.reads, operation.wants):
            is_over = read.storage in operation.mutates  # a part of what is overwritten is all of it
            tensor = self.whole_of(read.storage) if is_over else self.look_up(read)
            hands_on = wanted and self.recording.graph.hands_on(operation.node, self.end_of(read))
            if tensor in inputs:
                at = inputs.index(tensor)
                wants[at] = wants[at] or wanted
                handed[at] = handed[at] and hands_on
                continue
            inputs.append(tensor)
            wants.append(wanted)
            handed.append(hands_on)
        return inputs, wants, handed

    def add_kept(self, kept: set[int], inputs: list[Tensor], wants: list[bool]) -> None:
        """What a node keeps that its operation does not read is read, too."""
        there = {tensor.number for tensor in inputs}
        for number in sorted(kept - there):
            if self.storages[number].made_by is not None and number in self.whole:
                inputs.append(self.whole[number])
                wants.append(False)

    def results(self, operation: Operation) -> list[Tensor]:
        name = self.name_of(operation)
        outputs: list[Tensor] = []
        for position, written in enumerate(operation.writes):
            storage = self.storages[written.storage]
            label = f"{name}.{len(outputs)}" if outputs else name
            if written.storage not in self.whole and storage.made_by is not None:
                outputs.append(self.whole_of(written.storage, label))
            elif written.storage in operation.mutates and \
                    all(x.number != written.storage for x in outputs):
                outputs.append(self.version_over(written.storage, label))
            if operation.node != NO_NODE:
                made = [x for x in outputs if x.number == written.storage]
                if made:
                    self.by_source[operation.node, position] = made[0]
        for number in sorted(operation.mutates - {x.number for x in outputs}):
            outputs.append(self.version_over(number, name))
        return outputs

    def row_of(self, name: str, inputs: list[Tensor], outputs: list[Tensor], wants: list[bool],
               handed: list[bool], kept_reads: set[int], kept_writes: set[int]) -> dict[str, Any]:
        def is_float(tensor: Tensor) -> bool:
            return tensor.dtype.is_floating_point and tensor.dtype in DTYPES or \
                tensor.dtype in PAIRS

        gradients = [at for at, wanted in enumerate(wants) if wanted and is_float(inputs[at])]
        kept = kept_reads | kept_writes
        saved = [f"in{at}" for at, x in enumerate(inputs) if x.number in kept_reads]
        saved += [f"out{at}" for at, x in enumerate(outputs)
                  if x.number in kept and f"in{at}" is not None and
                  (x.number in kept_writes or x.storage is None)]
        row: dict[str, Any] = {"operation": name}
        if gradients:
            row["gradients"] = [f"in{at}" for at in gradients]
            shared = [f"in{at}" for at in gradients if at < len(handed) and handed[at] and
                      is_float(outputs[0]) and inputs[at].dtype == outputs[0].dtype]
            if shared:
                row["handed_on"] = shared
            if saved:
                row["saved"] = saved
        return row

    @staticmethod
    def add_pass(row: dict[str, Any], key: str, live: int, requested: int, flops: int | None,
                 moved: int, launches: int) -> None:
        """`live` and `requested`: what there was at most beyond the op's own tensors."""
        figures: dict[str, int] = {}
        if live > 0:
            figures["workspace_bytes"] = live
        if requested > max(live, 0):
            figures["scratch_bytes"] = requested - max(live, 0)
        if launches and flops:
            figures["flops"] = flops
        if launches:
            figures["moved_bytes"] = moved
        if launches != 1:
            figures["kernels"] = launches
        row[key] = figures

    def views_of_leaves(self, operation: Operation) -> list[int]:
        """Nodes that hand a gradient on to a parameter; what its hooks make is theirs."""
        nodes = {read.source[0] for read in operation.reads if read.source is not None}
        ends = self.recording.graph.ends
        return [node for node in nodes & self.passed
                if any(end is not None and end[0] == "leaf" for end in ends.get(node, []))]

    def add_backward(self, row: dict[str, Any], nodes: list[int], inputs: list[Tensor],
                     after: list[int] | None = None) -> None:
        """`after`: nodes that run when all gradients are made."""
        runs = [self.recorder.nodes[node] for node in nodes if node in self.recorder.nodes]
        if "gradients" not in row:
            return
        if not runs:  # nothing ran: what came in was handed on
            row["backward"] = {"kernels": 0}
            return
        shared = row.get("handed_on", [])
        fresh = sum(inputs[int(label[2:])].bytes for label in row["gradients"]
                    if label not in shared)
        late = [self.recorder.nodes[node] for node in after or () if node in self.recorder.nodes]
        self.add_pass(row, "backward",
                      max([max(run.live_peak for run in runs) - runs[0].live_before - fresh,
                           *(run.live_peak - run.live_before for run in late)]),
                      max([max(run.peak for run in runs) - runs[0].before - fresh,
                           *(run.peak - run.before for run in late)]),
                      sum(run.flops for run in runs) if any(x.knows_flops for x in runs) else None,
                      sum(run.moved for run in runs), sum(run.launches for run in runs))

    def append_split(self, op: Op) -> None:
        """An op of more operands than the format has becomes several, of which each adds to one."""
        if len(op.outputs) > MOST_OPERANDS:
            raise CaptureError(f"{op.name}: {op.row and op.row['operation']} makes "
                               f"{len(op.outputs)} tensors; at most {MOST_OPERANDS} can be written")
        if len(op.inputs) <= MOST_OPERANDS:
            self.ops.append(op)
            return
        inputs, op.inputs = op.inputs[MOST_OPERANDS:], op.inputs[:MOST_OPERANDS]
        assert op.row is not None
        row = op.row
        rest = {key: value for key, value in row.items() if key not in ("forward", "backward")}
        labels = {key: row[key] for key in ("gradients", "handed_on", "saved") if key in row}
        for key, value in labels.items():
            row[key] = [x for x in value if x.startswith("out") or int(x[2:]) < MOST_OPERANDS]
        self.ops.append(op)
        made = op.outputs[0]
        for begin in range(0, len(inputs), MOST_OPERANDS - 1):
            piece = inputs[begin:begin + MOST_OPERANDS - 1]
            over = self.version_over(made.number, op.name)
            own = dict(rest, forward={"kernels": 0}, backward={"kernels": 0})
            for key, value in labels.items():
                first = MOST_OPERANDS + begin
                moved = [f"in{int(x[2:]) - first + 1}" for x in value if x.startswith("in") and
                         first <= int(x[2:]) < first + len(piece)]
                own[key] = (["in0"] if key != "saved" and "gradients" in labels else []) + moved
            own = {key: value for key, value in own.items() if value != []}
            self.ops.append(Op(over.name, "opaque", [made, *piece], [over], op.recorded, own))
            for source, tensor in list(self.by_source.items()):
                if tensor is made:
                    self.by_source[source] = over
            made = over

    # --- groups ---------------------------------------------------------------------------------

    def add_group(self, number: int, operations: list[Operation]) -> None:
        group = self.recorder.groups[number]
        end = group.first_operation + len(operations)
        made = {at for at, storage in enumerate(self.storages)
                if storage.made_by is not None and group.first_operation <= storage.made_by < end}
        inputs: list[Tensor] = []
        wants: list[bool] = []
        reads = [(read, wanted) for operation in operations
                 for read, wanted in zip(operation.reads, operation.wants)]
        reads += [(x, True) for x in group.arguments]
        last = group.last_node if group.is_checkpoint else group.first_node + 1
        ran = [node for node in self.recorder.nodes if group.first_node <= node < last]
        trained = {at for node in ran for at in self.recorder.nodes[node].trained}
        for read, wanted in reads:
            if read.storage in made:
                continue
            is_wanted = read.source is not None or self.storages[read.storage].trainable
            tensor = self.look_up(read, may_cut=False)
            if tensor not in inputs:
                inputs.append(tensor)
                wants.append(False)
            at = inputs.index(tensor)
            # A reentrant checkpoint's forward runs without gradients.
            wanted = wanted or (group.is_checkpoint and read.storage in trained)
            wants[at] = wants[at] or (wanted and is_wanted)
        outputs = []
        name = f"{group.module}.{group.name}" if group.module else group.name
        results = {result.storage for result in group.results}
        order = sorted(made, key=lambda at: (at not in results, at))
        for at in order:
            gone = self.storages[at].gone_before
            if gone is None or gone > end or at in results:
                outputs.append(self.whole_of(at, f"{name}.{len(outputs)}" if outputs else name))
        mutated = {at for operation in operations for at in operation.mutates} - made
        outputs += [self.version_over(at, name) for at in sorted(mutated)]
        for result in group.results:
            if result.source is not None and result.storage in self.whole:
                self.by_source[result.source] = self.whole[result.storage]
        if not outputs:
            return
        kept = {at for x in operations for at in x.kept_reads | x.kept_writes}
        if group.is_checkpoint:
            kept = {x.storage for x in group.arguments}
        read_later = {read.storage for x in self.recorder.operations[end:] for read in x.reads}
        kept |= {x.number for x in outputs
                 if self.storages[x.number].gone_before is None and x.number not in results and
                 x.number not in read_later}
        row = self.row_of(group.name, inputs, outputs, wants, [], kept, kept)
        fresh = sum(x.bytes for x in outputs if x.storage is None)
        flops = [x.flops for x in operations if x.flops is not None]
        moved = sum(physical_bytes(x) for o in operations if o.launches
                    for x in o.reads + o.writes)
        self.add_pass(row, "forward", max(x.live for x in operations) - group.live_before - fresh,
                      max(x.peak for x in operations) - group.before - fresh,
                      sum(flops) if flops else None, moved, sum(x.launches for x in operations))
        self.add_backward(row, ran, inputs)
        self.append_split(Op(outputs[0].name, "opaque", inputs, outputs, self.at, row))

    # --- the whole ------------------------------------------------------------------------------

    @staticmethod
    def goes(storage: Storage) -> bool:
        """Is it of before the step and held by a variable that the forward gives another value?"""
        return storage.gone_before is not None and storage.category == "input"

    def add_what_goes(self) -> None:
        going = [number for number, storage in enumerate(self.storages)
                 if storage.name and self.goes(storage)]
        for begin in range(0, len(going), MOST_OPERANDS):
            outputs = []
            for number in going[begin:begin + MOST_OPERANDS]:
                self.storages[number].made_by = 0
                outputs.append(self.whole_of(number, self.storages[number].name))
            row: dict[str, Any] = {"operation": "held", "forward": {"kernels": 0}}
            self.ops.append(Op(outputs[0].name, "opaque", [], outputs, 0, row))

    def leave_out_what_is_added_to(self) -> None:
        """A gradient that is there before is an input; what is added to it, a temporary of the
        backward that makes it."""
        left_out = set(self.recorder.added_to)
        for number in left_out:
            self.storages[number].trainable = False
        for operation in self.recorder.operations:
            wanted = any(operation.wants)
            operation.wants = [wants and read.storage not in left_out
                               for read, wants in zip(operation.reads, operation.wants)]
            if wanted and not any(operation.wants):
                left_out |= {written.storage for written in operation.writes}

    def build(self, classes: dict[str, str]) -> Trace:
        self.recording.graph.settle(self.recorder.operations, self.storages,
                                    self.recorder.groups)
        self.leave_out_what_is_added_to()
        for number, storage in enumerate(self.storages):
            if storage.name and not self.goes(storage):
                self.whole_of(number)
        self.add_what_goes()
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
                if operation.region is not None:
                    compiled_ops.add(self, operation)
                else:
                    self.add_operation(operation)
                self.called_at(operation.line)
                self.at += 1
                continue
            end = self.at
            while end < len(operations) and operations[end].group == operation.group:
                end += 1
            self.add_group(operation.group, operations[self.at:end])
            self.called_at(self.recorder.groups[operation.group].line)
            self.at = end
        loss = self.look_up(self.recording.loss)
        loss.shape = ()
        sums.show_views(self)
        self.hold()
        return Trace(self.tensors, self.ops, self.mark_blocks([call for _, call in chosen]), loss,
                     self.unexplained)

    def called_at(self, line: str) -> None:
        """The ops of the recorded operation at hand, which are the last ones."""
        for op in reversed(self.ops):
            if op.recorded != self.at:
                return
            op.line = line

    def hold(self) -> None:
        """Local variables of the model's code keep tensors beyond their last use."""
        last_use: dict[int, int] = {}
        saved: set[int] = set()
        for at, op in enumerate(self.ops):
            for tensor in op.inputs + op.outputs:
                last_use[tensor.number] = at
            for label in (op.row or {}).get("saved", []):
                operands = op.inputs if label.startswith("in") else op.outputs
                saved.add(operands[int(label[3:] if label.startswith("out") else label[2:])].number)
        ran = [op.recorded for op in self.ops]
        for tensor in self.tensors:
            storage = self.storages[tensor.number]
            if tensor.storage is not None or storage.made_by is None:
                continue
            gone = storage.gone_before
            until = len(ran) - 1 if gone is None else self.last_before(ran, gone)
            is_loss = tensor.number == self.recording.loss.storage
            if gone is None and tensor.number not in saved and not is_loss:
                self.keep_beyond(tensor)
            if until > last_use.get(tensor.number, 0) and \
                    not (gone is None and tensor.number in saved):
                tensor.held_until = self.ops[until].name

    def keep_beyond(self, tensor: Tensor) -> None:
        """A variable holds it in the backward, too; here it goes with the gradient of who made it."""
        maker = next((op for op in self.ops if tensor in op.outputs), None)
        if maker is not None and maker.row is not None and "gradients" in maker.row:
            maker.also_keeps.append(f"out{maker.outputs.index(tensor)}")
        else:
            self.unexplained.append(f"{tensor.name}: {tensor.bytes} B")

    @staticmethod
    def last_before(ran: list[int], recorded: int) -> int:
        import bisect

        return bisect.bisect_left(ran, recorded) - 1

    def mark_blocks(self, calls: list[tuple[str, int, int]]) -> list[Block]:
        found = []
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
