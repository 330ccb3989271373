"""Calls of fully_shard and FullyShardedDataParallel, as a script made them, and what they say."""

from __future__ import annotations

import dataclasses
import functools
import os
from typing import Any

import torch

from .compiled import plain_name
from .errors import CaptureError
from .mixed import Policy


@dataclasses.dataclass
class Replicas:
    ranks: int
    shard: str  # as --shard says it
    groups: set[str] | None = None  # paths of modules that are gathered by themselves; None: no cut
    policy: Policy | None = None


@dataclasses.dataclass
class Call:
    module: torch.nn.Module
    ranks: int
    reshards: bool | None
    policy: Policy | None
    kind: str  # of sharding: fsdp2, fsdp1
    among: int = 0  # ranks of a group, where others have the same shards (hybrid); 0: all

    @property
    def name(self) -> str:
        return "fully_shard" if self.kind == "fsdp2" else "FullyShardedDataParallel"


CALLS: list[Call] = []


@functools.cache
def is_outermost(module: torch.nn.Module) -> bool:
    """Of the modules that are groups. Asked when all are wrapped."""
    return not any(module is part for call in CALLS if call.module is not module
                   for part in call.module.modules())


def bare(module: Any) -> Any:
    """Without what torch.compile puts around it."""
    return getattr(module, "_orig_mod", module)


def sharded(model: torch.nn.Module) -> Replicas | None:
    paths = {bare(module): plain_name(path) for path, module in model.named_modules()}
    calls = [dataclasses.replace(call, module=bare(call.module)) for call in CALLS
             if bare(call.module) in paths]
    if not calls:
        return None
    name = calls[-1].name
    if model not in (call.module for call in calls):
        raise CaptureError(f"{name} was called on parts of the model only: call it on the model "
                           "itself as well, last")
    parts = [call for call in calls if call.module is not model]
    names = {paths[call.module] for call in parts}
    require_beside(name, names)
    kept = {call.reshards is False for call in parts or calls}
    if len(kept) > 1:
        raise CaptureError("reshard_after_forward (or sharding_strategy) says of some modules that "
                           "they stay and of others that they go: give all the same")
    if len({(call.kind, call.among, call.policy and call.policy.parameters) for call in calls}) > 1:
        raise CaptureError("the model's parts are sharded with different wrappers or policies of "
                           "mixed precision, or on other meshes: give all the same")
    if calls[0].policy is not None and calls[0].ranks == 1:
        raise CaptureError("mixed precision of shards on one rank is not captured: put WORLD_SIZE=2 "
                           "or more before the command")
    options = (["no-reshard"] if kept == {True} else []) + \
        ([f"shard={calls[0].among}"] if 0 < calls[0].among < calls[0].ranks else [])
    shard = calls[0].kind + (":" + ",".join(options) if options else "")
    return Replicas(calls[0].ranks, shard, names, calls[0].policy)


def ranks_in(mesh: Any) -> tuple[int, int]:
    """All, and those of a group: of two axes the second cuts, and along the first all have the same."""
    return int(mesh.size()), int(mesh.size(1)) if mesh.ndim == 2 else 0


def require_beside(call: str, names: set[str]) -> None:
    for name in sorted(names):
        around = next((other for other in names if name.startswith(other + ".")), None)
        if around is not None:
            raise CaptureError(f"{call} on {name} and on {around} around it: groups within "
                               "groups are not captured; call it on one of them")


def ranks_of_job() -> int:
    import torch.distributed as dist

    if dist.is_initialized():
        return dist.get_world_size()
    text = os.environ.get("WORLD_SIZE", "")
    if not text.isdecimal() or int(text) < 1:
        raise CaptureError("how many ranks has the job? Put WORLD_SIZE=8 before the command, or "
                           "give init_process_group a world_size")
    return int(text)
