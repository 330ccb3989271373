"""From recorded operations to ops of a trace: what each reads, makes and keeps, in rows."""

from __future__ import annotations

from typing import Any

from .errors import CaptureError
from .parts import Op, Tensor
from .recorder import NO_NODE, Operation, physical_bytes
from .rows import MOST_OPERANDS, add_pass, row_of
from .tensors import Tensors


class Operations(Tensors):
    def add_operation(self, operation: Operation) -> None:
        if not operation.allocates and not operation.mutates:
            return self.add_view(operation)
        inputs, wants, handed = self.operands(operation)
        if operation.adds_only and len(inputs) < MOST_OPERANDS:
            inputs.append(self.left_out())
            wants.append(True)
            handed.append(False)
        self.add_kept(operation.kept_reads, inputs, wants)
        outputs = self.results(operation)
        if not outputs:
            return
        row = row_of(operation.name, inputs, outputs, wants, handed,
                     operation.kept_reads, operation.kept_writes)
        moved = sum(physical_bytes(x) for x in operation.reads + operation.writes)
        add_pass(row, "forward", 0, operation.peak - operation.after, operation.flops, moved,
                 operation.launches)
        self.add_backward(row, [operation.view_behind, operation.node], inputs,
                          self.views_of_leaves(operation))
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
        for position, written in zip(operation.positions, operation.writes):
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

    def views_of_leaves(self, operation: Operation) -> list[int]:
        """Nodes that hand a gradient on to a parameter; what its hooks make is theirs."""
        nodes = {read.source[0] for read in operation.reads if read.source is not None}
        ends = self.recording.graph.ends
        return [node for node in nodes & self.passed
                if any(end is not None and end[0] == "leaf" for end in ends.get(node, []))]

    def add_backward(self, row: dict[str, Any], nodes: list[int], inputs: list[Tensor],
                     after: list[int] | None = None) -> None:
        """`after`: nodes that run next, of views; what hooks of weights take is theirs."""
        runs = [self.recorder.nodes[node] for node in nodes if node in self.recorder.nodes]
        if "gradients" not in row:
            return
        if not runs:  # nothing ran: what came in was handed on
            row["backward"] = {"kernels": 0}
            return
        shared = row.get("handed_on", [])
        fresh = sum(inputs[int(label[2:])].bytes for label in row["gradients"]
                    if label not in shared and self.is_trained_through(inputs[int(label[2:])]))
        there = runs[0].live_before - runs[0].outstayed
        requested = runs[0].before - runs[0].outstayed
        late = [run for run in (self.recorder.nodes.get(node) for node in after or ())
                if run is not None and (run.live_peak > run.live_before or run.peak > run.before)]
        add_pass(row, "backward",
                 max(run.live_peak for run in runs + late) - there - fresh,
                 max(run.peak for run in runs + late) - requested - fresh,
                 sum(run.flops for run in runs) if any(x.knows_flops for x in runs) else None,
                 sum(run.moved for run in runs), sum(run.launches for run in runs))

    def is_trained_through(self, tensor: Tensor) -> bool:
        """Not a batch that is told to require a gradient: nothing follows from that one, which counts as
        what the backward takes."""
        storage = self.storages[tensor.number]
        return storage.made_by is not None or storage.trainable

    def append_split(self, op: Op) -> None:
        """An op of more operands than the format has becomes several, of which each adds to one. The
        first has room for what its result is written over."""
        if len(op.outputs) > MOST_OPERANDS:
            raise CaptureError(f"{op.name}: {op.row and op.row['operation']} makes "
                               f"{len(op.outputs)} tensors; at most {MOST_OPERANDS} can be written")
        if len(op.inputs) <= MOST_OPERANDS:
            self.ops.append(op)
            return
        most = MOST_OPERANDS - 1
        inputs, op.inputs = op.inputs[most:], op.inputs[:most]
        row = op.described
        rest = {key: value for key, value in row.items() if key not in ("forward", "backward")}
        labels = {key: row[key] for key in ("gradients", "handed_on", "saved") if key in row}
        for key, value in labels.items():
            row[key] = [x for x in value if x.startswith("out") or int(x[2:]) < most]
        self.ops.append(op)
        made = op.outputs[0]
        for begin in range(0, len(inputs), most):
            piece = inputs[begin:begin + most]
            over = self.version_over(made.number, op.name)
            own = dict(rest, forward={"kernels": 0}, backward={"kernels": 0})
            for key, value in labels.items():
                first = most + begin
                moved = [f"in{int(x[2:]) - first + 1}" for x in value if x.startswith("in") and
                         first <= int(x[2:]) < first + len(piece)]
                own[key] = (["in0"] if key != "saved" and "gradients" in labels else []) + moved
            own = {key: value for key, value in own.items() if value != []}
            self.ops.append(Op(over.name, "opaque", [made, *piece], [over], op.recorded, own))
            for source, tensor in list(self.by_source.items()):
                if tensor is made:
                    self.by_source[source] = over
            made = over
