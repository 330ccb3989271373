# The small networks in PyTorch whose gradients Tidemark's own kernels are compared with.
"""Small networks in torch.nn.functional, written from their papers; make_gradient_fixtures.py runs
them. Nothing is shared with Tidemark but names and sizes of parameters, and the formula that fills
parameters and inputs:

Element i of the tensor called `name` comes from the 32-bit hash
    x = mix(fnv1a(name) + (i + 1) · 0x9E3779B9),    mix = the finalizer of MurmurHash3,
and its top eight bits k = (x >> 24) − 128. Values are k times a power of two, and 1 + k / 512 cut
to 1/128 for the weights of norms, so every dtype down to bfloat16 holds them exactly.
"""

import math

import numpy as np
import torch
from torch.nn import functional as F


def hashes(name, count):
    h = 0x811C9DC5
    for byte in name.encode():
        h = (h ^ byte) * 0x01000193 & 0xFFFFFFFF
    mask = np.uint64(0xFFFFFFFF)
    x = (np.uint64(h) + (np.arange(count, dtype=np.uint64) + np.uint64(1))
         * np.uint64(0x9E3779B9)) & mask
    x = (x ^ (x >> np.uint64(16))) * np.uint64(0x85EBCA6B) & mask
    x = (x ^ (x >> np.uint64(13))) * np.uint64(0xC2B2AE35) & mask
    return x ^ (x >> np.uint64(16))


def signed_bytes(name, shape):
    """Whole numbers from −128 to 127."""
    top = hashes(name, math.prod(shape)) >> np.uint64(24)
    return (top.astype(np.int64) - 128).reshape(shape)


def whole(name, shape, limit):
    """Whole numbers from 0 to limit − 1."""
    x = hashes(name, math.prod(shape)) >> np.uint64(8)
    return torch.from_numpy((x % np.uint64(limit)).astype(np.int64).reshape(shape))


def initial_parameter(name, shape):
    k = signed_bytes(name, shape)
    if len(shape) == 1:
        return 1 + np.floor(k / 4) / 128 if name.endswith("weight") else k / 1024
    exponent = 0  # about √(3 / inputs), so that activations neither die nor explode
    while 6 * 4**exponent < math.prod(shape) // shape[0]:
        exponent += 1
    return k / 128 / 2**exponent


class Network:
    """Parameters by name, made where they are first used."""

    def __init__(self, dtype):
        self.dtype = dtype
        self.parameters = {}

    def parameter(self, name, *shape):
        if name not in self.parameters:
            values = torch.from_numpy(np.asarray(initial_parameter(name, shape), dtype=np.float64))
            self.parameters[name] = values.to(self.dtype).requires_grad_()
        return self.parameters[name]

    def constant(self, values):
        return torch.as_tensor(values, dtype=torch.float64).to(self.dtype)

    def image(self, *shape):
        return self.constant(signed_bytes("images", shape) / 64)

    def linear(self, name, x, out, bias=True):
        weight = self.parameter(name + ".weight", out, x.shape[-1])
        return F.linear(x, weight, self.parameter(name + ".bias", out) if bias else None)

    def layer_norm(self, name, x, epsilon):
        width = x.shape[-1]
        return F.layer_norm(x, (width,), self.parameter(name + ".weight", width),
                            self.parameter(name + ".bias", width), epsilon)

    def rms_norm(self, name, x, epsilon):
        y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + epsilon)
        return y * self.parameter(name + ".weight", x.shape[-1])

    def patches(self, name, x, width, kernel, stride, padding=0):
        weight = self.parameter(name + ".weight", width, x.shape[1], kernel, kernel)
        y = F.conv2d(x, weight, self.parameter(name + ".bias", width), stride, padding)
        return y.flatten(2).transpose(1, 2)

    def mlp(self, name, x, hidden, approximate="none"):
        y = F.gelu(self.linear(name + ".fc1", x, hidden), approximate=approximate)
        return self.linear(name + ".fc2", y, x.shape[-1])


