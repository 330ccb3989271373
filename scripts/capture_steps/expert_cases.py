# The steps of steps_experts_transformers-5.json: mixtures of experts as transformers 5 packs them, one parameter for
# the weights of all. Rows of whole 16 bytes, which PyTorch's grouped products want.
def sizes(model_type, **more):
    return dict(dict(model_type=model_type, vocab_size=1741, hidden_size=192, num_hidden_layers=3,
                     num_attention_heads=6, num_key_value_heads=3, intermediate_size=320,
                     pad_token_id=0, tie_word_embeddings=False), **more)


def latent(model_type, **more):
    return sizes(model_type, num_key_value_heads=6, intermediate_size=608, moe_intermediate_size=112,
                 n_routed_experts=8, num_experts_per_tok=3, first_k_dense_replace=1, kv_lora_rank=56,
                 qk_nope_head_dim=40, qk_rope_head_dim=16, v_head_dim=32, n_group=4, topk_group=2, **more)


CONFIGS = {
    "mixtral": sizes("mixtral", num_local_experts=5),
    "qwen2_moe": sizes("qwen2_moe", moe_intermediate_size=208, shared_expert_intermediate_size=432,
                       num_experts=8, num_experts_per_tok=3, decoder_sparse_step=2),
    "qwen3_moe": sizes("qwen3_moe", head_dim=40, moe_intermediate_size=208, num_experts=9,
                       num_experts_per_tok=3, norm_topk_prob=True),
    "olmoe": sizes("olmoe", num_key_value_heads=6, num_experts=6, num_experts_per_tok=2),
    "deepseek_v2": latent("deepseek_v2", n_shared_experts=2, q_lora_rank=None,
                          topk_method="group_limited_greedy"),
    "deepseek_v3": latent("deepseek_v3", n_shared_experts=1, q_lora_rank=72),
}
TOKENS = dict(batch=4, tokens=141)
CASES = [dict(name=f"{name}-{precision}", config=config, precision=precision, attention="sdpa", **TOKENS)
         for name, config in CONFIGS.items() for precision in ("bf16", "amp-bf16", "fp32")]
for NAME, LABEL, PRECISION, MORE in (
        ("qwen3_moe", "lora", "bf16", dict(lora=("q_proj", "v_proj"))),
        ("mixtral", "lora", "amp-bf16", dict(lora=("q_proj", "v_proj"))),
        ("deepseek_v3", "lora", "amp-bf16", dict(lora=("kv_b_proj",))),
        ("qwen2_moe", "checkpoint", "bf16", dict(checkpoint=True)),
        ("olmoe", "checkpoint", "amp-bf16", dict(checkpoint=True)),
        ("deepseek_v2", "checkpoint", "fp32", dict(checkpoint=True)),
        ("qwen3_moe", "sm75", "fp32", dict(sm=75))):
    if "lora" in MORE:
        MORE = dict(lora=dict(r=8, lora_alpha=16, lora_dropout=0.0, target_modules=list(MORE["lora"])))
    CASES.append(dict(name=f"{NAME}-{PRECISION}-{LABEL}", config=CONFIGS[NAME], precision=PRECISION,
                      attention="sdpa", **TOKENS, **MORE))
