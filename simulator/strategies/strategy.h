// The table of strategies. A strategy rewrites the trace (another operator, another wiring), or
// decides about its saved tensors, or both. Strategies are combined with '+'.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json_reader.h"
#include "simulator/derived.h"

namespace tidemark {

/// What may stand behind a strategy's colon.
struct StrategyOption {
  std::string_view text;  ///< as it is listed: "released", or with a number "every=K"
  std::string_view meaning;
  std::int64_t least = 1, usual = 1;         ///< of the number
  std::string_view unit = "blocks";          ///< which it counts
  std::span<const std::int64_t> among = {};  ///< the only ones; empty: any from the least on

  bool takes_number() const { return text.find('=') != std::string_view::npos; }
  std::string_view name() const { return text.substr(0, text.find('=')); }
};

/// The options that were chosen, "every=2", "released": validated against the row's list.
struct StrategyArguments {
  struct Chosen {
    std::string name;
    std::optional<std::int64_t> number = {};
    bool operator==(const Chosen&) const = default;
  };
  std::vector<Chosen> chosen = {};

  bool has(std::string_view name) const;
  /// The option's number if it was chosen.
  std::optional<std::int64_t> number(std::string_view name) const;
};

/// Empty, or why the strategy does not apply to this trace.
using Refusal = std::string;

/// The changed trace, or why there is nothing to change.
using Rewritten = std::variant<Trace, Refusal>;

struct StrategyRow {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  std::vector<StrategyOption> options;
  /// Changes operators or wiring, or refuses. May be null.
  Rewritten (*rewrite)(const Trace& trace, const StrategyArguments& arguments) = nullptr;
  /// Decides about the (rewritten) trace's saved tensors, or refuses. May be null.
  Refusal (*decide)(const Trace& trace, const Needs& needs, const StrategyArguments& arguments,
                    Plan& plan) = nullptr;
  /// What it changes beside memory and time, or "".
  std::string_view caution = {};
  bool is_another_network = false;  ///< gradients are not those of the trace's own network
  bool is_reference = false;        ///< does nothing: what the others are compared with
};

/// Of whatever keeps tensors in codes; "" of what does not.
std::string caution_of_codes(const Plan& plan);

const std::vector<StrategyRow>& strategies();

/// The one that keeps everything.
const StrategyRow& reference_strategy();

/// One strategy or a combination, parsed; or a plan from a file.
struct StrategySpec {
  struct Component {
    const StrategyRow* row;
    StrategyArguments arguments;
  };
  std::string text;
  std::vector<Component> components;
  /// Of a plan: it decides, and the components only rewrite.
  std::shared_ptr<const JsonDocument> plan = {};
};

/// "checkpoint:every=2", "pareprop:hoist+approx-bp". UsageError for unknown names and options.
StrategySpec parse_strategy(std::string_view text);

/// "checkpoint:every=2+mesa:released"; parse_strategy() reads it back.
std::string strategy_text(const std::vector<StrategySpec::Component>& components);

/// Why the options of one strategy make no sense together, or empty.
Refusal contradiction_in(const StrategyRow& row, const StrategyArguments& arguments);

/// Why the combination makes no sense for any trace, or empty.
Refusal contradiction_in(const StrategySpec& spec);

/// A plan together with the trace it is for.
struct PlannedStep {
  std::shared_ptr<const Trace> trace;
  Plan plan;
  Refusal refusal;  ///< not empty: the strategy does not apply, and the plan keeps everything
  /// What follows from the two, if it has been derived: whoever changes one of them drops it.
  std::shared_ptr<const Derived> derived = {};
  /// What makes the trace of the one that was asked for, in the order of the strategy table; of a
  /// strategy that was refused, what would have.
  std::vector<StrategySpec::Component> rewrites = {};
};

/// The step's own, or derived now.
std::shared_ptr<const Derived> derived_of(const PlannedStep& step);

/// Rewrites, wiring before operators, then decides in the order of the strategy table, or as the
/// plan file says. A combination that makes no sense is refused with the reason; a file that does
/// not fit the trace is an InputError.
PlannedStep plan_step(std::shared_ptr<const Trace> trace, const StrategySpec& spec);

/// What ranks gathered along the sequence, and what nobody decided about otherwise, is gathered
/// once more before the gradients that need it.
void gather_again(const Trace& trace, const Needs& needs, Plan& plan);

/// By tensor: all who need it in the backward may read it from codes (Mesa's layers), so that it
/// may be kept in them.
std::vector<bool> quantizable_storages(const Trace& trace, const Needs& needs);

// The rows' functions, one file per technique.
Rewritten rewrite_activations(const Trace& trace, const StrategyArguments& arguments);
Rewritten invert_activations(const Trace& trace, const StrategyArguments& arguments);
Rewritten rewrite_norms(const Trace& trace, const StrategyArguments& arguments);
Refusal share_norm_outputs(const Trace& trace, const Needs& needs,
                           const StrategyArguments& arguments, Plan& plan);
Rewritten rewrite_low_memory_bp(const Trace& trace, const StrategyArguments& arguments);
Rewritten couple_blocks(const Trace& trace, const StrategyArguments& arguments);
Refusal reconstruct_blocks(const Trace& trace, const Needs& needs,
                           const StrategyArguments& arguments, Plan& plan);
Refusal reconstruct_in_parallel(const Trace& trace, const Needs& needs,
                                const StrategyArguments& arguments, Plan& plan);
Refusal checkpoint_blocks(const Trace& trace, const Needs& needs,
                          const StrategyArguments& arguments, Plan& plan);
Refusal quantize_saved(const Trace& trace, const Needs& needs, const StrategyArguments& arguments,
                       Plan& plan);
Refusal keep_in_floats(const Trace& trace, const Needs& needs, const StrategyArguments& arguments,
                       Plan& plan);
Refusal offload_saved(const Trace& trace, const Needs& needs, const StrategyArguments& arguments,
                      Plan& plan);
Refusal overlap_recovery(const Trace& trace, const Needs& needs, const StrategyArguments& arguments,
                         Plan& plan);

}  // namespace tidemark
