// Where a cut of a tensor goes when its layout changes.
#pragma once

#include <cstdint>

#include "traces/layout_transform.h"
#include "traces/tensor.h"

namespace tidemark {

inline constexpr std::int8_t sequence_dimension = 1;  ///< of [batch, tokens, width]
inline constexpr std::int8_t row_dimension = 0;       ///< of [batch · tokens, width]

/// The dimension of `to` of which a rank has a part, if it has a part of dimension `cut` of `from`;
/// TensorCuts::whole if there is none.
std::int8_t moved_cut(LayoutTransform transform, const Shape& from, std::int8_t cut,
                      const Shape& to);

}  // namespace tidemark
