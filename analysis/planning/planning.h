// The fastest plan within a budget, what it is made of, and how far from the best it can be.
#pragma once

#include "analysis/comparison.h"
#include "analysis/planning/wrapped_blocks.h"
#include "simulator/planner/planner.h"
#include "simulator/strategies/strategy.h"

namespace tidemark {

/// What a budget limits.
enum class Measure : std::uint8_t {
  Allocated,  ///< what PyTorch's caching allocator hands out
  Reserved,   ///< what it holds from the device
  Planned,    ///< one arena
  Live,       ///< present tensors
};

inline constexpr std::array measures = {Named{Measure::Allocated, std::string_view("allocated")},
                                        Named{Measure::Reserved, std::string_view("reserved")},
                                        Named{Measure::Planned, std::string_view("planned")},
                                        Named{Measure::Live, std::string_view("live")}};
static_assert(is_in_order(measures));
constexpr std::string_view to_string(Measure measure) {
  return measures[static_cast<std::size_t>(measure)].name;
}

inline constexpr std::array plan_forms = {Named{PlanForm::Tensors, std::string_view("tensors")},
                                          Named{PlanForm::Blocks, std::string_view("blocks")},
                                          Named{PlanForm::Policy, std::string_view("policy")}};
static_assert(is_in_order(plan_forms));

/// What a plan may do beside keeping and computing again.
enum class Allowed : std::uint8_t {
  Exact,     ///< nothing: gradients are those of vanilla, bit by bit
  Offload,   ///< let tensors wait in the host's memory, which changes no bit either
  Overlap,   ///< recover blocks on a second stream, beside the gradients of those behind; nor does
             ///< this change a bit
  Coupled,   ///< couple blocks, whose inputs then follow from their outputs: another network
             ///< (arXiv 2302.04869)
  Lossy,     ///< keep 8-bit codes, as Mesa does (arXiv 2111.11124), of no more tensors than Mesa,
             ///< and change operators, as LowMemoryBP does (arXiv 2406.16282)
  Anything,  ///< offload, codes of 8, 4 and 2 bits, and other operators; of a network
             ///< whose blocks are coupled already, inputs that follow from outputs
};

inline constexpr std::array allowances = {Named{Allowed::Exact, std::string_view("exact")},
                                          Named{Allowed::Offload, std::string_view("offload")},
                                          Named{Allowed::Overlap, std::string_view("overlap")},
                                          Named{Allowed::Coupled, std::string_view("coupled")},
                                          Named{Allowed::Lossy, std::string_view("lossy")},
                                          Named{Allowed::Anything, std::string_view("anything")}};
static_assert(is_in_order(allowances));
constexpr std::string_view to_string(Allowed allowed) {
  return allowances[static_cast<std::size_t>(allowed)].name;
}

/// Of a report, in the measure.
Bytes measured(const Report& report, Measure measure);

struct PlanRequest {
  std::optional<Bytes> budget = {};  ///< without: the device, and the step must fit on it
  Measure measure = Measure::Allocated;
  std::optional<double> max_slowdown = {};  ///< 0.1 = least memory for at most 10 % more time
  PlanForm form = PlanForm::Tensors;
  std::vector<Allowed> allowed = {Allowed::Exact};
  std::optional<Bytes> host_budget = {};  ///< so much of the host's memory may be offloaded to
  std::optional<double> max_gradient_error = {};  ///< of the predicted error; 0.05 = 5 %
  std::size_t front_points = 0;                   ///< of the front, to be evaluated and shown
  bool lists_forms = false;  ///< also what other ways to write a plan down would cost
};

/// Of planning that takes long. Called one at a time, but from any thread.
struct PlanWatch {
  std::function<void(std::string_view what)> tell = {};  ///< what is done now
  /// Asked now and then: what has been found is enough.
  std::function<bool()> is_stopped = {};
};

void tell(const PlanWatch& watch, std::string_view what);
bool is_stopped(const PlanWatch& watch);

/// "exact", "exact,offload", "anything,overlap": exact is always among them, unless anything goes.
std::string class_name(const std::vector<Allowed>& allowed);

bool may_offload(const PlanRequest& request);
bool may_overlap(const PlanRequest& request);
/// May the network be another one, with coupled blocks?
bool may_couple(const PlanRequest& request);
/// May inputs of coupled blocks be recovered from their outputs, but for rounding?
bool may_reconstruct(const PlanRequest& request);
/// May operators be replaced by such with approximate gradients, or with parameters merged into
/// those of the next?
bool may_change_operators(const PlanRequest& request);
/// May gradients be others than vanilla's?
bool may_approximate(const PlanRequest& request);
/// The same, with gradients that are vanilla's bit by bit.
PlanRequest exactly(PlanRequest request);
/// Of the codes that tensors may be kept in; none if they may not.
std::vector<int> code_bits_of(const PlanRequest& request);

/// Neighbouring blocks about which the same is decided.
struct PlanGroup {
  struct Decided {
    Action action{};
    int bits = 0;                      ///< of codes
    bool delayed = false;              ///< … by the range of the step before
    std::vector<std::string> tensors;  ///< within the block: "mlp.gelu"
    Bytes bytes;                       ///< of these, of all blocks of the group
  };
  std::string first, last;  ///< names of blocks, or of ops where it stands outside of blocks
  std::vector<std::string> operators;  ///< strategies whose operators these blocks have, not others
  bool is_block = true;
  std::size_t stages = 0;
  std::size_t joined = 1;          ///< so many at a time are recovered as one
  std::vector<Decided> decided;    ///< what is not kept; empty if all is
  std::vector<std::string> calls;  ///< of a selective form: ops in each block whose outputs stay
  GradientError error;             ///< predicted
  Bytes saved;                     ///< less than if all were kept, when all forwards are done
  Nanoseconds extra{};             ///< more than if all were kept
};
/// "recompute", "quantize, 8 bits".
std::string action_text(const PlanGroup::Decided& decided);

/// Is anything decided about the group beside keeping all?
bool is_changed(const PlanGroup& group);

/// What a GiB that the group saves costs; nothing where it saves nothing.
std::optional<Nanoseconds> price_per_gib(const PlanGroup& group);

/// A way to write a plan down. Where it counts something, the number is the best that keeps to what
/// was asked for.
struct EmittedForm {
  std::string name;    ///< "blocks", "every n-th"
  std::string paste;   ///< what to write, run or set; empty if nothing keeps to it: then …
  Bytes allocated;     ///< … this is 0 …
  Nanoseconds step{};  ///< … and this
};

/// The plan within the same budget after an option of the step was changed; the smallest plan if
/// there is none.
struct Advice {
  std::string option;  ///< "--optimizer-form fused"
  Bytes allocated;
  Nanoseconds step{};
  Bytes measured;            ///< in the measure
  bool is_feasible = false;  ///< keeps the budget
  bool fits = false;         ///< on the device
};

/// Of a pipeline stage.
struct StagePlan {
  bool is_feasible = false;    ///< within the budget; else it is the one that needs least
  std::int64_t in_flight = 1;  ///< micro-batches that are kept at once
  PlannedStep planned;
  std::vector<PlanGroup> groups;  ///< bytes are those of all micro-batches in flight
  Report report;                  ///< with the time of all stages together
  std::string binding;            ///< where its memory is tightest
  Bytes rest;                     ///< as of Planning
  std::size_t front_size = 0;
  bool joins_blocks = false;
  Nanoseconds lower_bound{};  ///< of its own runs, waiting left out
};

/// Of the stage that needs most.
Bytes most_measured(const std::vector<StagePlan>& stages, Measure measure);

struct FrontPoint {
  Bytes budget;  ///< in the request's measure; rises from point to point
  Report report;
  std::vector<PlanGroup> groups;
  std::string binding;  ///< where memory is tightest
  PlannedStep planned;
  GradientError error;  ///< predicted
  /// Of a pipeline, in order: their plans instead of `groups` and `planned`.
  std::vector<StagePlan> stages = {};
};

/// Some points of the front of a class of plans.
struct PlanFront {
  std::vector<Allowed> allowed;
  std::size_t size = 0;  ///< of the whole front; of what does not offload, where some does
  std::vector<FrontPoint> points = {};
};

struct Planning {
  PlanRequest request;
  Bytes budget;           ///< what was asked for, or the most that this device has
  bool feasible = false;  ///< a plan within the budget was found
  Comparison
      comparison;  ///< vanilla, then the plan; if nothing is feasible, the one that needs least
  std::shared_ptr<const Trace> trace;  ///< of the step that was asked for
  PlannedStep planned;                 ///< whose trace may have other operators
  std::vector<PlanGroup> groups;
  GradientError error;               ///< of the gradients, predicted; 0 where they are exact
  std::vector<WrappedBlock> blocks;  ///< where the form is another one than tensors
  /// Then, too: what the fastest plan of tensors takes within the same budget.
  std::optional<Nanoseconds> step_of_tensors = {};

