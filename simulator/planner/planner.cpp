// What menus offer (menus.cpp) is put together: sums are optimized exactly.
#include "simulator/planner/planner.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "simulator/parallel/shards.h"
#include "simulator/planner/left_beside.h"

namespace tidemark {
namespace {

/// In these units errors sum up: so many are what a plan may have, or 100 %.
constexpr std::int64_t whole_error = std::int64_t{1} << 30;
/// More would take longer, and gain at most 0.2 % (docs/planning.md).
constexpr std::size_t cells_of_errors = 8, steps_of_errors = 256;

Counted over_all_passes(Counted counted, const Trace& trace) {
  counted.like_second = std::max<std::int64_t>(1, trace.step.accumulate.count - 2);
  return counted;
}

}  // namespace

Planner::Planner(std::shared_ptr<const Trace> trace, const Device& device, const Counted& counted,
                 PlannerSettings settings)
    : trace_(std::move(trace)),
      measured_(one_after_another(trace_, measured_passes)),
      device_(device),
      counted_(over_all_passes(counted, *trace_)),
      settings_(std::move(settings)),
      moments_(moments_of(trace_->step)),
      needs_(derive_needs(*trace_)),
      stages_(stages_of(*trace_, needs_)),
      chunks_(tidemark::chunks_of(*trace_, stages_)),
      costs_(std::make_unique<CostModel>(*trace_, needs_, device_)),
      keeping_(stages_.kinds.size()),
      free_(stages_.kinds.size()),
      undoes_(stages_.kinds.size()),
      undoing_(stages_.kinds.size()) {
  CHECK(chunks_.size() == moments_.front().beside.size());
  const bool has_modes = can_drop_held(stages_);
  const bool is_mixed = has_modes && settings_.form != PlanForm::Tensors;
  modes_.push_back({is_mixed ? Held::Free : Held::Kept});
  if (has_modes && !is_mixed) modes_.push_back({Held::Dropped});
  if (!settings_.bits.empty() || std::isfinite(settings_.most_error)) {
    noise_ = std::make_shared<const GradientNoise>(*trace_, needs_);
    measure_codes();
  }
  propose();
  measure_menus();
  count_ranges();
  solve_all();
}

Planner::Planner(const Planner& other)
    : trace_(other.trace_),
      measured_(other.measured_),
      device_(other.device_),
      counted_(other.counted_),
      settings_(other.settings_),
      moments_(other.moments_),
      needs_(other.needs_),
      stages_(other.stages_),
      chunks_(other.chunks_),
      joined_(other.joined_),
      noise_(other.noise_),
      share_beyond_(other.share_beyond_),
      offers_copies_(other.offers_copies_),
      coded_(other.coded_),
      steady_(other.steady_),
      resource_(other.resource_),
      forward_load_(other.forward_load_),
      forward_ns_(other.forward_ns_),
      gradient_runs_(other.gradient_runs_),
      reference_(other.reference_),
      bare_(other.bare_),
      at_gradients_(other.at_gradients_),
      least_backward_(other.least_backward_),
      keeping_(other.keeping_),
      free_(other.free_),
      undoes_(other.undoes_),
      undoing_(other.undoing_) {}

void Planner::count(Resource resource) {
  resource_ = resource;
  forward_ns_ = forward_in(resource);
  count_in(reference_, resource);
  for (std::vector<Coded>& forms : coded_)
    for (Coded& coded : forms) coded.time = coded.load[resource];
  const auto count_menus = [&](std::vector<Menu>& menus) {
    for (Menu& menu : menus)
      for (Entry& entry : menu) entry.cost.time = entry.cost.load[resource];
  };
  for (Mode& mode : modes_) {
    for (std::vector<Menu>& menus : mode.menus) count_menus(menus);
    count_menus(mode.behind);
  }
  for (std::uint32_t kind = 0; kind < stages_.kinds.size(); ++kind)
    if (!keeping_[kind].empty()) cut(kind, coded_forms());
}

Planner::Planner(const Planner& plain, Resource resource, bool joins) : Planner(plain) {
  if (!joins) joined_.clear();
  std::ranges::copy_if(plain.named_, std::back_inserter(named_),
                       [&](const auto& named) { return named->chain <= joined_.size(); });
  for (const Mode& mode : plain.modes_) {
    modes_.push_back({mode.held, mode.menus, mode.behind});
    if (!joins) modes_.back().menus.resize(1);
  }
  count(resource);
  solve_all();
}

// Ranges stay from step to step, and so they are there for every stage: those of all that may be
// coded, whatever is.
void Planner::count_ranges() {
  for (std::size_t t = 0; t < coded_.size(); ++t) {
    std::int64_t most = 0;
    for (const Coded& coded : coded_[t])
      most = std::max(most, rounded(size_of_ranges(coded.encoding, trace_->tensors[t].shape)));
    steady_ += most;
  }
}

void Planner::solve_all() {
  for (std::size_t mode = 0; mode < modes_.size(); ++mode) solve(mode);
  merge_fronts();
}

// What a stage's neighbours leave before its backward does not depend on anybody's plan.
std::int64_t Planner::need_of(std::size_t stage, const StageCost& cost, std::int64_t late) const {
  const StageCost& kept = reference_.stages[stage];
  const std::int64_t first =
      std::max(late + cost.first.forward, cost.first.backward + kept.first.gradients);
  if (!reference_.has_later) return first;
  const std::int64_t later =
      std::max(late + cost.later.forward, cost.later.backward + kept.later.gradients);
  return std::max(first, later + reference_.before_later);
}

// Of what begins with the link's stage: by itself, or joined with those behind it, with each set of
// operators that it may have.
void Planner::offer(std::size_t mode, const Links& links, std::uint32_t link,
                    std::vector<Choice>& choices, std::vector<Part>& parts, std::int64_t late,
                    std::int64_t passing) const {
  const auto [s, is_behind_undone] = links.all[link];
  for_each_operators(stages_.all[s], [&](std::uint32_t operators) {
    const Planner& planner = of(operators);
    const Mode& its = planner.modes_[mode];
    const auto add = [&](const Stage& stage, std::uint32_t count, const Entry& entry) {
      const auto stall =
          static_cast<std::int64_t>(share_beyond_ * static_cast<double>(entry.stall));
      parts.push_back({&stage, s, count, &entry, operators});
      choices.push_back({entry.cost.first.kept, need_of(s + count - 1, entry.cost, late) + passing,
                         entry.cost.time + stall,
                         links.span(link, count, reconstructs_inputs(entry.plan)),
                         units_of(error_of(parts.back()))});
    };
    const Stage& single = planner.stages_.all[s];
    for (const Entry& entry : (is_behind_undone ? its.behind : its.menus.front())[single.kind])
      if (entry.offloaded == 0 || single.left_by != no_op) add(single, 1, entry);
    for (std::size_t c = 0; c < planner.joined_.size(); ++c)
      if (const Stage& stage = planner.joined_[c].beginning[s]; stage.begin != stage.end)
        for (const Entry& entry : its.menus[c + 1][stage.kind])
          if (planner.is_joint(stage, entry.plan))
            add(stage, static_cast<std::uint32_t>(planner.joined_[c].length), entry);
  });
}

namespace {

// What another choice is no worse than in any term would only make staircases longer: with several
// sets of operators, much of what each offers. Errors are a term where they are bounded.
void drop_beaten(std::vector<Choice>& choices, std::vector<Planner::Part>& parts,
                 bool bounds_errors) {
  const auto beats = [&](std::size_t k, std::size_t i) {
    const Choice &a = choices[k], &b = choices[i];
    const bool is_no_worse =
        a.span == b.span && a.kept <= b.kept && a.need <= b.need && a.time <= b.time;
    const bool is_better = a.kept < b.kept || a.need < b.need || a.time < b.time;
    if (bounds_errors || !is_better)
      return is_no_worse && a.error <= b.error && (k < i || is_better || a.error < b.error);
    return is_no_worse;
  };
  std::vector<Choice> left;
  std::vector<Planner::Part> their_parts;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    bool is_beaten = false;
    for (std::size_t k = 0; k < choices.size() && !is_beaten; ++k)
      is_beaten = k != i && beats(k, i);
    if (is_beaten) continue;
    left.push_back(choices[i]);
    their_parts.push_back(parts[i]);
  }
  choices = std::move(left);
  parts = std::move(their_parts);
}

}  // namespace

