"""Mixed precision of sharded parameters: shards and reductions in fp32, whole parameters in 16 bits.

A capture computes with whole parameters. What ranks keep beside them follows from the sharding's
rules with master weights (docs/parallel.md).
"""

from __future__ import annotations

import dataclasses
from typing import Any, Callable

import torch
from torch.utils._pytree import tree_map

from .errors import CaptureError


@dataclasses.dataclass(frozen=True)
class Policy:
    """Of MixedPrecisionPolicy or MixedPrecision, the dtypes."""

    parameters: torch.dtype
    output: torch.dtype | None = None
    buffers: torch.dtype | None = None


def policy_of(given: Any) -> Policy | None:
    """None: parameters are gathered as they are kept."""
    parameters = getattr(given, "param_dtype", None)
    reduced = getattr(given, "reduce_dtype", None)
    if parameters is None and reduced is None:
        return None
    if parameters is not torch.bfloat16 or reduced is not torch.float32:
        raise CaptureError(f"{type(given).__name__}(param_dtype={parameters}, "
                           f"reduce_dtype={reduced}) is not captured: give torch.bfloat16 and "
                           "torch.float32, or leave it out, with --precision amp-bf16 or bf16")
    if getattr(given, "keep_low_precision_grads", False):
        raise CaptureError("keep_low_precision_grads=True is not captured: leave it out")
    return Policy(parameters, getattr(given, "output_dtype", None),
                  getattr(given, "buffer_dtype", None))


def as_floats(dtype: torch.dtype) -> Callable[[Any], Any]:
    def cast(value: Any) -> Any:
        is_float = isinstance(value, torch.Tensor) and value.is_floating_point()
        return value.to(dtype) if is_float else value

    return lambda values: tree_map(cast, values)


def apply(policy: Policy, module: torch.nn.Module, casts_inputs: Callable[[], bool]) -> None:
    """The module computes with parameters as they are gathered. `casts_inputs` is asked when it is
    called."""
    for parameter in module.parameters():
        if parameter.is_floating_point():
            parameter.data = parameter.data.to(policy.parameters)
    for buffer in module.buffers() if policy.buffers is not None else ():
        if buffer.is_floating_point():
            buffer.data = buffer.data.to(policy.buffers)

    def before(_: Any, args: Any, kwargs: Any) -> Any:
        return as_floats(policy.parameters)((args, kwargs)) if casts_inputs() else None

    module.register_forward_pre_hook(before, with_kwargs=True)
    if policy.output is not None:
        cast = as_floats(policy.output)
        module.register_forward_hook(lambda _, inputs, output: cast(output))
