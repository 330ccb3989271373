// Models whose blocks are many and alike, cut short for tests that walk over every preset.
#pragma once

#include "traces/models/model_config.h"

namespace tidemark {

/// The model with two of its blocks if they have experts.
inline Model brief(Model model) {
  if (auto* config = std::get_if<DecoderConfig>(&model.config);
      config != nullptr && config->experts.count > 0)
    config->depth = 2;
  return model;
}

}  // namespace tidemark
