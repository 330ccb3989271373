// Which tensors two recordings have alive at their peaks that the other has not: why one needs
// more.
#pragma once

#include <string>
#include <vector>

#include "analysis/recording/recording.h"

namespace tidemark::diff {

/// Tensors of one name and size that have no partner in the other recording.
struct Unmatched {
  std::string name;  ///< of the tensor ("blocks.*.mlp.fc1" of any block), or where it was made
  Bytes size;        ///< of each
  std::size_t count = 0;

  Bytes bytes() const { return {size.count * static_cast<std::int64_t>(count)}; }
  bool operator==(const Unmatched&) const = default;
};

struct TensorMatch {
  Bytes before, after;             ///< alive at the peaks
  std::size_t matched = 0;         ///< pairs
  Bytes matched_bytes;             ///< of those of `after`
  Bytes rounding;                  ///< by which they are larger than their partners
  std::vector<Unmatched> missing;  ///< of `before` alone, the largest sum first
  std::vector<Unmatched> extra;    ///< of `after` alone

  /// after − before = Σ extra − Σ missing + rounding.
  Bytes change() const { return after - before; }
};

/// Partners have the same size, to the 512 bytes that PyTorch's allocator deals out
/// (c10/core/AllocatorConfig.h), and of those first the same name, then the same place in the order
/// in which they came to life.
TensorMatch match_tensors(const Recording& before, const Recording& after);

/// "2.10 GiB more than predicted: 3 × 512 MiB loss.log_softmax (backward), …"
std::string headline(const TensorMatch& match, std::string_view before_label);

}  // namespace tidemark::diff
