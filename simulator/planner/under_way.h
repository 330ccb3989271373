// Joined stages that are under way: one of them has its gradients, and those before it none yet.
#pragma once

#include <optional>
#include <vector>

#include "simulator/planner/cutting.h"
#include "simulator/planner/survey.h"

namespace tidemark {

/// By storage: the first op whose gradient needs it, which takes it last; or no_op.
std::vector<OpId> first_needs(const Trace& trace, const Needs& needs);

/// Gradients of the stage's ops behind this one find all that it takes from earlier stages needed
/// later, too. no_op: it takes nothing.
OpId takes_up_to(const Stage& stage, const std::vector<OpId>& first_needs);

/// What stages [first, at) of joined ones cost at least while stage `at`, which is joined with
/// them, has the gradient of an op behind takes_up_to(): what is needed later is there, at a price,
/// or is made again. Of what that reads, and of what was made again by then, nothing else is known.
class UnderWay {
 public:
  /// `bare`: of the plan that keeps everything.
  UnderWay(const Trace& trace, const Needs& needs, const std::vector<std::int64_t>& forward_ns,
           const Survey& bare, const Stages& single, const std::vector<JoinedStages>& joined);

  /// ns of a byte.
  void set_price(double price);

  /// Calls visit(first, cost) for all that may begin with a stage `first` and have stage `at` at
  /// hand: ns beyond those of keeping everything, and priced bytes.
  template <typename Visit>
  void for_each(std::size_t at, const Visit& visit) {
    for (const Begun& begun : begun_[at])
      visit(begun.first, cost_of(parts_[begun.part]) + price_ * static_cast<double>(begun.kept));
  }

 private:
  /// Stages [first, at), with what longer joined ones decide about in them.
  struct Part {
    Stage stage;
    std::vector<bool> counted;  ///< by decided: a gradient after the moment's needs it
    std::optional<Cutting> cutting = {};
    std::optional<double> cost = {};  ///< beyond keeping everything, at the price
  };
  struct Begun {
    std::size_t first, part;
    std::int64_t kept;  ///< bytes, of the plan that keeps everything
  };

  double cost_of(Part& part) const;

  const Trace& trace_;
  const Needs& needs_;
  const std::vector<std::int64_t>& forward_ns_;
  double price_ = 0;
  std::vector<Part> parts_;                ///< of those that are alike, one
  std::vector<std::vector<Begun>> begun_;  ///< by stage at hand
};

}  // namespace tidemark
