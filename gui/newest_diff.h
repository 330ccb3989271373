// What differs between two recordings, as `tidemark diff` says it. Made beside the drawing: summing
// up millions of runs takes longer than a frame.
#pragma once

#include <future>

#include "analysis/diff/diff.h"
#include "analysis/diff/tensor_match.h"
#include "gui/opened.h"

namespace tidemark::gui {

struct RecordingDiff {
  diff::Diff numbers;
  diff::TensorMatch tensors;  ///< of the predicted one first, if only one is
  std::string headline;       ///< "measured: 2.10 GiB more than predicted: …"
};

RecordingDiff diff_of(const Recording& before, const Recording& after);

class NewestDiff {
 public:
  using Shown = std::shared_ptr<const Opened>;

  /// Looks at these two from now on. What was found about others stays until all is known.
  void look(const Shown& before, const Shown& after);
  /// The last complete one; null before the first.
  const RecordingDiff* newest() const { return newest_ ? &*newest_ : nullptr; }
  bool is_catching_up() const {
    return under_way_.valid() &&
           under_way_.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
  }
  void wait() const {
    if (under_way_.valid()) under_way_.wait();
  }

 private:
  std::pair<Shown, Shown> wanted_;
  std::optional<RecordingDiff> newest_;
  std::future<RecordingDiff> under_way_;  ///< of the pair that is wanted, or of one before it
};

}  // namespace tidemark::gui
