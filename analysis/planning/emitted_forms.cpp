// Restricted plans are made, lowered and replayed like any other: nothing here is an estimate of an
// estimate.
#include "analysis/planning/emitted_forms.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/planning/named_policies.h"
#include "analysis/planning/plan_searches.h"
#include "analysis/planning/recomputed_blocks.h"

namespace tidemark {
namespace {

using BlockSet = std::vector<bool>;

// Of one choice: several sets where it is not known which blocks a library counts from. What it
// takes is the most of them.
struct Candidate {
  std::int64_t number = 0;
  std::vector<BlockSet> wrapped;
};

BlockSet every(std::size_t blocks, std::size_t n, std::size_t first) {
  BlockSet wrapped(blocks);
  for (std::size_t b = first; b < blocks; b += n) wrapped[b] = true;
  return wrapped;
}

BlockSet first_of(std::size_t blocks, std::size_t n) {
  BlockSet wrapped(blocks);
  std::fill_n(wrapped.begin(), n, true);
  return wrapped;
}

class Forms {
 public:
  Forms(const Planning& planning, const PlanWatch& watch)
      : planning_(planning),
        watch_(watch),
        comparison_(planning.comparison),
        trace_(planning.trace),
        all_(plan_step(trace_, parse_strategy("checkpoint:blocks"))) {}

  std::vector<EmittedForm> run() {
    add_planned(PlanForm::Tensors, "tensors", "--plan-out FILE.plan.json");
    if (trace_->blocks.empty()) return std::move(forms_);
    add_planned(PlanForm::Policy, "policy", "--form policy --python-out FILE.py");
    add_planned(PlanForm::Blocks, "blocks", "--form blocks --python-out FILE.py");
    if (all_.refusal.empty()) add_counted();
    add_policies();
    add_named("every second product", "checkpoint:op",
              "--activation_checkpoint.mode selective --activation_checkpoint.selective_ac_option "
              "op (torchtitan)");
    add_named("all blocks", "checkpoint",
              "gradient_checkpointing=True (transformers), gradient_checkpointing: true (axolotl), "
              "enable_activation_checkpointing: True (torchtune), jax.checkpoint(block) (JAX)");
    if (may_offload(planning_.request))
      add_named("all blocks, inputs on the host", "checkpoint+offload",
                "gradient_checkpointing_kwargs={\"offload\": True} (transformers), "
                "gradient_checkpointing: offload (axolotl), enable_activation_offloading: True "
                "(torchtune)");
    return std::move(forms_);
  }

 private:
  bool keeps_budget(const Report& report) const {
    if (planning_.request.max_slowdown) {
      const double vanilla = static_cast<double>(comparison_.rows.front().step.count());
      return static_cast<double>(report.step.count()) <=
             vanilla * (1 + *planning_.request.max_slowdown);
    }
    if (!planning_.request.budget && !report.fits) return false;
    if (planning_.request.host_budget && report.pinned > *planning_.request.host_budget)
      return false;
    return measured(report, planning_.request.measure) <= planning_.budget;
  }

  Report report_of(PlannedStep step) const {
    return evaluate(*trace_, std::move(step), comparison_.scenario.device, comparison_.budget)
        .report;
  }

  void add(std::string name, std::string paste, const Report& report) {
    forms_.push_back({std::move(name), std::move(paste), report.allocated_peak, report.step});
  }
  void add_none(std::string name) { forms_.push_back({std::move(name), {}, {}, {}}); }

  void add_planned(PlanForm form, std::string name, std::string paste) {
    // PyTorch's checkpoints recompute and do nothing else.
    const bool is_asked = form == planning_.request.form &&
                          (form == PlanForm::Tensors ||
                           exactly(planning_.request).allowed == std::vector{Allowed::Exact});
    if (is_asked) {
      if (!planning_.feasible) return add_none(std::move(name));
      return add(std::move(name), std::move(paste), comparison_.rows.back());
    }
    if (is_stopped(watch_)) return;
    tell(watch_, "as " + name);
    PlanRequest request = planning_.request;
    request.form = form;
    if (form != PlanForm::Tensors) request.allowed = {Allowed::Exact};
    const PlanSearches searches(trace_, comparison_.scenario.device, comparison_.budget, request,
                                watch_);
    const std::optional<FoundPlan> found = plan_for(searches, planning_);
    if (!found) return add_none(std::move(name));
    add(std::move(name), std::move(paste), searches.report_of(*found));
  }

  void add_named(std::string name, std::string_view strategy, std::string paste) {
    PlannedStep step = plan_step(trace_, parse_strategy(strategy));
    if (!step.refusal.empty()) return add_none(std::move(name));
    const Report report = report_of(std::move(step));
    if (!keeps_budget(report)) return add_none(std::move(name));
    add(std::move(name), std::move(paste), report);
  }

