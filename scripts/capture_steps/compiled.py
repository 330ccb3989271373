#!/usr/bin/env python3
"""What torch.compile(model) keeps and takes, without a GPU, as a JSON fixture.

    venv/bin/python scripts/capture_steps/compiled.py > tests/reference/steps_compiled.json
    venv/bin/python scripts/capture_steps/compiled.py --blocks > tests/reference/steps_compiled_blocks.json
    venv/bin/python scripts/capture_steps/compiled.py --replicas > tests/reference/steps_compiled_replicas.json
    venv/bin/python scripts/capture_steps/compiled.py --float8 > tests/reference/steps_compiled_float8.json
    venv/bin/python scripts/capture_steps/compiled.py --titan > tests/reference/steps_titan_compiled.json

The models, inputs and libraries are those of capture.py. Dynamo traces the model with its loss,
AOTAutograd divides forward and backward by its min-cut partitioner, Inductor writes code, and that
code runs in PyTorch's own allocator over the stand-in; kernels of Triton are not launched. Each case
runs three steps in a child process, of which the third is measured. Steps with adapters need peft,
which refuses the torchao of this PyTorch: without it.

With --blocks each block of the model is compiled by itself, as torchtitan does it: in a wrapper for
checkpoints first, where the case has them. All else of the model is eager code. With --replicas
the step is of one of several ranks, whose wrappers (measure_replicas.py) stand around such blocks:
what is saved is not measured of these. With --float8 linears of such blocks are torchao's (0.9) in
eight bits. With --titan the network is torchtitan's LLaMA (titan.py).

Per case:
  saved       bytes of storages that nodes of graphs and of eager operators hold; parameters and
              buffers do not count, nor do views of what counts already
  requested   most bytes that tensors and scratch asked the allocator for, per phase
  allocated   the same as the allocator counts them, rounded
  reserved    most bytes that the allocator held
  storages    what is saved: [bytes, dtype, shape, operator that made it, how many there are]
"""

import argparse
import collections
import contextlib
import gc
import importlib.metadata
import json
import os
import pathlib
import re
import runpy
import subprocess
import sys
import warnings

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "capture_models"))
sys.path.insert(0, str(HERE.parent.parent / "python"))
import capture  # noqa: E402


def start_again_with_stand_in(arguments):
    from tidemark.recording import stand_in

    if stand_in.has_gpu():
        sys.exit("this machine has a GPU: the stand-in is for machines without one")
    environment = dict(stand_in.environment(90 if "--float8" in arguments else 80), HF_HUB_OFFLINE="1")
    sys.exit(subprocess.run([sys.executable, __file__, *arguments], env=environment).returncode)


def watch_graphs():
    """Lists that fill with the labels and the outputs of each graph that runs."""
    from torch._inductor import output_code
    from tidemark.recording import compiled

    compiled.install()
    calls, plain = [], output_code.CompiledFxGraph.__call__

    def call(graph, inputs):
        labels = getattr(graph, "tidemark_labels", [])
        result = plain(graph, inputs)
        calls.append((labels, [(x.untyped_storage()._cdata, x.untyped_storage().nbytes())
                               if hasattr(x, "untyped_storage") else None for x in result]))
        return result

    output_code.CompiledFxGraph.__call__ = call
    return calls


def compile_blocks(case, model):
    import torch
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper

    blocks = next(child for child in model.modules() if isinstance(child, torch.nn.ModuleList))
    for i, block in enumerate(blocks):
        if case.get("checkpoint"):
            policy = dict(context_fn=capture.keep_every_second_product) if case["checkpoint"] == "op" else {}
            block = checkpoint_wrapper(block, preserve_rng_state=False, **policy)
        blocks[i] = torch.compile(block, fullgraph=True)
        vars(blocks[i])["forward"] = without_modes(blocks[i].forward)
    return model


def shard(case, model):
    import measure_replicas
    import torch.distributed as dist
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", rank=0, world_size=case["ranks"], store=FakeStore())
    return measure_replicas.wrapped(model, case["shard"], case.get("master_weights", False))


def without_modes(function):
    """Dynamo skips what runs under a dispatch mode, as that of the values is."""
    from torch.utils._python_dispatch import _disable_current_modes

    def call(*args, **kwargs):
        with _disable_current_modes():
            return function(*args, **kwargs)

    return call


