// Bytes → config.json → a small model's trace → check. Must give a sound trace or throw InputError.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <string_view>

#include "traces/error.h"
#include "traces/models/config_reader.h"

namespace {

using namespace tidemark;

/// Blocks that a trace of the config has; the fuzzer's time goes into these.
struct Depth {
  std::int64_t operator()(const VitConfig& config) const { return config.depth; }
  std::int64_t operator()(const SwinConfig& config) const { return sum(config.depths); }
  std::int64_t operator()(const MvitConfig& config) const { return sum(config.depths); }
  std::int64_t operator()(const BertConfig& config) const { return config.depth; }
  std::int64_t operator()(const Gpt2Config& config) const { return config.depth; }
  std::int64_t operator()(const LlamaConfig& config) const { return config.depth; }

  static std::int64_t sum(const std::vector<std::int64_t>& depths) {
    return std::accumulate(depths.begin(), depths.end(), std::int64_t{0});
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const Model model = read_model_config(text, "fuzz");
    if (std::visit(Depth{}, model.config) > 64) return 0;
    for (const Attention attention : {Attention::Math, Attention::Flash})
      if (!check(build_trace(model, {.batch = 1, .attention = attention})).empty()) std::abort();
  } catch (const InputError& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();
  }
  return 0;
}
