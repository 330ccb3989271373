# The steps of steps_families.json: families that came later, in each precision, with eager and fused
# attention, at odd sizes.
CONFIGS = {
    "bart": dict(model_type="bart", vocab_size=1777, d_model=192, encoder_layers=2,
                 decoder_layers=3, encoder_attention_heads=4, decoder_attention_heads=6,
                 encoder_ffn_dim=700, decoder_ffn_dim=610, max_position_embeddings=150),
    "bart-plain": dict(model_type="bart", vocab_size=1779, d_model=168, encoder_layers=2,
                       decoder_layers=2, encoder_attention_heads=6, decoder_attention_heads=6,
                       encoder_ffn_dim=500, decoder_ffn_dim=510, max_position_embeddings=150,
                       dropout=0.0, activation_dropout=0.1, attention_dropout=0.1,
                       scale_embedding=True),
    "falcon": dict(model_type="falcon", vocab_size=1783, hidden_size=240, num_hidden_layers=3,
                   num_attention_heads=6, ffn_hidden_size=850),
    "falcon-grouped": dict(model_type="falcon", vocab_size=1783, hidden_size=240,
                           num_hidden_layers=3, num_attention_heads=6, num_kv_heads=2,
                           new_decoder_architecture=True, hidden_dropout=0.1),
    "falcon-serial": dict(model_type="falcon", vocab_size=1783, hidden_size=240,
                          num_hidden_layers=3, num_attention_heads=6, parallel_attn=False,
                          multi_query=False),
    "modernbert": dict(model_type="modernbert", vocab_size=1787, hidden_size=192,
                       num_hidden_layers=4, num_attention_heads=6, intermediate_size=290,
                       max_position_embeddings=400, local_attention=40, pad_token_id=0),
    "modernbert-dropped": dict(model_type="modernbert", vocab_size=1787, hidden_size=192,
                               num_hidden_layers=4, num_attention_heads=6, intermediate_size=290,
                               max_position_embeddings=400, local_attention=40, pad_token_id=0,
                               global_attn_every_n_layers=2, embedding_dropout=0.1,
                               mlp_dropout=0.1, attention_dropout=0.1, attention_bias=True,
                               mlp_bias=True, norm_bias=True),
    "deberta-v3": dict(model_type="deberta-v2", vocab_size=1789, hidden_size=180,
                       num_hidden_layers=3, num_attention_heads=6, intermediate_size=700,
                       max_position_embeddings=128, relative_attention=True, position_buckets=64,
                       norm_rel_ebd="layer_norm", share_att_key=True, pos_att_type="p2c|c2p",
                       position_biased_input=False, max_relative_positions=-1, type_vocab_size=0),
    "deberta-v2": dict(model_type="deberta-v2", vocab_size=1789, hidden_size=180,
                       num_hidden_layers=3, num_attention_heads=6, intermediate_size=700,
                       max_position_embeddings=128, relative_attention=True,
                       max_relative_positions=50, pos_att_type=["c2p", "p2c"],
                       position_biased_input=True, type_vocab_size=2, embedding_size=96),
    "deepseek-v3": dict(model_type="deepseek_v3", vocab_size=1811, hidden_size=192,
                        num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=6,
                        intermediate_size=610, moe_intermediate_size=110, n_routed_experts=8,
                        n_shared_experts=1, num_experts_per_tok=3, first_k_dense_replace=1,
                        kv_lora_rank=56, q_lora_rank=72, qk_nope_head_dim=40, qk_rope_head_dim=16,
                        v_head_dim=32, n_group=4, topk_group=2),
    "deepseek-v3-plain": dict(model_type="deepseek_v3", vocab_size=1811, hidden_size=168,
                              num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4,
                              intermediate_size=610, moe_intermediate_size=90,
                              n_routed_experts=6, n_shared_experts=2, num_experts_per_tok=2,
                              first_k_dense_replace=0, kv_lora_rank=48, q_lora_rank=None,
                              qk_nope_head_dim=24, qk_rope_head_dim=8, v_head_dim=40, n_group=3,
                              topk_group=2, norm_topk_prob=False, attention_bias=True),
    "clip-text": dict(model_type="clip_text_model", vocab_size=1823, hidden_size=180,
                      num_hidden_layers=3, num_attention_heads=6, intermediate_size=700,
                      max_position_embeddings=80),
    "clip-vision": dict(model_type="clip_vision_model", hidden_size=180, num_hidden_layers=3,
                        num_attention_heads=6, intermediate_size=700, image_size=96,
                        patch_size=16),
    "siglip-text": dict(model_type="siglip_text_model", vocab_size=1831, hidden_size=180,
                        num_hidden_layers=3, num_attention_heads=6, intermediate_size=700,
                        max_position_embeddings=72),
    "siglip-vision": dict(model_type="siglip_vision_model", hidden_size=180, num_hidden_layers=3,
                          num_attention_heads=6, intermediate_size=700, image_size=96,
                          patch_size=16),
    "whisper": dict(model_type="whisper", vocab_size=1847, d_model=192, encoder_layers=2,
                    decoder_layers=3, encoder_attention_heads=4, decoder_attention_heads=6,
                    encoder_ffn_dim=700, decoder_ffn_dim=610, num_mel_bins=40,
                    max_source_positions=125, max_target_positions=90, pad_token_id=0,
                    bos_token_id=1, eos_token_id=2, decoder_start_token_id=1),
    "swin-padded": dict(model_type="swin", embed_dim=48, depths=[2, 2, 3], num_heads=[3, 6, 12],
                        window_size=7, image_size=100, patch_size=4, num_labels=11),
}
SIZES = {"bart": dict(batch=4, tokens=127, target_tokens=61),
         "falcon": dict(batch=4, tokens=143), "modernbert": dict(batch=5, tokens=131),
         "deberta-v2": dict(batch=5, tokens=79),
         "deepseek_v3": dict(batch=3, tokens=137), "clip_text_model": dict(batch=9, tokens=71),
         "clip_vision_model": dict(batch=17), "siglip_text_model": dict(batch=9, tokens=67),
         "siglip_vision_model": dict(batch=17), "whisper": dict(batch=3, target_tokens=83),
         "swin": dict(batch=5)}
