# More small decoders in PyTorch: what Gemma, GPT-NeoX, Phi-3, OPT, OLMo-2, StableLM, Granite, SmolLM3,
# Hunyuan, GLM-4 and ERNIE 4.5 do otherwise.
"""As gradient_networks.py, from the models' papers. A weight of Gemma's norms stands here for what
multiplies, 1 + the weight."""

import math

import torch
from torch.nn import functional as F

from gradient_networks import (attention, causal_mask, merge_heads, next_token_loss, split_heads,
                               whole)


def words(net, batch, tokens, vocabulary, width):
    return net.parameter("embed.weight", vocabulary, width)[
        whole("input_ids", (batch, tokens), vocabulary)]


def turned(net, x, theta=10000.0, width=None, neighbours=False):
    """arXiv 2104.09864 on the first `width` elements of each head: halves of them, or neighbours."""
    width = width or x.shape[-1]
    angle = (torch.arange(x.shape[-2]).double()[:, None]
             * theta ** (-torch.arange(0, width, 2).double() / width))
    cosine, sine = (net.constant(f(angle).float()) for f in (torch.cos, torch.sin))
    if neighbours:
        a, b = x[..., 0:width:2], x[..., 1:width:2]
        pairs = torch.stack([a * cosine - b * sine, b * cosine + a * sine], -1)
        return torch.cat([pairs.flatten(-2), x[..., width:]], -1)
    a, b = x[..., :width].chunk(2, -1)
    return torch.cat([a * cosine - b * sine, b * cosine + a * sine, x[..., width:]], -1)


def near_mask(net, tokens, window):
    far = torch.ones(tokens, tokens).tril(-window).bool()
    return causal_mask(net, tokens).masked_fill(far, -math.inf)


def head_norm(net, name, x):
    return net.rms_norm(name, x, 1e-6)


