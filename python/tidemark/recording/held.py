"""What variables of the user's code hold: beyond the last use of it, or from step to step."""

from __future__ import annotations

import bisect
import collections
from typing import TYPE_CHECKING, Any

from .parts import Op, Tensor
from .recorder import Recorder, Storage
from .regions import elements
from .rows import MOST_OPERANDS

if TYPE_CHECKING:
    from .trace import Builder


HELD = "held"


def goes(storage: Storage) -> bool:
    """Is it of before the step, and there until the forward gives a variable another value, or the
    backward is done with it?"""
    return storage.category == "input" and (storage.gone_before is not None or storage.goes_in_backward)


def add_what_goes_between(first: Recorder, second: Recorder) -> None:
    """Of micro-batches the first is written, and variables have what the one before made until the next
    ones give them another value. A loss stays anyhow."""
    def key(storage: Storage) -> tuple[Any, ...]:
        return storage.bytes, storage.dtype, storage.gone_before, storage.goes_in_backward

    known = collections.Counter(key(storage) for storage in first.storages if goes(storage))
    for number, storage in enumerate(second.storages):
        if not goes(storage) or number == second.loss_before:
            continue
        if known[key(storage)] == 0:
            first.storages.append(storage)
        else:
            known[key(storage)] -= 1


def add_what_goes(builder: Builder) -> None:
    going = [number for number, storage in enumerate(builder.storages)
             if storage.name and goes(storage)]
    for begin in range(0, len(going), MOST_OPERANDS):
        outputs = []
        for number in going[begin:begin + MOST_OPERANDS]:
            builder.storages[number].made_by = 0
            outputs.append(builder.whole_of(number, builder.storages[number].name))
        row: dict[str, Any] = {"operation": HELD, "forward": {"kernels": 0}}
        builder.ops.append(Op(outputs[0].name, "opaque", [], outputs, 0, row))


def hold(builder: Builder) -> None:
    """Variables of the user's code keep tensors beyond their last use, and so does a graph that is retained."""
    outlive, left = builder.recorder.outlive, set(builder.recorder.left)
    last_use: dict[int, int] = {}
    saved: set[int] = set()
    for at, op in enumerate(builder.ops):
        for tensor in op.inputs + op.outputs:
            last_use[tensor.number] = at
        for label in (op.row or {}).get("saved", []):
            saved.add(operand(op, label).number)
    ran = [op.recorded for op in builder.ops]
    beyond: list[Tensor] = []
    for tensor in builder.tensors:
        storage = builder.storages[tensor.number]
        if tensor.storage is not None or storage.made_by is None:
            continue
        gone = storage.gone_before
        until = len(ran) - 1 if gone is None else last_before(ran, gone)
        is_loss = tensor.number == builder.recording.loss.storage
        if gone is None and not is_loss and \
                (tensor.number not in saved or tensor.number in outlive | left):
            beyond.append(tensor)
        if until > last_use.get(tensor.number, 0) and \
                not (gone is None and tensor.number in saved):
            tensor.held_until = builder.ops[until].name
    for tensor in beyond:
        keep_beyond(builder, tensor, tensor.number in outlive, tensor.number in left, tensor.number in saved)
    for op in builder.ops:
        for label in op.also_keeps:
            leave_to_variable(builder, operand(op, label))


def operand(op: Op, label: str) -> Tensor:
    return op.inputs[int(label[2:])] if label.startswith("in") else op.outputs[int(label[3:])]


def leave_to_variable(builder: Builder, tensor: Tensor) -> None:
    """It is there in the backward, which does not read it: no saved activation."""
    if tensor.number in builder.recording.saved or tensor.owner.category != "activation":
        return
    for each in builder.tensors:
        if each.owner is tensor.owner:
            each.category = "temporary"


def keep_beyond(builder: Builder, tensor: Tensor, outlives: bool, is_left: bool, is_saved: bool) -> None:
    """A variable holds it in the backward, too, to the end of that, or beyond the update, where the one of the step before may
    be there until this one takes its place."""
    maker = next((op for op in builder.ops if tensor in op.outputs), None)
    if maker is None or maker.row is None:
        if not is_saved:
            builder.unexplained.append(f"{tensor.name}: {tensor.bytes} B")
    elif outlives and takes_a_place(builder, tensor, maker):
        write_over(builder, what_goes_for(builder, tensor, maker), tensor, maker)
    elif outlives or is_left:
        keep_to_the_end(builder, tensor, maker, is_saved)
    elif is_saved:
        pass  # it goes with its node
    elif "gradients" in maker.row:
        maker.also_keeps.append(f"out{maker.outputs.index(tensor)}")
    elif not keep_with_next(builder, tensor, maker):
        keep_with_loss(builder, tensor)


def takes_a_place(builder: Builder, tensor: Tensor, maker: Op) -> bool:
    """Of one that is there until then, or of a weight."""
    going = what_may_go_for(builder, tensor, maker)
    if going is None or len(maker.inputs) == MOST_OPERANDS:
        return False
    before = builder.storages[going.number]
    return before.gone_before >= maker.recorded or before.category != "input"


def keep_to_the_end(builder: Builder, tensor: Tensor, maker: Op, is_saved: bool) -> None:
    """Until the backward is over, or the update. In a trace it goes with its node, with a gradient of who made
    it or of who comes after that, or right when the backward begins; what runs then counts it as taken."""
    builder.to_the_end.append(tensor)
    if is_saved:
        return
    if "gradients" in maker.described:
        maker.also_keeps.append(f"out{maker.outputs.index(tensor)}")
    elif not keep_with_next(builder, tensor, maker):
        keep_with_loss(builder, tensor)


