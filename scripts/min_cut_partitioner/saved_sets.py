"""What torch.compile's min-cut partitioner would save of a Tidemark trace, at several
`activation_memory_budget`s.

    tidemark trace vit-l-16 -b 16 --dropout 0 -o vit.trace.json
    python scripts/min_cut_partitioner/saved_sets.py vit.trace.json ... > saved_sets.json

Needs PyTorch (2.6 was used) and no GPU: values are fake. AOTAutograd makes the joint graph, the
partitioner divides it, and the forward's extra outputs are what it saves, told by the names of the
trace's tensors. tests/reference/min_cut_partitioner.json is such a file.
"""

import copy
import json
import sys

import torch
import torch._functorch.config as config
from torch._functorch.aot_autograd import aot_function
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._subclasses import FakeTensorMode

from networks import graph_of

BUDGETS = [1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05]
VIEWS = ("view", "t", "transpose", "permute", "expand", "slice", "select", "unbind", "_unsafe_view",
         "alias", "detach", "unsqueeze", "squeeze", "clone_view")


class Stop(Exception):
    """The joint graph is all that is wanted."""


def joint_graph(trace):
    """The forward and backward as one graph, with its example inputs."""
    module, inputs = graph_of(trace)
    found = {}

    def keep(joint, joint_inputs, *, num_fwd_outputs, **_):
        found.update(joint=joint, inputs=joint_inputs, outputs=num_fwd_outputs)
        raise Stop

    def run(*args):
        with torch.fx.traceback.preserve_node_meta():
            return torch.fx.Interpreter(module).run(*args)

    with FakeTensorMode(allow_non_fake_inputs=True):
        fakes = []
        for shape, dtype, is_trained in inputs:
            make = torch.zeros if dtype == torch.int64 else torch.empty
            fakes.append(make(shape, dtype=dtype).requires_grad_(is_trained))
        try:
            aot_function(run, fw_compiler=lambda g, _: g, partition_fn=keep)(*fakes)
        except Stop:
            pass
    return found


def op_of(node):
    stack = node.meta.get("nn_module_stack") or {}
    return next(iter(stack), None)


def base_of(node):
    """The node whose memory this one looks at, and which of its outputs."""
    output = 0
    while node.op == "call_function":
        if node.target.__name__ == "getitem" and not _is_view(node.args[0]):
            output = node.args[1]
            node = node.args[0]
            break
        if node.target.__name__ != "getitem" and not _is_view(node):
            break
        node = node.args[0]
    return node, output


def _is_view(node):
    return node.op == "call_function" and node.target.__name__.split(".")[0] in VIEWS


# networks._composed_gelu, call by call: what the trace's op calls the ones that gradients read.
COMPOSED_GELU = [None, None, None, None, ".half", ".tanh", ".one_plus", ""]


def composed_names(joint, ops):
    """By node: tensors that ops of several calls make on the way."""
    calls = {}
    for node in joint.graph.nodes:
        op = ops.get(op_of(node))
        if op and op["kind"] == "gelu_composed" and not _is_view(node):
            calls.setdefault(op["name"], []).append(node.name)
    return {node: op + suffix for op, nodes in calls.items()
            for node, suffix in zip(nodes, COMPOSED_GELU) if suffix is not None}


def name_of(node, ops, composed):
    """The trace's tensor, or "op: aten call" where the trace has none for what the call makes."""
    base, output = base_of(node)
    if base.op == "placeholder":
        return None  # a parameter or an input of the step: there anyway
    op = ops.get(op_of(base))
    if op is None:
        return f"?: {base.name}"
    if op["kind"] == "gelu_composed":
        return composed.get(base.name, f"{op['name']}: {base.name}")
    if output >= len(op["outputs"]):
        return f"{op['name']}: {base.name} {output}"
    return op["outputs"][output]


def saved_at(found, ops, budget):
    config.activation_memory_budget = budget
    config.activation_memory_budget_runtime_estimator = "flops"
    joint = copy.deepcopy(found["joint"])
    forward, _ = min_cut_rematerialization_partition(joint, found["inputs"],
                                                     num_fwd_outputs=found["outputs"])
    outputs = forward.graph.find_nodes(op="output")[0].args[0]
    composed = composed_names(found["joint"], ops)
    names = {name_of(node, ops, composed) for node in outputs[found["outputs"]:]
             if isinstance(node, torch.fx.Node)}
    return sorted(names - {None})


def ranges(numbers):
    """[0, 1, 2, 5] as "0-2,5"."""
    runs = []
    for number in sorted(numbers):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def by_block(names):
    """Tensors of blocks by their name within the block, with the blocks where they are saved."""
    blocks, others = {}, []
    for name in names:
        parts = name.split(".", 2)
        if parts[0] == "blocks":
            blocks.setdefault(parts[2], []).append(int(parts[1]))
        else:
            others.append(name)
    return {"blocks": {name: ranges(found) for name, found in sorted(blocks.items())},
            "others": others}


def main():
    networks = []
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            trace = json.load(file)
        found = joint_graph(trace)
        ops = {op["name"]: op for op in trace["ops"]}
        points = [{"activation_memory_budget": budget, **by_block(saved_at(found, ops, budget))}
                  for budget in BUDGETS]
        networks.append({"model": trace["model"], "step": trace["step"], "points": points})
    json.dump({"torch": torch.__version__, "made_by": "scripts/min_cut_partitioner/saved_sets.py",
               "networks": networks}, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
