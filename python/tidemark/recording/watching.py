"""Tells what a step of the user's own does, while it runs: modules, backwards, updates."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator

import torch

from .errors import CaptureError
from .lines import Lines


class Watcher:
    """Is told what the step does."""

    def module_called(self, module: Any, inputs: Any) -> None: ...
    def module_left(self, module: Any) -> None: ...
    def optimizer_begins(self) -> None: ...
    def optimizer_stepped(self, optimizer: Any) -> None: ...
    def forward_ended(self, loss: torch.Tensor) -> None: ...
    def backward_ended(self) -> None: ...
    def ended(self) -> None: ...


def refuse(what: str) -> None:
    place = Lines().current()
    raise CaptureError(f"{place}: {what}" if place else what)


def loss_among(tensors: Any) -> torch.Tensor:
    losses = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
    if len(losses) != 1 or losses[0].numel() != 1:
        refuse(f"backward() of {len(losses)} tensors, the first {tuple(losses[0].shape)}: a capture "
               "takes backward passes that begin with one number each; add them up")
    return losses[0]


@contextlib.contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    from torch.optim.optimizer import (register_optimizer_step_post_hook,
                                       register_optimizer_step_pre_hook)

    plain = torch.autograd.backward
    is_running = False

    def backward(tensors: Any, grad_tensors: Any = None, retain_graph: bool | None = None,
                 create_graph: bool = False, *more: Any, **options: Any) -> None:
        nonlocal is_running
        given = (tensors, grad_tensors, retain_graph, create_graph, *more)
        if is_running:  # a reentrant checkpoint's
            return plain(*given, **options)
        watcher.forward_ended(loss_among(tensors))
        is_running = True
        try:
            plain(*given, **options)
        finally:
            is_running = False
        watcher.backward_ended()

    register = torch.nn.modules.module
    hooks = [register.register_module_forward_pre_hook(watcher.module_called),
             register.register_module_forward_hook(
                 lambda module, inputs, output: watcher.module_left(module), always_call=True),
             register_optimizer_step_pre_hook(
                 lambda optimizer, args, kwargs: watcher.optimizer_begins()),
             register_optimizer_step_post_hook(
                 lambda optimizer, args, kwargs: watcher.optimizer_stepped(optimizer))]
    torch.autograd.backward = backward
    try:
        yield
    finally:
        torch.autograd.backward = plain
        for hook in hooks:
            hook.remove()
