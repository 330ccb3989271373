// Local plans worth measuring: the cheapest one for each price of a byte.
#pragma once

#include <vector>

#include "simulator/planner/load.h"
#include "simulator/planner/local_plan.h"

namespace tidemark {

/// A local plan with what it costs at least, whatever stands around it.
struct Proposal {
  LocalPlan plan;
  std::int64_t kept = 0;  ///< bytes of decided storages, and of what is kept to begin reruns from
  std::int64_t time = 0;  ///< ns beyond keeping everything
};

/// A form in codes: its bytes, and what it costs beyond keeping the value, whatever else a plan
/// does, at least.
struct Coded {
  Encoding encoding;
  std::int64_t bytes = 0;
  std::int64_t time = 0;        ///< ns; below 0 where gradients read codes faster than values
  std::int64_t forward_ns = 0;  ///< … of which the forward takes
  Load load = {};               ///< … in all resources
};

/// What happens to a stage's held storages.
enum class Held : std::uint8_t { Kept, Dropped, Free };

/// What proposals for a stage are made from.
struct ProposalInput {
  const Trace& trace;
  const Needs& needs;
  const Stage& stage;
  const std::vector<std::int64_t>& forward_ns;  ///< by op: to run its forward again
  Held held = Held::Free;
  const std::vector<std::vector<Coded>>* coded = nullptr;  ///< by tensor: the forms it may have
  /// What the stage's couplings add must be there to undo them: kept, or made again.
  bool undoes_couplings = false;
  /// Of a moment in the backward. By decided storage: is it needed, and only later? No others count
  /// then. Without this all do, and what reruns read.
  const std::vector<bool>* counted = nullptr;
  /// … and what is there in any case of what nobody decides about.
  const std::vector<TensorId>* there = nullptr;
};

/// Not if it has so many ops that its cuts take longer than they are worth.
bool can_be_cut(const Stage& stage);
/// Stages hold something to the end of the forward, and all that do can be cut.
bool can_drop_held(const Stages& stages);

/// The lower hull over all local plans in (kept, time), exactly, from the one that keeps everything
/// to the one that keeps least. Each corner is a minimum cut: an op that runs again costs its time,
/// one that does not costs the price of what it has made and gradients need, in the cheapest form;
/// what reruns read and nobody keeps must be kept, at its price, or made again.
std::vector<Proposal> hull_of(const ProposalInput& input);

/// The cheapest local plan where a byte costs so many ns.
Proposal cheapest_at(const ProposalInput& input, double price);
/// At each of the prices.
std::vector<Proposal> cheapest_at(const ProposalInput& input, const std::vector<double>& prices);

/// Prices at which the cheapest local plan changes, rising: between neighbouring corners.
std::vector<double> prices_of(const std::vector<Proposal>& hull);

/// The hull's neighbours: the cheapest plans that differ from a corner in what is decided about one
/// storage, without those that another proposal beats in both terms.
std::vector<Proposal> neighbours_of(const ProposalInput& input, const std::vector<Proposal>& hull);

}  // namespace tidemark