void Planner::solve(std::size_t number) {
  Mode& mode = modes_[number];
  const Links links = links_of(mode);
  std::vector<std::vector<Choice>> choices(links.all.size());
  mode.parts.assign(choices.size(), {});
  LeftBeside left;
  std::int64_t passing = 0, leaving = 0;
  for (std::uint32_t l = 0; l < choices.size(); ++l) {
    const std::uint32_t first = links.all[l].stage;
    if (first == chunks_[chunk_of(first)].begin) left = {};
    const std::int64_t late = left.before(stages_.all[first].begin);
    offer(number, links, l, choices[l], mode.parts[l], late, passing);
    if (!operators_.empty() || bounds_errors())
      drop_beaten(choices[l], mode.parts[l], bounds_errors());
    if (links.is_first_of_two(l)) continue;
    std::int64_t most_late = 0, most_input = 0, most_passing = 0;
    for (const Part& part : mode.parts[l]) {
      if (part.count > 1) continue;
      most_late = std::max(most_late, part.entry->cost.first.late);
      most_input = std::max(most_input, part.entry->cost.first.input);
      most_passing = std::max(most_passing, part.entry->offloaded);
    }
    left.add(stages_.all[first], most_late, most_input);
    // What the stage before may have under way: leaving, and coming back. Parameters are gathered
    // for a stage before what left in the one before that is gone.
    passing = most_passing + (parameters_are_cut(trace_->step) ? leaving : 0);
    leaving = most_passing;
  }
  mode.fronts.clear();
  mode.fronts.emplace_back(
      choices, chunks_of(links), std::nullopt,
      bounds_errors() ? ErrorBound{whole_error, cells_of_errors, steps_of_errors} : ErrorBound{});
  add_slacks(choices, links, mode);
}

