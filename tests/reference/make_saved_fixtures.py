#!/usr/bin/env python3
"""What PyTorch really keeps for the backward of small transformers, as a JSON fixture.

    python3 make_saved_fixtures.py [--device cpu|cuda] [--only qwen3] > saved_2.6.0_<device>.json

Made with PyTorch 2.6.0, timm 1.0.31, transformers 4.47.1, and 4.51.3 for Qwen3, which came later.
Each case runs one forward with loss in train mode, then walks the autograd graph from the loss and
lists every distinct storage that a backward node holds. Rules of the counting:
  * a storage counts once, whole, however many nodes hold it or views of it;
  * storages of parameters and buffers do not count; inputs and targets do;
  * copies that autocast makes of parameters do not count;
  * a Python number in `x * 0.5` is a zero-dimensional float64 tensor that the node keeps: 8 bytes.
Groups put equal storages together: how many, the bytes of one, and who holds it.

On the CPU the tensors are real. With --device cuda they are PyTorch's fake tensors: shapes, dtypes,
strides and storages as the CUDA operators and autocast's CUDA lists make them, but no kernel runs.
PyTorch still asks the CUDA driver for a device; stand-ins that answer "one" are enough. Scaled
dot-product attention is sent to the flash kernel, which CUDA chooses for these cases.
"""

import argparse
import collections
import contextlib
import json
import types

import timm
import torch
import transformers
from timm.models import mvitv2
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from transformers.models.bert import modeling_bert
from transformers.models.roberta import modeling_roberta

