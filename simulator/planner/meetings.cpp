// A state is what has been done when a rerun ends: all reruns so far, and gradients up to some
// point of one of them. The next rerun begins at once, or with one of the next ops' gradients. Of
// all states after a rerun a few stay: those that have saved more than any that left more
// gradients.
#include "simulator/planner/meetings.h"

#include <algorithm>
#include <limits>

#include "simulator/lower.h"
#include "simulator/planner/shared_runs.h"

namespace tidemark {
namespace {

/// States that stay, and ops whose gradients a rerun may begin with. With 64 and 40 of them steps
/// of GPT-2 were as long; with 8 and 8 up to 1.6 % longer.
constexpr std::size_t widest = 16, furthest = 16;

struct Meeting {
  SharedRuns run;
  OpId op{};

  double ns() const { return static_cast<double>(run.ns); }
};

struct Rerun : Meeting {
  /// Gradients before this one are done when it begins; those from `limit` on read it, or follow
  /// ones that do.
  std::size_t from = 0, limit = 0;
  std::size_t last_start = 0;  ///< it can wait for no gradients from here on
};

/// Of one backward, in issue order.
struct TwoRows {
  std::vector<Meeting> gradients;
  std::vector<Rerun> reruns;
};

bool is_rerun(const Run& run) {
  return run.task == Task::Recompute || run.task == Task::Reconstruct;
}

class Rows {
 public:
  Rows(const Plan& plan, const Schedule& schedule, const CostModel& costs)
      : plan_(plan), schedule_(schedule), costs_(costs) {}

  TwoRows read() && {
    bool in_backward = false;
    for (const Step& step : schedule_.steps) {
      const Run* run = std::get_if<Run>(&step);
      if (!run || is_collective(run->task)) continue;
      if (is_of_forward(run->task) || run->task == Task::Optimizer) {
        if (in_backward && is_of_forward(run->task)) break;
        continue;
      }
      in_backward = true;
      const Cost cost = costs_.of(schedule_, *run);
      const Meeting meeting{{cost.sm_share, cost.memory_share, cost.time.count()}, run->op};
      if (is_rerun(*run))
        add_rerun(meeting, run->task == Task::Recompute);
      else
        rows_.gradients.push_back(meeting);
    }
    return std::move(rows_);
  }

 private:
  void add_rerun(const Meeting& meeting, bool may_wait) {
    const std::size_t region = region_of(plan_, meeting.op);
    if (region != region_) begin(region);
    const std::size_t ahead = std::min<std::size_t>(plan_.lanes, limits_.size());
    rows_.reruns.push_back(
        {meeting, limits_[limits_.size() - ahead], limits_.back(), may_wait ? last_start_ : 0});
  }

  void begin(std::size_t region) {
    const bool is_chained = region_ < plan_.regions.size() && region < plan_.regions.size() &&
                            plan_.regions[region].chain == plan_.regions[region_].chain;
    if (!is_chained) limits_.clear();
    region_ = region;
    limits_.push_back(rows_.gradients.size());
    last_start_ = limits_.back();
    const OpId end = plan_.regions[region].end;
    while (last_start_ > 0 && !is_behind(rows_.gradients[last_start_ - 1].op, end)) --last_start_;
  }

  static bool is_behind(OpId op, OpId end) { return op != no_op && op >= end; }

  const Plan& plan_;
  const Schedule& schedule_;
  const CostModel& costs_;
  TwoRows rows_;
  std::size_t region_ = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> limits_;  ///< of the chain's regions so far
  std::size_t last_start_ = 0;
};

/// When nothing but gradients runs, so much is done.
struct Progress {
  std::size_t gradient = 0;
  double done = 0;  ///< ns of that gradient's own time
};

struct State {
  Progress progress;
  double saved = 0;        ///< ns, by what ran side by side
  std::size_t before = 0;  ///< the state's place among those after the rerun before …
  std::size_t start = 0;  ///< … from which this one waited for gradients before this; 0: it did not
};

class Search {
 public:
  explicit Search(const TwoRows& rows) : rows_(rows), until_(rows.gradients.size() + 1) {
    for (std::size_t j = 0; j < rows.gradients.size(); ++j)
      until_[j + 1] = until_[j] + rows.gradients[j].ns();
  }

