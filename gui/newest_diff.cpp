// Starts one diff at a time on another thread and looks for its result in each frame.
#include "gui/newest_diff.h"

#include <fmt/format.h>

namespace tidemark::gui {

// What is measured is told against what was predicted, whichever of the two is shown.
RecordingDiff diff_of(const Recording& before, const Recording& after) {
  const bool is_known = before.source != after.source;
  const bool turns = is_known && after.source == Source::Predicted;
  diff::TensorMatch tensors =
      turns ? diff::match_tensors(after, before) : diff::match_tensors(before, after);
  std::string headline = fmt::format("{}: {}", is_known ? "measured" : "B",
                                     diff::headline(tensors, is_known ? "predicted" : "A"));
  return {diff::diff(diff::profile_of(before), diff::profile_of(after)), std::move(tensors),
          std::move(headline)};
}

void NewestDiff::look(const Shown& before, const Shown& after) {
  if (is_catching_up()) return;
  if (under_way_.valid()) newest_ = under_way_.get();
  if (wanted_ == std::pair(before, after)) return;
  wanted_ = {before, after};
  under_way_ = std::async(std::launch::async,
                          [before, after] { return diff_of(before->recording, after->recording); });
}

}  // namespace tidemark::gui
