"""A function of the user's own, or a checkpointed segment, as one op."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .parts import Op, Tensor
from .recorder import Group, Operation, physical_bytes
from .rows import MOST_OPERANDS, add_pass, row_of

if TYPE_CHECKING:
    from .trace import Builder


def add_group(builder: Builder, number: int, operations: list[Operation]) -> None:
    group = builder.recorder.groups[number]
    end = group.first_operation + len(operations)
    made = {at for at, storage in enumerate(builder.storages)
            if storage.made_by is not None and group.first_operation <= storage.made_by < end}
    inputs: list[Tensor] = []
    wants: list[bool] = []
    reads = [(read, wanted) for operation in operations
             for read, wanted in zip(operation.reads, operation.wants)]
    reads += [(x, True) for x in group.arguments]
    last = group.first_node + 1 if group.kind == "function" else group.last_node
    ran = [node for node in builder.recorder.nodes if group.first_node <= node < last]
    trained = {at for node in ran for at in builder.recorder.nodes[node].trained}
    for read, wanted in reads:
        if read.storage in made:
            continue
        is_wanted = read.source is not None or builder.storages[read.storage].trainable
        tensor = builder.look_up(read, may_cut=False)
        if tensor not in inputs:
            inputs.append(tensor)
            wants.append(False)
        at = inputs.index(tensor)
        # A reentrant checkpoint's forward runs without gradients, and a script's on tensors without.
        wanted = wanted or group.kind == "script" or (group.kind == "checkpoint" and read.storage in trained)
        wants[at] = wants[at] or (wanted and is_wanted)
    if any(x.adds_only for x in operations) and not any(wants):
        inputs.append(builder.left_out())
        wants.append(True)
    outputs: list[Tensor] = []
    name = f"{group.module}.{group.name}" if group.module else group.name
    results = {result.storage for result in group.results}
    order = sorted(made, key=lambda at: (at not in results, at))
    for at in order:
        gone = builder.storages[at].gone_before
        if gone is None or gone > end or at in results:
            outputs.append(builder.whole_of(at, f"{name}.{len(outputs)}" if outputs else name))
    mutated = {at for operation in operations for at in operation.mutates} - made
    outputs += [builder.version_over(at, name) for at in sorted(mutated)]
    for result in group.results:
        if result.source is not None and result.storage in builder.whole:
            builder.by_source[result.source] = builder.whole[result.storage]
    kept = {at for x in operations for at in x.kept_reads | x.kept_writes}
    views = views_given(builder, name, group, {x.number for x in outputs})
    if views and not outputs and not kept and hands_on(builder, group):
        builder.ops += [Op(x.name, "view", [builder.whole[x.number]], [x], builder.at) for x in views]
        return
    outputs = views + outputs
    if not outputs:
        return
    if group.kind == "checkpoint":
        kept = {x.storage for x in group.arguments}
    read_later = {read.storage for x in builder.recorder.operations[end:] for read in x.reads}
    kept |= {x.number for x in outputs
             if builder.storages[x.number].gone_before is None and x.number not in results and
             x.number not in read_later}
    fresh = sum(x.bytes for x in outputs if x.storage is None)
    inner = made_before(builder, name, outputs, results)
    inputs += inner
    wants += [False] * len(inner)
    row = row_of(group.name, inputs, outputs, wants, [], kept, kept)
    flops = [x.flops for x in operations if x.flops is not None]
    moved = sum(physical_bytes(x) for o in operations if o.launches
                for x in o.reads + o.writes)
    add_pass(row, "forward", max(x.live for x in operations) - group.live_before - fresh,
             max(x.peak for x in operations) - group.before - fresh,
             sum(flops) if flops else None, moved + group.moved,
             sum(x.launches for x in operations) + group.launches)
    builder.add_backward(row, ran, inputs)
    builder.append_split(Op(outputs[0].name, "opaque", inputs, outputs, builder.at, row))


def views_given(builder: Builder, name: str, group: Group, made: set[int]) -> list[Tensor]:
    """A function that gives what it is given, as PyTorch's own around a module with full backward hooks, has
    gradients of its own: they add up before it, and not with those of what it is given. The loss has no others."""
    views: list[Tensor] = []
    for result in group.results if group.kind == "function" else ():
        if result.source is not None and result.source[0] in builder.recording.graph.ends and \
                result.storage not in made | {builder.recording.loss.storage}:
            view = builder.add(builder.part_of(result, builder.by_source[result.source], name))
            builder.by_source[result.source] = view
            views.append(view)
    return views


def hands_on(builder: Builder, group: Group) -> bool:
    node = next(x.source[0] for x in group.results if x.source is not None)
    return bool(builder.recording.graph.handed_on.get(node))


def made_before(builder: Builder, name: str, outputs: list[Tensor],
                results: set[int]) -> list[Tensor]:
    """Of more outputs than the format has, those that are no results: ops before make them, and the
    group reads them."""
    spare = [x for x in outputs if x.storage is None and x.number not in results]
    inner = spare[max(0, len(spare) - max(0, len(outputs) - MOST_OPERANDS)):]
    outputs[:] = [x for x in outputs if x not in inner]
    for begin in range(0, len(inner), MOST_OPERANDS):
        row: dict[str, Any] = {"operation": f"within {name}", "forward": {"kernels": 0}}
        made = inner[begin:begin + MOST_OPERANDS]
        builder.ops.append(Op(made[0].name, "opaque", [], made, builder.at, row))
    return inner
