"""Published networks by the names that rows have for them: config.json files of their publishers, less what no size follows from."""
import re

# meta-llama's Llama 3 and 3.1, whose sizes a row may state itself, or some of whose layers it keeps.
LLAMA_3 = {"8b": (32, 4096, 32, 14336), "70b": (80, 8192, 64, 28672), "405b": (126, 16384, 128, 53248)}
LLAMA_WORDS, LLAMA_KEY_HEADS = 128256, 8
# openai/gpt-oss: as a mixture of Megatron-LM's; its sinks, the biases of its experts and the windows of every second layer are left out.
GPT_OSS = {"num_attention_heads": 64, "num_query_groups": 8, "kv_channels": 64, "hidden_size": 2880, "ffn_hidden_size": 2880,
           "moe_ffn_hidden_size": 2880, "moe_router_topk": 4, "vocab_size": 201088}
QWEN_3 = {"model_type": "qwen3_moe", "vocab_size": 151936, "head_dim": 128, "num_key_value_heads": 4, "num_experts": 128,
          "num_experts_per_tok": 8, "max_position_embeddings": 40960, "tie_word_embeddings": False}
MIXTRAL = {"model_type": "mixtral", "num_key_value_heads": 8, "num_local_experts": 8, "num_experts_per_tok": 2}
# deepseek-ai/DeepSeek-V2 and V3, moonshotai/Kimi-K2.
DEEPSEEK_V2 = {
    "model_type": "deepseek_v2", "vocab_size": 102400, "hidden_size": 5120, "num_hidden_layers": 60, "num_attention_heads": 128,
    "intermediate_size": 12288, "moe_intermediate_size": 1536, "n_routed_experts": 160, "num_experts_per_tok": 6,
    "first_k_dense_replace": 1, "n_group": 8, "topk_group": 3, "topk_method": "group_limited_greedy", "max_position_embeddings": 163840}
DEEPSEEK_V3 = {
    "model_type": "deepseek_v3", "vocab_size": 129280, "hidden_size": 7168, "num_hidden_layers": 61, "num_attention_heads": 128,
    "num_key_value_heads": 128, "intermediate_size": 18432, "moe_intermediate_size": 2048, "n_routed_experts": 256,
    "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 3, "n_group": 8, "topk_group": 4, "q_lora_rank": 1536,
    "kv_lora_rank": 512, "max_position_embeddings": 163840}
# nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16. Bridge's recipes of Nemotron 3.5 Lightning and 3 Super train two further tokens with one block.
NEMOTRON_3_NANO = {
    "model_type": "nemotron_h", "hidden_size": 2688, "num_hidden_layers": 52, "num_key_value_heads": 2, "intermediate_size": 1856,
    "hybrid_override_pattern": "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME", "mamba_num_heads": 64, "n_routed_experts": 128,
    "num_experts_per_tok": 6, "moe_intermediate_size": 1856, "moe_shared_expert_intermediate_size": 3712,
    "max_position_embeddings": 262144}
TWO_AHEAD = {"num_nextn_predict_layers": 2, "mtp_hybrid_override_pattern": "*E"}
NEMOTRON_3_SUPER = NEMOTRON_3_NANO | TWO_AHEAD | {
    "hidden_size": 4096, "num_hidden_layers": 88, "intermediate_size": 2688,
    "hybrid_override_pattern": "MEMEMEM*EMEMEMEM*EMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEM*EMEMEMEME", "mamba_num_heads": 128,
    "n_routed_experts": 512, "num_experts_per_tok": 22, "moe_intermediate_size": 2688, "moe_latent_size": 1024,
    "moe_shared_expert_intermediate_size": 5376}
