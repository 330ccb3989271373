# The steps that compiled.py measures with --replicas: blocks that are compiled one by one, of ranks that
# share their parameters. DistributedDataParallel over the fake process group ends in a fault there.
import pathlib
import runpy

COMPILED = runpy.run_path(str(pathlib.Path(__file__).parent / "compiled_cases.py"))
PRECISIONS = COMPILED["PRECISIONS"]


def replica(name, precision, shard, ranks, **more):
    """One of ranks that share parameters or gradients; `master_weights`: fp32 shards, bf16 else."""
    case = COMPILED["step"](name, precision, **more)
    kind = "-mixed" if "master_weights" in more else ""
    return {**case, "name": f"{name}-{precision}{kind}-{shard}-{ranks}"
            + ("-checkpoint" if "checkpoint" in more else ""), "shard": shard, "ranks": ranks}


CASES = [replica("llama", precision, shard, 8) for precision in PRECISIONS
          for shard in ("fsdp1", "fsdp2", "fsdp2:no-reshard")]
CASES += [replica("gpt2", "bf16", "fsdp2", ranks) for ranks in (2, 8)]
CASES += [replica("llama", "bf16", "fsdp2", ranks, checkpoint=True) for ranks in (2, 8)]
CASES += [replica("llama", "bf16", shard, ranks, master_weights=True, optimizer_form="fused")
          for shard in ("fsdp1", "fsdp2") for ranks in (2, 8)]
