"""What PyTorch's sac_milp (torch/distributed/_tools/sac_ilp.py) would checkpoint of a Tidemark trace,
at several memory budgets.

    tidemark trace gpt2-medium -b 8 --dropout 0 -o gpt2.trace.json
    python scripts/sac_milp/decisions.py gpt2.trace.json ... > decisions.json

Needs PyTorch (2.6 was used), pulp, pwlf, and no GPU: values are fake. The trace becomes a module of blocks
whose children are its ops; sac_milp says which of them to checkpoint and how much of their activations
to discard, and get_optimal_checkpointing_policy_per_module() which calls of each to save. Times are its
own roofline's, for an A100 SXM4 80 GB. tests/reference/sac_milp.json is such a file.
"""

import contextlib
import json
import pathlib
import sys
import unittest.mock

import torch
import torch.distributed._tools.runtime_estimator as runtime_estimator
from torch._subclasses import FakeTensorMode
from torch.distributed._tools.ilp_utils import aggregate_stats, parse_module_info
from torch.distributed._tools.mem_tracker import MemTracker
from torch.distributed._tools.runtime_estimator import RuntimeEstimator
from torch.distributed._tools.sac_estimator import OPS_TO_ALWAYS_SKIP, SACEstimator
from torch.distributed._tools.sac_ilp import (get_optimal_checkpointing_policy_per_module,
                                              sac_milp)
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry, sdpa_flop

sys.path.append(str(pathlib.Path(__file__).parents[1] / "min_cut_partitioner"))
from networks import DTYPES, run_op  # noqa: E402
from saved_sets import COMPOSED_GELU, VIEWS, by_block, ranges  # noqa: E402

SHARES = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4]  # of the peak that it estimates itself
EFFORT = "operator-level-cost-model"
A100 = {"get_gpu_dram_gbps": lambda: 2039, "get_device_tflops": lambda dtype: 0.0195}  # read as PFLOP/s