void Planner::merge_fronts() {
  std::vector<Step> all;
  const bool has_others = is_in_flight(moments_);
  for (std::uint32_t mode = 0; mode < modes_.size(); ++mode)
    for (std::uint32_t front = 0; front < modes_[mode].fronts.size(); ++front)
      for (std::uint32_t point = 0; point < modes_[mode].fronts[front].size(); ++point) {
        const Front::Point found = modes_[mode].fronts[front][point];
        const std::int64_t room =
            has_others ? room_in_flight(parts_of(mode, front, point)) : found.room;
        all.push_back({room + reference_.before + steady_, found.time + reference_.rest_time, mode,
                       front, point});
      }
  std::ranges::stable_sort(all, [](const Step& a, const Step& b) {
    return a.bytes != b.bytes ? a.bytes < b.bytes : a.time < b.time;
  });
  for (const Step& step : all)
    if (points_.empty() || step.time < points_.back().time) points_.push_back(step);
}

std::optional<std::size_t> Planner::within(std::int64_t bytes) const {
  const auto after = std::ranges::upper_bound(points_, bytes, {}, &Step::bytes);
  if (bytes < rest() || after == points_.begin()) return std::nullopt;
  return static_cast<std::size_t>(after - points_.begin()) - 1;
}

std::vector<Planner::Part> Planner::parts_at(std::size_t point) const {
  if (point >= points_.size()) return parts_of(*named_[point - points_.size()]);
  return parts_of(points_[point].mode, points_[point].front, points_[point].point);
}

std::vector<Planner::Part> Planner::parts_of(std::uint32_t mode, std::uint32_t front,
                                             std::uint32_t point) const {
  std::vector<Part> parts;
  for (const Front::Picked& picked : modes_[mode].fronts[front].choices_at(point))
    parts.push_back(modes_[mode].parts[picked.stage][picked.choice]);
  return parts;
}

std::int64_t Planner::least_time(std::size_t point) const {
  std::int64_t time = reference_.rest_time;
  for (const Part& part : parts_at(point)) time += part.entry->cost.time;
  return time;
}

// Rounded up, so that no sum is beyond what it says; what nobody has measured is beyond every
// bound.
std::int64_t Planner::units_of(const GradientError& error) const {
  const double whole = bounds_errors() ? settings_.most_error : 1;
  const double units = std::ceil(error.square() / whole * static_cast<double>(whole_error));
  return static_cast<std::int64_t>(std::min(units, 16.0 * static_cast<double>(whole_error)));
}

GradientError Planner::error_of(const Part& part) const {
  const Planner& planner = of(part.operators);
  return planner.noise_ ? stage_error(*planner.noise_, *part.stage, part.entry->plan)
                        : GradientError{};
}

GradientError Planner::error_at(std::size_t point) const {
  GradientError error;
  for (const Part& part : parts_at(point)) error += error_of(part);
  return error;
}

Planner::Tightest Planner::tightest(const std::vector<Part>& parts) const {
  if (is_in_flight(moments_)) return tightest_in_flight(parts);
  Tightest found;
  std::int64_t most = reference_.rest, before = reference_.before;
  LeftBeside left;
  for (const Part& part : parts) {
    const StagePass& cost = part.entry->cost.first;
    const std::size_t last = part.first + part.count - 1;
    const Stage& stage = stages_.all[part.first];
    const std::int64_t late = left.before(stage.begin);
    if (const std::int64_t there = before + late + cost.forward; there > most)
      most = there, found = {part.first, false};
    const std::int64_t there = before + cost.backward + reference_.stages[last].first.gradients;
    if (there > most) most = there, found = {part.first, true};
    before += cost.kept;
    left.add(stage, cost);
  }
  return found;
}

}  // namespace tidemark