def split_heads(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def merge_heads(x):
    return x.transpose(1, 2).flatten(2)


def attention(q, k, v, added=None):
    """Scaled dot-product attention (arXiv 1706.03762, equation 1); `added` to the scores."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if added is not None:
        scores = scores + added
    return scores.softmax(-1) @ v


def packed_heads(net, name, x, heads):
    return [split_heads(part, heads)
            for part in net.linear(name + ".qkv", x, 3 * x.shape[-1]).chunk(3, -1)]


def causal_mask(net, tokens):
    hidden = torch.ones(tokens, tokens).triu(1).bool()
    return net.constant(torch.zeros(tokens, tokens).double()).masked_fill(hidden, -math.inf)


def vit(net, batch, image, patch, width, depth, heads, mlp, classes):
    """arXiv 2010.11929: pre-norm blocks over a class token and the patches."""
    x = net.patches("patch_embed", net.image(batch, 3, image, image), width, patch, patch)
    first = net.parameter("class_token", 1, 1, width).expand(batch, -1, -1)
    x = torch.cat([first, x], 1)
    x = x + net.parameter("pos_embed", 1, x.shape[1], width)
    for i in range(depth):
        name = f"blocks.{i}"
        y = net.layer_norm(name + ".norm1", x, 1e-6)
        y = merge_heads(attention(*packed_heads(net, name + ".attn", y, heads)))
        x = x + net.linear(name + ".attn.proj", y, width)
        x = x + net.mlp(name + ".mlp", net.layer_norm(name + ".norm2", x, 1e-6), mlp)
    logits = net.linear("head", net.layer_norm("norm", x, 1e-6)[:, 0], classes)
    return F.cross_entropy(logits, whole("targets", (batch,), classes))


def grid_of(x):
    side = math.isqrt(x.shape[1])
    return x.unflatten(1, (side, side))


def cut_windows(x, window):
    """[b, y, x, c] → [b · windows, window², c]."""
    b, side, _, c = x.shape
    n = side // window
    return x.reshape(b, n, window, n, window, c).transpose(2, 3).reshape(-1, window**2, c)


def join_windows(x, window, side):
    n = side // window
    return x.reshape(-1, n, n, window, window, x.shape[-1]).transpose(2, 3).reshape(
        -1, side, side, x.shape[-1])


def window_mask(side, window, shift):
    """−100 between tokens that come from different sides of the rolled grid (arXiv 2103.14030)."""
    band = torch.zeros(side, dtype=torch.int64)
    band[side - window:side - shift] = 1
    band[side - shift:] = 2
    regions = cut_windows((band[:, None] * 3 + band)[None, :, :, None], window)[..., 0]
    return (regions[:, :, None] != regions[:, None, :]).double()[:, None] * -100


def relative_bias(net, name, window, heads):
    table = net.parameter(name + ".relative_position_bias_table", (2 * window - 1) ** 2, heads)
    at = torch.stack(torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij"))
    at = at.flatten(1)
    apart = at[:, :, None] - at[:, None, :] + window - 1
    return table[apart[0] * (2 * window - 1) + apart[1]].permute(2, 0, 1)[None]


def swin_block(net, name, x, heads, window, shift):
    """arXiv 2103.14030, equation 3."""
    side, width, batch = math.isqrt(x.shape[1]), x.shape[2], x.shape[0]
    y = grid_of(net.layer_norm(name + ".norm1", x, 1e-5))
    y = cut_windows(y.roll((-shift, -shift), (1, 2)), window)
    q, k, v = packed_heads(net, name + ".attn", y, heads)
    added = relative_bias(net, name + ".attn", window, heads)
    if shift:
        mask = net.constant(window_mask(side, window, shift))
        added = (added + mask).repeat(batch, 1, 1, 1)
    y = net.linear(name + ".attn.proj", merge_heads(attention(q, k, v, added)), width)
    y = join_windows(y, window, side).roll((shift, shift), (1, 2)).flatten(1, 2)
    x = x + y
    return x + net.mlp(name + ".mlp", net.layer_norm(name + ".norm2", x, 1e-5), 4 * width)


def swin(net, batch, image, patch, width, depths, heads, window, classes):
    x = net.patches("patch_embed", net.image(batch, 3, image, image), width, patch, patch)
    x = net.layer_norm("patch_embed.norm", x, 1e-5)
    for s, depth in enumerate(depths):
        side = math.isqrt(x.shape[1])
        for k in range(depth):
            shift = window // 2 if k % 2 and window < side else 0
            x = swin_block(net, f"stages.{s}.blocks.{k}", x, heads[s], min(window, side), shift)
        if s + 1 < len(depths):
            g = grid_of(x)
            x = torch.cat([g[:, i::2, j::2] for j in (0, 1) for i in (0, 1)], -1).flatten(1, 2)
            x = net.layer_norm(f"stages.{s}.merge.norm", x, 1e-5)
            x = net.linear(f"stages.{s}.merge.reduction", x, x.shape[-1] // 2, False)
    logits = net.linear("head", net.layer_norm("norm", x, 1e-5).mean(1), classes)
    return F.cross_entropy(logits, whole("targets", (batch,), classes))


def pooled(net, name, x, stride):
    """A depthwise convolution over each head's grid, then a norm (arXiv 2112.01526, section 3)."""
    b, h, t, d = x.shape
    side = math.isqrt(t)
    y = x.reshape(b * h, side, side, d).permute(0, 3, 1, 2)
    y = F.conv2d(y, net.parameter(name + ".conv.weight", d, 1, 3, 3), None, stride, 1, 1, d)
    y = y.flatten(2).transpose(1, 2).reshape(b, h, -1, d)
    return net.layer_norm(name + ".norm", y, 1e-6)


def distances(q_side, k_side):
    q = torch.arange(q_side)[:, None] * max(k_side // q_side, 1)
    k = torch.arange(k_side)[None, :] * max(q_side // k_side, 1)
    return q - k + (k_side - 1) * max(q_side // k_side, 1)


def decomposed_bias(net, name, q, k):
    """q · R for rows and columns (arXiv 2112.01526, equation 4)."""
    q_side, k_side = math.isqrt(q.shape[2]), math.isqrt(k.shape[2])
    span = 2 * max(q_side, k_side) - 1
    rows = net.parameter(name + ".rel_pos_h", span, q.shape[3])[distances(q_side, k_side)]
    columns = net.parameter(name + ".rel_pos_w", span, q.shape[3])[distances(q_side, k_side)]
    g = q.unflatten(2, (q_side, q_side))
    added = (torch.einsum("bhyxd,ykd->bhyxk", g, rows)[..., :, None]
             + torch.einsum("bhyxd,xkd->bhyxk", g, columns)[..., None, :])
    return added.flatten(4).flatten(2, 3)


def mvit_block(net, name, x, heads, width, q_stride, k_stride):
    normed = net.layer_norm(name + ".norm1", x, 1e-6)
    parts = net.linear(name + ".attn.qkv", normed, 3 * width).chunk(3, -1)
    q, k, v = [pooled(net, f"{name}.attn.pool_{letter}", split_heads(part, heads), stride)
               for part, letter, stride in zip(parts, "qkv", (q_stride, k_stride, k_stride))]
    y = attention(q, k, v, decomposed_bias(net, name + ".attn", q, k)) + q
    y = net.linear(name + ".attn.proj", merge_heads(y), width)
    if x.shape[-1] != width:
        x = net.linear(name + ".widen", normed, width)
    if q_stride > 1:
        grid = grid_of(x).permute(0, 3, 1, 2)
        x = F.max_pool2d(grid, 3, q_stride, 1).flatten(2).transpose(1, 2)
    x = x + y
    return x + net.mlp(name + ".mlp", net.layer_norm(name + ".norm2", x, 1e-6), 4 * width)


def mvit(net, batch, image, width, depths, key_stride, classes):
    x = net.patches("patch_embed", net.image(batch, 3, image, image), width, 7, 4, 3)
    i = 0
    for s, depth in enumerate(depths):
        for k in range(depth):
            q_stride = 2 if s > 0 and k == 0 else 1
            x = mvit_block(net, f"blocks.{i}", x, 1 << s, width << s, q_stride,
                           max(key_stride >> s, 1))
            i += 1
    logits = net.linear("head", net.layer_norm("norm", x, 1e-6).mean(1), classes)
    return F.cross_entropy(logits, whole("targets", (batch,), classes))


def separate_heads(net, name, x, heads, key_heads, width, bias):
    return [split_heads(net.linear(f"{name}.{letter}", x, n * width, bias), n)
            for letter, n in zip("qkv", (heads, key_heads, key_heads))]


def bert(net, batch, tokens, vocabulary, width, depth, heads, mlp):
    """arXiv 1810.04805, post-norm; the loss is that of the tokens whose label is not −100."""
    table = net.parameter("embed.weight", vocabulary, width)
    x = table[whole("input_ids", (batch, tokens), vocabulary)]
    types = net.parameter("type_embed.weight", 2, width)
    x = x + types[whole("token_type_ids", (batch, tokens), 2)]
    x = x + net.parameter("position_embed.weight", tokens, width)[torch.arange(tokens)]
    x = net.layer_norm("embed_norm", x, 1e-12)
    for i in range(depth):
        name = f"blocks.{i}"
        q, k, v = separate_heads(net, name + ".attn", x, heads, heads, width // heads, True)
        y = net.linear(name + ".attn.dense", merge_heads(attention(q, k, v)), width)
        x = net.layer_norm(name + ".norm1", x + y, 1e-12)
        x = net.layer_norm(name + ".norm2", x + net.mlp(name + ".mlp", x, mlp), 1e-12)
    y = net.layer_norm("transform.norm", F.gelu(net.linear("transform.dense", x, width)), 1e-12)
    logits = F.linear(y, table, net.parameter("lm_head.bias", vocabulary))
    labels = whole("labels", (batch, tokens), vocabulary)
    labels[whole("is_masked", (batch, tokens), 3) > 0] = -100
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def next_token_loss(logits, vocabulary):
    labels = whole("labels", logits.shape[:2], vocabulary)
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())


def gpt2(net, batch, tokens, vocabulary, width, depth, heads, mlp):
    """Pre-norm, learned positions, GELU in its tanh form, tied head."""
    table = net.parameter("embed.weight", vocabulary, width)
    x = table[whole("input_ids", (batch, tokens), vocabulary)]
    x = x + net.parameter("position_embed.weight", tokens, width)
    for i in range(depth):
        name = f"blocks.{i}"
        y = net.layer_norm(name + ".norm1", x, 1e-5)
        q, k, v = packed_heads(net, name + ".attn", y, heads)
        y = merge_heads(attention(q, k, v, causal_mask(net, tokens)))
        x = x + net.linear(name + ".attn.proj", y, width)
        x = x + net.mlp(name + ".mlp", net.layer_norm(name + ".norm2", x, 1e-5), mlp, "tanh")
    return next_token_loss(F.linear(net.layer_norm("norm", x, 1e-5), table), vocabulary)


def rotated(net, x):
    """arXiv 2104.09864, pairs (i, i + d/2): z → z · exp(i · token · 10000^(−2i/d))."""
    tokens, d = x.shape[-2:]
    angle = (torch.arange(tokens).double()[:, None]
             * 10000.0 ** (-torch.arange(0, d, 2).double() / d))
    # Their cosine and sine are float32 tables in every framework.
    cosine, sine = (net.constant(f(angle).float()) for f in (torch.cos, torch.sin))
    a, b = x.chunk(2, -1)
    return torch.cat([a * cosine - b * sine, b * cosine + a * sine], -1)


def llama(net, batch, tokens, vocabulary, width, depth, heads, key_heads, head_width, mlp):
    """arXiv 2302.13971, with grouped heads (arXiv 2305.13245): head h reads key head h / g."""
    x = net.parameter("embed.weight", vocabulary, width)[
        whole("input_ids", (batch, tokens), vocabulary)]
    for i in range(depth):
        name = f"blocks.{i}"
        y = net.rms_norm(name + ".input_norm", x, 1e-6)
        q, k, v = separate_heads(net, name + ".attn", y, heads, key_heads, head_width, False)
        q, k = rotated(net, q), rotated(net, k)
        k, v = (part.repeat_interleave(heads // key_heads, 1) for part in (k, v))
        y = merge_heads(attention(q, k, v, causal_mask(net, tokens)))
        x = x + net.linear(name + ".attn.o", y, width, False)
        y = net.rms_norm(name + ".post_norm", x, 1e-6)
        gate = F.silu(net.linear(name + ".mlp.gate", y, mlp, False))
        y = gate * net.linear(name + ".mlp.up", y, mlp, False)
        x = x + net.linear(name + ".mlp.down", y, width, False)
    logits = net.linear("lm_head", net.rms_norm("norm", x, 1e-6), vocabulary, False)
    return next_token_loss(logits, vocabulary)
