# The steps that capture.py measures: small networks of odd sizes, so that no two tensors are equal in
# size by chance and no dimension is a multiple of what some kernel likes.

CONFIGS = {
    "vit": dict(model_type="vit", hidden_size=144, num_hidden_layers=3, num_attention_heads=3,
                intermediate_size=500, image_size=96, patch_size=16, num_labels=13),
    "deit": dict(model_type="deit", hidden_size=160, num_hidden_layers=3, num_attention_heads=4,
                 intermediate_size=640, image_size=80, patch_size=16, num_labels=10),
    "swin": dict(model_type="swin", embed_dim=48, depths=[2, 2, 3], num_heads=[3, 6, 12],
                 window_size=7, image_size=112, patch_size=4, num_labels=11),
    "bert": dict(model_type="bert", vocab_size=1531, hidden_size=192, num_hidden_layers=3,
                 num_attention_heads=4, intermediate_size=700, max_position_embeddings=128),
    "roberta": dict(model_type="roberta", vocab_size=1531, hidden_size=180, num_hidden_layers=3,
                    num_attention_heads=4, intermediate_size=700, max_position_embeddings=130),
    "gpt2": dict(model_type="gpt2", vocab_size=2111, n_embd=192, n_layer=3, n_head=4,
                 n_positions=256),
    "gpt2-odd-heads": dict(model_type="gpt2", vocab_size=1111, n_embd=198, n_layer=3, n_head=6,
                           n_positions=256),
    "gpt2-gelu": dict(model_type="gpt2", vocab_size=777, n_embd=128, n_layer=4, n_head=2,
                      n_positions=256, activation_function="gelu", resid_pdrop=0.0,
                      embd_pdrop=0.0, attn_pdrop=0.0),
    "llama": dict(model_type="llama", vocab_size=2000, hidden_size=256, num_hidden_layers=3,
                  num_attention_heads=4, intermediate_size=688),
    "llama-gqa": dict(model_type="llama", vocab_size=1999, hidden_size=240, num_hidden_layers=3,
                      num_attention_heads=6, num_key_value_heads=2, intermediate_size=650),
    "mistral": dict(model_type="mistral", vocab_size=1777, hidden_size=192, num_hidden_layers=3,
                    num_attention_heads=6, num_key_value_heads=3, intermediate_size=500),
    "mistral-window": dict(model_type="mistral", vocab_size=1777, hidden_size=192,
                           num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=3,
                           intermediate_size=500, sliding_window=64),
    "qwen2": dict(model_type="qwen2", vocab_size=2345, hidden_size=224, num_hidden_layers=3,
                  num_attention_heads=7, num_key_value_heads=1, intermediate_size=600,
                  tie_word_embeddings=True),
    "qwen3": dict(model_type="qwen3", vocab_size=1800, hidden_size=160, num_hidden_layers=3,
                  num_attention_heads=5, num_key_value_heads=5, head_dim=48,
                  intermediate_size=420),
    "gemma": dict(model_type="gemma", vocab_size=1701, hidden_size=176, num_hidden_layers=3,
                  num_attention_heads=4, num_key_value_heads=1, head_dim=56,
                  intermediate_size=610),
    "gemma2": dict(model_type="gemma2", vocab_size=1703, hidden_size=176, num_hidden_layers=4,
                   num_attention_heads=4, num_key_value_heads=2, head_dim=56,
                   intermediate_size=610, sliding_window=96, query_pre_attn_scalar=44),
    "gemma3": dict(model_type="gemma3_text", vocab_size=1705, hidden_size=176, num_hidden_layers=4,
                   num_attention_heads=4, num_key_value_heads=2, head_dim=56,
                   intermediate_size=610, sliding_window=96, sliding_window_pattern=3,
                   query_pre_attn_scalar=56),
    "phi": dict(model_type="phi", vocab_size=1711, hidden_size=192, num_hidden_layers=3,
                num_attention_heads=4, intermediate_size=650),
    "phi3": dict(model_type="phi3", vocab_size=1713, hidden_size=240, num_hidden_layers=3,
                 num_attention_heads=6, num_key_value_heads=2, intermediate_size=650,
                 pad_token_id=0),
    "phi3-part": dict(model_type="phi3", vocab_size=1713, hidden_size=256, num_hidden_layers=3,
                      num_attention_heads=4, num_key_value_heads=4, intermediate_size=650,
                      partial_rotary_factor=0.75, pad_token_id=0),
    "gpt_neox": dict(model_type="gpt_neox", vocab_size=1717, hidden_size=256, num_hidden_layers=3,
                     num_attention_heads=4, intermediate_size=900),
    "opt": dict(model_type="opt", vocab_size=1719, hidden_size=192, num_hidden_layers=3,
                num_attention_heads=4, ffn_dim=700, max_position_embeddings=256,
                word_embed_proj_dim=192),
    "opt-postnorm": dict(model_type="opt", vocab_size=1719, hidden_size=192, num_hidden_layers=3,
                         num_attention_heads=4, ffn_dim=700, max_position_embeddings=256,
                         do_layer_norm_before=False, word_embed_proj_dim=96),
    "stablelm": dict(model_type="stablelm", vocab_size=1723, hidden_size=256, num_hidden_layers=3,
                     num_attention_heads=4, num_key_value_heads=2, intermediate_size=650),
    "olmo2": dict(model_type="olmo2", vocab_size=1729, hidden_size=240, num_hidden_layers=3,
                  num_attention_heads=6, num_key_value_heads=3, intermediate_size=650),
    "starcoder2": dict(model_type="starcoder2", vocab_size=1733, hidden_size=240,
                       num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2,
                       intermediate_size=850),
    "mixtral": dict(model_type="mixtral", vocab_size=1741, hidden_size=192, num_hidden_layers=3,
                    num_attention_heads=6, num_key_value_heads=2, intermediate_size=430,
                    num_local_experts=5, num_experts_per_tok=2),
    "qwen2_moe": dict(model_type="qwen2_moe", vocab_size=1747, hidden_size=192,
                      num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2,
                      moe_intermediate_size=210, shared_expert_intermediate_size=430,
                      num_experts=7, num_experts_per_tok=3, intermediate_size=610,
                      mlp_only_layers=[1]),
    "qwen3_moe": dict(model_type="qwen3_moe", vocab_size=1753, hidden_size=192,
                      num_hidden_layers=4, num_attention_heads=6, num_key_value_heads=3,
                      head_dim=40, moe_intermediate_size=210, num_experts=9,
                      num_experts_per_tok=4, norm_topk_prob=True, intermediate_size=610,
                      decoder_sparse_step=2),
    "olmoe": dict(model_type="olmoe", vocab_size=1759, hidden_size=192, num_hidden_layers=3,
                  num_attention_heads=6, intermediate_size=210, num_experts=8,
                  num_experts_per_tok=3),
    "t5": dict(model_type="t5", vocab_size=1771, d_model=192, d_kv=40, num_heads=5, d_ff=700,
               num_layers=3, num_decoder_layers=2, decoder_start_token_id=0),
    "flan-t5": dict(model_type="t5", vocab_size=1771, d_model=192, d_kv=40, num_heads=5, d_ff=610,
                    num_layers=2, feed_forward_proj="gated-gelu", tie_word_embeddings=False,
                    decoder_start_token_id=0),
    "distilbert": dict(model_type="distilbert", vocab_size=1531, dim=192, n_layers=3, n_heads=4,
                       hidden_dim=700, max_position_embeddings=128),
    "electra": dict(model_type="electra", vocab_size=1531, embedding_size=96, hidden_size=180,
                    num_hidden_layers=3, num_attention_heads=4, intermediate_size=700,
                    max_position_embeddings=128),
    "xlm-roberta": dict(model_type="xlm-roberta", vocab_size=1531, hidden_size=180,
                        num_hidden_layers=3, num_attention_heads=4, intermediate_size=700,
                        max_position_embeddings=130),
    "dinov2": dict(model_type="dinov2", hidden_size=144, num_hidden_layers=3,
                   num_attention_heads=3, image_size=84, patch_size=14, num_labels=13),
    "dinov2-swiglu": dict(model_type="dinov2", hidden_size=144, num_hidden_layers=3,
                          num_attention_heads=3, image_size=84, patch_size=14, num_labels=13,
                          use_swiglu_ffn=True),
}
SIZES = {"vit": dict(batch=17), "deit": dict(batch=23), "swin": dict(batch=6),
         "bert": dict(batch=7, tokens=77), "roberta": dict(batch=7, tokens=101),
         "gpt2": dict(batch=5, tokens=133), "llama": dict(batch=5, tokens=149),
         "mistral": dict(batch=3, tokens=203), "qwen2": dict(batch=4, tokens=161),
         "qwen3": dict(batch=4, tokens=139), "gemma": dict(batch=4, tokens=143),
         "gemma2": dict(batch=4, tokens=147), "gemma3_text": dict(batch=4, tokens=151),
         "phi": dict(batch=5, tokens=137), "phi3": dict(batch=4, tokens=157),
         "gpt_neox": dict(batch=4, tokens=163), "opt": dict(batch=5, tokens=131),
         "stablelm": dict(batch=4, tokens=149), "olmo2": dict(batch=4, tokens=155),
         "starcoder2": dict(batch=4, tokens=141), "distilbert": dict(batch=7, tokens=77),
         "electra": dict(batch=7, tokens=79),
         "mixtral": dict(batch=4, tokens=151), "qwen2_moe": dict(batch=4, tokens=139),
         "qwen3_moe": dict(batch=4, tokens=145), "olmoe": dict(batch=4, tokens=133),
         "t5": dict(batch=4, tokens=127, target_tokens=61),
         "xlm-roberta": dict(batch=7, tokens=101), "dinov2": dict(batch=19)}