def keep_with_loss(builder: Builder, tensor: Tensor) -> None:
    last = builder.ops[-1]
    if (last.row or {}).get("operation") != HELD or builder.loss not in last.outputs or \
            len(last.inputs) == MOST_OPERANDS:
        loss = builder.loss
        builder.loss = builder.add(Tensor(builder.unique(loss.name), loss.shape, loss.dtype,
                                          loss.owner.category, loss.number, storage=loss.owner))
        nothing = {"kernels": 0}
        row = {"operation": HELD, "gradients": ["in0"], "forward": nothing, "backward": nothing}
        last = Op(builder.loss.name, "opaque", [loss], [builder.loss], last.recorded, row)
        builder.ops.append(last)
    last.also_keeps.append(f"in{len(last.inputs)}")
    last.inputs.append(tensor)


def count_to_the_end(builder: Builder) -> int:
    """Bytes that the update has besides, which are counted here where the backward does."""
    ends: dict[int, int] = {}  # by storage: the last of the backward that keeps it
    for at, op in enumerate(builder.ops):
        for label in (op.row or {}).get("saved", []) + op.also_keeps:
            ends.setdefault(operand(op, label).number, at)
    for at, op in enumerate(builder.ops):
        there = sum(tensor.bytes for tensor in builder.to_the_end if ends[tensor.number] > at)
        if there and op.row is not None and "gradients" in op.row:
            taken = dict(op.row.get("backward", {}))
            taken["workspace_bytes"] = taken.get("workspace_bytes", 0) + there
            op.row = dict(op.row, backward=taken)
    return sum(tensor.bytes for tensor in builder.to_the_end if tensor.number in builder.recorder.outlive)


def keep_with_next(builder: Builder, tensor: Tensor, maker: Op) -> bool:
    """Of what has no gradient: it goes with the gradient of the first to be made after it, which is
    among the last of the backward."""
    following = builder.ops[builder.ops.index(maker) + 1:]
    keeper = next((op for op in following if op.row is not None and "gradients" in op.row and
                   (tensor in op.inputs or len(op.inputs) < MOST_OPERANDS)), None)
    if keeper is None:
        return False
    if tensor not in keeper.inputs:
        keeper.inputs.append(tensor)
    keeper.also_keeps.append(f"in{keeper.inputs.index(tensor)}")
    return True


def write_over(builder: Builder, before: Tensor, tensor: Tensor, maker: Op) -> None:
    """It takes the place of what was."""
    maker.inputs.append(before)
    tensor.held_until = None
    for each in builder.tensors:
        if each.owner is tensor:
            each.storage, each.category = before, before.category


def hold_rest_of_loss(builder: Builder, loss: Tensor) -> None:
    """Some losses are as large as what they are of, and only called a number (mse_loss)."""
    shape, loss.shape = loss.shape, ()
    maker = next((op for op in builder.ops if loss in op.outputs), None)
    if elements(shape) > 1 and loss.storage is None and maker is not None and \
            len(maker.outputs) < MOST_OPERANDS:
        rest = builder.add(Tensor(builder.unique(f"{loss.name}.whole"), shape, loss.dtype,
                                  loss.category, loss.number))
        maker.outputs.append(rest)
        outlives = rest.number in builder.recorder.outlive
        if outlives and takes_a_place(builder, rest, maker):
            return write_over(builder, what_goes_for(builder, rest, maker), rest, maker)
        rest.shape = (elements(shape) - 1,)
        if outlives or rest.number in builder.recorder.left:
            keep_to_the_end(builder, rest, maker, is_saved=False)
        else:
            maker.also_keeps.append(f"out{maker.outputs.index(rest)}")


def what_may_go_for(builder: Builder, tensor: Tensor, maker: Op) -> Tensor | None:
    """Of before the step, as large, and not there any more when the forward is over: the first to go once
    the new one is made. Gradients are no variables."""
    going = [(storage.gone_before < maker.recorded, storage.gone_before, at)
             for at, (number, found) in enumerate(builder.whole.items())
             for storage in [builder.storages[number]]
             if storage.name and found.storage is None and not storage.is_gradient and
             storage.gone_before is not None and found.dtype == tensor.dtype and
             found.bytes == tensor.bytes]
    return list(builder.whole.values())[min(going)[2]] if going else None


def what_goes_for(builder: Builder, tensor: Tensor, maker: Op) -> Tensor:
    """Where it is there when the new one is made, both are for a while: until a variable gets the new
    one, or what needs the old one goes."""
    found = what_may_go_for(builder, tensor, maker)
    assert found is not None
    storage = builder.storages[found.number]
    if storage.gone_before > maker.recorded and len(maker.outputs) < MOST_OPERANDS:
        until = last_before([op.recorded for op in builder.ops], storage.gone_before)
        maker.outputs.append(builder.add(Tensor(
            builder.unique(f"{found.name}.before"), found.shape, found.dtype, "activation",
            found.number, held_until=builder.ops[until].name)))
    storage.gone_before = None
    if storage.category == "input":
        stay(builder, found)
    return found


def stay(builder: Builder, tensor: Tensor) -> None:
    """Not made by the op that has what goes."""
    maker = next(op for op in builder.ops if tensor in op.outputs)
    maker.outputs.remove(tensor)
    if not maker.outputs:
        builder.ops.remove(maker)
    tensor.category, tensor.held_until = "input", None
    builder.storages[tensor.number].made_by = None


def last_before(ran: list[int], recorded: int) -> int:
    return bisect.bisect_left(ran, recorded) - 1