# Whose code has no fused attention.
EAGER = ("deberta-v2", "swin")



def lora(*modules):
    return dict(r=6, lora_alpha=12, lora_dropout=0.0, target_modules=list(modules))


def step(name, precision, attention, label="", **more):
    config = CONFIGS[name]
    return dict(name=f"{name}-{precision}-{attention}{label}", config=config,
                precision=precision, attention=attention, **SIZES[config["model_type"]], **more)


CASES = []
for NAME, CONFIG in CONFIGS.items():
    for ATTENTION in ("math", "sdpa"):
        for PRECISION in ("fp32", "amp-bf16", "bf16"):
            if CONFIG["model_type"] not in EAGER or ATTENTION == "math":
                CASES.append(step(NAME, PRECISION, ATTENTION))
CASES += [
    step("bart", "bf16", "sdpa", "-lora", lora=lora("q_proj", "v_proj")),
    step("whisper", "amp-bf16", "sdpa", "-lora", lora=lora("q_proj", "v_proj")),
    step("falcon", "bf16", "sdpa", "-lora", lora=lora("query_key_value", "dense")),
    step("modernbert", "bf16", "sdpa", "-lora", lora=lora("Wqkv", "Wo")),
    step("deepseek-v3", "bf16", "sdpa", "-lora", lora=lora("q_b_proj", "kv_b_proj")),
    step("clip-vision", "fp32", "sdpa", "-lora", lora=lora("q_proj", "v_proj")),
    step("bart", "bf16", "sdpa", "-checkpoint", checkpoint=True),
    step("falcon-grouped", "bf16", "sdpa", "-checkpoint", checkpoint=True),
    step("falcon-grouped", "amp-bf16", "sdpa", "-checkpoint", checkpoint=True),
    step("modernbert", "bf16", "sdpa", "-checkpoint", checkpoint=True),
    step("deberta-v3", "fp32", "math", "-checkpoint", checkpoint=True),
    step("clip-text", "amp-bf16", "sdpa", "-checkpoint", checkpoint=True),
]
