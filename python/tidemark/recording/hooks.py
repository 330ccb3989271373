"""Hooks on saved tensors, with which a capture sees what nodes keep.

torch.func.grad and its like refuse to run under any, so they run without. What is kept by nodes made
meanwhile is then known by what is there when the forward is over.
"""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator

import torch

from .leaves import tensors_in

Hook = Callable[[torch.Tensor], torch.Tensor]
_active: list[Hook] = []
_are_ours = False
_packing = 0  # hooks of the user's that run


def is_packing() -> bool:
    """Operations that run now are a hook's, and not those of the node that is about to be."""
    return _packing > 0


def as_it_is(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


@contextlib.contextmanager
def on_saved_tensors(pack: Hook) -> Iterator[None]:
    global _are_ours
    _are_ours = True
    hooks = torch.autograd.graph.saved_tensors_hooks(pack, as_it_is)
    _are_ours = False
    _active.append(pack)
    try:
        with hooks:
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


def seen(pack: Callable[[torch.Tensor], Any]) -> Callable[[torch.Tensor], Any]:
    """The user's own hook, which is asked in place of ours: what it gives is kept."""
    def packed(tensor: torch.Tensor) -> Any:
        global _packing
        _packing += 1
        try:
            given = pack(tensor)
        finally:
            _packing -= 1
        for each in tensors_in((given,)) if _active else ():
            _active[-1](each)
        return given

    return packed


def install() -> None:
    hooks: Any = torch.autograd.graph.saved_tensors_hooks
    plain_init = hooks.__init__

    def init(self: Any, pack: Any, unpack: Any) -> None:
        plain_init(self, pack if _are_ours else seen(pack), unpack)

    hooks.__init__ = init
    plain = torch.autograd.graph.disable_saved_tensors_hooks

    @contextlib.contextmanager
    def disable_saved_tensors_hooks(*given: Any, **options: Any) -> Iterator[None]:
        is_nested = torch._C._autograd._saved_tensors_hooks_get_disabled_error_message() is not None
        with contextlib.nullcontext() if is_nested else without_ours(), plain(*given, **options):
            yield

    torch.autograd.graph.disable_saved_tensors_hooks = disable_saved_tensors_hooks