  // The whole-block plan without the blocks that are not in the set.
  Report report_of(const BlockSet& wrapped) const {
    PlannedStep step = all_;
    step.derived = nullptr;
    const Plan kept = keep_everything(*trace_);
    std::erase_if(step.plan.regions, [&](const Region& region) {
      return !wrapped[static_cast<std::size_t>((*trace_)[region.begin].block)];
    });
    for (std::size_t b = 0; b < wrapped.size(); ++b) {
      if (wrapped[b]) continue;
      const Block& block = trace_->blocks[b];
      for (std::size_t i = index(block.begin); i < index(block.end); ++i)
        for (const TensorId output : trace_->outputs(trace_->ops[i]))
          step.plan.decisions[index(output)] = {};
    }
    return report_of(std::move(step));
  }

  // Of the sets the most, if all keep the budget.
  std::optional<Report> report_of(const Candidate& candidate) const {
    std::optional<Report> most;
    for (const BlockSet& wrapped : candidate.wrapped) {
      const Report report = report_of(wrapped);
      if (!keeps_budget(report)) return std::nullopt;
      if (!most) most = report;
      most->allocated_peak = std::max(most->allocated_peak, report.allocated_peak);
      most->step = std::max(most->step, report.step);
    }
    return most;
  }

  // Fastest first: the first that keeps the budget is the answer; within a time, the last one is.
  void add_fastest(std::string name, const std::vector<Candidate>& candidates,
                   std::string_view paste) {
    std::optional<Report> found;
    std::int64_t number = 0;
    for (const Candidate& candidate : candidates) {
      const std::optional<Report> report = report_of(candidate);
      if (!report) continue;
      if (!found || report->allocated_peak < found->allocated_peak)
        found = report, number = candidate.number;
      if (!planning_.request.max_slowdown) break;
    }
    if (!found) return add_none(std::move(name));
    add(std::move(name), fmt::format(fmt::runtime(paste), number), *found);
  }

  void add_counted() {
    const std::size_t blocks = trace_->blocks.size();
    std::vector<Candidate> every_nth, counted_from_one, leading;
    for (std::size_t n = blocks; n > 0; --n) {
      if (n > blocks / 2 && n < blocks) continue;  // one block each: the same as all of them
      const auto number = static_cast<std::int64_t>(n);
      every_nth.push_back({number, {every(blocks, n, 0), every(blocks, n, n - 1)}});
      counted_from_one.push_back({number, {every(blocks, n, n - 1)}});
    }
    for (std::size_t n = 1; n <= blocks; ++n)
      leading.push_back({static_cast<std::int64_t>(n), {first_of(blocks, n)}});
    add_fastest("every n-th", every_nth,
                "gradient_checkpointing_kwargs={{\"every_n_layers\": {}}} (transformers)");
    add_fastest("every n-th, from the n-th", counted_from_one,
                "selective_ac_option = \"{0}\" (torchtitan), ac_option: {0} (torchtune), with "
                "mode selective");
    add_fastest("first n", leading,
                "--recompute-granularity full --recompute-method block --recompute-num-layers {} "
                "(Megatron)");
    add_chunks(blocks);
  }

  // Of what was asked for: the faster one, or the smaller one within a time.
  bool is_better(const Report& report, const std::optional<Report>& best) const {
    if (!best) return true;
    return planning_.request.max_slowdown ? report.allocated_peak < best->allocated_peak
                                          : report.step < best->step;
  }

  // The best of each form's policies.
  void add_policies() {
    const std::vector<NamedPolicy> policies = named_policies(*trace_);
    for (std::size_t p = 0; p < policies.size();) {
      const std::string& form = policies[p].form;
      std::optional<Report> best;
      std::string paste;
      for (; p < policies.size() && policies[p].form == form; ++p) {
        const auto step = recomputed_in_blocks(trace_, policies[p].recomputed);
        if (!step) continue;
        const Report report = report_of(*step);
        if (keeps_budget(report) && is_better(report, best))
          best = report, paste = policies[p].paste;
      }
      best ? add(form, paste, *best) : add_none(form);
    }
  }

  // Megatron's uniform chunks: each is recovered as one.
  void add_chunks(std::size_t blocks) {
    std::optional<Report> best;
    std::size_t number = 0;
    for (std::size_t n = 1; n <= blocks; ++n) {
      if (blocks % n != 0) continue;
      const Report report =
          report_of(plan_step(trace_, parse_strategy(fmt::format("checkpoint:every={}", n))));
      if (keeps_budget(report) && is_better(report, best)) best = report, number = n;
    }
    if (!best) return add_none("chunks of n");
    add("chunks of n",
        fmt::format("--recompute-granularity full --recompute-method uniform "
                    "--recompute-num-layers {} (Megatron)",
                    number),
        *best);
  }

  const Planning& planning_;
  const PlanWatch& watch_;
  const Comparison& comparison_;
  std::shared_ptr<const Trace> trace_;
  PlannedStep all_;  ///< every block wrapped
  std::vector<EmittedForm> forms_;
};

}  // namespace

std::vector<EmittedForm> emitted_forms(const Planning& planning, const PlanWatch& watch) {
  return Forms(planning, watch).run();
}

}  // namespace tidemark
