// Times first, then memory, in turns: what was found cuts what is left.
#include "analysis/layouts/layout_search.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>

#include "analysis/layouts/incumbents.h"
#include "analysis/rank_report.h"
#include "analysis/report_totals.h"
#include "base/error.h"
#include "base/parallel.h"

namespace tidemark {
namespace {

// Enough for many cores; few enough that what is found soon is of use.
constexpr std::size_t wave_size = 16;

struct Candidate {
  MeshLayout layout;
  LayoutBounds bounds;
};

LayoutNumbers numbers_of(const Report& report) {
  return {.allocated = report.allocated_peak,
          .at_rest = report.allocated_at_rest,
          .reserved = report.reserved_peak,
          .capacity = report.capacity,
          .short_by = report.short_by,
          .fits = report.fits,
          .stage = report.rank ? report.rank->stage : 0,
          .step = report.step,
          .exposed = report.communication.exposed,
          .bubble = report.bubble,
          .samples_per_second = report.samples_per_second,
          .throughput = report.throughput,
          .throughput_unit = std::string(report.throughput_unit),
          .mfu = report.mfu};
}

Scenario scenario_in(const LayoutRequest& request, const MeshLayout& layout) {
  Scenario scenario = request.scenario;
  scenario.step = step_in(request, layout);
  return scenario;
}

class LayoutSearcher {
 public:
  LayoutSearcher(const LayoutRequest& request, const LayoutWatch& watch)
      : watch_(watch), incumbents_(request.top) {
    result_.request = request;
  }

  LayoutSearch run() && {
    LayoutSpace space = enumerate_layouts(request());
    result_.cut = space.cut;
    result_.all = space.all;
    if (space.layouts.empty()) find_nearest_batch();
    const std::vector<Considered> all = consider(space.layouts);
    for (std::size_t i = 0; i < all.size(); ++i) take_considered(space.layouts[i], all[i]);
    std::ranges::stable_sort(candidates_, {}, [](const Candidate& candidate) {
      return std::pair(candidate.bounds.step, candidate.bounds.allocated);
    });
    simulate_candidates();
    std::int64_t others = 0;
    result_.found = best_of(std::move(result_.found), request().top, others);
    count(LayoutRule::Slower, slower_ + others);
    if (!result_.found.empty()) {
      result_.nearest.reset();
    } else if (!result_.is_stopped) {
      find_nearest();
    }
    return std::move(result_);
  }

 private:
  using PartsKey = std::tuple<std::int64_t, std::int64_t, bool, std::int64_t, std::uint16_t>;

  /// Of a kind of step.
  struct Refusals {
    Refusal tensor, step, pipeline;
  };

  const LayoutRequest& request() const { return result_.request; }
  void count(LayoutRule rule, std::int64_t layouts = 1) {
    result_.cut[static_cast<std::size_t>(rule)] += layouts;
  }
  // The first to be left out by a rule says why.
  void leave_out(LayoutRule rule, const std::string& why, std::string& first) {
    if (first.empty()) first = why;
    count(rule);
  }
  bool stops() {
    result_.is_stopped = result_.is_stopped || (watch_.is_stopped && watch_.is_stopped());
    return result_.is_stopped;
  }

  // As many micro-batches on each of the replicas that all GPUs are.
  void find_nearest_batch() {
    LayoutRequest other = request();
    other.part = {};
    const std::int64_t replicas = other.gpus / other.scenario.step.mesh[Axis::Context];
    const std::int64_t unit = replicas * other.micro_batch.value_or(1);
    const std::int64_t below = other.global_batch / unit * unit;
    const bool is_nearer = below > 0 && 2 * (other.global_batch - below) <= unit;
    other.global_batch = is_nearer ? below : below + unit;
    if (other.global_batch != request().global_batch && !enumerate_layouts(other).layouts.empty())
      result_.nearest_global_batch = other.global_batch;
  }

  static PartsKey parts_key(const MeshLayout& layout) {
    return {layout.mesh[Axis::Tensor], layout.mesh.experts, layout.sequence_parallel, layout.batch,
            layout.strategy};
  }

