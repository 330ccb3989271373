"""FullyShardedDataParallel as a note: which modules are groups, and what it was told.

It stands in the place of PyTorch's class and gives the module back as it is, without a wrapper.
"""

from __future__ import annotations

import contextlib
from typing import Any

import torch

from . import mixed
from .errors import CaptureError
from .sharded_calls import CALLS, Call, is_outermost, ranks_in, ranks_of_job
from .sharded_methods import clip_by

RESHARDS = {"FULL_SHARD": True, "SHARD_GRAD_OP": False, "HYBRID_SHARD": True, "_HYBRID_SHARD_ZERO2": False}


def require_usual(strategy: str, group: Any, options: dict[str, Any]) -> None:
    if strategy not in RESHARDS:
        raise CaptureError(f"ShardingStrategy.{strategy} is not captured: give FULL_SHARD or "
                           "SHARD_GRAD_OP" +
                           (" (or DistributedDataParallel)" if strategy == "NO_SHARD" else ""))
    mesh, is_hybrid = options.get("device_mesh"), "HYBRID" in strategy
    if is_hybrid and not isinstance(group, tuple) and getattr(mesh, "ndim", 1) != 2:
        raise CaptureError(f"ShardingStrategy.{strategy} takes the GPUs of a machine for a group, which are not "
                           "known here: give a device_mesh of two axes")
    prefetch = getattr(options.get("backward_prefetch"), "name", "BACKWARD_PRE")
    refused = {"a process_group of several": isinstance(group, tuple) and not is_hybrid,
               "cpu_offload": getattr(options.get("cpu_offload"), "offload_params", False),
               "ignored_modules": options.get("ignored_modules"),
               "ignored_states": options.get("ignored_states"),
               "ignored_parameters": options.get("ignored_parameters"),
               f"backward_prefetch={prefetch}": prefetch != "BACKWARD_PRE",
               "forward_prefetch": options.get("forward_prefetch"),
               "limit_all_gathers=False": options.get("limit_all_gathers") is False,
               "a device_mesh of two axes": getattr(mesh, "ndim", 1) != 1 and not is_hybrid}
    for name, is_given in refused.items():
        if is_given:
            raise CaptureError(f"FullyShardedDataParallel with {name} is not captured: leave it out")


def ranks_of(group: Any, mesh: Any) -> tuple[int, int]:
    """All, and those of a group of hybrid sharding."""
    if isinstance(group, tuple):
        among, beside = (int(each.size()) for each in group)
        return among * beside, among
    if group is not None:
        return int(group.size()), 0
    return ranks_in(mesh) if mesh is not None else (ranks_of_job(), 0)


class FullyShardedDataParallel(torch.nn.Module):
    def __new__(cls, module: torch.nn.Module, process_group: Any = None,  # type: ignore[misc]
                sharding_strategy: Any = None, cpu_offload: Any = None,
                auto_wrap_policy: Any = None, backward_prefetch: Any = None,
                mixed_precision: Any = None, **options: Any) -> torch.nn.Module:
        strategy = getattr(sharding_strategy, "name", "FULL_SHARD")
        options.update(cpu_offload=cpu_offload)
        if backward_prefetch is not None:
            options.update(backward_prefetch=backward_prefetch)
        require_usual(strategy, process_group, options)
        if auto_wrap_policy is not None:
            wrap_parts(module, auto_wrap_policy, cls,
                       dict(process_group=process_group, sharding_strategy=sharding_strategy,
                            mixed_precision=mixed_precision,
                            device_mesh=options.get("device_mesh")))
        policy = mixed.policy_of(mixed_precision)
        ranks, among = ranks_of(process_group, options.get("device_mesh"))
        CALLS.append(Call(module, ranks, RESHARDS[strategy], policy, "fsdp1", among))
        if policy is not None:
            casts_all = getattr(mixed_precision, "cast_forward_inputs", False)
            casts_root = getattr(mixed_precision, "cast_root_forward_inputs", True)
            mixed.apply(policy, module,
                        lambda: casts_all or (casts_root and is_outermost(module)))
        module.no_sync = contextlib.nullcontext  # type: ignore[assignment]
        module.clip_grad_norm_ = clip_by(module)
        return module


def wrap_parts(module: torch.nn.Module, policy: Any, wrap: Any, given: dict[str, Any]) -> None:
    from torch.distributed.fsdp._wrap_utils import _auto_wrap

    _auto_wrap(module, policy, set(), set(), given, wrap)
