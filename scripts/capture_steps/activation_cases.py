# The steps of steps_activations.json: activations that a config asks for in the place of the family's own.

WORDS = dict(vocab_size=1877, hidden_size=168, num_hidden_layers=2, num_attention_heads=6,
             intermediate_size=500, max_position_embeddings=150)
PIXELS = dict(hidden_size=168, num_hidden_layers=2, num_attention_heads=6, intermediate_size=500,
              image_size=80, patch_size=16)
TEXT, IMAGES = dict(batch=5, tokens=131), dict(batch=13)
OTHERS = (
    ("relu", dict(model_type="bert", hidden_act="relu", **WORDS), TEXT),
    ("silu", dict(model_type="xlm-roberta", hidden_act="silu", **WORDS), TEXT),
    ("relu", dict(model_type="distilbert", vocab_size=1877, dim=168, n_layers=2, n_heads=6,
                  hidden_dim=500, max_position_embeddings=150, activation="relu"), TEXT),
    ("silu", dict(model_type="gpt2", vocab_size=1877, n_embd=168, n_layer=2, n_head=6,
                  n_positions=150, activation_function="silu"), TEXT),
    ("quick_gelu", dict(model_type="llama", vocab_size=1877, hidden_size=168, num_hidden_layers=2,
                        num_attention_heads=6, num_key_value_heads=3, intermediate_size=500,
                        hidden_act="quick_gelu"), TEXT),
    ("relu", dict(model_type="deberta-v2", hidden_act="relu", **WORDS), TEXT),
    ("silu", dict(model_type="modernbert", hidden_activation="silu", classifier_activation="relu",
                  local_attention=64, pad_token_id=0, **WORDS), TEXT),
    ("gated-silu", dict(model_type="t5", vocab_size=1877, d_model=168, d_kv=28, num_heads=6,
                        d_ff=500, num_layers=2, feed_forward_proj="gated-silu",
                        decoder_start_token_id=0), dict(TEXT, target_tokens=61)),
    ("silu", dict(model_type="bart", vocab_size=1877, d_model=168, encoder_layers=2,
                  decoder_layers=2, encoder_attention_heads=6, decoder_attention_heads=6,
                  encoder_ffn_dim=500, decoder_ffn_dim=500, max_position_embeddings=150,
                  activation_function="silu"), dict(TEXT, target_tokens=61)),
    ("relu", dict(model_type="vit", hidden_act="relu", **PIXELS), IMAGES),
    ("gelu_new", dict(model_type="deit", hidden_act="gelu_new", **PIXELS), IMAGES),
    ("silu", dict(model_type="dinov2", hidden_act="silu", mlp_ratio=3,
                  **{key: PIXELS[key] for key in PIXELS if key != "intermediate_size"}), IMAGES),
    ("quick_gelu", dict(model_type="beit", hidden_act="quick_gelu", **PIXELS), IMAGES),
    ("relu", dict(model_type="siglip_vision_model", hidden_act="relu", **PIXELS), IMAGES),
    ("relu", dict(model_type="swin", hidden_act="relu", embed_dim=48, depths=[2, 2, 3],
                  num_heads=[3, 6, 12], window_size=7, image_size=112, patch_size=4), dict(batch=3)),
)
# Whose code has no fused attention.
EAGER = ("deberta-v2", "swin", "t5")
CASES = []
for ACTIVATION, CONFIG, SIZE in OTHERS:
    KIND = CONFIG["model_type"]
    for PRECISION in ("fp32", "amp-bf16", "bf16"):
        CASES.append(dict(name=f"{KIND}-{ACTIVATION}-{PRECISION}", config=CONFIG,
                          precision=PRECISION,
                          attention="math" if KIND in EAGER else "sdpa", **SIZE))
