// Products that each tensor-parallel rank makes of its own tokens, with a whole weight.
#pragma once

#include <vector>

#include "traces/trace.h"

namespace tidemark {

struct OwnProducts {
  /// By tensor: such a product writes it.
  std::vector<bool> is_made;
  /// By tensor: a part of what such a product wrote, which all ranks' heads read as a whole.
  std::vector<bool> is_shared;
};

/// In front of the visits of experts and behind them (moe_latent_size), and what makes tokens
/// narrow before the next product widens them (latent attention's down projections, "duplicated" in
/// core/transformer/multi_latent_attention.py of Megatron-LM).
OwnProducts own_products(const Trace& trace);

}  // namespace tidemark