  /// What is known of a layout before it is simulated.
  struct Considered {
    std::optional<LayoutRule> rule;  ///< that leaves it out
    LayoutBounds bounds;             ///< of what none but LayoutRule::Memory leaves out
  };

  // Parts are large, and of one kind of step each: they are made, asked by all that have such a
  // step, and forgotten.
  std::vector<Considered> consider(const std::vector<MeshLayout>& layouts) {
    std::map<PartsKey, std::vector<std::size_t>> of_parts;
    for (std::size_t i = 0; i < layouts.size(); ++i) of_parts[parts_key(layouts[i])].push_back(i);
    std::vector<std::pair<const std::vector<std::size_t>*, Refusals*>> asked;
    for (const auto& [key, some] : of_parts) asked.emplace_back(&some, &refusals_[key]);
    std::vector<Considered> all(layouts.size());
    parallel_for(asked.size(), [&](std::size_t k) {
      const auto& [some, refusals] = asked[k];
      const LayoutParts parts = parts_of(request(), layouts[some->front()]);
      *refusals = {parts.tensor_refusal, parts.refusal, parts.pipeline_refusal};
      for (const std::size_t i : *some) all[i] = considered(layouts[i], parts);
    });
    return all;
  }

  Considered considered(const MeshLayout& layout, const LayoutParts& parts) const {
    // One tensor-parallel rank shares nothing: then it is the step that is refused.
    const bool is_shared = layout.mesh[Axis::Tensor] > 1 || layout.mesh.experts > 1;
    if (!parts.tensor_refusal.empty() && !is_shared) return {LayoutRule::Refused, {}};
    if (!parts.tensor_refusal.empty())
      return {parts.is_indivisible ? LayoutRule::Tensor : LayoutRule::Undivided, {}};
    if (!parts.refusal.empty() || (is_piped(layout) && !parts.pipeline_refusal.empty()))
      return {LayoutRule::Strategy, {}};
    const Scenario scenario = scenario_in(request(), layout);
    if (!sharing_defect(scenario.step).empty() || !mesh_defect(scenario.step).empty())
      return {LayoutRule::Sharding, {}};
    const LayoutBounds bounds = bounds_of(request(), layout, parts);
    if (bounds.allocated > memory_budget_of(scenario).capacity) return {LayoutRule::Memory, bounds};
    return {{}, bounds};
  }

  static bool is_piped(const MeshLayout& layout) {
    return layout.mesh[Axis::Pipeline] > 1 && layout.micro_batches > 1;
  }

  void take_considered(const MeshLayout& layout, const Considered& of) {
    const Refusals& refusals = refusals_.at(parts_key(layout));
    if (of.rule == LayoutRule::Refused)
      return leave_out(*of.rule, refusals.tensor, result_.refusal);
    if (of.rule == LayoutRule::Tensor)
      return leave_out(*of.rule, refusals.tensor, result_.tensor_refusal);
    if (of.rule == LayoutRule::Undivided) {
      ++result_.undivided[refusals.tensor];
      return count(*of.rule);
    }
    if (of.rule == LayoutRule::Strategy)
      return leave_out(*of.rule, refusals.step.empty() ? refusals.pipeline : refusals.step,
                       result_.strategy_refusal);
    if (of.rule == LayoutRule::Sharding) return count(*of.rule);
    if (!smallest_ || of.bounds.allocated < smallest_->bounds.allocated)
      smallest_ = Candidate{layout, of.bounds};
    if (of.rule) return count(*of.rule);
    candidates_.push_back({layout, of.bounds});
  }

  // Bounds say whose time to ask for next, and times whose memory: that of a layout is not asked
  // for before all is known of those that are faster.
  void simulate_candidates() {
    while (left() > 0) {
      if (stops()) return count(LayoutRule::Unasked, static_cast<std::int64_t>(left()));
      is_due() ? finish_timed() : time_next();
      if (watch_.tell) watch_.tell(static_cast<std::size_t>(result_.simulated), left());
    }
  }

  // No other can come before the first of those that are timed.
  bool is_due() const {
    if (timed_.empty()) return false;
    return next_ == candidates_.size() || timed_.begin()->first <= candidates_[next_].bounds.step;
  }

