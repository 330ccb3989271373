"""Tells what a step of the user's own does, while it runs: modules, backwards, updates."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any, Callable, Iterator, Sequence

import torch

from .errors import CaptureError
from .leaves import tensors_in
from .lines import Lines


@dataclasses.dataclass
class End:
    """Of a forward."""

    loss: torch.Tensor
    of: Sequence[torch.Tensor] | None = None  # what gradients are asked of; None: all
    adds: bool = True  # to .grad


class Watcher:
    """Is told what the step does."""

    def module_called(self, module: Any, inputs: Any) -> None: ...
    def module_left(self, module: Any) -> None: ...
    def optimizer_begins(self) -> None: ...
    def optimizer_stepped(self, optimizer: Any) -> None: ...
    def forward_ended(self, end: End) -> None: ...
    def backward_ended(self, made: Sequence[torch.Tensor] = ()) -> None: ...  # gradients, where not in .grad
    def gradients_taken(self, call: int, inputs: list[torch.Tensor]) -> None: ...
    def ended(self) -> None: ...


def refuse(what: str) -> None:
    place = Lines().current()
    raise CaptureError(f"{place}: {what}" if place else what)


def at_hand(tensors: Any) -> Any:
    """An iterator's, which are there once."""
    return tensors if isinstance(tensors, (torch.Tensor, tuple, list, dict)) else tuple(tensors)


def loss_among(tensors: Any) -> torch.Tensor:
    losses = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
    if len(losses) != 1 or losses[0].numel() != 1:
        refuse(f"backward() of {len(losses)} tensors, the first {tuple(losses[0].shape)}: a capture "
               "takes backward passes that begin with one number each; add them up")
    return losses[0]


_taken: Callable[..., Any] | None = None  # torch.autograd.grad(), while a step is watched


def install() -> None:
    """Before a user's modules import what is replaced here."""
    plain = torch.autograd.grad

    def grad(*given: Any, **options: Any) -> Any:
        return _taken(plain, *given, **options) if _taken is not None else plain(*given, **options)

    torch.autograd.grad = grad


@contextlib.contextmanager
def watched(watcher: Watcher, by_hand: frozenset[int] = frozenset()) -> Iterator[None]:
    """`by_hand`: of calls of torch.autograd.grad() those that end passes."""
    from torch.optim.optimizer import (register_optimizer_step_post_hook,
                                       register_optimizer_step_pre_hook)

    global _taken
    plain = torch.autograd.backward
    is_running, calls = False, 0

    def backward(tensors: Any, grad_tensors: Any = None, retain_graph: bool | None = None,
                 create_graph: bool = False, grad_variables: Any = None, inputs: Any = None) -> None:
        nonlocal is_running
        inputs = None if inputs is None else at_hand(inputs)
        given = (tensors, grad_tensors, retain_graph, create_graph, grad_variables, inputs)
        if is_running:  # a reentrant checkpoint's
            return plain(*given)
        watcher.forward_ended(End(loss_among(tensors), None if inputs is None else tensors_in((inputs,))))
        is_running = True
        try:
            plain(*given)
        finally:
            is_running = False
        watcher.backward_ended()

    def taken(plain: Any, outputs: Any, inputs: Any, *given: Any, **options: Any) -> Any:
        nonlocal is_running, calls
        if is_running:
            return plain(outputs, inputs, *given, **options)
        call, calls = calls, calls + 1
        inputs = at_hand(inputs)
        weights = tensors_in((inputs,))
        watcher.gradients_taken(call, weights)
        if call not in by_hand:
            return plain(outputs, inputs, *given, **options)
        watcher.forward_ended(End(loss_among(outputs), weights, adds=False))
        is_running = True
        try:
            made = plain(outputs, inputs, *given, **options)
        finally:
            is_running = False
        watcher.backward_ended(tensors_in((made,)))
        return made

    register = torch.nn.modules.module
    hooks = [register.register_module_forward_pre_hook(watcher.module_called),
             register.register_module_forward_hook(
                 lambda module, inputs, output: watcher.module_left(module), always_call=True),
             register_optimizer_step_pre_hook(
                 lambda optimizer, args, kwargs: watcher.optimizer_begins()),
             register_optimizer_step_post_hook(
                 lambda optimizer, args, kwargs: watcher.optimizer_stepped(optimizer))]
    torch.autograd.backward, _taken = backward, taken
    try:
        yield
    finally:
        torch.autograd.backward, _taken = plain, None
        for hook in hooks:
            hook.remove()
