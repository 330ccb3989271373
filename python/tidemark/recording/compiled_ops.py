"""From a compiled region to ops of a trace, none with more operands than the format has.

    makers:   hidden state, 16 tensors each; the first has what the forward takes
    results:  what the region returns; with the inputs that get gradients
    keepers:  results again, in place; with what only the backward reads

A backward goes through them from the last one up. That one makes the smallest gradient and has what
the backward takes, while all is still there that it reads. Then what it read goes, and the other
gradients come.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from .compiled import OPERATION, Region
from .errors import CaptureError
from .parts import Op, Tensor
from .recorder import NO_NODE, Operation
from .regions import DTYPES
from .rows import MOST_OPERANDS, add_pass

if TYPE_CHECKING:
    from .trace import Builder


def pieces(items: Sequence[Any], size: int) -> list[Any]:
    return [items[at:at + size] for at in range(0, len(items), size)]


class Writer:
    def __init__(self, builder: Builder, operation: Operation) -> None:
        self.builder, self.operation = builder, operation
        self.region: Region = operation.region
        self.recorder = builder.recorder
        self.name = f"{operation.module}.compiled".lstrip(".")
        self.inputs: list[Tensor] = []
        self.wants: list[bool] = []
        self.carries: dict[int, bool] = {}  # by storage of a result: a gradient comes back
        self.written: list[Op] = []

    def write(self) -> None:
        self.find_inputs()
        results = self.find_results()
        hidden = [self.labelled(at) for at in self.region.made if self.is_hidden(at)]
        with_gradient = [x for x, wants in zip(self.inputs, self.wants) if wants and
                         x.dtype in DTYPES and x.dtype.is_floating_point]
        if self.operation.node == NO_NODE or not with_gradient or not results or \
                not self.carries[results[0].number]:
            self.add_makers(hidden + results)
        else:
            more = results[MOST_OPERANDS:]
            if any(self.carries[x.number] for x in more):
                raise CaptureError(f"a compiled graph in {self.operation.module or 'the model'} "
                                   f"returns {len(results)} tensors; gradients may come from at "
                                   f"most {MOST_OPERANDS}")
            self.add_makers(hidden + more)
            self.add_results(results[:MOST_OPERANDS], hidden, with_gradient)
        self.add_figures()

    # --- operands -------------------------------------------------------------------------------

    def find_inputs(self) -> None:
        """Activations first, then what is kept from before, then parameters."""
        builder, storages = self.builder, self.builder.storages
        wanted: dict[int, bool] = {}
        found: dict[int, Tensor] = {}
        for read, wants in zip(self.operation.reads, self.operation.wants):
            tensor = builder.look_up(read, may_cut=False)
            is_wanted = wants and (read.source is not None or storages[read.storage].trainable)
            found[id(tensor)] = tensor
            wanted[id(tensor)] = wanted.get(id(tensor), False) or is_wanted
        inputs = sorted(found.values(), key=lambda x: x.owner.category == "parameter")
        self.inputs, self.wants = inputs, [wanted[id(x)] for x in inputs]
        builder.add_kept(self.operation.kept_reads - set(self.region.made), self.inputs, self.wants)

    def find_results(self) -> list[Tensor]:
        """Those in memory of their own; the one that carries a gradient back comes first."""
        builder, loss = self.builder, self.builder.recording.loss
        asked = {end[1:] for ends in builder.recording.graph.ends.values() for end in ends
                 if end is not None and end[0] == "node"} | {loss.source}
        made: dict[int, Tensor] = {}
        carries = self.carries
        for written in self.operation.writes:
            number = written.storage
            if number in self.region.made and number not in made:
                made[number] = self.labelled(number)
            carries[number] = carries.get(number, False) or \
                written.source is not None and written.source in asked
            if written.source is not None:
                builder.by_source[written.source] = builder.whole_of(number)
        return sorted(made.values(), key=lambda x: not carries[x.number])

    def is_hidden(self, number: int) -> bool:
        """There when the region is over, and none of its results."""
        gone = self.builder.storages[number].gone_before
        return number not in self.builder.whole and (gone is None or gone > self.builder.at)

    def labelled(self, number: int) -> Tensor:
        label = self.region.labels.get(number)
        if label is None:
            return self.builder.whole_of(number, self.name)
        inside = label.module
        outside = self.operation.module
        if outside and inside != outside and not inside.startswith(outside + "."):
            inside = f"{outside}.{inside}".rstrip(".")
        return self.builder.whole_of(number, f"{inside}.{label.name}".lstrip("."))

    # --- ops ------------------------------------------------------------------------------------

    def add(self, inputs: list[Tensor], outputs: list[Tensor], **labels: list[str]) -> Op:
        row: dict[str, Any] = {"operation": OPERATION}
        row.update((key, value) for key, value in labels.items() if value)
        row["forward"] = {"kernels": 0}
        if "gradients" in row:
            row["backward"] = {"kernels": 0}
        op = Op(outputs[0].name, "opaque", inputs, outputs, self.builder.at, row)
        self.builder.ops.append(op)
        self.written.append(op)
        return op

    def add_makers(self, made: list[Tensor]) -> None:
        """Each reads what the one before made, so that none is run again without it."""
        values = [x for x in self.inputs if x.owner.category != "parameter"] or self.inputs
        before: list[Tensor] = []
        groups = pieces(values, MOST_OPERANDS - 1)
        for at, piece in enumerate(pieces(made, MOST_OPERANDS)):
            self.add(before + (groups[at] if at < len(groups) else []), piece)
            before = piece[:1]

    def add_results(self, results: list[Tensor], hidden: list[Tensor],
                    with_gradient: list[Tensor]) -> None:
        builder = self.builder
        kept = self.operation.kept_reads | {
            x.number for x in hidden if builder.storages[x.number].gone_before is None}
        others = [x for x in self.inputs if not any(x is y for y in with_gradient) and
                  x.number in kept]
        by_size = sorted(with_gradient, key=lambda x: x.bytes)
        early = by_size[:1] if len(by_size) > 1 else []
        late = [x for x in with_gradient if not any(x is y for y in early)]
        heads, keepers = pieces(late, MOST_OPERANDS - 1), self.keepers(early, others + hidden)
        latest = results[0]
        for at, piece in enumerate(heads + keepers):
            inputs = (hidden[-1:] if at == 0 else [latest]) + piece
            outputs = results if at == 0 else [builder.version_over(latest.number, self.name)]
            marked = [f"in{n}" for n, x in enumerate(inputs) if any(x is y for y in with_gradient)]
            saved = [f"in{n}" for n, x in enumerate(inputs)
                     if x.number in kept and any(x is y for y in piece)]
            if at == 0:
                saved += [f"out{n}" for n, x in enumerate(results) if x.number in kept]
                self.add(inputs, outputs, gradients=marked, saved=saved)
                continue
            self.add(inputs, outputs, gradients=["in0", *marked], handed_on=["in0"], saved=saved)
            for source, tensor in list(builder.by_source.items()):
                if tensor is latest:
                    builder.by_source[source] = outputs[0]
            latest = outputs[0]

    @staticmethod
    def keepers(early: list[Tensor], kept: list[Tensor]) -> list[list[Tensor]]:
        """The last one, the first of the backward, has a gradient: what has none runs nothing."""
        if not kept:
            return [early] if early else []
        found = pieces(kept, MOST_OPERANDS - 2)
        found[-1] = early + found[-1]
        return found

    # --- figures --------------------------------------------------------------------------------

    def add_figures(self) -> None:
        region, operation = self.region, self.operation
        if not self.written:
            return
        first = self.written[0]
        fresh = sum(x.bytes for x in first.outputs if x.storage is None)
        add_pass(first.described, "forward", region.live_peak - region.live_before - fresh,
                 operation.peak - region.before - fresh, operation.flops, region.moved,
                 operation.launches)
        runs = [x for x in self.written if set(x.described.get("gradients", [])) -
                set(x.described.get("handed_on", []))]
        if runs:
            self.add_backward(runs[-1])

    def add_backward(self, op: Op) -> None:
        """What the ops after this one hold is gone when its backward begins: made up for."""
        row = op.described
        run = self.recorder.nodes.get(self.operation.node)
        if run is None:
            return
        kept = {x.number: x for x in self.kept_by(op)}
        gone = {x.number: x.owner.bytes for later in self.written[self.written.index(op) + 1:]
                for x in self.kept_by(later) if x.number not in kept}
        fresh = sum(op.inputs[int(label[2:])].bytes for label in row["gradients"]
                    if label not in row.get("handed_on", []))
        less = fresh - sum(gone.values())
        row.pop("backward")
        add_pass(row, "backward", run.live_peak - run.live_before - less,
                 run.peak - run.before - less, run.flops if run.knows_flops else None,
                 run.moved, run.launches)

    @staticmethod
    def kept_by(op: Op) -> list[Tensor]:
        saved = set(op.described.get("saved", []))
        return [x for at, x in enumerate(op.inputs) if f"in{at}" in saved and
                x.owner.category != "parameter"]


def add(builder: Builder, operation: Operation) -> None:
    Writer(builder, operation).write()
