// A sentence per cause: what differs, and what usually lies behind it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/beside/difference.h"

namespace tidemark::beside {
namespace {

std::string count_words(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string scaled_words(const Difference& difference, const Cause& cause) {
  const Scale& scale = difference.scale.value();
  const std::string head = fmt::format("{:.3g} times as large as predicted: ", scale.factor);
  if (scale.of_everything) return head + "all sizes, parameters too, as with another precision";
  const double batch = scale.factor * static_cast<double>(difference.batch);
  const bool is_whole = std::abs(batch - std::round(batch)) < 1e-6 && batch >= 1;
  const std::string as_with =
      is_whole ? fmt::format("a batch of {:.0f} in place of {}, or ", batch, difference.batch) : "";
  return head + count_words(cause.blocks, "tensor") + ", as with " + as_with + "other samples";
}

}  // namespace

std::string words_of(const Difference& difference, const Cause& cause) {
  const std::string blocks = count_words(cause.blocks, "block");
  switch (cause.kind) {
    case CauseKind::Scaled:
      return scaled_words(difference, cause);
    case CauseKind::NotGivenUp:
      return "given up by the strategy, and not by the run: " + blocks;
    case CauseKind::HeldLonger:
      return "freed by then in the prediction, or not made yet: " + blocks +
             ", as a variable, a hook or a list keeps them";
    case CauseKind::EarlierSteps:
      return "kept from step to step: " + blocks + " of earlier steps";
    case CauseKind::EarlierGradients:
      return "gradients of an earlier backward: " + blocks +
             ", as with zero_grad(set_to_none=False) or of another micro-batch";
    case CauseKind::SecondCopy:
      return "a second copy of parameters or their states: " + blocks +
             ", as of a moving average or a teacher";
    case CauseKind::Unpredicted:
      return "of sizes that nothing in the prediction has: " + blocks + " of the step";
    case CauseKind::UnpredictedBefore:
      return "of sizes that nothing in the prediction has: " + blocks +
             " from before the step, as of other models, data or metrics";
    case CauseKind::Missing:
      return "predicted for then, and not there: " + count_words(cause.blocks, "tensor") +
             ", freed earlier, recomputed or never made";
    case CauseKind::OtherMoment:
      return "the two peaks are at different moments of the step";
    case CauseKind::Unsplit:
      return fmt::format(
          "in blocks beyond what tensors ask for, {} than predicted: what the allocator does not "
          "split off, and scratch of about the predicted size",
          cause.bytes < Bytes{} ? "less" : "more");
  }
  return "";
}

}  // namespace tidemark::beside
