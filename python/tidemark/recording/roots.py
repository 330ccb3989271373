"""Leaves of the graph that are no weights: what a step itself tells to require a gradient.

    x = batch.clone().requires_grad_()      an adversarial example, positions that forces follow from
    slope, = torch.autograd.grad(model(x).sum(), x, create_graph=True)

In a trace gradients flow to weights. Where operations whose gradients go to such leaves alone keep
something, one number stands for the leaves, and for its sake they have a backward.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .parts import Op
from .rows import MOST_OPERANDS
from .sums import gradients_of

if TYPE_CHECKING:
    from .trace import Builder


def wanted_of(op: Op) -> set[int]:
    return {id(op.inputs[at]) for at in gradients_of(op)}


def without_weights(builder: Builder) -> list[Op]:
    """Operations with gradients of which none goes to a weight."""
    learned = {id(tensor) for tensor in builder.tensors if tensor.trainable}
    found: list[Op] = []
    for op in builder.ops:
        wanted = wanted_of(op)
        if not learned.isdisjoint(wanted):
            learned |= set(map(id, op.outputs))
        elif wanted:
            found.append(op)
    return found


def that_keep(ops: list[Op]) -> list[Op]:
    """And those before them that hand on what they are of."""
    found: list[Op] = []
    of: set[int] = set()
    for op in reversed(ops):
        if (op.row or {}).get("saved") or not of.isdisjoint(map(id, op.outputs)):
            found.insert(0, op)
            of |= wanted_of(op)
    return found


def add_roots(builder: Builder) -> None:
    learned: set[int] = set()
    for op in that_keep(without_weights(builder)):
        if learned.isdisjoint(wanted_of(op)):
            if op.row is None or len(op.inputs) == MOST_OPERANDS:
                continue  # the next one
            op.row["gradients"].append(f"in{len(op.inputs)}")
            op.inputs.append(builder.left_out())
        learned |= set(map(id, op.outputs))