def measure(case):
    import torch
    from tidemark.recording.values import Values

    warnings.filterwarnings("ignore")
    torch.backends.cudnn.enabled = False
    calls = watch_graphs()
    torch._inductor.config.force_disable_caches = True
    if case.get("draw"):
        draw(case["draw"])
    by_blocks = case["compiled"] == "blocks"
    model = capture.build_model({
        **case, "checkpoint": case.get("checkpoint") and not by_blocks,
        "precision": "fp32" if case.get("master_weights") else case["precision"]})
    values = Values() if by_blocks else contextlib.nullcontext()  # eager code looks at masks
    with values:
        inputs = capture.build_inputs(case, model)
    amp = {"amp-bf16": torch.bfloat16, "amp-fp16": torch.float16}.get(case["precision"])
    compiled = compile_blocks(case, model) if by_blocks else torch.compile(model)
    if "shard" in case:
        compiled = model = shard(case, model)
    optimizer = capture.OPTIMIZERS["make"](case, model)
    gc.collect()
    gc.disable()
    saved = {}

    def pack(tensor):
        if hasattr(tensor, "__tensor_flatten__"):  # codes and a factor, of torchao's eager linears
            for name in tensor.__tensor_flatten__()[0]:
                pack(getattr(tensor, name))
            return tensor
        storage = tensor.untyped_storage()
        if tensor.device.type == "cuda":
            saved.setdefault(storage._cdata, (storage.nbytes(), tensor))
        return tensor

    def forward():
        autocast = torch.autocast("cuda", amp) if amp else contextlib.nullcontext()
        with values, autocast:
            outputs = compiled(**inputs)
            if case["config"]["model_type"] in capture.BARE:
                return sum(output.mean() for output in outputs.values())
            return outputs.loss

    allocated, requested = {}, {}

    def phase(name):
        statistics = torch.cuda.memory_stats()
        allocated[name] = statistics["allocated_bytes.all.peak"]
        requested[name] = statistics["requested_bytes.all.peak"]
        torch.cuda.reset_peak_memory_stats()

    for step in range(3):
        del calls[:]
        saved.clear()
        torch.cuda.reset_peak_memory_stats()
        begin, reserved = torch.cuda.memory_allocated(), 0
        before = torch.cuda.memory_stats()["requested_bytes.all.current"]
        hooks = contextlib.nullcontext() if "shard" in case else \
            torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor)
        with hooks:
            loss = forward()
        graphs = len(calls)
        kept = {key: (size, str(tensor.dtype).removeprefix("torch."), list(tensor.shape))
                for key, (size, tensor) in saved.items()}
        saved.clear()
        after = torch.cuda.memory_allocated()
        labels = {}
        for names, results in calls:
            for label, storage in zip(names, results):
                if label is not None and storage is not None:
                    labels[storage[0]] = label.name
        reserved = max(reserved, torch.cuda.max_memory_reserved())
        phase("forward")
        loss.backward()
        reserved = max(reserved, torch.cuda.max_memory_reserved())
        phase("backward")
        optimizer.step()
        reserved = max(reserved, torch.cuda.max_memory_reserved())
        phase("optimizer")
        optimizer.zero_grad(set_to_none=True)
        del loss

    parameters = {} if "shard" in case else \
        capture.storage_sizes([*model.parameters(), *model.buffers()])
    kept = {key: row for key, row in kept.items() if key not in parameters}
    groups = collections.Counter((size, dtype, tuple(shape), labels.get(key, "input"))
                                 for key, (size, dtype, shape) in kept.items())
    return dict(graphs=graphs, saved=sum(size for size, *_ in kept.values()),
                requested=dict(begin=before, **requested),
                allocated=dict(begin=begin, after_forward=after, **allocated), reserved=reserved,
                parameters=sum(p.numel() for p in model.parameters()),
                trainable=sum(p.numel() for p in model.parameters() if p.requires_grad),
                storages=[[*key, count] for key, count in sorted(groups.items(), reverse=True)])


def draw(path):
    """Writes the joint graphs, as the partitioner gets them, and what it makes of them."""
    from torch._inductor import compile_fx

    plain = compile_fx.min_cut_rematerialization_partition

    def partition(joint, *args, **kwargs):
        with open(path, "a") as file:
            print(joint.graph, file=file)
        forward, backward = plain(joint, *args, **kwargs)
        with open(path, "a") as file:
            print("FORWARD", forward.graph, "BACKWARD", backward.graph, file=file)
        return forward, backward

    compile_fx.min_cut_rematerialization_partition = partition


def measure_in_child(case):
    """In a process of its own: the allocator's cache and cuBLAS's workspaces start anew."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            result = measure(case)
        except Exception as error:  # said by the parent
            import traceback

            traceback.print_exc()
            result = str(error)
        with os.fdopen(writer, "w") as pipe:
            json.dump(result, pipe)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else "the process died"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="cases whose name matches this expression")
    parser.add_argument("--blocks", action="store_true", help="each block is compiled by itself")
    parser.add_argument("--replicas", action="store_true", help="… of ranks that share parameters")
    parser.add_argument("--float8", action="store_true", help="… whose linears multiply in eight bits")
    parser.add_argument("--titan", action="store_true", help="each block of torchtitan's LLaMA")
    parser.add_argument("--draw", help="a file that joint graphs are written to")
    arguments = parser.parse_args()
    if os.environ.get("TIDEMARK_STAND_IN") != "ready":
        start_again_with_stand_in(sys.argv[1:])
    import torch
    import transformers  # noqa: F401

    capture.OPTIMIZERS.update(runpy.run_path(str(HERE / "optimizers.py")))
    torch.set_num_threads(1)
    packages = ("torch", "transformers") + (("torchao",) if arguments.float8 else ())
    versions = {name: importlib.metadata.version(name) for name in packages}
    by_blocks = arguments.blocks or arguments.replicas or arguments.float8 or arguments.titan
    compiled = "blocks" if by_blocks else "model"
    cases = "titan_cases.py" if arguments.titan else \
        "compiled_replica_cases.py" if arguments.replicas else \
        "compiled_float8_cases.py" if arguments.float8 else \
        "compiled_block_cases.py" if arguments.blocks else "compiled_cases.py"
    rows = []
    listed = runpy.run_path(str(HERE / cases))
    for case in listed["CASES"] + listed.get("REPLICAS", []):
        if not re.search(arguments.only, case["name"]):
            continue
        result = measure_in_child({**case, "compiled": compiled, "draw": arguments.draw})
        print(case["name"], result, file=sys.stderr, flush=True)
        if isinstance(result, str):
            continue
        config = json.dumps(case["config"], separators=(",", ":"))  # text, as in its own file
        rows.append({**case, "config": config, **result})
    header = json.dumps(dict(versions=versions, compiled=compiled), separators=(",", ":"))
    print(header[:-1] + ',"steps":[')
    print(",\n".join(json.dumps(row, separators=(",", ":")) for row in rows) + "\n]}")


if __name__ == "__main__":
    main()
