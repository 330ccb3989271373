// What differs between two recordings, as `tidemark diff` says it. Made beside the drawing: summing
// up millions of runs takes longer than a frame.
#pragma once

#include <functional>
#include <future>

#include "analysis/beside/difference.h"
#include "analysis/comparison.h"
#include "analysis/diff/diff.h"
#include "analysis/diff/tensor_match.h"
#include "gui/opened.h"

namespace tidemark::gui {

/// Why the run in a file needs another amount than was predicted. Throws InputError.
using CausesOf = std::function<beside::Difference(const Evaluation& predicted, const Device& device,
                                                  const std::string& file)>;

/// How one of the two was predicted here, and the file of the other.
struct Predicted {
  Scenario scenario;
  StrategySpec strategy;
  std::string file;
  CausesOf causes_of;
};

/// A cause in words, with the bytes that it makes.
struct NamedCause {
  std::string text;  ///< "kept from step to step: 4 blocks of earlier steps"
  beside::Cause cause;
};

struct RecordingDiff {
  diff::Diff numbers;
  diff::TensorMatch tensors;            ///< of the predicted one first, if only one is
  std::string headline;                 ///< "measured: 2.10 GiB more than predicted: …"
  std::vector<NamedCause> causes = {};  ///< of that; empty where none were looked for
};

/// `predicted` where one was predicted here and the other is measured: then causes are looked for,
/// as `tidemark explain --beside` does.
RecordingDiff diff_of(const Recording& before, const Recording& after,
                      const std::optional<Predicted>& predicted = {});

class NewestDiff {
 public:
  using Shown = std::shared_ptr<const Opened>;

  /// Looks at these two from now on. What was found about others stays until all is known.
  void look(const Shown& before, const Shown& after,
            const std::optional<Predicted>& predicted = {});
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
