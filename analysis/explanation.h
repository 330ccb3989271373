// Why the peak is where it is: computed once, printed as text and as JSON.
#pragma once

#include <string>
#include <vector>

#include "analysis/comparison.h"

namespace tidemark {

enum class Phase : std::uint8_t { Forward, Backward, Optimizer };

inline constexpr std::array phases = {Named{Phase::Forward, std::string_view("forward")},
                                      Named{Phase::Backward, std::string_view("backward")},
                                      Named{Phase::Optimizer, std::string_view("optimizer")}};
static_assert(is_in_order(phases));

/// Something that is present at the peak.
struct AliveBuffer {
  std::string tensor;  ///< whose value, codes or gradient it holds; "" for scratch memory
  Role role{};
  Category category{};
  Bytes size;
  std::string block;      ///< "" outside of blocks
  std::string decision;   ///< "keep", "recompute", …; "not saved"; "persistent"
  std::string reason;     ///< of a decision about a saved tensor
  std::string line = {};  ///< of the model's code that made the tensor; "" if unknown
  /// "main gradients": what lies there of `tensor` and of weights that follow it; "" if it is
  /// one's.
  std::string shared = {};
};

struct DecisionGroup {
  Action action{};
  std::string reason;
  std::int64_t tensors = 0;
  Bytes bytes;  ///< of these tensors in full

  bool operator==(const DecisionGroup&) const = default;
};

struct Explanation {
  Comparison comparison;  ///< of vanilla and this strategy
  Evaluation evaluation;  ///< of this strategy
  Nanoseconds peak_time{};
  Phase peak_phase{};
  Nanoseconds backward_begin{}, optimizer_begin{};  ///< the step's end if there is none
  std::vector<AliveBuffer> alive;                   ///< largest first
  std::vector<DecisionGroup> decisions;             ///< about saved tensors

  const Report& report() const { return evaluation.report; }
};

/// The scenario names one strategy.
Explanation explain(const Scenario& scenario);

/// Most live bytes in each of `columns` equal parts of the step.
std::vector<Bytes> live_curve(const Schedule& schedule, const Timeline& timeline,
                              std::size_t columns);

}  // namespace tidemark
