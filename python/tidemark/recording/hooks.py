"""Hooks on saved tensors, with which a capture sees what nodes keep.

torch.func.grad and its like refuse to run under any, so they run without. What is kept by nodes made
meanwhile is then known by what is there when the forward is over.
"""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator

import torch

Hook = Callable[[torch.Tensor], torch.Tensor]
_active: list[Hook] = []


def as_it_is(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


@contextlib.contextmanager
def on_saved_tensors(pack: Hook) -> Iterator[None]:
    _active.append(pack)
    try:
        with torch.autograd.graph.saved_tensors_hooks(pack, as_it_is):
            yield
    finally:
        _active.pop()


@contextlib.contextmanager
def without_ours() -> Iterator[None]:
    autograd: Any = torch._C._autograd
    if not _active:
        yield
        return
    autograd._pop_saved_tensors_default_hooks()
    try:
        yield
    finally:
        autograd._push_saved_tensors_default_hooks(_active[-1], as_it_is)


def install() -> None:
    plain = torch.autograd.graph.disable_saved_tensors_hooks

    @contextlib.contextmanager
    def disable_saved_tensors_hooks(*given: Any, **options: Any) -> Iterator[None]:
        is_nested = torch._C._autograd._saved_tensors_hooks_get_disabled_error_message() is not None
        with contextlib.nullcontext() if is_nested else without_ours(), plain(*given, **options):
            yield

    torch.autograd.graph.disable_saved_tensors_hooks = disable_saved_tensors_hooks
