// Which batches fit. Memory in use grows with the batch; what fragmentation adds to it does not, so
// a batch may fit where a smaller one does not. Example: Swin-T in fp32 with checkpoints on an RTX
// 4090 fits with every batch up to 602, not with 603, and again with 680.
#pragma once

#include <cstdint>
#include <functional>

namespace tidemark {

struct BatchLimits {
  std::int64_t every = 0;    ///< each batch up to this one fits: tried one by one
  std::int64_t largest = 0;  ///< the largest that fits at all
  /// More than `most_batches_tried` were in question: above `every` and below `largest` some were
  /// not tried.
  bool cut_short = false;

  bool operator==(const BatchLimits&) const = default;
};

/// What a search asks about a batch. Both are called from several threads.
struct BatchTest {
  /// False proves that neither this batch nor any larger one fits.
  std::function<bool(std::int64_t)> may_fit;
  std::function<bool(std::int64_t)> fits;
};

/// Told now and then: how many batches were tried, of how many at most.
using BatchProgress = std::function<void(std::int64_t tried, std::int64_t at_most)>;

/// Takes seconds for a network of thousands of ops; a limit in batches keeps answers repeatable,
/// which one in seconds would not.
inline constexpr std::int64_t most_batches_tried = 4096;

/// Beyond what `may_fit` rules out, `fits` is asked of one batch after the other, on all cores.
BatchLimits find_batch_limits(const BatchTest& test, const BatchProgress& progress = {},
                              std::int64_t most_tried = most_batches_tried);

}  // namespace tidemark
