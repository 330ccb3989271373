// Walks the runs in host order, in which a step ends before the next one begins.
#include "gui/indexes/phases.h"

#include <algorithm>
#include <optional>

namespace tidemark::gui {
namespace {

// When they begin; two streams are in host order, not in order of time.
struct Begins {
  std::optional<double> backward, optimizer;

  static void lower(std::optional<double>& begin, double moment) {
    begin = std::min(begin.value_or(moment), moment);
  }
};

void add_phases(const Begins& of, double begin, double end, std::vector<Phase>& phases) {
  const std::size_t step = phases.empty() ? 0 : phases.back().step + 1;
  const double optimizer = std::min(of.optimizer.value_or(end), end);
  const double backward = std::min(of.backward.value_or(optimizer), optimizer);
  for (const Phase& phase :
       {Phase{"forward", {begin, backward}, step}, Phase{"backward", {backward, optimizer}, step},
        Phase{"optimizer", {optimizer, end}, step}})
    if (phase.range.span() > 0) phases.push_back(phase);
}

}  // namespace

std::vector<Phase> phases_of(const Recording& recording, double end) {
  std::vector<Phase> phases;
  Begins of;
  double begin = 0;
  for (const TimedRun& timed : recording.timeline.runs) {
    const Run* run = std::get_if<Run>(&recording.schedule.steps[timed.step]);
    if (!run) continue;
    const auto moment = static_cast<double>(timed.begin.count());
    if (run->task == Task::Forward && of.optimizer) {
      add_phases(of, begin, moment, phases);
      begin = moment, of = {};
    }
    if (run->task == Task::Seed || run->task == Task::Backward) Begins::lower(of.backward, moment);
    if (run->task == Task::Optimizer) Begins::lower(of.optimizer, moment);
  }
  add_phases(of, begin, end, phases);
  return phases;
}

}  // namespace tidemark::gui
