// The table from module names to linears; a name that it does not have stands for itself.
#include "traces/linear_names.h"

#include <algorithm>
#include <array>

namespace tidemark {
namespace {

struct ModuleName {
  std::string_view name;
  std::array<std::string_view, 4> linears;
  std::string_view family = "";  ///< of which this is so; "": of all others
};

// LLaMA and most decoders; then GPT-2; then BERT, RoBERTa and ViT, where "dense" ends three
// modules: attention.output.dense, intermediate.dense and output.dense, unlike in GPT-NeoX and Phi,
// where it is the attention's; then Phi-3, GPT-NeoX and OPT; then DistilBERT; then T5; then
// Mixtral; then ModernBERT; then DeepSeek. PVT's MLPs have names that only begin with "dense".
// DeBERTa's query_proj and its kin stand among the others. Last, tables of words and the head that
// GPT-NeoX has, which no adapter sits beside, but which may be trained whole.
constexpr std::array module_names = {ModuleName{"q_proj", {"q"}},
                                     ModuleName{"k_proj", {"k"}},
                                     ModuleName{"v_proj", {"v"}},
                                     ModuleName{"o_proj", {"o"}},
                                     ModuleName{"gate_proj", {"gate"}},
                                     ModuleName{"up_proj", {"fc1"}, "nemotron-h"},
                                     ModuleName{"down_proj", {"fc2"}, "nemotron-h"},
                                     ModuleName{"up_proj", {"fc1"}, "arcee"},
                                     ModuleName{"down_proj", {"fc2"}, "arcee"},
                                     ModuleName{"out_proj", {"out_proj"}, "nemotron-h"},
                                     ModuleName{"up_proj", {"up"}},
                                     ModuleName{"down_proj", {"down"}},
                                     ModuleName{"c_attn", {"qkv"}},
                                     ModuleName{"c_proj", {"proj", "fc2"}},
                                     ModuleName{"c_fc", {"fc1"}},
                                     ModuleName{"query", {"q"}},
                                     ModuleName{"key", {"k"}},
                                     ModuleName{"value", {"v"}},
                                     ModuleName{"dense", {"o"}, "gpt-neox"},
                                     ModuleName{"dense", {"o"}, "phi"},
                                     ModuleName{"dense", {"o"}, "falcon"},
                                     ModuleName{"dense", {"proj"}, "pvt"},
                                     ModuleName{"dense", {"dense", "proj", "fc1", "fc2"}},
                                     ModuleName{"dense1", {"fc1"}},
                                     ModuleName{"dense2", {"fc2"}},
                                     ModuleName{"query_proj", {"q"}},
                                     ModuleName{"key_proj", {"k"}},
                                     ModuleName{"value_proj", {"v"}},
                                     ModuleName{"pos_query_proj", {"place_q"}},
                                     ModuleName{"pos_key_proj", {"place_k"}},
                                     ModuleName{"qkv_proj", {"qkv"}},
                                     ModuleName{"query_key_value", {"qkv"}},
                                     ModuleName{"gate_up_proj", {"gate_up"}},
                                     ModuleName{"dense_h_to_4h", {"fc1"}},
                                     ModuleName{"dense_4h_to_h", {"fc2"}},
                                     ModuleName{"out_proj", {"o"}},
                                     ModuleName{"q_lin", {"q"}},
                                     ModuleName{"k_lin", {"k"}},
                                     ModuleName{"v_lin", {"v"}},
                                     ModuleName{"out_lin", {"dense"}},
                                     ModuleName{"lin1", {"fc1"}},
                                     ModuleName{"lin2", {"fc2"}},
                                     ModuleName{"wi", {"fc1"}},
                                     ModuleName{"wi_0", {"gate"}},
                                     ModuleName{"wi_1", {"up"}},
                                     ModuleName{"wo", {"fc2", "down"}},
                                     ModuleName{"w1", {"gate"}},
                                     ModuleName{"w2", {"down"}},
                                     ModuleName{"w3", {"up"}},
                                     ModuleName{"Wqkv", {"qkv"}},
                                     ModuleName{"Wi", {"gate_up"}},
                                     ModuleName{"Wo", {"o", "down"}},
                                     ModuleName{"q_a_proj", {"q_a"}},
                                     ModuleName{"q_b_proj", {"q_b"}},
                                     ModuleName{"kv_a_proj_with_mqa", {"kv_a"}},
                                     ModuleName{"kv_b_proj", {"kv_b"}},
                                     ModuleName{"all-linear", {"all"}},
                                     ModuleName{"embed_tokens", {"embed"}},
                                     ModuleName{"wte", {"embed"}},
                                     ModuleName{"embed_in", {"embed"}},
                                     ModuleName{"word_embeddings", {"embed"}},
                                     ModuleName{"tok_embeddings", {"embed"}},
                                     ModuleName{"shared", {"embed"}},
                                     ModuleName{"embed_out", {"lm_head"}}};

}  // namespace

std::vector<std::string_view> linears_named(std::string_view target, std::string_view family) {
  const auto* found = std::ranges::find_if(module_names, [&](const ModuleName& row) {
    return row.name == target && (row.family.empty() || row.family == family);
  });
  if (found == module_names.end()) return {target};
  const auto* end = std::ranges::find(found->linears, std::string_view());
  return {found->linears.begin(), end};
}

// TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING of peft's utils/constants.py; Phi-3's and
// ModernBERT's, for which peft wants to be told, are packed as GPT-NeoX's are.
std::vector<std::string> usual_targets(std::string_view family) {
  constexpr std::array<std::string_view, 5> packed = {"gpt2", "gpt-neox", "falcon", "phi3",
                                                      "modernbert"};
  if (std::ranges::find(packed, family) != packed.end()) return {"qkv"};
  if (family == "phi") return {"q", "v", "fc1", "fc2"};
  if (family == "nemotron-h") return {"q", "k", "v", "o"};
  if (family.starts_with("deepseek")) return {};  // whose queries and values are made in two steps
  return {"q", "v"};
}

std::string_view leaf_of(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

}  // namespace tidemark