  std::size_t left() const { return candidates_.size() - next_ + timed_.size(); }

  /// A layout whose memory is asked for when its turn comes, or known already.
  struct Timed {
    FoundLayout made;
    TimedRanks ranks;
    bool is_known() const { return !ranks.totals; }
  };

  struct Answer {
    std::optional<Timed> timed;  ///< nothing if it is slower
    bool applies = true;
    std::string refusal;
  };

  bool is_slower(Nanoseconds step, Bytes allocated) const {
    return incumbents_.cuts({.allocated = allocated, .step = step});
  }

  void time_next() {
    const std::size_t i = next_++;
    if (incumbents_.cuts(candidates_[i].bounds)) {
      ahead_.erase(i);
      return count(LayoutRule::Bound);
    }
    if (!ahead_.contains(i)) time_ahead(i);
    take_answer(std::move(ahead_.extract(i).mapped()));
  }

  // Each core has one: the others' are in vain if what is found meanwhile cuts them, and nobody
  // hears of it.
  void time_ahead(std::size_t first) {
    std::vector<std::size_t> wave;
    for (std::size_t i = first; i < candidates_.size() && wave.size() < core_count(); ++i)
      if (!incumbents_.cuts(candidates_[i].bounds)) wave.push_back(i);
    std::vector<Answer> answers(wave.size());
    parallel_for(wave.size(),
                 [&](std::size_t k) { answers[k] = time_of(candidates_[wave[k]].layout); });
    for (std::size_t k = 0; k < wave.size(); ++k) ahead_.emplace(wave[k], std::move(answers[k]));
  }

  void take_answer(Answer answer) {
    if (!answer.applies) {
      count(LayoutRule::Strategy);
    } else if (!answer.refusal.empty()) {
      leave_out(LayoutRule::Refused, answer.refusal, result_.refusal);
    } else if (!answer.timed || is_slower(answer.timed->ranks.step, answer.timed->ranks.least)) {
      count_slower();
    } else {
      const Nanoseconds step = answer.timed->ranks.step;
      timed_.emplace(step, *std::move(answer.timed));
    }
  }

  // Nothing if its time and what it needs at least say already that it is not in the result.
  Answer time_of(const MeshLayout& layout) const {
    Answer answer;
    FoundLayout made;
    made.layout = layout;
    made.key = key_of(request(), layout);
    if (const auto* known = watch_.known ? watch_.known(made.key) : nullptr) {
      made.numbers = *known;
      answer.timed = Timed{std::move(made), {true, known->step, known->allocated, {}}};
      return answer;
    }
    try {
      auto ranks = timed_ranks_in(layout);
      if (!ranks) return answer;
      answer.applies = ranks->applies;
      answer.timed = Timed{std::move(made), *std::move(ranks)};
    } catch (const InputError& error) {
      answer.refusal = error.what();
    }
    return answer;
  }

  std::optional<TimedRanks> timed_ranks_in(const MeshLayout& layout) const {
    const Scenario scenario = scenario_in(request(), layout);
    return timed_ranks(rank_traces(scenario.model, scenario.step),
                       scenario.strategies[layout.strategy], scenario.device,
                       [&](Nanoseconds step, Bytes least) { return !is_slower(step, least); });
  }

  // In order of their time. What faster ones find meanwhile spares work and changes nothing:
  // whoever it says is slower is so in order, too.
  void finish_timed() {
    std::vector<Timed> due;
    for (; is_due() && due.size() < wave_size; timed_.erase(timed_.begin()))
      due.push_back(std::move(timed_.begin()->second));
    std::vector<char> is_made(due.size());
    Incumbents meanwhile = incumbents_;
    std::mutex mutex;
    parallel_for(due.size(), [&](std::size_t i) {
      Timed& timed = due[i];
      {
        const std::lock_guard lock(mutex);
        if (meanwhile.faster_ones_cut({.allocated = timed.ranks.least, .step = timed.ranks.step}))
          return;
      }
      if (!timed.is_known()) timed.made.numbers = numbers_of(totals_in(timed));
      is_made[i] = 1;
      const std::lock_guard lock(mutex);
      meanwhile.add(timed.made.numbers);
    });
    for (std::size_t i = 0; i < due.size(); ++i) {
      Timed& timed = due[i];
      if (is_made[i] == 0 || is_slower(timed.ranks.step, timed.made.numbers.allocated)) {
        count_slower();
      } else {
        take(std::move(timed.made), timed.is_known());
      }
    }
    forget_slower();
  }