LANGUAGE = dict(vocab_size=112, num_hidden_layers=2, hidden_size=64, num_attention_heads=4)
NO_DROPOUT = dict(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
BATCH, TOKENS = 2, 24

# name → (configuration class, its arguments). The numbers of tokens, words and units all differ, so
# that storages of different tensors mostly differ in size.
MODELS = {
    "vit": ("ViTConfig", dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
                              intermediate_size=256, image_size=32, patch_size=8, num_labels=10)),
    "deit": ("DeiTConfig", dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
                                intermediate_size=256, image_size=32, patch_size=8,
                                num_labels=10)),
    "swin": ("SwinConfig", dict(embed_dim=32, depths=[2, 2], num_heads=[2, 4], window_size=4,
                                image_size=32, patch_size=4, num_labels=10, drop_path_rate=0.0)),
    "mvit": ("", dict(embed_dim=32, depths=[1, 2], num_heads=1, kv_stride=2, image_size=64,
                      num_labels=10, drop_path_rate=0.0)),
    "bert": ("BertConfig", dict(LANGUAGE, intermediate_size=256, max_position_embeddings=32,
                                **NO_DROPOUT)),
    "bert-dropout": ("BertConfig", dict(LANGUAGE, intermediate_size=256,
                                        max_position_embeddings=32)),
    "roberta": ("RobertaConfig", dict(LANGUAGE, intermediate_size=256, max_position_embeddings=34,
                                      **NO_DROPOUT)),
    "gpt2": ("GPT2Config", dict(vocab_size=112, n_layer=2, n_embd=64, n_head=4, n_positions=32,
                                resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)),
    "gpt2-dropout": ("GPT2Config", dict(vocab_size=112, n_layer=2, n_embd=64, n_head=4,
                                        n_positions=32)),
    "llama": ("LlamaConfig", dict(LANGUAGE, intermediate_size=160)),
    "llama-gqa": ("LlamaConfig", dict(LANGUAGE, intermediate_size=160, num_key_value_heads=2)),
    "mistral": ("MistralConfig", dict(LANGUAGE, intermediate_size=160, num_key_value_heads=2,
                                      sliding_window=None)),
    "qwen2": ("Qwen2Config", dict(LANGUAGE, intermediate_size=160, num_key_value_heads=2)),
    "qwen3": ("Qwen3Config", dict(LANGUAGE, intermediate_size=160, num_key_value_heads=2,
                                  head_dim=32)),
    "gemma": ("GemmaConfig", dict(LANGUAGE, intermediate_size=160, num_key_value_heads=2,
                                  head_dim=24)),
    "gemma2": ("Gemma2Config", dict(LANGUAGE, intermediate_size=160, num_key_value_heads=2,
                                    head_dim=24, query_pre_attn_scalar=24, sliding_window=4096)),
    "gemma3": ("Gemma3TextConfig", dict(LANGUAGE, intermediate_size=160, num_key_value_heads=2,
                                        head_dim=24, query_pre_attn_scalar=16,
                                        sliding_window=4096)),
    "phi": ("PhiConfig", dict(LANGUAGE, intermediate_size=160)),
    "phi3": ("Phi3Config", dict(LANGUAGE, intermediate_size=160, num_key_value_heads=2,
                                pad_token_id=0)),
    "phi3-part": ("Phi3Config", dict(LANGUAGE, intermediate_size=160, num_key_value_heads=2,
                                     partial_rotary_factor=0.75, pad_token_id=0)),
    "gpt_neox": ("GPTNeoXConfig", dict(LANGUAGE, intermediate_size=160)),
    "gpt_neox-serial": ("GPTNeoXConfig", dict(LANGUAGE, intermediate_size=160,
                                              use_parallel_residual=False)),
    "opt": ("OPTConfig", dict(LANGUAGE, ffn_dim=160, max_position_embeddings=40, dropout=0.0)),
    "opt-postnorm": ("OPTConfig", dict(LANGUAGE, ffn_dim=160, max_position_embeddings=40,
                                       dropout=0.0, do_layer_norm_before=False,
                                       word_embed_proj_dim=48)),
    "stablelm": ("StableLmConfig", dict(LANGUAGE, intermediate_size=160, num_key_value_heads=2,
                                        partial_rotary_factor=0.5)),
    "stablelm-parallel": ("StableLmConfig", dict(LANGUAGE, intermediate_size=160,
                                                 num_key_value_heads=4, use_qkv_bias=True,
                                                 use_parallel_residual=True,
                                                 partial_rotary_factor=0.5)),
    "olmo2": ("Olmo2Config", dict(LANGUAGE, intermediate_size=160, num_key_value_heads=2)),
    "starcoder2": ("Starcoder2Config", dict(LANGUAGE, intermediate_size=160,
                                            num_key_value_heads=2)),
}
MODELS |= {
    "distilbert": ("DistilBertConfig", dict(vocab_size=112, n_layers=2, dim=64, n_heads=4,
                                            hidden_dim=160, max_position_embeddings=32,
                                            dropout=0.0, attention_dropout=0.0)),
    "distilbert-classes": ("DistilBertConfig", dict(
        vocab_size=112, n_layers=2, dim=64, n_heads=4, hidden_dim=160, num_labels=5,
        max_position_embeddings=32, dropout=0.0, attention_dropout=0.0, seq_classif_dropout=0.0,
        architectures=["DistilBertForSequenceClassification"])),
    "xlm-roberta": ("XLMRobertaConfig", dict(LANGUAGE, intermediate_size=160,
                                             max_position_embeddings=34, **NO_DROPOUT)),
    "dinov2": ("Dinov2Config", dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
                                    image_size=56, patch_size=14, num_labels=10)),
    "dinov2-swiglu": ("Dinov2Config", dict(hidden_size=64, num_hidden_layers=2,
                                           num_attention_heads=4, image_size=56, patch_size=14,
                                           num_labels=10, use_swiglu_ffn=True)),
}
# Families that came with --only "" too late for the fixtures before them.
WITH_4_57 = ("distilbert", "xlm-roberta", "dinov2", "gemma", "phi", "gpt_neox", "opt", "stablelm", "olmo2", "starcoder2")
HEADS = {"ViTConfig": "ViTForImageClassification", "DeiTConfig": "DeiTForImageClassification",
         "SwinConfig": "SwinForImageClassification", "BertConfig": "BertForMaskedLM",
         "RobertaConfig": "RobertaForMaskedLM", "GPT2Config": "GPT2LMHeadModel",
         "LlamaConfig": "LlamaForCausalLM", "MistralConfig": "MistralForCausalLM",
         "Qwen2Config": "Qwen2ForCausalLM", "Qwen3Config": "Qwen3ForCausalLM",
         "DistilBertConfig": "DistilBertForMaskedLM", "XLMRobertaConfig": "XLMRobertaForMaskedLM",
         "Dinov2Config": "Dinov2ForImageClassification", "GemmaConfig": "GemmaForCausalLM", "Gemma2Config": "Gemma2ForCausalLM",
         "Gemma3TextConfig": "Gemma3ForCausalLM", "PhiConfig": "PhiForCausalLM",
         "Phi3Config": "Phi3ForCausalLM", "GPTNeoXConfig": "GPTNeoXForCausalLM",
         "OPTConfig": "OPTForCausalLM", "StableLmConfig": "StableLmForCausalLM",
         "Olmo2Config": "Olmo2ForCausalLM", "Starcoder2Config": "Starcoder2ForCausalLM"}


