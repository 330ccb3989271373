// Starts one diff at a time on another thread and looks for its result in each frame.
#include "gui/newest_diff.h"

namespace tidemark::gui {

void NewestDiff::look(const Shown& before, const Shown& after) {
  if (is_catching_up()) return;
  if (under_way_.valid()) newest_ = under_way_.get();
  if (wanted_ == std::pair(before, after)) return;
  wanted_ = {before, after};
  under_way_ = std::async(std::launch::async, [before, after] {
    return diff::diff(diff::profile_of(before->recording), diff::profile_of(after->recording));
  });
}

}  // namespace tidemark::gui
