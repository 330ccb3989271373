// What may wait in the host's memory instead of the device's: entries of menus, made from measured
// ones. Copies run beside the step, so their memory is that of the entry without what leaves.
#include <fmt/format.h>

#include <algorithm>

#include "simulator/planner/planner.h"
#include "simulator/strategies/least_offloaded.h"
#include "simulator/strategies/strategy.h"

namespace tidemark {
namespace {

struct Candidate {
  std::size_t decided;
  std::int64_t bytes;
};

// What the entry keeps and is worth a copy, the largest first.
std::vector<Candidate> candidates_of(const Trace& trace, const Stage& stage,
                                     const LocalPlan& plan) {
  std::vector<Candidate> found;
  for (std::size_t d = 0; d < stage.decided.size(); ++d) {
    const Bytes bytes = size(trace[stage.decided[d]]);
    if (plan.forms[d].action == Action::Keep && !stage.held[d] && bytes >= least_planned)
      found.push_back({d, rounded(bytes)});
  }
  std::ranges::stable_sort(found, std::greater<>(), &Candidate::bytes);
  return found;
}

std::vector<std::string> named_with_offload(const std::vector<int>& bits) {
  std::vector<std::string> texts = {"offload", "checkpoint+offload", "checkpoint:blocks+offload",
                                    "checkpoint:selective+offload"};
  for (const int each : bits) texts.push_back(fmt::format("mesa:bits={}+offload", each));
  return texts;
}

void offload_inputs(LocalPlan& plan) {
  for (Form& form : plan.inputs)
    if (form.action == Action::Keep) form.action = Action::Offload;
}

}  // namespace

// What `offload` and `checkpoint+offload` do is looked at, whatever sums say of many small copies.
Planner::Planner(const Planner& other, double share_beyond) : Planner(other) {
  share_beyond_ = share_beyond;
  offers_copies_ = true;
  for (const Mode& mode : other.modes_) modes_.push_back({mode.held, mode.menus, mode.behind});
  if (other.offers_copies_) {
    named_ = other.named_;
  } else {
    costs_ = std::make_unique<CostModel>(*trace_, needs_, device_);
    for (const std::string& text : named_with_offload(settings_.bits))
      add_named(0, plan_step(trace_, parse_strategy(text)));
    for (Mode& mode : modes_) offer_offload(mode);
  }
  solve_all();
}

// Of a stage of the kind, in all passes.
std::int64_t Planner::forward_time(std::size_t kind) const {
  const Stage& stage = stages_.all[stages_.kinds[kind].front()];
  std::int64_t time = 0;
  for (std::size_t i = index(stage.begin); i < index(stage.end); ++i)
    time += forward_load_[i][Resource::Time];
  return time;
}

// All that an entry keeps, and of it what the link can carry while the stage computes.
void Planner::offer_offload(Mode& mode) const {
  const double link = device_.host_link_bytes_per_second * 1e-9;
  for (std::size_t kind = 0; kind < stages_.kinds.size(); ++kind) {
    const Stage& stage = stages_.all[stages_.kinds[kind].front()];
    if (stage.block < 0) continue;
    const std::int64_t forward = forward_time(kind);
    const auto window = static_cast<std::int64_t>(static_cast<double>(forward) * link);
    Menu& menu = mode.menus.front()[kind];
    const std::size_t measured = menu.size();
    const auto add = [&](Entry entry) {
      entry.offloaded = offloaded_bytes(*trace_, stage, entry.plan);
      entry.cost.first.kept -= entry.offloaded;
      const auto transfer = static_cast<std::int64_t>(static_cast<double>(entry.offloaded) / link);
      entry.stall = std::max<std::int64_t>(0, transfer - forward);
      if (entry.offloaded > 0) menu.push_back(std::move(entry));
    };
    for (std::size_t m = 0; m < measured; ++m) {
      Entry some = menu[m], all = menu[m];
      std::int64_t left = window;
      for (const Candidate& candidate : candidates_of(*trace_, stage, menu[m].plan)) {
        all.plan.forms[candidate.decided].action = Action::Offload;
        if (candidate.bytes > left) continue;
        some.plan.forms[candidate.decided].action = Action::Offload;
        left -= candidate.bytes;
      }
      Entry inputs = all;
      offload_inputs(inputs.plan);
      if (!(some.plan == all.plan)) add(std::move(some));
      if (!(inputs.plan == all.plan)) add(std::move(inputs));
      add(std::move(all));
    }
  }
}

}  // namespace tidemark