def repeated(x, heads):
    return x.repeat_interleave(heads // x.shape[1], 1)


def gemma(net, batch, tokens, vocabulary, width, depth, heads, key_heads, head_width, mlp, window,
          every, local_theta, cap):
    """arXiv 2503.19786: two norms a branch, norms of q and k, windows; the cap is arXiv 2408.00118's."""
    x = words(net, batch, tokens, vocabulary, width) * math.sqrt(width)
    for i in range(depth):
        name, near = f"blocks.{i}", (i + 1) % every != 0
        y = net.rms_norm(name + ".input_norm", x, 1e-6)
        q = split_heads(net.linear(name + ".attn.q", y, heads * head_width, False), heads)
        k, v = (split_heads(net.linear(name + ".attn." + part, y, key_heads * head_width, False),
                            key_heads) for part in "kv")
        q, k = head_norm(net, name + ".attn.q_norm", q), head_norm(net, name + ".attn.k_norm", k)
        q, k = (turned(net, part, local_theta if near else 10000.0) for part in (q, k))
        mask = near_mask(net, tokens, window) if near else causal_mask(net, tokens)
        y = merge_heads(attention(q, repeated(k, heads), repeated(v, heads), mask))
        y = net.linear(name + ".attn.o", y, width, False)
        x = x + net.rms_norm(name + ".attn_norm", y, 1e-6)
        y = net.rms_norm(name + ".post_norm", x, 1e-6)
        gate = F.gelu(net.linear(name + ".mlp.gate", y, mlp, False), approximate="tanh")
        y = gate * net.linear(name + ".mlp.up", y, mlp, False)
        y = net.linear(name + ".mlp.down", y, width, False)
        x = x + net.rms_norm(name + ".mlp_norm", y, 1e-6)
    logits = net.linear("lm_head", net.rms_norm("norm", x, 1e-6), vocabulary, False)
    return next_token_loss(cap * torch.tanh(logits / cap), vocabulary)


def gpt_neox(net, batch, tokens, vocabulary, width, depth, heads, mlp, rotary_width):
    """arXiv 2204.06745: both branches at once, q, k and v of a head side by side, a part turns."""
    x = words(net, batch, tokens, vocabulary, width)
    for i in range(depth):
        name = f"blocks.{i}"
        y = net.layer_norm(name + ".input_norm", x, 1e-5)
        q, k, v = split_heads(net.linear(name + ".attn.qkv", y, 3 * width), heads).chunk(3, -1)
        q, k = (turned(net, part, width=rotary_width) for part in (q, k))
        y = merge_heads(attention(q, k, v, causal_mask(net, tokens)))
        attended = net.linear(name + ".attn.o", y, width)
        x = net.mlp(name + ".mlp", net.layer_norm(name + ".post_norm", x, 1e-5), mlp) + attended + x
    logits = net.linear("lm_head", net.layer_norm("norm", x, 1e-5), vocabulary, False)
    return next_token_loss(logits, vocabulary)


def phi3(net, batch, tokens, vocabulary, width, depth, heads, key_heads, head_width, mlp):
    """arXiv 2404.14219: one product for q, k and v, one for gate and up."""
    x = words(net, batch, tokens, vocabulary, width)
    sizes = [heads * head_width, key_heads * head_width, key_heads * head_width]
    for i in range(depth):
        name = f"blocks.{i}"
        y = net.rms_norm(name + ".input_norm", x, 1e-5)
        parts = net.linear(name + ".attn.qkv", y, sum(sizes), False).split(sizes, -1)
        q, k, v = (part.unflatten(-1, (-1, head_width)).transpose(1, 2) for part in parts)
        q, k = turned(net, q), turned(net, k)
        y = merge_heads(attention(q, repeated(k, heads), repeated(v, heads),
                                  causal_mask(net, tokens)))
        x = x + net.linear(name + ".attn.o", y, width, False)
        y = net.rms_norm(name + ".post_norm", x, 1e-5)
        gate, up = net.linear(name + ".mlp.gate_up", y, 2 * mlp, False).chunk(2, -1)
        x = x + net.linear(name + ".mlp.down", up * F.silu(gate), width, False)
    logits = net.linear("lm_head", net.rms_norm("norm", x, 1e-5), vocabulary, False)
    return next_token_loss(logits, vocabulary)


def opt(net, batch, tokens, vocabulary, width, depth, heads, mlp, words_width):
    """arXiv 2205.01068, the 350M model: norms after the sums, ReLU, a narrower table of words."""
    table = net.parameter("embed.weight", vocabulary, words_width)
    x = table[whole("input_ids", (batch, tokens), vocabulary)]
    x = net.linear("project_in", x, width, False)
    x = x + net.parameter("position_embed.weight", tokens + 2, width)[2:]
    for i in range(depth):
        name = f"blocks.{i}"
        q, k, v = (split_heads(net.linear(name + ".attn." + part, x, width), heads)
                   for part in "qkv")
        y = merge_heads(attention(q, k, v, causal_mask(net, tokens)))
        x = net.layer_norm(name + ".attn_norm", x + net.linear(name + ".attn.o", y, width), 1e-5)
        y = net.linear(name + ".mlp.fc2", F.relu(net.linear(name + ".mlp.fc1", x, mlp)), width)
        x = net.layer_norm(name + ".mlp_norm", x + y, 1e-5)
    x = net.linear("project_out", x, words_width, False)
    return next_token_loss(F.linear(x, table), vocabulary)


def olmo2(net, batch, tokens, vocabulary, width, depth, heads, mlp):
    """arXiv 2501.00656: norms of what the branches make, and of all of q and of all of k."""
    x = words(net, batch, tokens, vocabulary, width)
    for i in range(depth):
        name = f"blocks.{i}"
        q, k = (net.rms_norm(name + f".attn.{part}_norm",
                             net.linear(name + ".attn." + part, x, width, False), 1e-5)
                for part in "qk")
        v = net.linear(name + ".attn.v", x, width, False)
        q, k, v = (split_heads(part, heads) for part in (q, k, v))
        y = merge_heads(attention(turned(net, q), turned(net, k), v, causal_mask(net, tokens)))
        y = net.linear(name + ".attn.o", y, width, False)
        x = x + net.rms_norm(name + ".attn_norm", y, 1e-5)
        y = F.silu(net.linear(name + ".mlp.gate", x, mlp, False))
        y = y * net.linear(name + ".mlp.up", x, mlp, False)
        x = x + net.rms_norm(name + ".mlp_norm", net.linear(name + ".mlp.down", y, width, False),
                             1e-5)
    logits = net.linear("lm_head", net.rms_norm("norm", x, 1e-5), vocabulary, False)
    return next_token_loss(logits, vocabulary)


def norm_each_head(net, name, x):
    """A LayerNorm of its own, without a bias, for each head of [batch, heads, tokens, d]."""
    d = x.shape[-1]
    return torch.stack([F.layer_norm(x[:, i], (d,), net.parameter(f"{name}.norms.{i}.weight", d),
                                     None, 1e-5) for i in range(x.shape[1])], 1)


def stablelm(net, batch, tokens, vocabulary, width, depth, heads, key_heads, mlp, rotary_width):
    """arXiv 2402.17834 and the card of StableLM 2 12B: both branches of one norm, norms of heads."""
    x = words(net, batch, tokens, vocabulary, width)
    for i in range(depth):
        name = f"blocks.{i}"
        y = net.layer_norm(name + ".input_norm", x, 1e-5)
        q = split_heads(net.linear(name + ".attn.q", y, width, False), heads)
        k, v = (split_heads(net.linear(name + ".attn." + part, y, key_heads * (width // heads),
                                       False), key_heads) for part in "kv")
        q, k = (norm_each_head(net, name + f".attn.{part}_norm", of)
                for part, of in (("q", q), ("k", k)))
        q, k = (turned(net, part, width=rotary_width) for part in (q, k))
        attended = merge_heads(attention(q, repeated(k, heads), repeated(v, heads),
                                         causal_mask(net, tokens)))
        attended = net.linear(name + ".attn.o", attended, width, False)
        gate = F.silu(net.linear(name + ".mlp.gate", y, mlp, False))
        fed = net.linear(name + ".mlp.down", gate * net.linear(name + ".mlp.up", y, mlp, False),
                         width, False)
        x = fed + attended + x
    logits = net.linear("lm_head", net.layer_norm("norm", x, 1e-5), vocabulary, False)
    return next_token_loss(logits, vocabulary)


def llamas_kin(net, batch, tokens, vocabulary, width, depth, heads, key_heads, head_width, mlp,
               still_every=0, norms_turned=False, neighbours=False,
               factors=(1.0, None, 1.0, 1.0), epsilon=1e-6):
    """Granite: `factors` of words, scores, branches and logits (arXiv 2408.13359). SmolLM3 turns no
    head in every n-th block (2501.18795). Hunyuan norms the heads when they have turned. ERNIE 4.5
    turns neighbours."""
    of_words, of_scores, of_branches, of_logits = factors
    x = words(net, batch, tokens, vocabulary, width) * of_words
    for i in range(depth):
        name = f"blocks.{i}"
        y = net.rms_norm(name + ".input_norm", x, epsilon)
        q = split_heads(net.linear(name + ".attn.q", y, heads * head_width, False), heads)
        k, v = (split_heads(net.linear(name + ".attn." + part, y, key_heads * head_width, False),
                            key_heads) for part in "kv")
        if not still_every or (i + 1) % still_every != 0:
            q, k = (turned(net, part, neighbours=neighbours) for part in (q, k))
        if norms_turned:
            q, k = (net.rms_norm(name + f".attn.{part}_norm", of, epsilon)
                    for part, of in (("q", q), ("k", k)))
        if of_scores is not None:
            q = q * of_scores * math.sqrt(head_width)
        y = merge_heads(attention(q, repeated(k, heads), repeated(v, heads),
                                  causal_mask(net, tokens)))
        x = x + net.linear(name + ".attn.o", y, width, False) * of_branches
        y = net.rms_norm(name + ".post_norm", x, epsilon)
        y = F.silu(net.linear(name + ".mlp.gate", y, mlp, False)) * net.linear(name + ".mlp.up", y,
                                                                              mlp, False)
        x = x + net.linear(name + ".mlp.down", y, width, False) * of_branches
    logits = net.linear("lm_head", net.rms_norm("norm", x, epsilon), vocabulary, False) * of_logits
    return next_token_loss(logits, vocabulary)


def glm4(net, batch, tokens, vocabulary, width, depth, heads, key_heads, head_width, mlp):
    """The card of GLM-4-0414: neighbours turn in half of a head, two norms a branch, biases of q, k
    and v, one product for gate and up."""
    x = words(net, batch, tokens, vocabulary, width)
    epsilon = 1.5625e-7
    for i in range(depth):
        name = f"blocks.{i}"
        y = net.rms_norm(name + ".input_norm", x, epsilon)
        q = split_heads(net.linear(name + ".attn.q", y, heads * head_width), heads)
        k, v = (split_heads(net.linear(name + ".attn." + part, y, key_heads * head_width),
                            key_heads) for part in "kv")
        q, k = (turned(net, part, width=head_width // 2, neighbours=True) for part in (q, k))
        y = merge_heads(attention(q, repeated(k, heads), repeated(v, heads),
                                  causal_mask(net, tokens)))
        y = net.linear(name + ".attn.o", y, width, False)
        x = x + net.rms_norm(name + ".attn_norm", y, epsilon)
        y = net.rms_norm(name + ".post_norm", x, epsilon)
        gate, up = net.linear(name + ".mlp.gate_up", y, 2 * mlp, False).chunk(2, -1)
        y = net.linear(name + ".mlp.down", up * F.silu(gate), width, False)
        x = x + net.rms_norm(name + ".mlp_norm", y, epsilon)
    logits = net.linear("lm_head", net.rms_norm("norm", x, epsilon), vocabulary, False)
    return next_token_loss(logits, vocabulary)
