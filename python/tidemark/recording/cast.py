"""Who takes part in a step of the user's own: seen by running it once."""

from __future__ import annotations

import dataclasses
from typing import Any, Sequence

import torch

from . import step
from .optimizers import checked
from .replicas import without_wrappers
from .watching import End, Watcher


@dataclasses.dataclass
class Cast:
    """Who takes part, seen by running the step once: outermost modules and optimizers."""

    models: list[torch.nn.Module] = dataclasses.field(default_factory=list)
    optimizers: list[Any] = dataclasses.field(default_factory=list)

    def saw_module(self, module: torch.nn.Module) -> None:
        if all(module is not known for known in self.models):
            self.models.append(module)

    def saw_optimizer(self, optimizer: Any) -> None:
        if all(optimizer is not known for known in self.optimizers):
            self.optimizers.append(optimizer)

    def as_step(self) -> step.Step:
        """One module that has all of them."""
        inner = {id(part) for model in self.models for part in model.modules() if part is not model}
        roots = [model for model in self.models if id(model) not in inner]
        bared = [without_wrappers(root) for root in roots]
        whole, replicas = bared[0] if len(roots) == 1 else (None, None)
        loose = self.loose_weights()
        if whole is None or loose:
            names: dict[str, torch.nn.Module] = {}
            for model in [model for model, _ in bared] + loose:
                name = type(model).__name__
                while name in names:
                    name += "_"
                names[name] = model
            whole = torch.nn.ModuleDict(names)
        return step.Step(whole, (), replicas=replicas)

    def loose_weights(self) -> list[torch.nn.Module]:
        """Of no module, which optimizers update: a temperature, a prompt."""
        known = {id(p) for model in self.models for p in model.parameters()}
        loose = [p for optimizer in self.optimizers
                 for group in getattr(optimizer, "param_groups", []) for p in group["params"]
                 if id(p) not in known]
        weights = torch.nn.ParameterList()
        # A plain tensor stays one: a Parameter of it would have a gradient of its own.
        weights._parameters.update((str(at), weight) for at, weight in enumerate(loose))
        return [weights] if loose else []


class Discovery(Watcher):
    def __init__(self) -> None:
        self.cast, self.depth, self.passes = Cast(), 0, 0
        self.in_backward = False
        self.taken: tuple[int, set[int]] = (0, set())  # a call of torch.autograd.grad, and what it is of
        self.by_hand: set[int] = set()  # those before an optimizer's step

    def module_called(self, module: Any, inputs: Any) -> None:
        if self.depth == 0 and not self.in_backward:
            self.cast.saw_module(module)
        self.depth += 1

    def module_left(self, module: Any) -> None:
        self.depth -= 1

    def optimizer_stepped(self, optimizer: Any) -> None:
        self.cast.saw_optimizer(checked(optimizer))
        call, weights = self.taken
        if any(id(p) in weights for group in getattr(optimizer, "param_groups", []) for p in group["params"]):
            self.by_hand.add(call)

    def gradients_taken(self, call: int, inputs: list[torch.Tensor]) -> None:
        weights = {id(x) for x in inputs if x.is_leaf}
        if weights:
            self.taken = call, weights

    def forward_ended(self, end: End) -> None:
        self.in_backward = True

    def backward_ended(self, made: Sequence[torch.Tensor] = ()) -> None:
        self.in_backward, self.passes = False, self.passes + 1
