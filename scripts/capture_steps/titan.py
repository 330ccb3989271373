"""LLaMA 3 as torchtitan trains it: the calls of its model.py and of its loss, in their order.

Source: torchtitan/models/llama/model.py, norms.py and train.py of pytorch/torchtitan a3e09ad7 (February
2025). Sizes are given by the keys of transformers' config.json.
"""

import collections

import torch
from torch import nn
from torch.nn import functional

Outputs = collections.namedtuple("Outputs", "loss")  # a tuple: hooks of wrappers look into it


class Norm(nn.Module):
    def __init__(self, width, epsilon):
        super().__init__()
        self.weight, self.epsilon = nn.Parameter(torch.ones(width)), epsilon

    def scaled(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.epsilon)

    def forward(self, x):
        rounded = self.scaled(x.float()).type_as(x)
        return rounded * self.weight


def turned(q, k, waves):
    """Neighbours in a head are a complex number, and a turn is a product."""
    complex_q = torch.view_as_complex(q.float().reshape(*q.shape[:-1], -1, 2))
    complex_k = torch.view_as_complex(k.float().reshape(*k.shape[:-1], -1, 2))
    waves = waves[:q.shape[1]].view(1, q.shape[1], 1, complex_q.shape[-1])
    real_q = torch.view_as_real(complex_q * waves).flatten(3)
    real_k = torch.view_as_real(complex_k * waves).flatten(3)
    return real_q.type_as(q), real_k.type_as(k)


def repeated(x, times):
    if times == 1:
        return x
    batch, tokens, heads, width = x.shape
    wide = torch.unsqueeze(x, dim=3).expand(batch, tokens, heads, times, width)
    return wide.reshape(batch, tokens, heads * times, width)


class Attention(nn.Module):
    def __init__(self, width, heads, key_heads):
        super().__init__()
        self.times, self.head_width = heads // key_heads, width // heads
        self.wq = nn.Linear(width, width, bias=False)
        self.wk = nn.Linear(width, key_heads * self.head_width, bias=False)
        self.wv = nn.Linear(width, key_heads * self.head_width, bias=False)
        self.wo = nn.Linear(width, width, bias=False)

    def forward(self, x, waves):
        batch, tokens, _ = x.shape
        q, k, v = self.wq(x), self.wk(x), self.wv(x)
        q = q.view(batch, tokens, -1, self.head_width)
        k = k.view(batch, tokens, -1, self.head_width)
        v = v.view(batch, tokens, -1, self.head_width)
        q, k = turned(q, k, waves)
        keys = repeated(k, self.times)
        values = repeated(v, self.times)
        q, k, v = q.transpose(1, 2), keys.transpose(1, 2), values.transpose(1, 2)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        mixed = mixed.transpose(1, 2).contiguous()
        mixed = mixed.view(batch, tokens, -1)
        return self.wo(mixed)


class FeedForward(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.w1 = nn.Linear(width, inner, bias=False)
        self.w2 = nn.Linear(inner, width, bias=False)
        self.w3 = nn.Linear(width, inner, bias=False)

    def forward(self, x):
        return self.w2(functional.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, heads = config["hidden_size"], config["num_attention_heads"]
        self.attention = Attention(width, heads, config.get("num_key_value_heads", heads))
        self.feed_forward = FeedForward(width, config["intermediate_size"])
        self.attention_norm, self.ffn_norm = Norm(width, 1e-5), Norm(width, 1e-5)

    def forward(self, x, waves):
        middle = x + self.attention(self.attention_norm(x), waves)
        out = middle + self.feed_forward(self.ffn_norm(middle))
        return out


class Network(nn.Module):
    def __init__(self, config, tokens):
        super().__init__()
        width = config["hidden_size"]
        self.tok_embeddings = nn.Embedding(config["vocab_size"], width)
        self.register_buffer("waves", waves_of(width // config["num_attention_heads"], tokens))
        self.layers = nn.ModuleList(Block(config) for _ in range(config["num_hidden_layers"]))
        self.norm = Norm(width, 1e-5)
        self.output = nn.Linear(width, config["vocab_size"], bias=False)

    def forward(self, ids):
        x = self.tok_embeddings(ids)
        for layer in self.layers:
            x = layer(x, self.waves)
        x = self.norm(x)
        scores = self.output(x)
        return scores


def waves_of(head_width, tokens):
    """A parameter of no gradient's kind: a buffer for all blocks, as long as a sequence."""
    speeds = 1.0 / 10000.0 ** (torch.arange(0, head_width, 2).float() / head_width)
    angles = torch.outer(torch.arange(tokens), speeds).float()
    return torch.polar(torch.ones_like(angles), angles)


def loss_of(scores, labels):
    return functional.cross_entropy(scores.flatten(0, 1).float(), labels.flatten(0, 1))


class Step(nn.Module):
    """The network and its loss, called as transformers' models are."""

    def __init__(self, config, tokens):
        super().__init__()
        self.network = Network(config, tokens)

    def forward(self, input_ids, labels):
        scores = self.network(input_ids)
        loss = loss_of(scores, labels)
        del scores
        return Outputs(loss)


def build(case):
    """In the case's dtype, but for the waves, which stay complex; blocks wrapped where it says so."""
    with torch.device("cuda"):
        model = Step(case["config"], case["tokens"])
    if case["precision"] == "bf16":
        for parameter in model.parameters():
            parameter.data = parameter.data.to(torch.bfloat16)
    return model.train()


def wrap(model, **options):
    """torchtitan's checkpoints around blocks."""
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper

    for i, block in enumerate(model.network.layers):
        model.network.layers[i] = checkpoint_wrapper(block, preserve_rng_state=False, **options)
