// What gradients need later is priced, where its makers do not run again: one cut for each price.
#include "simulator/planner/under_way.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace tidemark {

std::vector<OpId> first_needs(const Trace& trace, const Needs& needs) {
  std::vector<OpId> first(trace.tensors.size(), no_op);
  for (std::size_t i = trace.ops.size(); i-- > 0;)
    for_each_operand(trace, trace.ops[i], needs.saved[i], [&](TensorId storage, TensorId) {
      first[index(storage)] = static_cast<OpId>(i);
    });
  return first;
}

OpId takes_up_to(const Stage& stage, const std::vector<OpId>& first_needs) {
  OpId last = no_op;
  for (const TensorId input : stage.inputs) {
    const OpId first = first_needs[index(input)];
    const bool is_here = first != no_op && first >= stage.begin && first < stage.end;
    if (is_here && (last == no_op || first > last)) last = first;
  }
  return last;
}

namespace {

// The longest that begins with the stage: shorter ones decide about less.
const JoinedStages* longest_from(std::size_t stage, const std::vector<JoinedStages>& joined) {
  const JoinedStages* longest = nullptr;
  for (const JoinedStages& each : joined)
    if (each.beginning[stage].begin != each.beginning[stage].end) longest = &each;
  return longest;
}

}  // namespace

UnderWay::UnderWay(const Trace& trace, const Needs& needs,
                   const std::vector<std::int64_t>& forward_ns, const Survey& bare,
                   const Stages& single, const std::vector<JoinedStages>& joined)
    : trace_(trace), needs_(needs), forward_ns_(forward_ns), begun_(single.all.size()) {
  const std::vector<OpId> first_need = first_needs(trace, needs);
  const auto part_of = [&](const Stage& whole, std::size_t first, std::size_t at) {
    const OpId taken = takes_up_to(single.all[at], first_need);
    Part part{.stage = joined_stage(trace, needs, single, first, at - first), .counted = {}};
    Stage& stage = part.stage;
    stage.decided.clear();
    stage.held.clear();
    for (std::size_t d = 0; d < whole.decided.size(); ++d) {
      const TensorId storage = whole.decided[d];
      if (needs.producer[index(storage)] >= stage.end) continue;
      stage.decided.push_back(storage);
      stage.held.push_back(whole.held[d]);
      const OpId need = first_need[index(storage)];
      part.counted.push_back(need < stage.end || (taken != no_op && need <= taken));
    }
    return part;
  };
  std::map<std::tuple<std::size_t, std::uint32_t, std::size_t>, std::size_t> known;
  for (std::size_t first = 0; first < single.all.size(); ++first) {
    const JoinedStages* longest = longest_from(first, joined);
    if (!longest) continue;
    const Stage& whole = longest->beginning[first];
    std::int64_t kept = 0;
    for (std::size_t at = first + 1; at < first + longest->length; ++at) {
      kept += bare.stages[at - 1].first.kept;
      const auto [found, is_new] =
          known.try_emplace({longest->length, whole.kind, at - first}, parts_.size());
      if (is_new) parts_.push_back(part_of(whole, first, at));
      begun_[at].push_back({first, found->second, kept});
    }
  }
}

void UnderWay::set_price(double price) {
  price_ = price;
  for (Part& part : parts_) part.cost.reset();
}

double UnderWay::cost_of(Part& part) const {
  if (part.cost) return *part.cost;
  if (!part.cutting) {
    static const std::vector<TensorId> nothing;
    ProposalInput input{trace_, needs_, part.stage, forward_ns_};
    input.counted = &part.counted;
    input.there = &nothing;
    part.cutting.emplace(input);
  }
  const Proposal least = part.cutting->solve(price_);
  const std::int64_t away = decided_bytes(trace_, part.stage) - least.kept;
  part.cost = static_cast<double>(least.time) - price_ * static_cast<double>(away);
  return *part.cost;
}

}  // namespace tidemark
