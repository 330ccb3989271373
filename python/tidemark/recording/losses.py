"""The loss of a step: of the model's output, by a function of the user's or as the output has it."""

from __future__ import annotations

import inspect
from typing import Any, Callable

import torch

from .errors import CaptureError


def takes_batch(loss: Callable[..., Any]) -> bool:
    """Beside the output: a second argument that nothing else is said for (`lambda y, labels=labels: …`
    has one that is)."""
    try:
        of = inspect.signature(loss.forward if isinstance(loss, torch.nn.Module) else loss)
    except (TypeError, ValueError):  # of what is written in C
        return False
    given = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(x.kind in given and x.default is x.empty for x in of.parameters.values()) >= 2


def loss_in(output: Any) -> Any:
    """The output itself, its member `loss`, or the one number of a tuple (nanoGPT: logits, loss)."""
    if isinstance(output, torch.Tensor):
        return output
    if isinstance(output, dict) and "loss" in output:
        return output["loss"]
    if getattr(output, "loss", None) is not None:
        return output.loss
    numbers = [x for x in output if isinstance(x, torch.Tensor) and x.dim() == 0 and
               x.requires_grad] if isinstance(output, (tuple, list)) else []
    return numbers[0] if len(numbers) == 1 else output


def loss_of(function: Callable[..., Any] | None, output: Any, batch: Any) -> torch.Tensor:
    if function is not None and not callable(function):
        raise CaptureError(f"the loss is a {type(function).__name__}; need a function of the model's output, "
                           "or of that and the batch")
    if function is not None:
        loss = function(output, batch) if takes_batch(function) else function(output)
    else:
        loss = loss_in(output)
    if not isinstance(loss, torch.Tensor) or loss.numel() != 1 or not loss.is_floating_point():
        found = tuple(loss.shape) if isinstance(loss, torch.Tensor) else type(loss).__name__
        whose = "the model's output, a " if function is None and loss is output and \
            not isinstance(loss, torch.Tensor) else ""
        raise CaptureError(f"the loss is {whose}{found}; need a tensor with one number: give a loss= "
                           "function of the model's output")
    if not loss.requires_grad:
        raise CaptureError("the loss does not depend on any parameter that requires a gradient")
    return loss.reshape(()) if loss.dim() else loss
