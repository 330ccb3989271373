// Everything that would lower a peak, tried: what it saves, what it costs, what else it changes.
#pragma once

#include <functional>

#include "analysis/levers.h"
#include "analysis/planning/planning.h"

namespace tidemark {

enum class LeverKind : std::uint8_t { Strategy, Plan, Option };

inline constexpr std::array lever_kinds = {Named{LeverKind::Strategy, std::string_view("strategy")},
                                           Named{LeverKind::Plan, std::string_view("plan")},
                                           Named{LeverKind::Option, std::string_view("option")}};
static_assert(is_in_order(lever_kinds));
constexpr std::string_view to_string(LeverKind kind) {
  return lever_kinds[static_cast<std::size_t>(kind)].name;
}

/// A strategy or a plan instead of the one that is there, or an option of the step beside it.
struct TriedLever {
  LeverKind kind{};
  std::string name;     ///< "checkpoint", "plan for 10.8 GiB", "--loss chunked:8"
  std::string does;     ///< in one line
  std::string caution;  ///< what it changes itself beside memory and time, or ""
  Report report;        ///< with it, and all else as it is
  Bytes budget = {};    ///< of a plan
};

struct LeverTable {
  Comparison comparison;          ///< of what is there, its first row, and of all strategies
  std::vector<TriedLever> tried;  ///< those that apply, whether they lower a peak or not
  PlanFront plans;                ///< of exact plans; empty where none is made
  std::string_view next;          ///< what is tried now; "" = all is known

  const Report& now() const { return comparison.rows.front(); }
};

/// Equal budgets along the whole front of plans, as many as a slider can show apart.
inline constexpr std::size_t points_of_front = 32;

/// What `strategy` needs, and what everything else would need. Strategies are those of the
/// scenario, or the usual ones. `progress` is told when some more are known, the strategies first.
/// Stopped, the table is of no use. Throws InputError for inputs that make no step.
LeverTable try_levers(const Scenario& scenario, const StrategySpec& strategy,
                      const std::function<void(const LeverTable&)>& progress = {},
                      const std::function<bool()>& is_stopped = {});

/// Of one sample: the time with the lever as a share of the time without.
double time_ratio(const Report& with, const Report& without);

/// Those that lower the peak in this measure by at least a thousandth, or make the step fit. Best
/// first: where it does not fit, those that make it fit, first without a caution and then the
/// fastest; then those that save most.
std::vector<const TriedLever*> lowering(const LeverTable& table, Measure measure);

/// Those than which no other needs less of both, memory and time of a sample; least memory first.
std::vector<const TriedLever*> unbeaten(const LeverTable& table, Measure measure);

}  // namespace tidemark
