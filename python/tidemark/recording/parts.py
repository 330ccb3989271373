"""What a trace is made of, as it is written: tensors, operations, blocks."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch

from .regions import elements


@dataclasses.dataclass
class Tensor:
    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    category: str
    number: int  # of its storage
    trainable: bool = False
    storage: Tensor | None = None  # who owns the bytes, if not itself
    held_until: str | None = None
    line: str = ""

    @property
    def bytes(self) -> int:
        return elements(self.shape) * self.dtype.itemsize

    @property
    def owner(self) -> Tensor:
        return self.storage or self


@dataclasses.dataclass
class Op:
    name: str
    kind: str
    inputs: list[Tensor]
    outputs: list[Tensor]
    recorded: int  # number of the first recorded operation
    row: dict[str, Any] | None = None
    block: str | None = None
    line: str = ""  # of the model's code
    also_keeps: list[str] = dataclasses.field(default_factory=list)  # operands
    viewed: set[int] = dataclasses.field(default_factory=set)  # inputs whose gradient is a view

    @property
    def described(self) -> dict[str, Any]:
        """The row of an op that has one."""
        assert self.row is not None
        return self.row


@dataclasses.dataclass
class Block:
    name: str
    input: Tensor


@dataclasses.dataclass
class Trace:
    tensors: list[Tensor]
    ops: list[Op]
    blocks: list[Block]
    loss: Tensor
    unexplained: list[str]
    beside_update: int = 0  # bytes that variables have until it is over
