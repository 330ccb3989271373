# Linears in eight bits (torchao's dynamic scaling by tensors), whose sizes must be multiples of 16, and so must the
# number of rows. Odd multiples, so that no two tensors are equal in size by chance.

CONFIGS = {
    "llama": dict(model_type="llama", vocab_size=2003, hidden_size=240, num_hidden_layers=3,
                  num_attention_heads=6, num_key_value_heads=2, intermediate_size=656),
    "llama-wide": dict(model_type="llama", vocab_size=211, hidden_size=304, num_hidden_layers=2,
                       num_attention_heads=4, num_key_value_heads=4, intermediate_size=1200),
    "qwen2": dict(model_type="qwen2", vocab_size=1201, hidden_size=336, num_hidden_layers=2,
                  num_attention_heads=6, num_key_value_heads=3, intermediate_size=912,
                  tie_word_embeddings=True),
    "bert": dict(model_type="bert", vocab_size=1531, hidden_size=208, num_hidden_layers=3,
                 num_attention_heads=4, intermediate_size=720, max_position_embeddings=128,
                 hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0),
    "vit": dict(model_type="vit", hidden_size=144, num_hidden_layers=3, num_attention_heads=3,
                intermediate_size=528, image_size=40, patch_size=8, num_labels=13),
    "vit-ragged": dict(model_type="vit", hidden_size=144, num_hidden_layers=3, num_attention_heads=3,
                       intermediate_size=500, image_size=40, patch_size=8, num_labels=13),
}
SIZES = {"llama": dict(batch=5, tokens=112), "llama-wide": dict(batch=3, tokens=48),
         "qwen2": dict(batch=2, tokens=200), "bert": dict(batch=7, tokens=80),
         "vit": dict(batch=24), "vit-ragged": dict(batch=24)}
CASES = [dict(name=f"{network}-{precision}-{attention}", config=config, precision=precision,
              attention=attention, sm=90, linears="fp8", **SIZES[network])
         for network, config in CONFIGS.items()
         for precision in ("fp32", "bf16", "amp-bf16")
         for attention in (("sdpa", "math") if network in ("llama", "bert") else ("sdpa",))]
LORA = dict(r=8, lora_alpha=16, target_modules=["q_proj", "v_proj"])
CASES += [dict(name=f"llama-{precision}-{label}", config=CONFIGS["llama"], precision=precision,
               attention="sdpa", sm=90, linears="fp8", **SIZES["llama"], **more)
          for precision in ("bf16", "amp-bf16")
          for label, more in (("lora", dict(lora=LORA)), ("checkpoint", dict(checkpoint=True)))]