@contextlib.contextmanager
def on_an_a100():
    """What the roofline asks of a device."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(unittest.mock.patch("torch.cuda.is_available", lambda: True))
        for name, value in A100.items():
            stack.enter_context(unittest.mock.patch.object(runtime_estimator, name, value))
        stack.enter_context(contextlib.redirect_stdout(sys.stderr))  # it prints what it found
        yield


class Op(torch.nn.Module):
    """One op of the trace, with its parameters."""

    def __init__(self, op, shapes, parameters):
        super().__init__()
        self.op, self.shapes = op, shapes
        self.own = {i: f"input_{i}" for i, name in enumerate(op["inputs"]) if name in parameters}
        for i, name in self.own.items():  # no child of its own: it has to be a leaf
            self.register_parameter(name, parameters[op["inputs"][i]])

    def forward(self, *values):
        rest = iter(values)
        inputs = [getattr(self, self.own[i]) if i in self.own else next(rest)
                  for i in range(len(self.op["inputs"]))]
        return run_op(self.op, inputs, self.shapes)


class Ops(torch.nn.Module):
    """Some ops, one after the other: a block, or the whole step with its blocks."""

    def __init__(self, items, parameters, results):
        super().__init__()
        self.items, self.results = items, results
        self.parts = torch.nn.ModuleDict({name.replace(".", "_"): module
                                          for name, module in items})
        self.parameter_names = set(parameters)
        made = {n for _, module in items for n in outputs_of(module)}
        self.needs = list(dict.fromkeys(n for _, module in items for n in inputs_of(module)
                                        if n not in made and n not in self.parameter_names))

    def forward(self, *values):
        known = dict(zip(self.needs, values))
        for _, module in self.items:
            names = [n for n in inputs_of(module) if n not in self.parameter_names]
            found = module(*(known[n] for n in names))
            outputs = outputs_of(module)
            found = found if isinstance(found, (tuple, list)) else [found]
            known.update(zip(outputs, found))
        return tuple(known[n] for n in self.results)


def inputs_of(module):
    return module.op["inputs"] if isinstance(module, Op) else module.needs


def outputs_of(module):
    return module.op["outputs"] if isinstance(module, Op) else module.results


def block_of(op):
    parts = op["name"].split(".")
    return int(parts[1]) if parts[0] == "blocks" else None


def module_of(trace, ops, parameters):
    shapes = {tensor["name"]: tensor["shape"] for tensor in trace["tensors"]}
    read_by = {}
    for op in ops:
        for name in op["inputs"]:
            read_by.setdefault(name, set()).add(block_of(op))
    items, block, now = [], [], None

    def close():
        if block:
            results = [n for _, m in block for n in outputs_of(m)
                       if read_by.get(n, set()) - {now}]
            items.append((f"blocks.{now}", Ops(list(block), parameters, results)))
            block.clear()

    for op in ops:
        if block_of(op) != now:
            close()
        now = block_of(op)
        module = (op["name"], Op(op, shapes, parameters))
        (items if now is None else block).append(module)
    close()
    return Ops(items, parameters, [trace["loss"]])


class Calls(TorchDispatchMode):
    """The calls of one block, as sac_estimator.py counts them, and whose op each is."""

    def __init__(self):
        super().__init__()
        self.calls, self.op = [], None

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func not in OPS_TO_ALWAYS_SKIP:
            self.calls.append((self.op, func._overloadpacket.__name__))
        return func(*args, **(kwargs or {}))


def calls_of(block, inputs):
    calls = Calls()
    hooks = [m.register_forward_pre_hook(lambda m, _: setattr(calls, "op", m.op))
             for _, m in block.items]
    with calls:
        block(*inputs)
    for hook in hooks:
        hook.remove()
    return calls.calls


def saved_of(calls, policy):
    """Tensors of the trace, within the block, that the calls which the policy saves have made."""
    saved, nth = set(), {}
    for (op, call), is_saved in zip(calls, policy, strict=True):
        if call in VIEWS:
            continue
        number = nth[op["name"]] = nth.get(op["name"], -1) + 1
        name = op["outputs"][0]
        if op["kind"] == "gelu_composed":
            suffix = COMPOSED_GELU[number]
            name = None if suffix is None else op["name"] + suffix
        if is_saved and name:
            saved.add(name)
    return saved


def with_statistics(names, trace):
    """What a saved call returns beside its output goes with it: means, log-sum-exps."""
    tensors = {t["name"] for t in trace["tensors"]}
    beside = [n + suffix for n in names for suffix in (".mean", ".rstd", ".logsumexp", ".lse")]
    return set(names) | (set(beside) & tensors)


def estimated(trace):
    """The module with what sac_milp wants to know of it."""
    tensors = {t["name"]: t for t in trace["tensors"]}
    made = {n for op in trace["ops"] for n in op["outputs"]}
    outside = dict.fromkeys(n for op in trace["ops"] for n in op["inputs"] if n not in made)
    parameters, values = {}, {}
    for name in outside:
        tensor = tensors[name]
        make = torch.zeros if tensor["dtype"] == "int64" else torch.empty
        value = make(tensor["shape"], dtype=DTYPES[tensor["dtype"]])
        if tensor.get("trainable"):
            parameters[name] = torch.nn.Parameter(value)
        else:
            values[name] = value
    shapes = {name: tensor["shape"] for name, tensor in tensors.items()}
    ops, with_gradients = [], set(parameters)
    for op in trace["ops"]:  # what has no gradients is no module that is tracked: it is made first
        if with_gradients.isdisjoint(op["inputs"]):
            found = run_op(op, [values[n] for n in op["inputs"]], shapes)
            values.update(zip(op["outputs"], found if isinstance(found, tuple) else [found]))
        else:
            ops.append(op)
            with_gradients.update(op["outputs"])
    model = module_of(trace, ops, parameters)
    inputs = [values[n] for n in model.needs]
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)

    def step():
        model(*inputs)[0].sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    memory = MemTracker()
    memory.track_external(model, optimizer)
    with memory as tracker:
        for i in range(2):
            step()
            if i == 0:
                tracker.reset_mod_stats()
    runtime, activations = RuntimeEstimator(), SACEstimator()
    with on_an_a100():
        with runtime(estimate_mode_type=EFFORT):
            model(*inputs)[0].sum().backward()
        with activations(estimate_mode_type=EFFORT):
            loss = model(*inputs)[0].sum()
    loss.backward()
    info = aggregate_stats(model, memory, runtime, activations, torch.device("cpu"))
    return model, inputs, parse_module_info(info), activations


def all_calls(model, inputs):
    """By block: its calls."""
    found, hooks = {}, []
    for name, block in model.items:
        if isinstance(block, Ops):
            hooks.append(block.register_forward_pre_hook(
                lambda m, values, name=name: found.setdefault(name, values) and None))
    model(*inputs)
    for hook in hooks:
        hook.remove()
    return {name: calls_of(block, found[name]) for name, block in model.items if name in found}


def decided_at(share, peak, graph, activations, calls, trace):
    decisions, _, found = sac_milp(graph, memory_budget=share * peak / 2**30)
    if found < 0:
        return {"share": share, "solved": False}
    names = {op for op in (n for t in trace["ops"] for n in t["outputs"])}
    saved, wrapped = set(), []
    for fqn, discarded in decisions.items():
        name = fqn.split(".parts.")[-1].replace("blocks_", "blocks.")
        wrapped.append(name)
        policy = get_optimal_checkpointing_policy_per_module(
            activations.sac_mod_stats[fqn], max(0.0, 1 - discarded))
        saved |= saved_of(calls[name], policy)
    assert saved <= {t["name"] for t in trace["tensors"]}, saved - names
    blocks = ranges(int(name.split(".")[1]) for name in wrapped)
    return {"share": share, "solved": True, "wrapped": blocks,
            "discarded": sorted(set(decisions.values())),
            **by_block(sorted(with_statistics(saved, trace)))}


def main():
    flop_registry[torch.ops.aten._scaled_dot_product_flash_attention_for_cpu] = (
        lambda q, k, v, *_, out_shape=None, out_val=None, **__: sdpa_flop(q, k, v))
    networks = []
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            trace = json.load(file)
        with FakeTensorMode(allow_non_fake_inputs=True):
            model, inputs, graph, activations = estimated(trace)
            calls = all_calls(model, inputs)
        whole = max(graph.nodes, key=lambda n: n["act_total"] + n["act_grad_per_module"]
                    + n["grad_total"])
        peak = (whole["act_total"] + whole["act_grad_per_module"] + whole["grad_total"]
                + graph.nodes[0]["param_per_module"])
        points = [decided_at(share, peak, graph, activations, calls, trace) for share in SHARES]
        networks.append({"model": trace["model"], "step": trace["step"], "peak": peak,
                         "points": points})
    json.dump({"torch": torch.__version__, "made_by": "scripts/sac_milp/decisions.py",
               "networks": networks}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
