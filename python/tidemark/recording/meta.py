"""Models that were built on the meta device, as `torch.device("meta")` and Accelerate's
init_empty_weights do: their tensors get places. Values they have none, and weights need none."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import torch


def inside_out(module: torch.nn.Module) -> Iterator[torch.nn.Module]:
    """In the order in which `Module.to()` moves them."""
    for child in module.children():
        yield from inside_out(child)
    yield module


def materialize(model: torch.nn.Module) -> bool:
    """False where nothing of it was on the meta device. Ties stay."""
    made: dict[torch.Tensor, torch.Tensor] = {}
    unknown = 0
    for module in inside_out(model):
        for tensors in (module._parameters, module._buffers):
            for name, tensor in tensors.items():
                if tensor is None or tensor.device.type != "meta":
                    continue
                if tensor not in made:
                    made[tensor] = placed(tensor)
                    unknown += not isinstance(tensor, torch.nn.Parameter)
                tensors[name] = made[tensor]  # type: ignore[assignment]
    if unknown:
        print(f"tidemark capture: {unknown} buffer{'s' if unknown > 1 else ''} of the model came from the "
              "meta device without values: where they are looked at, they count as zero",
              file=sys.stderr)
    return bool(made)


def placed(tensor: torch.Tensor) -> torch.Tensor:
    memory = torch.empty_like(tensor, device="cuda")
    if not isinstance(tensor, torch.nn.Parameter):
        return memory
    parameter = torch.nn.Parameter(memory, requires_grad=tensor.requires_grad)
    parameter.__dict__.update(tensor.__dict__)
    return parameter
