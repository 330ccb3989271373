"""Wrappers of data-parallel replicas: what they say about the step, and the model without them.

A capture is of one process whose parameters are whole. What ranks cut and exchange follows from the
sharding, by rules (docs/parallel.md) that are compared with PyTorch's allocator under the same
wrappers. So DistributedDataParallel is taken off, and fully_shard notes what it was told.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import sys
from typing import Any

import torch

from .compiled import compile_as, plain_name
from .errors import CaptureError

DEFINES_FULLY_SHARD = "torch.distributed.fsdp._fully_shard._fully_shard"
MIB = 1 << 20
USUAL_BUCKET_MIB = 25
REMEDY = "capture it without, and say --mesh dp=N --shard fsdp2 to compare, explain and check"


@dataclasses.dataclass
class Replicas:
    ranks: int
    shard: str  # as --shard says it
    groups: set[str] | None = None  # paths of modules that are gathered each by itself; None: no cut


@dataclasses.dataclass
class Call:
    """Of fully_shard."""

    module: torch.nn.Module
    ranks: int
    reshards: bool | None


_calls: list[Call] = []


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


def bare(module: Any) -> Any:
    """Without what torch.compile puts around it."""
    return getattr(module, "_orig_mod", module)


def compiled_like(compiled: Any, module: torch.nn.Module) -> torch.nn.Module:
    return type(compiled)(module, compiled.dynamo_ctx)


def require_bare(model: torch.nn.Module) -> None:
    for path, module in model.named_modules():
        if is_torchs(module, "FullyShardedDataParallel"):
            raise CaptureError("the model is wrapped in FullyShardedDataParallel, whose flat "
                               f"parameters are not captured: {REMEDY} (or use fully_shard)")
        if is_torchs(module, "DistributedDataParallel"):
            raise CaptureError(f"{path} is wrapped in DistributedDataParallel, and what is around it "
                               "is not: wrap the model as a whole")
    if any(type(parameter).__name__ == "DTensor" for parameter in model.parameters()):
        raise CaptureError("the model's parameters are cut into DTensors: a capture runs the function "
                           "that calls fully_shard itself (tidemark capture SCRIPT.py:FUNCTION); of "
                           f"other meshes, {REMEDY}")


def buckets_of(wrapper: Any) -> str:
    if getattr(wrapper, "_comm_hooks", None):
        raise CaptureError("a communication hook changes what DistributedDataParallel exchanges: "
                           "capture without register_comm_hook")
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


def sharded(model: torch.nn.Module) -> Replicas | None:
    paths = {bare(module): plain_name(path) for path, module in model.named_modules()}
    calls = [dataclasses.replace(call, module=bare(call.module)) for call in _calls
             if bare(call.module) in paths]
    if not calls:
        return None
    if model not in (call.module for call in calls):
        raise CaptureError("fully_shard was called on parts of the model only: call it on the model "
                           "itself as well, last")
    parts = [call for call in calls if call.module is not model]
    names = {paths[call.module] for call in parts}
    for name in sorted(names):
        around = next((other for other in names if name.startswith(other + ".")), None)
        if around is not None:
            raise CaptureError(f"fully_shard on {name} and on {around} around it: groups within "
                               "groups are not captured; call it on one of them")
    kept = {call.reshards is False for call in parts}
    if len(kept) > 1:
        raise CaptureError("reshard_after_forward is True of some modules and False of others: give "
                           "all the same")
    return Replicas(calls[0].ranks, "fsdp2:no-reshard" if kept == {True} else "fsdp2", names)


def fully_shard(module: Any, *, mesh: Any = None, reshard_after_forward: Any = None,
                shard_placement_fn: Any = None, mp_policy: Any = None, offload_policy: Any = None,
                **more: Any) -> Any:
    """Notes that the module is a group; its parameters stay as they are."""
    if not isinstance(module, torch.nn.Module):
        raise CaptureError("fully_shard on several modules as one group is not captured: call it on "
                           "each")
    casts = [name for name in ("param_dtype", "reduce_dtype", "output_dtype")
             if getattr(mp_policy, name, None) is not None]
    if casts:
        raise CaptureError(f"MixedPrecisionPolicy({casts[0]}=…) is not captured: capture without it, "
                           "with --precision amp-bf16 or bf16")
    refused = {"shard_placement_fn": shard_placement_fn is not None,
               "offload_policy": type(offload_policy).__name__ not in ("NoneType", "OffloadPolicy"),
               "a mesh of two axes": mesh is not None and mesh.ndim != 1,
               "reshard_after_forward as a number": type(reshard_after_forward) is int}
    refused.update((name, True) for name, value in more.items() if value is not None)
    for name, is_given in refused.items():
        if is_given:
            raise CaptureError(f"fully_shard with {name} is not captured: leave it out")
    ranks = mesh.size() if mesh is not None else ranks_of_job()
    _calls.append(Call(module, ranks, reshard_after_forward))
    return module


class Noticing:
    """Puts our fully_shard in the place of PyTorch's, once somebody imports that: it takes seconds."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != DEFINES_FULLY_SHARD:
            return None
        sys.meta_path.remove(self)  # type: ignore[arg-type]
        spec = importlib.util.find_spec(name)
        assert spec is not None and spec.loader is not None
        load = spec.loader.exec_module

        def load_and_replace(module: Any) -> None:
            load(module)
            module.fully_shard = fully_shard

        spec.loader.exec_module = load_and_replace  # type: ignore[method-assign]
        return spec


# --- process groups -----------------------------------------------------------------------------


def as_inside(wrapper: Any, *inputs: Any, **more: Any) -> Any:
    """DistributedDataParallel's forward without what exchanges gradients, no_sync() or not."""
    return wrapper.module(*inputs, **more)


def ranks_of_job() -> int:
    import torch.distributed as dist

    if dist.is_initialized():
        return dist.get_world_size()
    text = os.environ.get("WORLD_SIZE", "")
    if not text.isdecimal() or int(text) < 1:
        raise CaptureError("how many ranks has the job? Put WORLD_SIZE=8 before the command, or give "
                           "init_process_group a world_size")
    return int(text)


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
    for name in ("torch.distributed", "torch.distributed.distributed_c10d",
                 "torch.distributed.device_mesh"):
        module = sys.modules.get(name)
        if hasattr(module, "init_process_group"):
            setattr(module, "init_process_group", init_process_group)
    if "WORLD_SIZE" in os.environ:  # as torchrun says it; alone, they would mean a job of ranks
        os.environ.update(RANK="0", LOCAL_RANK="0")
    sys.meta_path.insert(0, Noticing())  # type: ignore[arg-type]