# Of these, in eager code, in bf16 only.
ODD = ("gpt2-odd-heads", "gpt2-gelu", "mistral-window", "phi3-part", "opt-postnorm",
       "dinov2-swiglu")


def family(name):
    return CONFIGS[name]["model_type"]


def step(name, precision, attention, **more):
    extra = "".join(f"-{key}" for key in more if key not in ("lora", "peft", "checkpoint"))
    if "lora" in more:
        extra += "-lora-" + "-".join(more["lora"]["target_modules"])
        extra += "-dropped" if more["lora"].get("lora_dropout") else ""
        extra += "-16" if "peft" in more else ""
    extra += "-checkpoint" if more.get("checkpoint") else ""
    return dict(name=f"{name}-{precision}-{attention}{extra}", config=CONFIGS[name],
                precision=precision, attention=attention, **{**SIZES[family(name)], **more})


def lora(*modules, rank=6, dropout=0.0):
    return dict(r=rank, lora_alpha=12, lora_dropout=dropout, target_modules=list(modules))


CASES = []
for NAME in CONFIGS:
    for ATTENTION in ("math", "sdpa"):
        for PRECISION in ("fp32", "amp-bf16", "bf16"):
            if family(NAME) in ("swin", "t5", "electra") and ATTENTION == "sdpa":
                continue  # no such attention in Hugging Face's code of these
            if NAME in ODD and ATTENTION == "math" and PRECISION != "bf16":
                continue
            CASES.append(step(NAME, PRECISION, ATTENTION))

