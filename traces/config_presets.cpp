// Published decoders as their config.json has them: what the file says beside its class's defaults,
// which stand in the reader alone.
#include "traces/config_presets.h"

#include "traces/models/config_reader.h"

namespace tidemark {
namespace {

struct Preset {
  const char *name, *title, *source, *config;
};

constexpr std::array rows = {
    Preset{"llama-3-8b", "Llama 3 8B",
           "arXiv 2407.21783; config.json of meta-llama/Meta-Llama-3-8B",
           R"({"model_type": "llama", "intermediate_size": 14336, "num_key_value_heads": 8,
               "vocab_size": 128256, "max_position_embeddings": 8192, "rms_norm_eps": 1e-5,
               "rope_theta": 500000})"},
    Preset{"mistral-7b", "Mistral 7B v0.1",
           "arXiv 2310.06825; config.json of mistralai/Mistral-7B-v0.1",
           R"({"model_type": "mistral", "max_position_embeddings": 32768, "rms_norm_eps": 1e-5})"},
    Preset{"qwen2-7b", "Qwen2 7B", "arXiv 2407.10671; config.json of Qwen/Qwen2-7B",
           R"({"model_type": "qwen2", "hidden_size": 3584, "num_hidden_layers": 28,
               "num_attention_heads": 28, "num_key_value_heads": 4, "intermediate_size": 18944,
               "vocab_size": 152064, "max_position_embeddings": 131072, "rope_theta": 1e6})"},
    Preset{"qwen3-8b", "Qwen3 8B", "arXiv 2505.09388; config.json of Qwen/Qwen3-8B",
           R"({"model_type": "qwen3", "num_hidden_layers": 36, "num_key_value_heads": 8,
               "intermediate_size": 12288, "max_position_embeddings": 40960, "rope_theta": 1e6})"},
    Preset{"gemma-2b", "Gemma 2B", "arXiv 2403.08295; config.json of google/gemma-2b",
           R"({"model_type": "gemma", "hidden_size": 2048, "num_hidden_layers": 18,
               "num_attention_heads": 8, "num_key_value_heads": 1, "intermediate_size": 16384})"},
    Preset{"gemma-2-9b", "Gemma 2 9B", "arXiv 2408.00118; config.json of google/gemma-2-9b",
           R"({"model_type": "gemma2", "hidden_size": 3584, "num_hidden_layers": 42,
               "num_attention_heads": 16, "num_key_value_heads": 8, "intermediate_size": 14336})"},
    Preset{"gemma-3-1b", "Gemma 3 1B", "arXiv 2503.19786; config.json of google/gemma-3-1b-pt",
           R"({"model_type": "gemma3_text", "hidden_size": 1152, "num_attention_heads": 4,
               "num_key_value_heads": 1, "intermediate_size": 6912, "vocab_size": 262144,
               "max_position_embeddings": 32768, "sliding_window": 512})"},
    Preset{"phi-3-mini", "Phi-3 mini, 4k",
           "arXiv 2404.14219; config.json of microsoft/Phi-3-mini-4k-instruct",
           R"({"model_type": "phi3", "sliding_window": 2047})"},
    Preset{"phi-4", "Phi-4", "arXiv 2412.08905; config.json of microsoft/phi-4",
           R"({"model_type": "phi3", "hidden_size": 5120, "num_hidden_layers": 40,
               "num_attention_heads": 40, "num_key_value_heads": 10, "intermediate_size": 17920,
               "vocab_size": 100352, "max_position_embeddings": 16384, "rope_theta": 250000})"},
    Preset{"pythia-1.4b", "Pythia 1.4B", "arXiv 2304.01373; config.json of EleutherAI/pythia-1.4b",
           R"({"model_type": "gpt_neox", "hidden_size": 2048, "num_hidden_layers": 24,
               "num_attention_heads": 16, "intermediate_size": 8192, "vocab_size": 50304})"},
    Preset{"opt-1.3b", "OPT 1.3B", "arXiv 2205.01068; config.json of facebook/opt-1.3b",
           R"({"model_type": "opt", "hidden_size": 2048, "num_hidden_layers": 24,
               "num_attention_heads": 32, "ffn_dim": 8192, "word_embed_proj_dim": 2048})"},
    Preset{"olmo-2-7b", "OLMo 2 7B", "arXiv 2501.00656; config.json of allenai/OLMo-2-1124-7B",
           R"({"model_type": "olmo2", "vocab_size": 100352, "max_position_embeddings": 4096,
               "rms_norm_eps": 1e-6, "rope_theta": 500000})"},
    Preset{"t5-base", "T5 base", "arXiv 1910.10683; config.json of google-t5/t5-base",
           R"({"model_type": "t5", "d_model": 768, "d_ff": 3072, "num_layers": 12,
               "num_heads": 12})"},
    Preset{"flan-t5-large", "FLAN-T5 large",
           "arXiv 2210.11416; config.json of google/flan-t5-large",
           R"({"model_type": "t5", "d_model": 1024, "d_ff": 2816, "num_layers": 24,
               "num_heads": 16, "feed_forward_proj": "gated-gelu",
               "tie_word_embeddings": false})"},
    Preset{"mixtral-8x7b", "Mixtral 8x7B",
           "arXiv 2401.04088; config.json of mistralai/Mixtral-8x7B-v0.1",
           R"({"model_type": "mixtral", "max_position_embeddings": 32768})"},
    Preset{"qwen3-30b-a3b", "Qwen3 30B-A3B", "arXiv 2505.09388; config.json of Qwen/Qwen3-30B-A3B",
           R"({"model_type": "qwen3_moe", "num_hidden_layers": 48, "head_dim": 128,
               "max_position_embeddings": 40960, "norm_topk_prob": true, "rope_theta": 1e6})"},
    Preset{"olmoe-1b-7b", "OLMoE 1B-7B",
           "arXiv 2409.02060; config.json of allenai/OLMoE-1B-7B-0924",
           R"({"model_type": "olmoe", "intermediate_size": 1024})"},
};

}  // namespace

std::vector<Model> config_presets() {
  std::vector<Model> models;
  for (const Preset& row : rows) {
    Model model = read_model_config(row.config, row.name);
    model.title = row.title, model.source = row.source;
    models.push_back(std::move(model));
  }
  return models;
}

}  // namespace tidemark
