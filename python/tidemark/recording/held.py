"""What variables of the user's code hold: beyond the last use of it, or from step to step."""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING, Any

from .parts import Op, Tensor
from .recorder import Storage
from .regions import elements
from .rows import MOST_OPERANDS

if TYPE_CHECKING:
    from .trace import Builder


def goes(storage: Storage) -> bool:
    """Is it of before the step and held by a variable that the forward gives another value?"""
    return storage.gone_before is not None and storage.category == "input"


def add_what_goes(builder: Builder) -> None:
    going = [number for number, storage in enumerate(builder.storages)
             if storage.name and goes(storage)]
    for begin in range(0, len(going), MOST_OPERANDS):
        outputs = []
        for number in going[begin:begin + MOST_OPERANDS]:
            builder.storages[number].made_by = 0
            outputs.append(builder.whole_of(number, builder.storages[number].name))
        row: dict[str, Any] = {"operation": "held", "forward": {"kernels": 0}}
        builder.ops.append(Op(outputs[0].name, "opaque", [], outputs, 0, row))


def hold(builder: Builder) -> None:
    """Variables of the user's code keep tensors beyond their last use."""
    outlive = builder.recorder.outlive
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
                (tensor.number not in saved or tensor.number in outlive):
            beyond.append(tensor)
        if until > last_use.get(tensor.number, 0) and \
                not (gone is None and tensor.number in saved):
            tensor.held_until = builder.ops[until].name
    for tensor in beyond:
        keep_beyond(builder, tensor, tensor.number in outlive, tensor.number in saved)
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


def keep_beyond(builder: Builder, tensor: Tensor, outlives: bool, is_saved: bool) -> None:
    """A variable holds it in the backward, too. Where it does so beyond the update, the one of the step
    before may be there until this one takes its place. Where it is not, a trace can say one of two
    things, and says what holds when most is there: it is there before already, or it goes with the
    gradient of who made it."""
    maker = next((op for op in builder.ops if tensor in op.outputs), None)
    if maker is None or maker.row is None:
        if not is_saved:
            builder.unexplained.append(f"{tensor.name}: {tensor.bytes} B")
    elif outlives and len(maker.inputs) < MOST_OPERANDS and may_be_there_before(builder, tensor, maker):
        keep_always(builder, tensor, maker)
    elif is_saved:
        pass  # it goes with its node
    elif "gradients" in maker.row:
        maker.also_keeps.append(f"out{maker.outputs.index(tensor)}")
    elif "runs_once" in maker.row or not keep_with_next(builder, tensor, maker):  # gradients: no variables
        keep_always(builder, tensor, maker)


def may_be_there_before(builder: Builder, tensor: Tensor, maker: Op) -> bool:
    """It takes the place of one that is until then, or most is there behind the forward."""
    peaks = builder.recorder.live_peaks
    going = what_may_go_for(builder, tensor)
    return max(peaks.values()) > peaks["forward"] or \
        (going is not None and builder.storages[going.number].gone_before >= maker.recorded)


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


def keep_always(builder: Builder, tensor: Tensor, maker: Op) -> None:
    """It is there from step to step, or takes the place of what was: written over that."""
    if len(maker.inputs) == MOST_OPERANDS:
        builder.unexplained.append(f"{tensor.name}: {tensor.bytes} B")
        return
    before = what_goes_for(builder, tensor, maker)
    if before is None:
        before = builder.add(Tensor(builder.unique(f"{tensor.name}.before"), tensor.shape,
                                    tensor.dtype, "input", tensor.number))
    write_over(builder, before, tensor, maker)


def write_over(builder: Builder, before: Tensor, tensor: Tensor, maker: Op) -> None:
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
        if what_may_go_for(builder, rest) is None:
            rest.shape = (elements(shape) - 1,)
        if rest.number in builder.recorder.outlive and may_be_there_before(builder, rest, maker):
            keep_always(builder, rest, maker)
        else:
            maker.also_keeps.append(f"out{maker.outputs.index(rest)}")


def what_may_go_for(builder: Builder, tensor: Tensor) -> Tensor | None:
    """Of before the step, as large, and not there any more when the forward is over."""
    return next((found for number, found in builder.whole.items()
                 if builder.storages[number].name and found.storage is None and
                 builder.storages[number].gone_before is not None and
                 found.dtype == tensor.dtype and found.bytes == tensor.bytes), None)


def what_goes_for(builder: Builder, tensor: Tensor, maker: Op) -> Tensor | None:
    """Where it is there when the new one is made, both are for a while: until a variable gets the new
    one, or what needs the old one goes."""
    found = what_may_go_for(builder, tensor)
    if found is None:
        return None
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
