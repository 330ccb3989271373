# More small networks in PyTorch: a mixture of experts, T5, PVT v1 and v2, and LLaMA on a frozen base
# in four bits.
"""As gradient_networks.py, from the models' papers. Experts get their tokens in turn, as many each:
the even load that Tidemark plans and replays with."""

import math

import numpy as np
import torch
from torch.nn import functional as F

from gradient_decoders import repeated, turned, words
from gradient_networks import attention, causal_mask, merge_heads, next_token_loss, split_heads, whole


def widened(x):
    return x if x.dtype == torch.float64 else x.float()


def even_mixture(net, name, x, experts, per_token, mlp):
    """arXiv 2401.04088, section 2.1: shares of the picked experts, which sum to 1. Visit v, counted
    over the tokens, goes to expert v mod n."""
    rows = x.flatten(0, 1)
    shares = widened(net.linear(name + ".router", rows, experts, False)).softmax(-1)
    visits = torch.arange(len(rows) * per_token).reshape(-1, per_token) % experts
    weights = shares.gather(1, visits)
    weights = (weights / weights.sum(-1, keepdim=True)).to(x.dtype)
    result = torch.zeros_like(rows)
    for i in range(experts):
        token, slot = torch.where(visits == i)
        y, expert = rows[token], f"{name}.experts.{i}"
        y = F.silu(net.linear(expert + ".gate", y, mlp, False)) * net.linear(
            expert + ".up", y, mlp, False)
        y = net.linear(expert + ".down", y, rows.shape[-1], False) * weights[token, slot][:, None]
        result = result.index_add(0, token, y)
    return result.reshape(x.shape)


def mixtral(net, batch, tokens, vocabulary, width, depth, heads, key_heads, head_width, mlp,
            experts, per_token):
    x = words(net, batch, tokens, vocabulary, width)
    for i in range(depth):
        name = f"blocks.{i}"
        y = net.rms_norm(name + ".input_norm", x, 1e-5)
        q = split_heads(net.linear(name + ".attn.q", y, heads * head_width, False), heads)
        k, v = (split_heads(net.linear(name + ".attn." + part, y, key_heads * head_width, False),
                            key_heads) for part in "kv")
        q, k = turned(net, q, 1e6), turned(net, k, 1e6)
        y = merge_heads(attention(q, repeated(k, heads), repeated(v, heads),
                                  causal_mask(net, tokens)))
        x = x + net.linear(name + ".attn.o", y, width, False)
        y = net.rms_norm(name + ".post_norm", x, 1e-5)
        x = x + even_mixture(net, name + ".mlp", y, experts, per_token, mlp)
    logits = net.linear("lm_head", net.rms_norm("norm", x, 1e-5), vocabulary, False)
    return next_token_loss(logits, vocabulary)


def bucket(ahead, buckets, farthest, looks_ahead):
    """arXiv 1910.10683, section 2.1, of one distance."""
    first = 0
    if looks_ahead:
        buckets //= 2
        first = buckets if ahead > 0 else 0
    elif ahead > 0:
        ahead = 0
    distance, near = abs(ahead), buckets // 2
    if distance < near:
        return first + distance
    beyond = math.log(distance / near) / math.log(farthest / near) * (buckets - near)
    return first + min(near + int(beyond), buckets - 1)


def relative_bias(net, name, tokens, heads, buckets, farthest, looks_ahead):
    table = net.parameter(name + ".weight", buckets, heads)
    rows = torch.tensor([[bucket(k - q, buckets, farthest, looks_ahead) for k in range(tokens)]
                         for q in range(tokens)])
    return table[rows].permute(2, 0, 1)[None]


def t5(net, batch, tokens, vocabulary, width, depth, heads, head_width, mlp, buckets, farthest):
    """arXiv 1910.10683: scores are not scaled, no biases, one table of positions for each stack."""
    table = net.parameter("embed.weight", vocabulary, width)

    def attend(name, x, memory, bias):
        y = net.rms_norm(name + "_norm", x, 1e-6)
        q = split_heads(net.linear(name + ".q", y, heads * head_width, False), heads)
        memory = y if memory is None else memory
        k, v = (split_heads(net.linear(f"{name}.{part}", memory, heads * head_width, False), heads)
                for part in "kv")
        y = (q @ k.transpose(-2, -1) + bias).softmax(-1) @ v
        return x + net.linear(name + ".o", merge_heads(y), width, False)

    def feed(name, x):
        y = net.linear(name + ".fc1", net.rms_norm(name + "_norm", x, 1e-6), mlp, False)
        return x + net.linear(name + ".fc2", F.relu(y), width, False)

    x = table[whole("input_ids", (batch, tokens), vocabulary)]
    bias = relative_bias(net, "encoder.relative_bias", tokens, heads, buckets, farthest, True)
    for i in range(depth):
        name = f"encoder.blocks.{i}"
        x = feed(name + ".mlp", attend(name + ".attn", x, None, bias))
    memory = net.rms_norm("encoder.norm", x, 1e-6)
    x = table[whole("decoder_input_ids", (batch, tokens), vocabulary)]
    bias = relative_bias(net, "decoder.relative_bias", tokens, heads, buckets, farthest, False)
    bias = bias + causal_mask(net, tokens)
    for i in range(depth):
        name = f"decoder.blocks.{i}"
        x = attend(name + ".cross", attend(name + ".attn", x, None, bias), memory, 0)
        x = feed(name + ".mlp", x)
    x = net.rms_norm("decoder.norm", x, 1e-6) / math.sqrt(width)
    labels = whole("labels", (batch, tokens), vocabulary).flatten()
    return F.cross_entropy(F.linear(x, table).flatten(0, 1), labels)


