"""A Tidemark trace as a PyTorch function: each op as the calls that PyTorch makes for it."""

import math

import torch
import torch.nn.functional as functional

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16,
          "int64": torch.int64}


def _reshaped(x, shape, transform):
    if transform == "channels_last":
        return x.flatten(2).transpose(1, 2)
    if transform == "split_heads":
        batch, heads, tokens, width = shape
        return x.view(batch, tokens, heads, width).transpose(1, 2)
    if transform == "merge_heads":
        return x.transpose(1, 2).reshape(shape)
    assert transform is None, transform
    return x.reshape(shape)


def _unpacked(x, shape):
    batch, heads, tokens, width = shape
    return x.view(batch, tokens, -1, heads, width).permute(2, 0, 3, 1, 4).unbind(0)


def _composed_gelu(x):
    inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))
    return 0.5 * x * (1.0 + torch.tanh(inner))


def run_op(op, inputs, shapes):
    """The op's outputs that are tensors of the trace's forward; what only gradients read is made
    by the same calls and not returned."""
    kind, attributes = op["kind"], op.get("attributes", {})
    shape = shapes[op["outputs"][0]]
    transform = attributes.get("layout_transform")
    if kind == "linear":
        return functional.linear(*inputs)
    if kind == "layer_norm":
        x, weight, bias = inputs
        return functional.layer_norm(x, x.shape[-1:], weight, bias, attributes["epsilon"])
    if kind == "flash_attention":
        return functional.scaled_dot_product_attention(*inputs[:3],
                                                       is_causal=bool(attributes.get("causal")))
    if kind == "conv2d":
        return functional.conv2d(*inputs, stride=attributes["stride"],
                                 padding=attributes["padding"])
    if kind == "concat":
        batch = shape[0]
        return torch.cat([x.expand(batch, -1, -1) for x in inputs], 1)
    if kind == "view":
        return _reshaped(inputs[0], shape, transform)
    if kind == "split":
        return _unpacked(inputs[0], shape)
    if kind == "select":
        return inputs[0][:, 0]
    if kind == "nll_loss":
        return functional.nll_loss(*inputs)
    if kind == "copy":
        return inputs[0][..., attributes.get("offset", 0):].clone()
    simple = {
        "add": torch.add,
        "gelu": functional.gelu,
        "gelu_composed": _composed_gelu,
        "embedding": lambda ids, weight: functional.embedding(ids, weight),
        "log_softmax": lambda x: functional.log_softmax(x, -1),
    }
    if kind not in simple:
        raise SystemExit(f"{op['name']}: no PyTorch calls are known here for the kind {kind}")
    return simple[kind](*inputs)


def graph_of(trace):
    """An fx.GraphModule with one node per op, whose name each carries in `nn_module_stack`, which
    later passes copy. Returns it with the fake inputs' (shape, dtype, is trained)."""
    tensors = {tensor["name"]: tensor for tensor in trace["tensors"]}
    shapes = {name: tensor["shape"] for name, tensor in tensors.items()}
    graph, values, inputs = torch.fx.Graph(), {}, []
    made = {name for op in trace["ops"] for name in op["outputs"]}
    for name in dict.fromkeys(n for op in trace["ops"] for n in op["inputs"] if n not in made):
        values[name] = graph.placeholder(f"input_{len(inputs)}")
        tensor = tensors[name]
        inputs.append((tensor["shape"], DTYPES[tensor["dtype"]], tensor.get("trainable", False)))
    for op in trace["ops"]:
        def call(*args, op=op):
            return run_op(op, args, shapes)
        node = graph.call_function(call, tuple(values[name] for name in op["inputs"]))
        node.meta["nn_module_stack"] = {op["name"]: (op["name"], op["kind"])}
        node.meta["stack_trace"] = op["name"]
        if op["kind"] == "split":
            for i, name in enumerate(op["outputs"]):
                values[name] = graph.call_function(lambda parts, i=i: parts[i], (node,))
                values[name].meta = dict(node.meta)
        else:
            values[op["outputs"][0]] = node
    graph.output(values[trace["loss"]])
    return torch.fx.GraphModule(torch.nn.Module(), graph), inputs