def flash(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None):
    """scaled_dot_product_attention as CUDA runs it with no mask but a causal one."""
    assert attn_mask is None
    if torch.is_autocast_enabled("cuda"):  # the operator is on autocast's 16-bit list
        dtype = torch.get_autocast_dtype("cuda")
        query, key, value = (x.to(dtype) for x in (query, key, value))
    return torch.ops.aten._scaled_dot_product_flash_attention(
        query, key, value, dropout_p, is_causal, scale=scale)[0]


def inputs_of(config, dtype):
    if "image_size" in config:
        side = config["image_size"]
        return dict(pixel_values=torch.zeros(BATCH, 3, side, side, dtype=dtype),
                    labels=torch.zeros(BATCH, dtype=torch.long))
    ids = torch.full((BATCH, TOKENS), 5)
    inputs = dict(input_ids=ids, labels=ids.clone())
    if "num_labels" in config:
        inputs["labels"] = torch.zeros(BATCH, dtype=torch.long)
    if config["model_type"] in ("bert", "roberta"):
        inputs.update(token_type_ids=torch.zeros_like(ids), attention_mask=torch.ones_like(ids))
    if config["model_type"].startswith(WITH_4_57):  # as a tokenizer hands it over
        inputs.update(attention_mask=torch.ones_like(ids))
    if config["model_type"] == "xlm-roberta":
        inputs.update(token_type_ids=torch.zeros_like(ids))
    return inputs


def nodes_of(loss):
    seen, stack = set(), [loss.grad_fn]
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        yield node
        stack += [follower for follower, _ in node.next_functions]


def saved_of(node):
    for name in dir(node):
        if name.startswith("_saved_"):
            value = getattr(node, name)
            for tensor in value if isinstance(value, (tuple, list)) else [value]:
                if isinstance(tensor, torch.Tensor):
                    yield name[len("_saved_"):], tensor
    for tensor in getattr(node, "saved_tensors", ()):
        yield "saved", tensor


def storage_of(tensor):
    return tensor.untyped_storage()


class ParameterCopies(TorchDispatchMode):
    """Keeps what `to(dtype)` makes of parameters: autocast does so below the model's code."""

    def __init__(self, model):
        super().__init__()
        self.parameters = {storage_of(p)._cdata for p in model.parameters()}
        self.copies = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if (function is torch.ops.aten._to_copy.default
                and storage_of(args[0])._cdata in self.parameters):
            self.copies.append(result)
        return result


def measure(model, loss, casts):
    ignored = {storage_of(t)._cdata for t in [*model.parameters(), *model.buffers(), *casts]}
    holders, sizes = collections.defaultdict(set), {}
    for node in nodes_of(loss):
        for name, tensor in saved_of(node):
            storage = storage_of(tensor)
            if storage._cdata in ignored:
                continue
            sizes[storage._cdata] = storage.nbytes()
            dtype = str(tensor.dtype).removeprefix("torch.")
            holders[storage._cdata].add(f"{node.name()}.{name} {list(tensor.shape)} {dtype}")
    groups = collections.Counter((sizes[s], tuple(sorted(holders[s]))) for s in sizes)
    return [dict(count=count, bytes=size, holders=list(held))
            for (size, held), count in sorted(groups.items(), reverse=True)]


