// The table's rows, the reading of combinations, and the order in which their parts apply.
#include "simulator/strategies/strategy.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include "simulator/compiled/compiled_trace.h"
#include "simulator/parallel/pipeline_order.h"
#include "simulator/plan_json.h"
#include "simulator/strategies/block_list.h"
#include "simulator/strategies/input_gradients.h"

namespace tidemark {
namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    pieces.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return pieces;
}

bool takes(const StrategyOption& option, std::int64_t number) {
  if (!option.among.empty()) return std::ranges::find(option.among, number) != option.among.end();
  return number >= option.least && number <= 1'000'000;
}

std::string_view value_in(std::string_view text) {
  return text.substr(std::min(text.find('=') + 1, text.size()));
}

std::int64_t parse_number(std::string_view text, const StrategyOption& option) {
  const std::string_view digits = text.substr(option.name().size() + 1);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool is_whole = error == std::errc() && end == digits.data() + digits.size();
  if (is_whole && takes(option, number)) return number;
  const std::string known = option.among.empty()
                                ? fmt::format("{} or more", option.least)
                                : fmt::format("one of {}", fmt::join(option.among, ", "));
  throw UsageError(fmt::format("strategy option '{}': {}= takes a number of {}, {}",
                               text.substr(0, 64), option.name(), option.unit, known));
}

std::vector<std::string_view> texts_of(const std::vector<StrategyOption>& options) {
  std::vector<std::string_view> texts;
  for (const StrategyOption& option : options) texts.push_back(option.text);
  return texts;
}

/// Two options of one strategy of which each says what the other does.
struct OptionContradiction {
  std::string_view strategy, a, b;
  std::string_view why;
};

constexpr std::string_view op_counts_in_blocks =
    "op keeps by number of the products of what the model itself checkpoints";

constexpr std::array option_contradictions = {
    OptionContradiction{"checkpoint", "sqrt", "every=K",
                        "sqrt chooses the length of the segments itself"},
    OptionContradiction{"checkpoint", "blocks", "every=K", "it is segments of one block"},
    OptionContradiction{"checkpoint", "blocks", "sqrt", "it is segments of one block"},
    OptionContradiction{"checkpoint", "selective", "blocks",
                        "selective recomputes the core of each attention, not segments of blocks"},
    OptionContradiction{"checkpoint", "selective", "every=K",
                        "selective recomputes the core of each attention, not segments of blocks"},
    OptionContradiction{"checkpoint", "selective", "sqrt",
                        "selective recomputes the core of each attention, not segments of blocks"},
    OptionContradiction{"checkpoint", "op", "blocks", op_counts_in_blocks},
    OptionContradiction{"checkpoint", "op", "every=K", op_counts_in_blocks},
    OptionContradiction{"checkpoint", "op", "sqrt", op_counts_in_blocks},
    OptionContradiction{"checkpoint", "op", "selective", op_counts_in_blocks},
    OptionContradiction{"mesa", "released", "bits=B",
                        "the published code stores a byte per element"},
    OptionContradiction{"mesa", "delayed", "released",
                        "the published code takes the range of the tensor that it codes"},
};

const StrategyOption& find_option(const StrategyRow& row, std::string_view typed) {
  const auto is_it = [&](const StrategyOption& option) {
    if (!option.takes_number()) return option.text == typed;
    return typed.starts_with(option.text.substr(0, option.name().size() + 1));
  };
  const auto found = std::ranges::find_if(row.options, is_it);
  if (found != row.options.end()) return *found;
  if (row.options.empty()) throw UsageError(fmt::format("strategy '{}' has no options", row.name));
  throw UsageError(
      unknown_name(fmt::format("option of strategy '{}'", row.name), typed, texts_of(row.options)));
}

StrategyArguments parse_arguments(const StrategyRow& row, std::string_view text) {
  StrategyArguments arguments;
  for (const std::string_view typed : split(text, ',')) {
    const StrategyOption& option = find_option(row, typed);
    if (arguments.has(option.name()) || (takes_blocks(option) && blocks_of(arguments)))
      throw UsageError(
          fmt::format("strategy '{}': {} is named twice (keep one)", row.name, option.text));
    arguments.chosen.push_back({std::string(option.name()), {}});
    if (takes_blocks(option))
      arguments.chosen.back() = chosen_blocks(parse_block_list(value_in(typed)));
    else if (option.takes_number())
      arguments.chosen.back().number = parse_number(typed, option);
  }
  if (const Refusal why = contradiction_in(row, arguments); !why.empty()) throw UsageError(why);
  return arguments;
}

bool uses(const StrategySpec& spec, std::string_view name) {
  return std::ranges::any_of(spec.components, [&](const auto& c) { return c.row->name == name; });
}

