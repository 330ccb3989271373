// What may wait in the host's memory instead of the device's: entries of menus, made from measured
// ones. Copies run beside the step, so their memory is that of the entry without what leaves.
#include <algorithm>

#include "simulator/graph/recovery.h"
#include "simulator/planner/planner.h"
#include "simulator/strategies/least_offloaded.h"

namespace tidemark {
namespace {

// Takes 40 µs on 26 GB/s (PCIe 4.0 x16): smaller ones are too many copies for what they free.
constexpr std::int64_t least_of_choices = 1 << 20;

struct Candidate {
  std::size_t decided;
  std::int64_t bytes;
};

// What the entry keeps of at least so many bytes, the largest first.
std::vector<Candidate> candidates_of(const Trace& trace, const Stage& stage, const LocalPlan& plan,
                                     std::int64_t least) {
  std::vector<Candidate> found;
  for (std::size_t d = 0; d < stage.decided.size(); ++d) {
    const Bytes bytes = size(trace[stage.decided[d]]);
    if (plan.forms[d].action == Action::Keep && !stage.held[d] && bytes.count >= least)
      found.push_back({d, rounded(bytes)});
  }
  std::ranges::stable_sort(found, std::greater<>(), &Candidate::bytes);
  return found;
}

void offload_inputs(LocalPlan& plan) {
  for (Form& form : plan.inputs)
    if (form.action == Action::Keep) form.action = Action::Offload;
}

}  // namespace

// All that the plan keeps leaves, as the strategy `offload` has it: but for the last block's, which
// are needed at once.
Planner::NamedPlan Planner::with_offload(NamedPlan named) const {
  const Stages& stages = chain(named.chain);
  std::vector<const LocalPlan*> locals;
  for (const Entry& entry : named.entries) locals.push_back(&entry.plan);
  const Recovery recovery = derive_recovery(*trace_, assembled(*trace_, stages, locals), needs_);
  const auto waits = [&](TensorId input) {
    return recovery.uses[index(input)] > 0 && !is_made_again(needs_, recovery, input);
  };
  for (std::size_t s = 0; s < stages.all.size(); ++s) {
    const Stage& stage = stages.all[s];
    Entry& entry = named.entries[s];
    if (stage.left_by == no_op || reconstructs_inputs(entry.plan) ||
        stage.block + 1 == std::ssize(trace_->blocks))
      continue;
    for (const Candidate& each : candidates_of(*trace_, stage, entry.plan, least_offloaded.count))
      entry.plan.forms[each.decided].action = Action::Offload;
    offload_inputs(entry.plan);
    entry.plan.offloads_read_again =
        !stage.read_again.empty() && std::ranges::all_of(stage.read_again, waits);
    entry.offloaded = offloaded_bytes(*trace_, stage, entry.plan);
    entry.cost.first.kept -= entry.offloaded;
  }
  return named;
}

// What `offload` and `checkpoint+offload` do is looked at, whatever sums say of many small copies.
Planner::Planner(const Planner& exact, double share_beyond) : Planner(exact) {
  share_beyond_ = share_beyond;
  NamedPlan vanilla{0, {}};
  for (std::size_t s = 0; s < stages_.all.size(); ++s)
    vanilla.entries.push_back({keep_all(stages_.all[s]), reference_.stages[s]});
  keep(with_offload(std::move(vanilla)));
  // Nothing of blocks that are joined leaves: they are looked at without offload.
  for (const auto& named : exact.named_)
    if (named->chain == 0) keep(with_offload(*named));
  for (const Mode& mode : exact.modes_) modes_.push_back({mode.held, mode.menus, mode.behind});
  for (Mode& mode : modes_) offer_offload(mode);
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
      for (const Candidate& candidate :
           candidates_of(*trace_, stage, menu[m].plan, least_of_choices)) {
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
