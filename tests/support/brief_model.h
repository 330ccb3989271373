// Models whose blocks are many and alike, cut short for tests that walk over every preset.
#pragma once

#include <algorithm>
#include <cstdint>
#include <variant>

#include "traces/models/model_config.h"

namespace tidemark {

/// In the order in which they first come.
inline std::vector<Mixer> of_each_kind(const std::vector<Mixer>& mixers) {
  std::vector<Mixer> kinds;
  for (const Mixer mixer : mixers)
    if (std::ranges::find(kinds, mixer) == kinds.end()) kinds.push_back(mixer);
  return kinds;
}

/// The model with as many blocks as the base size of a family has: 12, or 6 in a stage; two where
/// they have experts; one of each kind where they are of several.
inline Model brief(Model model) {
  const auto cut = [](std::int64_t& depth, std::int64_t most) { depth = std::min(depth, most); };
  std::visit(
      [&](auto& config) {
        if constexpr (requires { config.depth; }) cut(config.depth, 12);
        if constexpr (requires { config.decoder_depth; }) cut(config.decoder_depth, 12);
        if constexpr (requires { config.depths; })
          for (std::int64_t& depth : config.depths) cut(depth, 6);
        if constexpr (requires { config.experts; })
          if (config.experts.count > 0) cut(config.depth, 2);
        if constexpr (requires { config.mixers; })
          if (config.is_hybrid())
            config.mixers = of_each_kind(config.mixers),
            config.depth = static_cast<std::int64_t>(config.mixers.size());
      },
      model.config);
  return model;
}

}  // namespace tidemark