struct Contradiction {
  std::string_view a, b;
  std::string_view why;
};

constexpr std::string_view inverses_of_codes =
    "states are recovered from a stack's kept outputs; in 8 bits their error would grow through "
    "every inverse";

constexpr std::array contradictions = {
    Contradiction{"reversible", "pareprop", "pareprop is reversible already, on two streams"},
    Contradiction{
        "reversible", "checkpoint",
        "a reversible stack keeps nothing between its blocks that checkpoints could save"},
    Contradiction{
        "pareprop", "checkpoint",
        "a reversible stack keeps nothing between its blocks that checkpoints could save"},
    Contradiction{"reversible", "mesa", inverses_of_codes},
    Contradiction{"pareprop", "mesa", inverses_of_codes},
    Contradiction{"reversible", "fp8-activations", inverses_of_codes},
    Contradiction{"pareprop", "fp8-activations", inverses_of_codes},
    Contradiction{"mesa", "fp8-activations", "each keeps the same tensors, in codes of its own"},
    Contradiction{"pareprop", "overlap", "pareprop overlaps already"},
    Contradiction{"reversible", "overlap", "that is pareprop"},
    Contradiction{"lowmemorybp", "approx-bp", "lowmemorybp contains approx-bp"},
    Contradiction{"approx-bp", "invert-act", "GELU and SiLU are either approximated or inverted"},
    Contradiction{"lowmemorybp", "invert-act", "GELU and SiLU are either approximated or inverted"},
    Contradiction{"lowmemorybp", "ms-bp", "lowmemorybp contains ms-bp"},
};

}  // namespace

Refusal contradiction_in(const StrategyRow& row, const StrategyArguments& arguments) {
  const auto is_chosen = [&](std::string_view option) {
    return arguments.has(StrategyOption{option, {}}.name());
  };
  for (const OptionContradiction& c : option_contradictions)
    if (c.strategy == row.name && is_chosen(c.a) && is_chosen(c.b))
      return fmt::format("strategy '{}': {} and {} contradict each other: {} (leave one out)",
                         row.name, c.a, c.b, c.why);
  return {};
}

Refusal contradiction_in(const StrategySpec& spec) {
  const auto is_reference = [](const auto& c) { return c.row->is_reference; };
  if (spec.components.size() > 1 && std::ranges::any_of(spec.components, is_reference))
    return fmt::format("{} means no technique; leave it out of the combination",
                       reference_strategy().name);
  for (std::size_t i = 1; i < spec.components.size(); ++i)
    if (spec.components[i].row == spec.components[i - 1].row)
      return fmt::format("{} is named twice", spec.components[i].row->name);
  for (const Contradiction& c : contradictions)
    if (uses(spec, c.a) && uses(spec, c.b)) return fmt::format("{} + {}: {}", c.a, c.b, c.why);
  return {};
}

bool StrategyArguments::has(std::string_view name) const {
  return std::ranges::find(chosen, name, &Chosen::name) != chosen.end();
}

std::optional<std::int64_t> StrategyArguments::number(std::string_view name) const {
  const auto found = std::ranges::find(chosen, name, &Chosen::name);
  return found == chosen.end() ? std::nullopt : found->number;
}