MIXTURES = {
    "qwen330ba3b": QWEN_3 | {"hidden_size": 2048, "num_hidden_layers": 48, "num_attention_heads": 32, "intermediate_size": 6144,
                             "moe_intermediate_size": 768},
    "qwen3235ba22b": QWEN_3 | {"hidden_size": 4096, "num_hidden_layers": 94, "num_attention_heads": 64, "intermediate_size": 12288,
                               "moe_intermediate_size": 1536},
    "mixtral8x7b": MIXTRAL | {"vocab_size": 32000, "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
                              "intermediate_size": 14336},
    "mixtral8x22b": MIXTRAL | {"vocab_size": 32768, "hidden_size": 6144, "num_hidden_layers": 56, "num_attention_heads": 48,
                               "intermediate_size": 16384},
    "deepseekv2": DEEPSEEK_V2,
    "deepseekv3": DEEPSEEK_V3,
    "kimik2": DEEPSEEK_V3 | {"vocab_size": 163840, "num_attention_heads": 64, "num_key_value_heads": 64, "n_routed_experts": 384,
                             "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1},
    "nemotron3nano": NEMOTRON_3_NANO,
    "nemotron35lightning": NEMOTRON_3_NANO | TWO_AHEAD,
    "nemotron3super": NEMOTRON_3_SUPER,
}
GPT_OSS_LAYERS = {"gptoss20b": (24, 32), "gptoss120b": (36, 128)}  # and experts


def plain(name):
    """Without case, signs and what stands in brackets or behind a comma."""
    return re.sub(r"[^a-z0-9]", "", re.sub(r"\(.*|,.*", "", name.lower()))


def llama_size(row):
    """The row of LLAMA_3 that a name like "llama3.1-70b" or "LLAMA3_70B" means, or None."""
    found = re.fullmatch(r"llama31?(8b|70b|405b)", plain(row["model"]))
    return LLAMA_3[found[1]] if found else None


# hybrid_layer_pattern of Megatron-LM's functional tests hybrid_mr_mcore_te_…, which their rows leave out.
HYBRID_OF_TESTS = "M-M-M-M*-M-M-M-M*-M-M-M-M*-M-M-M-M*-M-M-M-M-"


def nemotron_of_tests(name):
    """Of Megatron-LM's functional tests, whose model_config.yaml has the same networks."""
    return NEMOTRON_3_SUPER if "super" in name else NEMOTRON_3_NANO | TWO_AHEAD


def padded(words, ranks, multiple=128):
    """--make-vocab-size-divisible-by, of each tensor-parallel rank."""
    return (words + multiple * ranks - 1) // (multiple * ranks) * multiple * ranks


def megatron_decoder(layers, hidden, heads, ffn, words, sequence):
    """A decoder with RMSNorm, SwiGLU and rotation, without biases, dropout and tied words."""
    return {"model_type": "megatron-gpt", "num_layers": layers, "hidden_size": hidden, "num_attention_heads": heads,
            "ffn_hidden_size": ffn, "vocab_size": words, "max_position_embeddings": sequence, "add_bias_linear": False,
            "untie_embeddings_and_output_weights": True, "swiglu": True, "normalization": "RMSNorm", "position_embedding_type": "rope",
            "hidden_dropout": 0.0, "attention_dropout": 0.0}


def megatron_model(row):
    """The row's network as Megatron-LM has it, of as many layers as the row states; None if its name is not known."""
    ranks, name = row.get("tp") or 1, plain(row["model"])
    if size := llama_size(row):
        layers, hidden, heads, ffn = size
        config = megatron_decoder(row.get("layers", layers), hidden, heads, ffn, padded(LLAMA_WORDS, ranks), row["sequence"])
        return config | {"num_query_groups": LLAMA_KEY_HEADS}
    if name in GPT_OSS_LAYERS:
        layers, experts = GPT_OSS_LAYERS[name]
        config = megatron_decoder(row.get("layers", layers), 2880, 64, 2880, 0, row["sequence"])
        return config | GPT_OSS | {"num_experts": experts}
    if name in MIXTURES:
        config = dict(MIXTURES[name])
        return config | {"num_hidden_layers": row.get("layers", config["num_hidden_layers"])}
    return None


def layers_of(config):
    return config.get("num_layers") or config["num_hidden_layers"]