def as_grid(x, side):
    return x.transpose(1, 2).unflatten(2, (side, side))


def spatial_attention(net, name, x, heads, side, reduction, pools):
    """arXiv 2102.12122, equations 1 to 4: keys and values of a smaller grid; in PVT v2 (2106.13797)
    of its means over 7 × 7."""
    width = x.shape[-1]
    q = split_heads(net.linear(name + ".q", x, width), heads)
    y, reduce = x, name + ".reduce"
    if pools:
        y = F.adaptive_avg_pool2d(as_grid(x, side), 7)
        y = net.patches(reduce + ".conv", y, width, 1, 1)
        y = F.gelu(net.layer_norm(reduce + ".norm", y, 1e-6))
    elif reduction > 1:
        y = net.patches(reduce + ".conv", as_grid(x, side), width, reduction, reduction)
        y = net.layer_norm(reduce + ".norm", y, 1e-6)
    k, v = (split_heads(net.linear(f"{name}.{part}", y, width), heads) for part in "kv")
    return net.linear(name + ".proj", merge_heads(attention(q, k, v)), width)


def pvt(net, batch, image, widths, heads, reductions, mlp_ratio, classes):
    x, side = net.image(batch, 3, image, image), image
    for s, width in enumerate(widths):
        name, patch = f"stages.{s}", 4 if s == 0 else 2
        side //= patch
        last = s + 1 == len(widths)
        y = net.patches(name + ".patch_embed", x, width, patch, patch)
        y = net.layer_norm(name + ".patch_embed.norm", y, 1e-6)
        if last:
            first = net.parameter("class_token", 1, 1, width).expand(batch, -1, -1)
            y = torch.cat([first, y], 1)
        y = y + net.parameter(name + ".pos_embed", 1, y.shape[1], width)
        block = name + ".blocks.0"
        z = net.layer_norm(block + ".norm1", y, 1e-6)
        y = y + spatial_attention(net, block + ".attn", z, heads[s], side, reductions[s], False)
        z = net.layer_norm(block + ".norm2", y, 1e-6)
        y = y + net.mlp(block + ".mlp", z, width * mlp_ratio)
        if not last:
            x = as_grid(y, side)
    y = net.layer_norm("norm", y, 1e-6)[:, 0]
    return F.cross_entropy(net.linear("head", y, classes), whole("targets", (batch,), classes))


def pvt_v2(net, batch, image, widths, heads, mlp_ratio, classes):
    """The linear version of arXiv 2106.13797: overlapping patches, a convolution inside the MLP."""
    x, side = net.image(batch, 3, image, image), image
    for s, width in enumerate(widths):
        name, patch, stride = f"stages.{s}", 7 if s == 0 else 3, 4 if s == 0 else 2
        side = (side + 2 * (patch // 2) - patch) // stride + 1
        y = net.patches(name + ".patch_embed", x, width, patch, stride, patch // 2)
        y = net.layer_norm(name + ".patch_embed.norm", y, 1e-6)
        block = name + ".blocks.0"
        z = net.layer_norm(block + ".norm1", y, 1e-6)
        y = y + spatial_attention(net, block + ".attn", z, heads[s], side, 1, True)
        inside, mlp = width * mlp_ratio, block + ".mlp"
        z = F.relu(net.linear(mlp + ".fc1", net.layer_norm(block + ".norm2", y, 1e-6), inside))
        weight = net.parameter(mlp + ".depthwise.weight", inside, 1, 3, 3)
        z = F.conv2d(as_grid(z, side), weight, net.parameter(mlp + ".depthwise.bias", inside),
                     padding=1, groups=inside).flatten(2).transpose(1, 2)
        y = y + net.linear(mlp + ".fc2", F.gelu(z), width)
        y = net.layer_norm(name + ".norm", y, 1e-6)
        x = as_grid(y, side)
    y = x.flatten(2).mean(2)
    return F.cross_entropy(net.linear("head", y, classes), whole("targets", (batch,), classes))