// In the order in which combinations are applied: operators, wiring, recovery, what becomes of the
// rest (8 bits, the host's memory), streams.
const std::vector<StrategyRow>& strategies() {
  constexpr StrategyOption released{"released",
                                    "as the published code does it, with what that wastes"};
  static const std::vector<StrategyRow> rows = {
      {"vanilla", "keep everything the backward needs", "", {}, nullptr, nullptr, "", false, true},
      {"approx-bp",
       "GELU and SiLU keep 2-bit codes instead of their input",
       "arXiv 2406.16282, section 4.1",
       {in_blocks},
       rewrite_activations,
       nullptr,
       "gradients through GELU and SiLU are approximate"},
      {"invert-act",
       "GELU and SiLU find their slope from their output, which the next linear keeps, and a bit",
       "arXiv 2210.10246",
       {in_blocks},
       invert_activations,
       nullptr,
       "gradients through GELU and SiLU are those of their rounded output"},
      {"ms-bp",
       "norms share the tensor that the next linear keeps; affine merged into it",
       "arXiv 2406.16282, section 4.2",
       {in_blocks},
       rewrite_norms,
       share_norm_outputs},
      {"lowmemorybp",
       "approx-bp and ms-bp",
       "arXiv 2406.16282",
       {in_blocks},
       rewrite_low_memory_bp,
       share_norm_outputs,
       "gradients through GELU and SiLU are approximate"},
      {"reversible",
       "blocks coupled so that their inputs follow from their outputs",
       "arXiv 2302.04869",
       {released},
       couple_blocks,
       reconstruct_blocks,
       "trains another network, with two residual streams",
       true},
      {"pareprop",
       "reversible; the next block is recovered on a second stream",
       "arXiv 2306.09342",
       {{"hoist", "recovery overlaps across the stages of the model, too"}, released},
       couple_blocks,
       reconstruct_in_parallel,
       "trains another network, with two residual streams",
       true},
      {"checkpoint",
       "keep segment inputs, recompute the rest",
       "arXiv 1604.06174, 2205.05198",
       {{"every=K", "segments of K blocks instead of one"},
        {"sqrt", "segments as long as the square root of the number of blocks"},
        {"blocks", "each block, also where the model's own checkpointing wraps whole stages"},
        {"selective", "only the attention maps are recomputed"},
        {"op", "attention and every second product stay, as torchtitan's SelectiveAC keeps them"}},
       nullptr,
       checkpoint_blocks},
      {"mesa",
       "saved tensors kept in 8 bits, forward exact",
       "arXiv 2111.11124",
       {{"bits=B", "codes of 2, 4 or 8 bits", 2, 8, "bits", code_bits},
        {"group=G", "ranges for G channels each, where a tensor has no heads", 1, mesa_channels,
         "channels"},
        released,
        {"delayed",
         "not the paper's: by the last step's range, in the producer's pass; what GELU and SiLU "
         "make is made again from codes"}},
       nullptr,
       quantize_saved},
      {"fp8-activations",
       "saved tensors kept in 8-bit floats (e4m3), forward exact",
       "arXiv 2410.19313, section 5",
       {{"group=G", "a scale per G neighbours of what others than products read", 16, 16,
         "neighbours", float8_groups}},
       nullptr,
       keep_in_floats},
      {"offload",
       "saved tensors wait in the host's memory, copied beside the step",
       "arXiv 1602.08124",
       {{"every=K", "the saved tensors of every K-th block"},
        {"prefetch=D", "copies out may lag D blocks, copies in begin D blocks ahead", 0, 1}},
       nullptr,
       offload_saved},
      {"overlap",
       "recover the next segment on a second stream (with checkpoint)",
       "",
       {},
       nullptr,
       overlap_recovery},
  };
  return rows;
}

std::string caution_of_codes(const Plan& plan) {
  const int bits = fewest_bits(plan);
  if (bits == 0) return {};
  const bool are_floats = std::ranges::all_of(plan.decisions, [&](const Decision& decision) {
    return decision.action != Action::Quantize ||
           plan.encodings[decision.encoding].format == CodeFormat::Float8;
  });
  return fmt::format("gradients are approximate, from {}",
                     are_floats ? "copies in 8-bit floats" : fmt::format("{}-bit copies", bits));
}

const StrategyRow& reference_strategy() {
  return *std::ranges::find(strategies(), true, &StrategyRow::is_reference);
}

StrategySpec parse_strategy(std::string_view text) {
  StrategySpec spec{.text = std::string(text), .components = {}};
  for (const std::string_view piece : split(text, '+')) {
    const std::size_t colon = std::min(piece.find(':'), piece.size());
    const std::string_view name = piece.substr(0, colon);
    const auto row = std::ranges::find(strategies(), name, &StrategyRow::name);
    if (row == strategies().end())
      throw UsageError(unknown_name("strategy", name, names_of(strategies())));
    StrategyArguments arguments;
    if (colon < piece.size()) arguments = parse_arguments(*row, piece.substr(colon + 1));
    spec.components.push_back({&*row, std::move(arguments)});
  }
  std::ranges::stable_sort(spec.components, {}, &StrategySpec::Component::row);
  return spec;
}

std::string strategy_text(const std::vector<StrategySpec::Component>& components) {
  std::string text;
  for (const auto& [row, arguments] : components) {
    if (!text.empty()) text += '+';
    text += row->name;
    char separator = ':';
    const auto add = [&](std::string_view option) {
      text += std::exchange(separator, ',');
      text += option;
    };
    for (const auto& [name, number] : arguments.chosen)
      add(number ? fmt::format("{}={}", name, *number) : name);
  }
  return text;
}

namespace {

// In compiled blocks the policy is a part of what is compiled.
std::optional<Trace> as_checkpointed(const Trace& trace, const StrategyArguments& arguments) {
  if (arguments.has("op") && trace.eager.trace) return compiled_by_op(trace);
  return add_input_gradients(trace);
}

}  // namespace

