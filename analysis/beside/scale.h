// Is what was recorded a multiple of what was predicted? So it is with another batch or precision.
#pragma once

#include <optional>

#include "analysis/beside/match.h"

namespace tidemark::beside {

struct Scale {
  double factor = 1;
  bool of_everything = false;  ///< parameters, too; otherwise of activations and their gradients
};

/// Is the block one that `scale` is about?
bool is_scaled(const Scale& scale, const Block& block);

/// The factor that makes most bytes agree; nothing where the sizes agree better as they are.
std::optional<Scale> find_scale(const Side& predicted, const BlockList& there, const Side& recorded,
                                const BlockList& found);

/// The prediction with its blocks so much larger or smaller.
Side scaled(Side predicted, const Scale& scale);

}  // namespace tidemark::beside
