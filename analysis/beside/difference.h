// Why a run needs another amount of memory than was predicted: what both have at the higher peak,
// the other side where it is most alike, is matched, and what is left over is put down to causes,
// whose bytes add up to the difference.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "analysis/beside/scale.h"
#include "base/names.h"

namespace tidemark::beside {

enum class CauseKind : std::uint8_t {
  Scaled,             ///< tensors are a multiple of what was predicted
  NotGivenUp,         ///< the strategy drops, codes or offloads them, the run keeps them
  HeldLonger,         ///< freed by then in the prediction, or not made yet
  EarlierSteps,       ///< made before the step of the peak, and never freed
  EarlierGradients,   ///< gradients of an earlier backward
  SecondCopy,         ///< as large as parameters or their states, beside those
  Unpredicted,        ///< of a size that nothing in the prediction has
  UnpredictedBefore,  ///< the same, from before the step of the peak
  Missing,            ///< predicted for this moment, and not there
  OtherMoment,        ///< the two peaks are at different moments of the step
  Unsplit,            ///< blocks are larger than what is asked for, more or less than predicted
};

inline constexpr std::array cause_kinds = {
    Named{CauseKind::Scaled, std::string_view("scaled")},
    Named{CauseKind::NotGivenUp, std::string_view("not_given_up")},
    Named{CauseKind::HeldLonger, std::string_view("held_longer")},
    Named{CauseKind::EarlierSteps, std::string_view("earlier_steps")},
    Named{CauseKind::EarlierGradients, std::string_view("earlier_gradients")},
    Named{CauseKind::SecondCopy, std::string_view("second_copy")},
    Named{CauseKind::Unpredicted, std::string_view("unpredicted")},
    Named{CauseKind::UnpredictedBefore, std::string_view("unpredicted_before")},
    Named{CauseKind::Missing, std::string_view("missing")},
    Named{CauseKind::OtherMoment, std::string_view("other_moment")},
    Named{CauseKind::Unsplit, std::string_view("unsplit")}};
static_assert(is_in_order(cause_kinds));

/// Blocks of one cause that have one name on each side.
struct CauseTensor {
  std::string tensor;        ///< predicted; "" if it has none
  std::string line;          ///< of the model's code that makes it; "" if unknown
  std::string allocated_by;  ///< recorded; "" if unknown
  std::size_t blocks = 0;
  Bytes size = {};  ///< of all of them
};

struct Cause {
  CauseKind kind{};
  Bytes bytes;  ///< that the recording has more because of it; negative: less
  std::size_t blocks = 0;
  std::vector<CauseTensor> tensors;  ///< largest first
};

struct Difference {
  Bytes predicted, recorded;  ///< peaks, as PyTorch's allocator counts allocated memory
  /// Of the recording at the moment that is compared, its peak only if that is the higher one: of
  /// all blocks, and of those that are tensors of the prediction.
  Bytes compared = {}, matched = {};
  std::size_t recorded_blocks = 0, matched_blocks = 0;
  std::optional<Scale> scale = {};
  std::int64_t batch = 0;          ///< that was predicted
  std::vector<Cause> causes = {};  ///< Σ = recorded − predicted; most bytes first
};

/// `requested` is by buffer of the recording what was asked for, where it got more; or empty.
Difference explain_difference(const Evaluation& evaluation, const Device& device,
                              const Recording& recording, const std::vector<Bytes>& requested = {});

/// "kept from step to step: 4 blocks of earlier steps".
std::string words_of(const Difference& difference, const Cause& cause);

}  // namespace tidemark::beside
