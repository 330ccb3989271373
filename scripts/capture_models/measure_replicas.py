#!/usr/bin/env python3
"""What PyTorch's own allocator says of steps under DistributedDataParallel and fully_shard.

    venv/bin/python scripts/capture_models/measure_replicas.py tests/reference/captures/replicas.json

One rank of a process group in which nobody answers (torch.testing's fake one), on the stand-in for
the CUDA runtime, as capture_all.py's steps are run; their traces are the ones beside. Per model,
sharding and number of ranks, of the second step: most bytes allocated per phase, and reserved.
"""

import contextlib
import dataclasses
import itertools
import json
import os
import pathlib
import subprocess
import sys
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "python")]
CASES = ["gpt2-fp32", "gpt2-amp-bf16", "llama-bf16", "small-fp32"]
SHARDS = ["ddp", "ddp:bucket-view", "fsdp2", "fsdp2:no-reshard", "fsdp1", "fsdp1:no-reshard"]
RANKS = [2, 8]
# Whose parameters are gathered in bf16, and shards, states and what is reduced in fp32. The traces
# beside have bf16 parameters, as such a rank computes with.
MIXED = ["llama-bf16"]


def answered(state, bucket):
    """DistributedDataParallel of 2.6 fails over what the fake group's own all-reduce returns."""
    import torch

    future = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future


def wrapped(model, shard, is_mixed):
    from torch import nn

    if shard.startswith("ddp"):
        made = nn.parallel.DistributedDataParallel(model, device_ids=[0],
                                                   gradient_as_bucket_view=shard.endswith("view"))
        made.register_comm_hook(None, answered)
        return made
    parts = next(x for x in model.modules() if isinstance(x, nn.ModuleList))
    return (flat if shard.startswith("fsdp1") else sharded)(model, parts, shard, is_mixed)


def sharded(model, parts, shard, is_mixed):
    import torch
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    more = dict(mp_policy=MixedPrecisionPolicy(torch.bfloat16, torch.float32)) if is_mixed else {}
    for part in parts:
        fully_shard(part, reshard_after_forward=not shard.endswith("no-reshard"), **more)
    return fully_shard(model, **more)


def flat(model, parts, shard, is_mixed):
    import torch
    from torch.distributed.fsdp import (FullyShardedDataParallel, MixedPrecision,
                                        ShardingStrategy)

    strategy = ShardingStrategy.SHARD_GRAD_OP if shard.endswith("no-reshard") else \
        ShardingStrategy.FULL_SHARD
    more = dict(sharding_strategy=strategy, device_id=0, use_orig_params=True)
    if is_mixed:
        more["mixed_precision"] = MixedPrecision(torch.bfloat16, torch.float32)
    for at, part in enumerate(parts):
        parts[at] = FullyShardedDataParallel(part, **more)
    return FullyShardedDataParallel(model, **more)


@contextlib.contextmanager
def placed(case, precision=None):
    """The step of a case, on the device, and a place where values are known to run it."""
    import torch

    import models
    from tidemark.recording import accumulation, step, values

    _, function, usual, optimizer = case
    torch.backends.cudnn.enabled = False
    torch.set_num_threads(1)
    accumulation.learn()
    with values.Values():
        with torch.device("cuda"):
            made = step.as_step(getattr(models, function)())
        made.precision, made.optimizer = precision or usual, optimizer
        step.place(made)
        yield made


def fused(parameters):
    import torch

    return torch.optim.AdamW(parameters, fused=True)


def measured(case, shard, ranks, is_mixed):
    import torch.distributed as dist
    from torch.testing._internal.distributed.fake_pg import FakeStore

    from tidemark.recording import optimizers, step

    with placed(case, "fp32" if is_mixed else None) as made:
        dist.init_process_group("fake", rank=0, world_size=ranks, store=FakeStore())
        made.model = wrapped(made.model, shard, is_mixed)
        if is_mixed:
            made.optimizer = fused  # as --master-weights has it
        made_optimizer = optimizers.make_optimizers(made.model, made.optimizer)
        step.run_plain(made, made_optimizer)
        found = dataclasses.asdict(step.run_plain(made, made_optimizer))
    mixed = dict(master_weights=True) if is_mixed else {}
    return dict(name=case[0], shard=shard, ranks=ranks, **mixed, reserved=found.pop("reserved"),
                allocated=found)


def in_a_process_of_its_own(measure, *question):
    """An allocator that has done nothing yet; what is imported already is shared."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with os.fdopen(writing, "w") as file:
                json.dump(measure(*question), file)
            code = 0
        except Exception:
            traceback.print_exc()
        finally:  # never on into the parent's loop
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as file:
        text = file.read()
    if os.waitpid(child, 0)[1] != 0:
        sys.exit(f"{question}: not measured")
    return json.loads(text)


def require_stand_in():
    if not os.environ.get("TIDEMARK_STAND_IN"):
        from tidemark.recording import stand_in

        environment = stand_in.environment(80, 108)
        sys.exit(subprocess.run([sys.executable, *sys.argv], env=environment).returncode)


def write(path, rows):
    import torch
    import transformers

    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    versions = dict(torch=torch.__version__.split("+")[0], transformers=transformers.__version__)
    text = json.dumps(dict(versions=versions), separators=(",", ":"))[:-1]
    path.write_text(f'{text},"steps":[\n{lines}\n]}}\n')


def main():
    require_stand_in()
    import torch  # noqa: F401, before the processes part
    import transformers  # noqa: F401

    import models

    rows = []
    for case in (case for case in models.CASES if case[0] in CASES):
        for shard, ranks, is_mixed in itertools.product(SHARDS, RANKS, (False, True)):
            if not is_mixed or (case[0] in MIXED and "fsdp" in shard):
                rows.append(in_a_process_of_its_own(measured, case, shard, ranks, is_mixed))
                print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    write(pathlib.Path(sys.argv[1]), rows)


if __name__ == "__main__":
    main()
