"""Tensors among an operator's arguments and results.

Those are tuples, lists and dicts of plain values. PyTorch's tree_leaves() knows types of users, too,
and takes several times as long; some ten thousand calls of it are a third of a capture's time.
"""

from __future__ import annotations

from typing import Any

import torch


def tensors_in(values: Any) -> list[torch.Tensor]:
    """In the order of tree_leaves()."""
    found: list[torch.Tensor] = []
    add_tensors((values,), found)
    return found


def add_tensors(values: Any, found: list[torch.Tensor]) -> None:
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, (tuple, list)):
            add_tensors(value, found)
        elif isinstance(value, dict):
            add_tensors(value.values(), found)
