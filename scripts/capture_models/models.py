"""Small models of many kinds, each a step that `tidemark capture` takes: models.py:gpt2.

Sizes are odd and small: constants weigh more than in practice, and traces of them are short.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
import torch.utils.checkpoint
from torch import nn


def words(batch, tokens, masked=False):
    ids = torch.zeros(batch, tokens, dtype=torch.long)
    inputs = dict(input_ids=ids, labels=ids.clone())
    # As a tokenizer hands it over. Without it, transformers 4.53 to 4.57 take every batch for packed.
    inputs["attention_mask"] = torch.ones_like(ids)
    if masked:
        inputs["attention_mask"][0, -1] = 0
    return inputs


def pictures(batch, side, classes=10):
    labels = torch.zeros(batch, dtype=torch.long)
    return torch.zeros(batch, 3, side, side), lambda output: F.cross_entropy(output, labels)


def huggingface(name, config, **more):
    import transformers

    config = getattr(transformers, config)(**more)
    config.use_cache = False
    return getattr(transformers, name)(config)


LLAMA = dict(num_hidden_layers=3, hidden_size=192, intermediate_size=512, num_attention_heads=6,
             num_key_value_heads=2, vocab_size=1999)


def gpt2():
    return huggingface("GPT2LMHeadModel", "GPT2Config", n_layer=3, n_embd=192, n_head=6,
                       vocab_size=1999, n_positions=256), words(3, 133)


def llama():
    return huggingface("LlamaForCausalLM", "LlamaConfig", **LLAMA), words(3, 149)


def llama_padded():
    return llama()[0], words(3, 149, masked=True)


def mixtral():
    return huggingface("MixtralForCausalLM", "MixtralConfig", **LLAMA,
                       num_local_experts=4), words(2, 77)


def t5():
    model = huggingface("T5ForConditionalGeneration", "T5Config", d_model=128, d_kv=32, d_ff=320,
                        num_layers=2, num_heads=4, vocab_size=1999, decoder_start_token_id=0)
    return model, words(3, 61)


def bert():
    return huggingface("BertForMaskedLM", "BertConfig", num_hidden_layers=3, hidden_size=192,
                       num_attention_heads=6, intermediate_size=512, vocab_size=1999), words(3, 77)


def whisper():
    model = huggingface("WhisperForConditionalGeneration", "WhisperConfig", d_model=96,
                        encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                        decoder_attention_heads=4, encoder_ffn_dim=256, decoder_ffn_dim=256,
                        vocab_size=1999, pad_token_id=0, bos_token_id=1, eos_token_id=2,
                        decoder_start_token_id=1, max_source_positions=100)
    return model, dict(input_features=torch.zeros(2, 80, 200),
                       labels=torch.zeros(2, 16, dtype=torch.long))


def mamba():
    return huggingface("MambaForCausalLM", "MambaConfig", hidden_size=64, num_hidden_layers=2,
                       vocab_size=999), dict(input_ids=torch.zeros(2, 8, dtype=torch.long),
                                             labels=torch.zeros(2, 8, dtype=torch.long))


def lora():
    import peft

    model = peft.get_peft_model(llama()[0], peft.LoraConfig(
        r=6, lora_alpha=12, lora_dropout=0.1, target_modules=["q_proj", "v_proj"]))
    return model, words(3, 149)


def checkpointed():
    model, batch = llama()
    model.gradient_checkpointing_enable(dict(use_reentrant=False))
    return model, batch


def vit():
    import timm

    return (timm.create_model("vit_tiny_patch16_224", img_size=64, depth=3, num_classes=10),
            *pictures(5, 64))


def efficientnet():
    import torchvision

    return torchvision.models.efficientnet_b0(num_classes=10), *pictures(3, 64)


def resnet50():
    import torchvision

    return torchvision.models.resnet50(num_classes=10), *pictures(3, 64)


def convnext():
    import torchvision

    return torchvision.models.convnext_tiny(num_classes=10), *pictures(3, 64)


def swin():
    import torchvision

    return torchvision.models.swin_t(num_classes=10), *pictures(2, 112)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x):
        batch, tokens, width = x.shape
        q, k, v = (y.view(batch, tokens, self.heads, -1).transpose(1, 2)
                   for y in self.qkv(x).split(width, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).contiguous().view(batch, tokens, width))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width),
                                 nn.Dropout(0.1))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Small(nn.Module):
    """Own code in the manner of small teaching repositories: tied embeddings, dropout, a loop."""

    def __init__(self, words=1999, width=160, heads=5, layers=3, tokens=128, checkpoint=False):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(tokens, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.words.weight
        self.checkpoint = checkpoint

    def forward(self, ids, targets):
        places = torch.arange(ids.shape[1], device=ids.device)
        x = self.words(ids) + self.places(places)
        for block in self.blocks:
            if self.checkpoint:
                x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))


def small(checkpoint=False):
    ids = torch.zeros(4, 101, dtype=torch.long)
    return Small(checkpoint=checkpoint), dict(ids=ids, targets=ids.clone())


def small_checkpointed():
    return small(checkpoint=True)


class Square(torch.autograd.Function):
    """x², with a tensor on ctx that no saved-tensor hook sees."""

    @staticmethod
    def forward(ctx, x):
        y = x * x
        ctx.save_for_backward(x)
        ctx.extra = (y + 1).sqrt()
        return y

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * 2 * x


class Odd(nn.Module):
    """What captures trip over: a function of its own, einsum, masks, results in place."""

    def __init__(self, width=64, heads=4):
        super().__init__()
        self.heads = heads
        self.qkv, self.drop = nn.Linear(width, 3 * width), nn.Dropout(0.1)
        self.a, self.b = Block(width, heads), Block(width, heads)
        self.scale, self.head = nn.Parameter(torch.ones(width)), nn.Linear(width, 10)

    def forward(self, x):
        batch, tokens, width = x.shape
        q, k, v = self.qkv(x).view(batch, tokens, 3, self.heads, -1).unbind(2)
        scores = torch.einsum("bthd,bshd->bhts", q, k) / 4.0
        mask = torch.ones(tokens, tokens, dtype=torch.bool, device=x.device).triu(1)
        scores = scores.masked_fill(mask, float("-inf"))
        y = torch.einsum("bhts,bshd->bthd", scores.softmax(-1), v).reshape(batch, tokens, width)
        x = Square.apply(x + self.drop(y)) * self.scale
        x = self.a(x)
        x = torch.utils.checkpoint.checkpoint(self.b, x, use_reentrant=False)
        x = x.clone()
        x[:, 0] += 1.0
        x.relu_()
        if mask.any():
            x = x[:, :4]
        return self.head(x.mean(1))


def odd():
    labels = torch.zeros(5, dtype=torch.long)
    return Odd(), torch.zeros(5, 33, 64), lambda output: F.cross_entropy(output, labels)


def deepseek():
    """Latent attention, and experts that are picked by group, after a dense layer."""
    return huggingface("DeepseekV3ForCausalLM", "DeepseekV3Config", num_hidden_layers=2,
                       hidden_size=128, intermediate_size=256, moe_intermediate_size=64,
                       num_attention_heads=4, num_key_value_heads=4, n_routed_experts=8,
                       num_experts_per_tok=2, n_group=2, topk_group=1, q_lora_rank=32,
                       kv_lora_rank=32, qk_rope_head_dim=16, qk_nope_head_dim=16, v_head_dim=32,
                       first_k_dense_replace=1, vocab_size=999), words(2, 33)


def modernbert():
    return huggingface("ModernBertForMaskedLM", "ModernBertConfig", num_hidden_layers=3,
                       hidden_size=192, intermediate_size=256, num_attention_heads=6,
                       vocab_size=999, pad_token_id=0, bos_token_id=1, eos_token_id=2,
                       cls_token_id=1, sep_token_id=2, reference_compile=False), words(2, 65)


def deberta():
    """Attention by content and by relative position."""
    return huggingface("DebertaV2ForMaskedLM", "DebertaV2Config", num_hidden_layers=2,
                       hidden_size=192, intermediate_size=256, num_attention_heads=6,
                       vocab_size=999, relative_attention=True, pos_att_type=["p2c", "c2p"],
                       position_buckets=32), words(2, 65)


def bart():
    return huggingface("BartForConditionalGeneration", "BartConfig", encoder_layers=2,
                       decoder_layers=2, d_model=128, encoder_ffn_dim=256, decoder_ffn_dim=256,
                       encoder_attention_heads=4, decoder_attention_heads=4,
                       vocab_size=999), words(2, 33)


def clip():
    """Two towers, and a loss over all pairs."""
    import transformers

    tower = dict(hidden_size=128, intermediate_size=256, num_hidden_layers=2,
                 num_attention_heads=4)
    config = transformers.CLIPConfig(text_config=dict(tower, vocab_size=999),
                                     vision_config=dict(tower, image_size=64, patch_size=16))
    return transformers.CLIPModel(config), dict(
        input_ids=torch.zeros(4, 16, dtype=torch.long), pixel_values=torch.zeros(4, 3, 64, 64),
        return_loss=True)


def pvt():
    import timm

    return timm.create_model("pvt_v2_b0", num_classes=10), *pictures(2, 64)


class Recurrent(nn.Module):
    def __init__(self, words=99, width=64):
        super().__init__()
        self.embed, self.head = nn.Embedding(words, width), nn.Linear(width, words)
        self.layers = nn.LSTM(width, width, 2, batch_first=True)

    def forward(self, ids):
        return self.head(self.layers(self.embed(ids))[0])


def lstm():
    return Recurrent(), torch.zeros(4, 20, dtype=torch.long), lambda output: output.pow(2).mean()


class Cells(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.GRUCell(64, 192), nn.Linear(192, 5)

    def forward(self, x):
        state = None
        for at in range(x.shape[1]):
            state = self.cell(x[:, at], state)
        return self.head(state)


def cells():
    return Cells(), torch.zeros(4, 12, 64), lambda output: output.pow(2).mean()


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.tower = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256))

    def forward(self, left, right):
        return F.cosine_similarity(self.tower(left), self.tower(right), dim=-1).mean()


def siamese():
    return Siamese(), (torch.zeros(2, 7, 256), torch.zeros(2, 7, 256))


class Penalized(nn.Module):
    """A critic whose gradient is held at a length of 1."""

    def __init__(self):
        super().__init__()
        self.critic = nn.Sequential(nn.Linear(256, 512), nn.Tanh(), nn.Linear(512, 1))

    def forward(self, x):
        scores = self.critic(x.requires_grad_())
        slope, = torch.autograd.grad(scores.sum(), x, create_graph=True)
        return scores.mean() + (slope.norm(dim=1) - 1).square().mean()


def penalized():
    return Penalized(), torch.zeros(16, 256)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(256)
        self.up, self.down = nn.Linear(256, 1024), nn.Linear(1024, 256)

    def forward(self, x):
        return self.down(F.gelu(self.up(self.norm(x)))).square().mean()


def compiled(step):
    model, *rest = step
    return torch.compile(model), *rest


def net_compiled():
    return compiled((Net(), torch.zeros(4096, 256)))


def small_compiled():
    return compiled(small())


def small_compiled_blocks():
    model, batch = small()
    for block in model.blocks:
        block.compile()
    return model, batch


def gpt2_compiled():
    return compiled(gpt2())


def llama_compiled():
    return compiled(llama())


def vit_compiled():
    return compiled(vit())


# What is captured for the tests: name, function, precision, optimizer.
CASES = [
    ("gpt2-fp32", "gpt2", "fp32", "adamw"),
    ("gpt2-amp-bf16", "gpt2", "amp-bf16", "adamw"),
    ("llama-bf16", "llama", "bf16", "adamw"),
    ("llama-padded-amp-bf16", "llama_padded", "amp-bf16", "sgd"),
    ("mixtral-bf16", "mixtral", "bf16", "adamw"),
    ("t5-fp32", "t5", "fp32", "adamw"),
    ("bert-amp-bf16", "bert", "amp-bf16", "adamw"),
    ("whisper-fp32", "whisper", "fp32", "adamw"),
    ("mamba-fp32", "mamba", "fp32", "adamw"),
    ("lora-bf16", "lora", "bf16", "adamw"),
    ("checkpointed-bf16", "checkpointed", "bf16", "adamw"),
    ("vit-amp-bf16", "vit", "amp-bf16", "adamw"),
    ("resnet50-fp32", "resnet50", "fp32", "sgd"),
    ("convnext-amp-bf16", "convnext", "amp-bf16", "adamw"),
    ("efficientnet-fp32", "efficientnet", "fp32", "sgd"),
    ("swin-fp32", "swin", "fp32", "adamw"),
    ("small-fp32", "small", "fp32", "adamw"),
    ("small-amp-bf16", "small", "amp-bf16", "adamw"),
    ("small-checkpointed-fp32", "small_checkpointed", "fp32", "adamw"),
    ("odd-fp32", "odd", "fp32", "adamw"),
    ("deepseek-bf16", "deepseek", "bf16", "adamw"),
    ("modernbert-amp-bf16", "modernbert", "amp-bf16", "adamw"),
    ("deberta-fp32", "deberta", "fp32", "adamw"),
    ("bart-bf16", "bart", "bf16", "adamw"),
    ("clip-amp-bf16", "clip", "amp-bf16", "adamw"),
    ("pvt-fp32", "pvt", "fp32", "adamw"),
    ("lstm-fp32", "lstm", "fp32", "sgd"),
    ("cells-fp32", "cells", "fp32", "sgd"),
    ("siamese-fp32", "siamese", "fp32", "sgd"),
    ("siamese-amp-bf16", "siamese", "amp-bf16", "sgd"),
    ("penalized-fp32", "penalized", "fp32", "sgd"),
]

# Under torch.compile.
COMPILED = [(f"{name}-{precision}", f"{name}_compiled", precision, "adamw")
            for name in ("net", "small", "gpt2", "llama", "vit")
            for precision in ("fp32", "amp-bf16")] + [
    ("small-blocks-fp32", "small_compiled_blocks", "fp32", "adamw"),
    ("small-blocks-amp-bf16", "small_compiled_blocks", "amp-bf16", "adamw"),
]
