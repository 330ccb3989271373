// Bytes → config.json → a small model's trace → check. Must give a sound trace or throw InputError.
// What fuzz_config reads thousands of times a second is built here.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "traces/models/config_reader.h"

namespace {

using namespace tidemark;

/// Two blocks of a kind say all that twelve do: the time is for other inputs.
struct Shallow {
  template <typename Config>
  void operator()(Config& config) const {
    if constexpr (requires { config.depths; }) {
      shrink(config.depths);
    } else if constexpr (requires { config.stages; }) {
      for (auto& stage : config.stages) shrink(stage.depth);
    } else if constexpr (requires { config.encoder; }) {
      shrink(config.encoder.depth);
      shrink(config.decoder.depth);
    } else {
      shrink(config.depth);
    }
    if constexpr (requires { config.decoder_depth; }) shrink(config.decoder_depth);
  }

  static void shrink(std::int64_t& depth) { depth = std::min<std::int64_t>(depth, 2); }
  static void shrink(std::vector<std::int64_t>& depths) {
    std::ranges::for_each(depths, [](std::int64_t& depth) { shrink(depth); });
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    Model model = read_model_config(text, "fuzz");
    std::visit(Shallow{}, model.config);
    for (const Attention attention : {Attention::Math, Attention::Flash})
      if (!check(build_trace(model, {.batch = 1, .attention = attention})).empty()) std::abort();
  } catch (const InputError& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();
  }
  return 0;
}
