# Steps of the size that people train, which `capture.py --on-gpu` runs on a GPU of 80 GB.
OF_1024 = dict(vocab_size=50257, n_positions=1024)
VIT_B = dict(model_type="vit", hidden_size=768, num_hidden_layers=12, num_attention_heads=12,
             intermediate_size=3072, image_size=224, patch_size=16, num_labels=1000)
SWIN_T = dict(model_type="swin", embed_dim=96, depths=[2, 2, 6, 2], num_heads=[3, 6, 12, 24],
              window_size=7, image_size=224, patch_size=4, num_labels=1000)
BERT_B = dict(model_type="bert", vocab_size=30522, hidden_size=768, num_hidden_layers=12,
              num_attention_heads=12, intermediate_size=3072, max_position_embeddings=512)
GPT2 = dict(model_type="gpt2", n_embd=768, n_layer=12, n_head=12, **OF_1024)
GPT2_M = dict(model_type="gpt2", n_embd=1024, n_layer=24, n_head=16, **OF_1024)
QWEN2_05B = dict(model_type="qwen2", vocab_size=151936, hidden_size=896, num_hidden_layers=24,
                 num_attention_heads=14, num_key_value_heads=2, intermediate_size=4864,
                 tie_word_embeddings=True)
LLAMA_1B = dict(model_type="llama", vocab_size=128256, hidden_size=2048, num_hidden_layers=16,
                num_attention_heads=32, num_key_value_heads=8, intermediate_size=8192,
                tie_word_embeddings=True)
MISTRAL_7B = dict(model_type="mistral", vocab_size=32000, hidden_size=4096, num_hidden_layers=32,
                  num_attention_heads=32, num_key_value_heads=8, intermediate_size=14336,
                  sliding_window=None)
T5_B = dict(model_type="t5", vocab_size=32128, d_model=768, d_kv=64, num_heads=12, d_ff=3072,
            num_layers=12, decoder_start_token_id=0)


def case(name, config, batch, precision, attention="sdpa", **others):
    return dict(name=f"{name}-{precision}-{attention}", config=config, batch=batch,
                precision=precision, attention=attention, optimizer="adamw", sm=90, **others)


LORA = dict(lora=dict(r=16, lora_alpha=16, target_modules=["q_proj", "v_proj"]))
CASES = [
    case("vit-b", VIT_B, 64, "bf16"),
    case("vit-b", VIT_B, 64, "amp-bf16"),
    case("vit-b", VIT_B, 64, "fp32"),
    case("gpt2", GPT2, 8, "bf16", tokens=1024),
    case("gpt2", GPT2, 8, "amp-bf16", tokens=1024),
    case("gpt2", GPT2, 8, "amp-bf16", "math", tokens=1024),
    case("gpt2-medium-checkpoint", GPT2_M, 8, "amp-bf16", tokens=1024, checkpoint=True),
    case("bert-b", BERT_B, 16, "amp-bf16", tokens=512),
    case("swin-t", SWIN_T, 64, "amp-bf16", "math"),
    case("qwen2-0.5b", QWEN2_05B, 4, "bf16", tokens=1024),
    case("llama-1b", LLAMA_1B, 4, "bf16", tokens=2048),
    case("llama-1b-checkpoint", LLAMA_1B, 4, "amp-bf16", tokens=2048, checkpoint=True),
    case("mistral-7b-lora-checkpoint", MISTRAL_7B, 2, "bf16", tokens=2048, checkpoint=True, **LORA),
    case("t5-b", T5_B, 8, "amp-bf16", "math", tokens=512, target_tokens=128),
]
