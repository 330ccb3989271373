#!/usr/bin/env python3
"""What PyTorch's own allocator says of steps under DistributedDataParallel and fully_shard.

    venv/bin/python scripts/capture_models/measure_replicas.py tests/reference/captures/replicas.json

One rank of a process group in which nobody answers (torch.testing's fake one), on the stand-in for
the CUDA runtime, as capture_all.py's steps are run; their traces are the ones beside. Per model,
sharding and number of ranks, of the second step: most bytes allocated per phase, and reserved.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "python")]
CASES = ["gpt2-fp32", "gpt2-amp-bf16", "llama-bf16", "small-fp32"]
SHARDS = ["ddp", "ddp:bucket-view", "fsdp2", "fsdp2:no-reshard"]
RANKS = [2, 8]


def answered(state, bucket):
    """DistributedDataParallel of 2.6 fails over what the fake group's own all-reduce returns."""
    import torch

    future = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future


def wrapped(model, shard):
    from torch import nn

    if shard.startswith("ddp"):
        made = nn.parallel.DistributedDataParallel(model, device_ids=[0],
                                                   gradient_as_bucket_view=shard.endswith("view"))
        made.register_comm_hook(None, answered)
        return made
    from torch.distributed.fsdp import fully_shard

    blocks = next(x for x in model.modules() if isinstance(x, nn.ModuleList))
    for block in blocks:
        fully_shard(block, reshard_after_forward=shard == "fsdp2")
    return fully_shard(model)


@contextlib.contextmanager
def placed(case):
    """The step of a case, on the device, and a place where values are known to run it."""
    import torch

    import models
    from tidemark.recording import step, values

    _, function, precision, optimizer = case
    torch.backends.cudnn.enabled = False
    torch.set_num_threads(1)
    with values.Values():
        with torch.device("cuda"):
            made = step.as_step(getattr(models, function)())
        made.precision, made.optimizer = precision, optimizer
        step.place(made)
        yield made


def measured(case, shard, ranks):
    import torch.distributed as dist
    from torch.testing._internal.distributed.fake_pg import FakeStore

    from tidemark.recording import optimizers, step

    with placed(case) as made:
        dist.init_process_group("fake", rank=0, world_size=ranks, store=FakeStore())
        made.model = wrapped(made.model, shard)
        made_optimizer = optimizers.make_optimizers(made.model, made.optimizer)
        step.run_plain(made, made_optimizer)
        found = dataclasses.asdict(step.run_plain(made, made_optimizer))
    return dict(name=case[0], shard=shard, ranks=ranks, reserved=found.pop("reserved"), allocated=found)


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
        for shard in SHARDS:
            for ranks in RANKS:
                rows.append(in_a_process_of_its_own(measured, case, shard, ranks))
                print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    write(pathlib.Path(sys.argv[1]), rows)


if __name__ == "__main__":
    main()