  // What waits for its turn has a step's calls of the allocator with it.
  void forget_slower() {
    std::erase_if(timed_, [&](const auto& waiting) {
      const bool is_cut = is_slower(waiting.first, waiting.second.ranks.least);
      if (is_cut) count_slower();
      return is_cut;
    });
  }

  Report totals_in(const Timed& timed) const {
    return timed.ranks.totals(memory_budget_of(scenario_in(request(), timed.made.layout)), {});
  }

  void count_slower() { ++result_.simulated, ++slower_; }

  void take(FoundLayout made, bool is_known) {
    ++result_.simulated;
    if (!is_known && watch_.keep) watch_.keep(made);
    result_.throughput_unit = made.numbers.throughput_unit;
    incumbents_.add(made.numbers);
    if (made.numbers.fits) return result_.found.push_back(std::move(made));
    count(LayoutRule::TooLarge);
    if (!result_.nearest || is_nearer(made, *result_.nearest)) result_.nearest = std::move(made);
  }

  static bool is_nearer(const FoundLayout& a, const FoundLayout& b) {
    return std::tie(a.numbers.allocated, a.key) < std::tie(b.numbers.allocated, b.key);
  }

  // Of those that were simulated; of none, the one whose bound is least.
  void find_nearest() {
    if (!result_.nearest && !smallest_) return;
    const MeshLayout layout = result_.nearest ? result_.nearest->layout : smallest_->layout;
    try {
      show_nearest(layout);
    } catch (const InputError& error) {
      result_.nearest.reset();
      result_.refusal = error.what();
    }
  }

  void show_nearest(const MeshLayout& layout) {
    const Report report = report_in(request(), layout);
    if (!report.applies) return;
    result_.nearest = {
        .layout = layout, .key = key_of(request(), layout), .numbers = numbers_of(report)};
    result_.nearest_peak = report.peak_at;
    result_.nearest_bytes = report.at_peak;
  }

  LayoutSearch result_;
  const LayoutWatch& watch_;
  std::map<PartsKey, Refusals> refusals_;
  std::vector<Candidate> candidates_;
  std::size_t next_ = 0;                     ///< of them, whose time was not asked for
  std::map<std::size_t, Answer> ahead_;      ///< by candidate, whose turn is yet to come
  std::multimap<Nanoseconds, Timed> timed_;  ///< whose memory was not
  std::int64_t slower_ = 0;                  ///< were simulated without their memory
  std::optional<Candidate> smallest_;
  Incumbents incumbents_;
};

}  // namespace

bool is_before(const FoundLayout& a, const FoundLayout& b) {
  return std::tie(a.numbers.step, a.numbers.allocated, a.key) <
         std::tie(b.numbers.step, b.numbers.allocated, b.key);
}

std::vector<FoundLayout> best_of(std::vector<FoundLayout> all, std::size_t top,
                                 std::int64_t& others) {
  std::ranges::sort(all, is_before);
  std::vector<FoundLayout> best;
  std::optional<Bytes> least;
  for (FoundLayout& found : all) {
    found.is_on_front = !least || found.numbers.allocated < *least;
    if (found.is_on_front) least = found.numbers.allocated;
    if (found.is_on_front || best.size() < top) best.push_back(std::move(found));
  }
  others = static_cast<std::int64_t>(all.size() - best.size());
  return best;
}

Report report_in(const LayoutRequest& request, const MeshLayout& layout) {
  const Scenario scenario = scenario_in(request, layout);
  return evaluate_ranks(rank_traces(scenario.model, scenario.step),
                        scenario.strategies[layout.strategy], scenario.device,
                        memory_budget_of(scenario), {})
      .report;
}

LayoutSearch search_layouts(const LayoutRequest& request, const LayoutWatch& watch) {
  return LayoutSearcher(request, watch).run();
}

}  // namespace tidemark
