// Starts one diff at a time on another thread and looks for its result in each frame.
#include "gui/newest_diff.h"

#include <fmt/format.h>

#include <cstdlib>

#include "analysis/rank_report.h"
#include "base/error.h"

namespace tidemark::gui {

namespace {

std::string amount_and_direction(Bytes change) {
  if (change.count == 0) return "as much as";
  return to_text(Bytes{std::abs(change.count)}) + (change.count > 0 ? " more than" : " less than");
}

// Instead of the tensors' own headline: what was found out about why.
void add_causes(const Predicted& predicted, RecordingDiff& made) {
  const Scenario& scenario = predicted.scenario;
  const Evaluation evaluation =
      evaluate_ranks(traces_of(scenario), predicted.strategy, scenario.device,
                     memory_budget_of(scenario), scenario.step.rank);
  if (!evaluation.report.applies) return;
  const beside::Difference difference =
      predicted.causes_of(evaluation, scenario.device, predicted.file);
  made.headline = fmt::format("measured: {} predicted, as PyTorch's allocator counts",
                              amount_and_direction(difference.recorded - difference.predicted));
  for (const beside::Cause& cause : difference.causes)
    made.causes.push_back({beside::words_of(difference, cause), cause});
}

// What holds no blocks of memory has no causes: its tensors were compared already.
void try_causes(const Predicted& predicted, RecordingDiff& made) {
  try {
    add_causes(predicted, made);
  } catch (const InputError&) {
    made.causes.clear();
  }
}

}  // namespace

// What is measured is told against what was predicted, whichever of the two is shown.
RecordingDiff diff_of(const Recording& before, const Recording& after,
                      const std::optional<Predicted>& predicted) {
  const bool is_known = before.source != after.source;
  const bool turns = is_known && after.source == Source::Predicted;
  RecordingDiff made{
      diff::diff(diff::profile_of(before), diff::profile_of(after)),
      turns ? diff::match_tensors(after, before) : diff::match_tensors(before, after),
      {}};
  // A schedule has tensors; what kernels and libraries take beside is in a recording alone.
  made.headline = fmt::format("{}: {}", is_known ? "measured, with all workspaces" : "B",
                              diff::headline(made.tensors, is_known ? "predicted" : "A"));
  if (is_known && predicted) try_causes(*predicted, made);
  return made;
}

void NewestDiff::look(const Shown& before, const Shown& after,
                      const std::optional<Predicted>& predicted) {
  if (is_catching_up()) return;
  if (under_way_.valid()) newest_ = under_way_.get();
  if (wanted_ == std::pair(before, after)) return;
  wanted_ = {before, after};
  under_way_ = std::async(std::launch::async, [before, after, predicted] {
    return diff_of(before->recording, after->recording, predicted);
  });
}

}  // namespace tidemark::gui
