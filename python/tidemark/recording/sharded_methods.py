"""Methods that a module has once it is sharded, and training loops call.

A capture exchanges nothing, so what says when to is run as nothing. What would change how long whole
parameters are there is refused.
"""

from __future__ import annotations

from typing import Any

import torch

from .watching import refuse

# Of FSDPModule (torch/distributed/fsdp/_fully_shard/_fully_shard.py of PyTorch 2.6 and 2.15).
NOTHING = ("set_is_last_backward", "set_requires_gradient_sync", "set_requires_all_reduce",
           "set_gradient_divide_factor", "set_reduce_scatter_divide_factor",
           "set_force_sum_reduction_for_comms")
REFUSED = ("unshard", "reshard", "set_reshard_after_forward", "set_reshard_after_backward",
           "set_modules_to_forward_prefetch", "set_modules_to_backward_prefetch", "set_all_reduce_hook",
           "set_unshard_in_backward", "set_keep_unsharded_storage", "set_custom_all_gather",
           "set_custom_reduce_scatter", "set_allocate_memory_from_process_group_for_comm")


def nothing(*_: Any, **__: Any) -> None: ...


def refusing(name: str) -> Any:
    def method(*_: Any, **__: Any) -> None:
        refuse(f"{name}() of a module under fully_shard is not captured: leave it out")

    return method


def give_methods(module: torch.nn.Module) -> None:
    """Of fully_shard's."""
    for name in NOTHING:
        setattr(module, name, nothing)
    for name in REFUSED:
        setattr(module, name, refusing(name))


def clip_by(module: torch.nn.Module) -> Any:
    """FullyShardedDataParallel's clip_grad_norm_(), of whole gradients."""
    def clip_grad_norm_(max_norm: float, norm_type: float = 2.0) -> torch.Tensor:
        return torch.nn.utils.clip_grad_norm_(module.parameters(), max_norm, norm_type)

    return clip_grad_norm_