  /// By rerun: the op whose gradients it waits for.
  std::vector<OpId> run() {
    std::vector<std::vector<State>> after = {{State()}};
    for (const Rerun& rerun : rows_.reruns) after.push_back(states_after(rerun, after.back()));
    std::vector<OpId> waits(rows_.reruns.size(), no_op);
    const auto saved = [](const State& state) { return state.saved; };
    std::size_t at = static_cast<std::size_t>(std::ranges::max_element(after.back(), {}, saved) -
                                              after.back().begin());
    for (std::size_t i = rows_.reruns.size(); i > 0; --i) {
      const State& state = after[i][at];
      if (state.start > 0) waits[i - 1] = rows_.gradients[state.start - 1].op;
      at = state.before;
    }
    return waits;
  }

 private:
  std::vector<State> states_after(const Rerun& rerun, const std::vector<State>& before) const {
    std::vector<State> found;
    for (std::size_t s = 0; s < before.size(); ++s) {
      Progress begun = before[s].progress;
      if (begun.gradient < rerun.from) begun = {rerun.from, 0};
      found.push_back(beside(rerun, begun, {{}, before[s].saved, s}));
      std::size_t start = begun.gradient;
      for (std::size_t k = 0; k < furthest && next_start(rerun, start); ++k)
        found.push_back(beside(rerun, {start, 0}, {{}, before[s].saved, s, start}));
    }
    return best_of(std::move(found));
  }

  // The next gradient that is an op's first.
  bool next_start(const Rerun& rerun, std::size_t& start) const {
    do {
      if (++start > rerun.last_start) return false;
    } while (start < rerun.limit && rows_.gradients[start].op == rows_.gradients[start - 1].op);
    return rows_.gradients[start - 1].op != no_op;
  }

  // The rerun begins when gradients have come so far.
  State beside(const Rerun& rerun, Progress progress, State state) const {
    double left = rerun.ns();
    while (left > 0 && progress.gradient < rerun.limit) {
      const Meeting& gradient = rows_.gradients[progress.gradient];
      const double together = std::min(left, gradient.ns() - progress.done);
      state.saved += together * saved_beside(rerun.run, gradient.run);
      left -= together;
      progress.done += together;
      if (progress.done >= gradient.ns()) progress = {progress.gradient + 1, 0};
    }
    state.progress = progress;
    return state;
  }

  double gone(const State& state) const {
    return until_[state.progress.gradient] + state.progress.done;
  }

  std::vector<State> best_of(std::vector<State> states) const {
    std::ranges::stable_sort(states, [&](const State& a, const State& b) {
      return gone(a) != gone(b) ? gone(a) < gone(b) : a.saved > b.saved;
    });
    std::vector<State> left;
    for (const State& state : states)
      if (left.empty() || state.saved > left.back().saved) left.push_back(state);
    // Those that saved most stand last.
    if (left.size() > widest) left.erase(left.begin(), left.end() - widest);
    return left;
  }

  const TwoRows& rows_;
  std::vector<double> until_;  ///< ns of all gradients before each
};

}  // namespace

Plan meet_gradients(const PlannedStep& step, const CostModel& costs, std::uint8_t lanes) {
  PlannedStep placed = step;
  Plan& plan = placed.plan;
  plan.lanes = lanes;
  plan.rerun_after.clear();
  const TwoRows rows = Rows(plan, lower(placed), costs).read();
  const std::vector<OpId> waits = Search(rows).run();
  for (std::size_t i = 0; i < waits.size(); ++i) {
    if (waits[i] == no_op) continue;
    plan.rerun_after.resize(step.trace->ops.size(), no_op);
    plan.rerun_after[index(rows.reruns[i].op)] = waits[i];
  }
  return std::move(placed.plan);
}

}  // namespace tidemark
