"""Wrappers of data-parallel replicas: what they say about the step, and the model without them.

A capture is of one process whose parameters are whole. What ranks cut and exchange follows from the
sharding, by rules (docs/parallel.md) that are compared with PyTorch's allocator under the same
wrappers. So DistributedDataParallel is taken off, and fully_shard and FullyShardedDataParallel note
what they were told.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import Any

import torch

from . import mixed
from .compiled import compile_as
from .errors import CaptureError
from .flat import FullyShardedDataParallel
from .sharded_calls import CALLS, Call, Replicas, bare, ranks_in, ranks_of_job, sharded
from .sharded_methods import give_methods
from .watching import refuse

MIB = 1 << 20
USUAL_BUCKET_MIB = 25
REMEDY = "capture it without, and say --mesh dp=N --shard fsdp2 (or fsdp1) to compare, explain and check"


def is_torchs(module: torch.nn.Module, name: str) -> bool:
    return type(module).__name__ == name and type(module).__module__.startswith("torch.")


def without_wrappers(model: torch.nn.Module) -> tuple[torch.nn.Module, Replicas | None]:
    """The model inside, and what the wrapper around it said."""
    around, model = model, bare(model)
    if is_torchs(model, "DistributedDataParallel"):
        inside: Any = model.module
        replicas = Replicas(model.process_group.size(), buckets_of(model))  # type: ignore[union-attr, operator]
        require_bare(inside)
        compile_as(model, inside)
        return inside if around is model else compiled_like(around, inside), replicas
    require_bare(model)
    return around, sharded(model)


def compiled_like(compiled: Any, module: torch.nn.Module) -> torch.nn.Module:
    return type(compiled)(module, compiled.dynamo_ctx)


def require_bare(model: torch.nn.Module) -> None:
    for path, module in model.named_modules():
        if is_torchs(module, "FullyShardedDataParallel"):
            raise CaptureError("the model is wrapped in FullyShardedDataParallel: a capture runs the "
                               "function that wraps it itself (tidemark capture SCRIPT.py:FUNCTION), or "
                               f"{REMEDY}")
        if is_torchs(module, "DistributedDataParallel"):
            raise CaptureError(f"{path} is wrapped in DistributedDataParallel, and what is around it "
                               "is not: wrap the model as a whole")
    if any(type(parameter).__name__ == "DTensor" for parameter in model.parameters()):
        raise CaptureError("the model's parameters are cut into DTensors: a capture runs the function "
                           "that calls fully_shard itself (tidemark capture SCRIPT.py:FUNCTION); of "
                           f"other meshes, {REMEDY}")


def buckets_of(wrapper: Any) -> str:
    if getattr(wrapper, "mixed_precision", None) is not None:
        raise CaptureError("DistributedDataParallel(mixed_precision=…) keeps copies that are not "
                           "modelled: capture without it")
    mib, rest = divmod(wrapper.bucket_bytes_cap, MIB)
    if rest or mib == 0:
        raise CaptureError(f"buckets of {wrapper.bucket_bytes_cap} bytes: give bucket_cap_mb in whole "
                           "MiB")
    options = ["bucket-view"] if wrapper.gradient_as_bucket_view else []
    if mib != USUAL_BUCKET_MIB:
        options.append(f"bucket-mb={mib}")
    return "ddp" + (":" + ",".join(options) if options else "")


# --- fully_shard --------------------------------------------------------------------------------


def fully_shard(module: Any, *, mesh: Any = None, reshard_after_forward: Any = None,
                shard_placement_fn: Any = None, mp_policy: Any = None, offload_policy: Any = None,
                **more: Any) -> Any:
    """Notes that the module is a group; its parameters stay as they are."""
    if not isinstance(module, torch.nn.Module):
        refuse("fully_shard on several modules as one group is not captured: call it on each")
    refused = {"shard_placement_fn": shard_placement_fn is not None,
               "offload_policy": type(offload_policy).__name__ not in ("NoneType", "OffloadPolicy"),
               "a mesh of three axes": mesh is not None and mesh.ndim > 2,
               "reshard_after_forward as a number": type(reshard_after_forward) is int}
    refused.update((name, True) for name, value in more.items() if value is not None)
    for name, is_given in refused.items():
        if is_given:
            refuse(f"fully_shard with {name} is not captured: leave it out")
    ranks, among = ranks_in(mesh) if mesh is not None else (ranks_of_job(), 0)
    policy = mixed.policy_of(mp_policy)
    CALLS.append(Call(module, ranks, reshard_after_forward, policy, "fsdp2", among))
    give_methods(module)
    if policy is not None:
        mixed.apply(policy, module, lambda: getattr(mp_policy, "cast_forward_inputs", True))
    return module


IN_PLACE_OF = {"torch.distributed.fsdp._fully_shard._fully_shard": fully_shard,
               "torch.distributed.fsdp.fully_sharded_data_parallel": FullyShardedDataParallel}


class Noticing:
    """Puts ours in the place of PyTorch's, once somebody imports that: it takes seconds."""

    def __init__(self, name: str) -> None:
        self.name = name

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != self.name:
            return None
        sys.meta_path.remove(self)  # type: ignore[arg-type]
        spec = importlib.util.find_spec(name)
        assert spec is not None and spec.loader is not None
        load = spec.loader.exec_module

        def load_and_replace(module: Any) -> None:
            load(module)
            setattr(module, IN_PLACE_OF[name].__name__, IN_PLACE_OF[name])

        spec.loader.exec_module = load_and_replace  # type: ignore[method-assign]
        return spec


# --- process groups -----------------------------------------------------------------------------


def refuse_hook(*_: Any, **__: Any) -> None:
    refuse("a communication hook changes what DistributedDataParallel exchanges: capture without "
           "register_comm_hook")


def as_inside(wrapper: Any, *inputs: Any, **more: Any) -> Any:
    """DistributedDataParallel's forward without what exchanges gradients, no_sync() or not."""
    return wrapper.module(*inputs, **more)


def install() -> None:
    """Before a user's modules import what is replaced here: process groups of one process, the
    first, in which nobody answers."""
    import torch.distributed as dist

    if not dist.is_available():
        return
    from torch import nn

    plain = dist.init_process_group

    def init_process_group(backend: Any = None, init_method: Any = None, timeout: Any = None,
                           world_size: int = -1, *_: Any, **__: Any) -> None:
        from torch.testing._internal.distributed.fake_pg import FakeStore

        plain("fake", rank=0, world_size=world_size if world_size > 0 else ranks_of_job(),
              store=FakeStore())

    nn.parallel.DistributedDataParallel.forward = as_inside  # type: ignore[method-assign]
    nn.parallel.DistributedDataParallel.register_comm_hook = refuse_hook  # type: ignore[method-assign]
    for name in ("torch.distributed", "torch.distributed.distributed_c10d",
                 "torch.distributed.device_mesh"):
        module = sys.modules.get(name)
        if hasattr(module, "init_process_group"):
            setattr(module, "init_process_group", init_process_group)
    if "WORLD_SIZE" in os.environ:  # as torchrun says it; alone, they would mean a job of ranks
        os.environ.update(RANK="0", LOCAL_RANK="0")
    for name in IN_PLACE_OF:
        sys.meta_path.insert(0, Noticing(name))  # type: ignore[arg-type]