  /// Where the request's class approximates: what the fastest plan with exact gradients takes
  /// within the same budget, or needs within the same time; and whether it has to do anything at
  /// all.
  struct Exact {
    Nanoseconds step{};
    Bytes measured;
    bool keeps_all = false;
  };
  std::optional<Exact> exact = {};

  /// No plan that keeps or recomputes what stages save, each stage by itself on one stream, is
  /// faster in this budget; if the plan joins blocks, none that joins so many either.
  Nanoseconds lower_bound{};
  double gap = 0;              ///< the plan's time above the bound, as a share of the bound
  bool joins_blocks = false;   ///< recovers several as one
  std::string binding;         ///< where memory is tightest
  Bytes rest;                  ///< what no decision about blocks changes: the optimizer step
  std::size_t front_size = 0;  ///< points of the whole front
  /// Of the classes within what is allowed, the request's own last; none if not asked for.
  std::vector<PlanFront> fronts;
  std::vector<EmittedForm> forms;
  bool loss_binds = false;     ///< memory is tightest in the stage that makes the loss
  std::vector<Advice> advice;  ///< what other options of the step would do
  /// Of a pipeline, in order. All that is said above is of the rank that needs most, or was named,
  /// but for the time, which is that of all; groups are each stage's own.
  std::vector<StagePlan> stages;
  Nanoseconds solve{};      ///< that planning took here
  bool is_stopped = false;  ///< before all was looked at; what is here is right all the same
};

/// "plan:12.0 GiB", as its row is called.
std::string title_of(const Planning& planning);

/// The file of the plan, or of the plans of all stages.
std::string plan_text(const Planning& planning);
std::string plan_text(const FrontPoint& point);

/// Stopped, it gives the best plan that it knows by then: it makes no further one, but looks on for
/// one that keeps the budget.
Planning plan_within(const Scenario& scenario, const PlanRequest& request,
                     const PlanWatch& watch = {});

}  // namespace tidemark