for PRECISION in ("fp32", "amp-bf16", "bf16"):
    CASES.append(step("llama", PRECISION, "sdpa", lora=lora("q_proj", "v_proj")))
CASES += [
    step("llama", "bf16", "sdpa", lora=lora("q_proj", "v_proj"),
         peft=dict(autocast_adapter_dtype=False)),
    step("llama-gqa", "bf16", "sdpa", lora=lora("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj",
                                                "up_proj", "down_proj", dropout=0.1)),
    step("llama-gqa", "bf16", "sdpa", checkpoint=True, lora=lora("q_proj", "v_proj", dropout=0.05)),
    step("qwen2", "amp-bf16", "sdpa", lora=lora("q_proj", "v_proj", dropout=0.1)),
    step("gpt2", "bf16", "sdpa", lora={**lora("c_attn"), "fan_in_fan_out": True}),
    step("gpt2", "fp32", "math", lora={**lora("c_attn", dropout=0.1), "fan_in_fan_out": True}),
    step("bert", "amp-bf16", "sdpa", lora=lora("query", "value")),
    step("gpt2", "bf16", "sdpa", checkpoint=True),
    step("llama", "amp-bf16", "sdpa", checkpoint=True),
    step("swin", "fp32", "math", checkpoint=True),
    step("swin", "amp-bf16", "math", checkpoint=True),
    step("vit", "amp-bf16", "sdpa", checkpoint=True),
    step("llama", "bf16", "sdpa", padded=True),
    step("bert", "bf16", "sdpa", padded=True),
    step("gpt2", "amp-bf16", "sdpa", padded=True),
    step("llama", "bf16", "sdpa", sm=90),
    step("gpt2", "amp-fp16", "sdpa", sm=75),
]

# The same of the families that came later.
CASES += [
    step("mixtral", "bf16", "sdpa", lora=lora("q_proj", "v_proj")),
    step("mixtral", "bf16", "sdpa", lora=lora("w1", "w2", "w3")),
    step("mixtral", "bf16", "sdpa", checkpoint=True),
    step("mixtral", "bf16", "sdpa", padded=True),
    step("qwen3_moe", "amp-bf16", "sdpa", checkpoint=True),
    step("qwen3_moe", "bf16", "sdpa", lora=lora("q_proj", "gate_proj", dropout=0.1)),
    step("t5", "fp32", "math", lora=lora("q", "v")),
    step("t5", "bf16", "math", checkpoint=True),
    step("gpt_neox", "bf16", "sdpa", lora=lora("query_key_value", "dense")),
    step("phi3", "bf16", "sdpa", lora=lora("qkv_proj", "gate_up_proj")),
    step("gemma", "bf16", "sdpa", checkpoint=True),
    step("opt", "amp-bf16", "sdpa", lora=lora("q_proj", "v_proj")),
    step("distilbert", "amp-bf16", "sdpa", lora=lora("q_lin", "v_lin")),
    step("dinov2", "fp32", "sdpa", checkpoint=True),
    step("stablelm", "bf16", "sdpa", padded=True),
    step("phi", "bf16", "sdpa", padded=True),
]
