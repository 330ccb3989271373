"""What updates the parameters: an optimizer of PyTorch, one with a step() of its own, or several."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Iterator

import torch
from torch.utils._pytree import tree_leaves

from .compiled import plain_name
from .errors import CaptureError
from .watching import refuse

BY_NAME: dict[str, Callable[[Any], Any]] = {  # those of options.OPTIMIZERS
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=1e-4),
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=1e-4),
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=1e-4),
}


@dataclasses.dataclass
class Optimizers:
    parts: list[Any]
    trained: list[Any]  # parameters

    @property
    def name(self) -> str:
        return "+".join(dict.fromkeys(type(part).__name__ for part in self.parts))

    def step(self) -> None:
        for part in self.parts:
            part.step()

    def clear(self) -> None:
        """Gradients end with the step, as zero_grad() has it."""
        for part in self.parts:
            if isinstance(part, torch.optim.Optimizer):
                part.zero_grad(set_to_none=True)
        if not all(isinstance(part, torch.optim.Optimizer) for part in self.parts):
            for parameter in self.trained:
                parameter.grad = None

    def states(self, model: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
        names = {id(p): plain_name(name) for name, p in model.named_parameters()}
        for part in self.parts:
            if isinstance(part, torch.optim.Optimizer):
                yield from states_of(part, names)
                continue
            for key, value in vars(part).items():
                for tensor in tensors_of_state(value):
                    if id(tensor) not in names:
                        yield f"{type(part).__name__}.{key}", tensor


def tensors_of_state(value: Any) -> list[torch.Tensor]:
    return [x for x in tree_leaves(value) if isinstance(x, torch.Tensor)]


def states_of(optimizer: Any, names: dict[int, str]) -> Iterator[tuple[str, torch.Tensor]]:
    for parameter, state in optimizer.state.items():
        for key, value in state.items():
            if isinstance(value, torch.Tensor):
                yield f"{names.get(id(parameter), 'parameter')}.{key}", value


def checked(optimizer: Any) -> Any:
    if isinstance(optimizer, torch.optim.LBFGS):
        refuse("LBFGS runs the model again and again within one step, which is not captured: give "
               "another optimizer")
    if isinstance(optimizer, type) or not callable(getattr(optimizer, "step", None)):
        raise CaptureError(f"the optimizer is {type(optimizer).__name__}; need a "
                           "torch.optim.Optimizer, or what has a step()")
    return optimizer


def make_optimizers(model: torch.nn.Module, wanted: Any) -> Optimizers:
    trained = [p for p in model.parameters() if p.requires_grad]
    if not trained:
        raise CaptureError("no parameter of the model requires a gradient: nothing is trained")
    if isinstance(wanted, str):
        wanted = BY_NAME[wanted]
    if callable(wanted):
        wanted = wanted(trained)
    parts = list(wanted) if isinstance(wanted, (tuple, list)) else [wanted]
    if not parts:
        raise CaptureError("the list of optimizers is empty")
    return Optimizers([checked(part) for part in parts], trained)