// What is switched on comes first. A post-norm block becomes pre-norm when it is coupled.
Refusal rewrite(PlannedStep& step) {
  std::erase_if(step.rewrites, [&](const StrategySpec::Component& component) {
    if (!asks_for_input_gradients(component)) return false;
    std::optional<Trace> changed = as_checkpointed(*step.trace, component.arguments);
    if (changed) step.trace = std::make_shared<const Trace>(*std::move(changed));
    return !changed;
  });
  for (auto component = step.rewrites.rbegin(); component != step.rewrites.rend(); ++component) {
    const auto& [row, arguments] = *component;
    if (!row->rewrite) continue;
    Rewritten changed = row->rewrite(*step.trace, arguments);
    if (const auto* refusal = std::get_if<Refusal>(&changed))
      return fmt::format("{}: {}", row->name, *refusal);
    step.trace = std::make_shared<const Trace>(std::get<Trace>(std::move(changed)));
  }
  return {};
}

namespace {

// As the plan file says, or each component after the other.
Refusal decide(const Trace& trace, const StrategySpec& spec, Plan& plan, Derived& derived) {
  if (spec.plan) return plan = plan_for(trace, *spec.plan, derived), Refusal();
  for (const auto& [row, arguments] : spec.components) {
    if (!row->decide) continue;
    if (const Refusal refusal = row->decide(trace, derived.needs, arguments, plan);
        !refusal.empty())
      return fmt::format("{}: {}", row->name, refusal);
  }
  if (const std::string defect = pipeline_defect(trace.step, plan); !defect.empty())
    return fmt::format("{}: {}", spec.text, defect);
  if (trace.step.sequence_parallel || trace.step.mesh[Axis::Context] > 1)
    gather_again(trace, derived.needs, plan);
  // A trace from elsewhere may have dependencies that no strategy thought of.
  const std::vector<std::string> defects = check(trace, plan, derived);
  return defects.empty() ? Refusal() : fmt::format("{}: {}", spec.text, defects.front());
}

}  // namespace

std::shared_ptr<const Derived> derived_of(const PlannedStep& step) {
  if (step.derived) return step.derived;
  return std::make_shared<const Derived>(derive(*step.trace, step.plan));
}

namespace {

bool keeps_by_op(const StrategySpec::Component& component) {
  return component.row->decide == checkpoint_blocks && component.arguments.has("op");
}

// A wrapper that checkpoints a block is compiled with it, whose graph makes again then what the
// wrapper's policy says: usually all of it.
bool is_compiled_with_blocks(const Trace& trace, const StrategySpec::Component& component) {
  if (component.row->decide != checkpoint_blocks) return false;
  return component.arguments.chosen.empty() || component.arguments.has("blocks") ||
         (keeps_by_op(component) && trace.eager.trace);
}

// Inside of its graphs torch.compile has decided what is kept and what is made again.
Refusal refused_by_compiler(const Trace& trace, const StrategySpec& spec) {
  const Framework& framework = find_framework(trace.step.framework);
  if (!is_compiled(framework)) return {};
  const bool decides =
      spec.plan || std::ranges::any_of(spec.components, [&](const auto& component) {
        return !component.row->is_reference &&
               !(framework.compiles_blocks && is_compiled_with_blocks(trace, component));
      });
  if (!decides) return {};
  if (framework.compiles_blocks && !trace.eager.trace &&
      std::ranges::any_of(spec.components, keeps_by_op))
    return "a trace does not say what code its blocks were compiled from, with which a policy is "
           "compiled (name the model)";
  return framework.compiles_blocks
             ? "torch.compile decides what blocks keep (checkpoint and checkpoint:op, alone, wrap "
               "a block that is compiled with them)"
             : "torch.compile decides what this step keeps";
}

}  // namespace

PlannedStep plan_step(std::shared_ptr<const Trace> trace, const StrategySpec& spec) {
  PlannedStep step{trace, {}, contradiction_in(spec)};
  if (step.refusal.empty()) step.refusal = refused_by_compiler(*trace, spec);
  std::ranges::copy_if(spec.components, std::back_inserter(step.rewrites),
                       [](const auto& component) {
                         return component.row->rewrite || asks_for_input_gradients(component);
                       });
  if (step.refusal.empty()) step.refusal = rewrite(step);
  if (step.refusal.empty()) {
    step.plan = keep_everything(*step.trace);
    auto derived = std::make_shared<Derived>();
    derived->needs = derive_needs(*step.trace);
    step.refusal = decide(*step.trace, spec, step.plan, *derived);
    if (step.refusal.empty()) step.derived = std::move(derived);
  }
  if (!step.refusal.empty()) {
    step.plan = keep_everything(*trace);
    step.trace = std::move(trace);
  }
  step.plan.strategy = spec.text;
  return step;
}

}  // namespace tidemark
