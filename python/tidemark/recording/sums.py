"""Gradients that come together, where the first to come is a view.

Autograd adds a gradient into one that is there already, but never into a view: then the sum and both
its parts are there at once (can_accumulate_inplace() of torch/csrc/autograd/input_buffer.cpp). A
weight that linear layers use again and again is the usual case: what a product's backward makes is
transposed on its way. So an operation whose gradient is the first of several reads a `view`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .parts import Op, Tensor

if TYPE_CHECKING:
    from .trace import Builder


def gradients_of(op: Op) -> list[int]:
    """Inputs that the op's backward has a gradient for."""
    if op.row is None:
        return list(range(len(op.inputs)))
    return [int(label[2:]) for label in op.row.get("gradients", [])]


def last_uses(ops: list[Op]) -> dict[int, int]:
    """Of tensors with several gradients: the op whose backward makes the first of them."""
    last: dict[int, int] = {}
    count: dict[int, int] = {}
    for at, op in enumerate(ops):
        for position in gradients_of(op):
            tensor = id(op.inputs[position])
            last[tensor] = at
            count[tensor] = count.get(tensor, 0) + 1
    return {tensor: at for tensor, at in last.items() if count[tensor] > 1}


def show_views(builder: Builder) -> None:
    last = last_uses(builder.ops)
    ops: list[Op] = []
    for at, op in enumerate(builder.ops):
        for position in sorted(op.viewed.intersection(gradients_of(op))):
            read = op.inputs[position]
            if last.get(id(read)) == at and not is_handed_on(op, position):
                ops.append(read_through_view(builder, op, position))
        ops.append(op)
    builder.ops = ops


def is_handed_on(op: Op, position: int) -> bool:
    return op.row is not None and f"in{position}" in op.row.get("handed_on", [])


def read_through_view(builder: Builder, op: Op, position: int) -> Op:
    read = op.inputs[position]
    view = builder.add(Tensor(builder.unique(f"{op.name}.view"), read.shape, read.dtype,
                              read.owner.category, read.number, storage=read.owner))
    op.inputs[position] = view
    return Op(view.name, "view", [read], [view], op.recorded, line=op.line)