class Mvit(torch.nn.Module):
    """timm's MViTv2 with the loss that Hugging Face's models compute themselves."""

    def __init__(self, config):
        super().__init__()
        stages = len(config["depths"])
        self.model = mvitv2.MultiScaleVit(
            mvitv2.MultiScaleVitCfg(
                depths=tuple(config["depths"]), embed_dim=config["embed_dim"],
                num_heads=config["num_heads"],
                stride_q=tuple((1 + (s > 0),) * 2 for s in range(stages)),
                stride_kv_adaptive=(config["kv_stride"],) * 2),
            img_size=config["image_size"], num_classes=config["num_labels"], drop_path_rate=0.0)

    def forward(self, pixel_values, labels):
        loss = torch.nn.functional.cross_entropy(self.model(pixel_values), labels)
        return types.SimpleNamespace(loss=loss)


def build(name, attention):
    """The model, and its configuration as a config.json would have it."""
    class_name, arguments = MODELS[name]
    if name == "mvit":
        return Mvit(arguments), dict(arguments, model_type="mvit", num_channels=3)
    config = getattr(transformers, class_name)(**arguments)
    config.use_cache = False
    model_class = getattr(transformers, arguments.get("architectures", [HEADS[class_name]])[0])
    model = model_class._from_config(config, attn_implementation=attention)
    return model, dict(arguments, model_type=config.model_type)


def case(name, attention, precision, device):
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    model, config = build(name, attention)
    model = model.to(dtype=dtype).train()
    fake = FakeTensorMode() if device == "cuda" else contextlib.nullcontext()
    with fake, torch.device(device):
        if device == "cuda":
            replace_tensors(model)
        inputs = inputs_of(config, dtype)
        autocast = torch.autocast(device, torch.bfloat16, enabled=precision == "amp-bf16")
        with autocast, ParameterCopies(model) as casts:
            loss = model(**inputs).loss
    groups = measure(model, loss, casts.copies)
    return dict(name=f"{name}/{attention}/{precision}", attention=attention, precision=precision,
                batch=BATCH, tokens=TOKENS, config=json.dumps(config),
                parameters=sum(p.numel() for p in model.parameters()),
                saved_bytes=sum(group["bytes"] * group["count"] for group in groups),
                groups=groups)


def replace_tensors(model):
    """Each parameter and buffer by an empty one where tensors are made now; shared ones stay so."""
    made = {}
    for module in model.modules():
        for tensors in (module._parameters, module._buffers):
            for name, old in tensors.items():
                if old is None:
                    continue
                if old not in made:
                    made[old] = torch.empty(old.shape, dtype=old.dtype)
                    if isinstance(old, torch.nn.Parameter):
                        made[old] = torch.nn.Parameter(made[old])
                tensors[name] = made[old]


def settings(device):
    for name, (class_name, _) in MODELS.items():
        if class_name and not hasattr(transformers, class_name):
            continue  # Qwen3 came with 4.51
        if name.endswith("-dropout") and device == "cpu":
            continue  # the CPU has no kernel that keeps a mask of booleans
        for attention in ("eager", "sdpa"):
            if attention == "sdpa" and name in ("swin", "mvit"):
                continue  # no such implementation
            for precision in ["fp32"] if device == "cpu" else ["amp-bf16", "bf16"]:
                yield name, attention, precision


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    options.add_argument("--only", default="", help="cases whose name begins so")
    options = options.parse_args()
    if options.device == "cuda":
        torch.nn.functional.scaled_dot_product_attention = flash
        # No token is padding, so there is no mask; fake tensors have no values to tell that by.
        for module in (modeling_bert, modeling_roberta):
            module._prepare_4d_attention_mask_for_sdpa = lambda *_, **__: None
    cases = []
    for name, attention, precision in settings(options.device):
        if f"{name}/{attention}/{precision}".startswith(options.only):
            cases.append(case(name, attention, precision, options.device))
    device = "CPU" if options.device == "cpu" else "CUDA operators on fake tensors"
    source = (f"make_saved_fixtures.py: PyTorch {torch.__version__.split('+')[0]}, "
              f"transformers {transformers.__version__}, timm {timm.__version__}, {device}")
    print('{"source": ' + json.dumps(source) + ',\n"cases": [')
    print(",\n".join(json.dumps(case, separators=(",", ":")) for case in cases))
    print("]}")


if __name__ == "__main__":
    main()
