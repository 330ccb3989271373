// The what-if table: one model and batch on one device, one row per strategy.
#pragma once

#include <functional>

#include "analysis/conclusion.h"
#include "traces/models/model_config.h"

namespace tidemark {

struct Scenario {
  Model model;
  StepOptions step;
  Device device;
  std::vector<StrategySpec> strategies;
  std::optional<Bytes> budget = {};  ///< instead of the device's capacity less its CUDA context
  allocator::AllocatorSettings allocator = {};
  bool finds_largest_batch = false;
  /// A given step, instead of the model's; `step` is then its own.
  std::shared_ptr<const Trace> trace = {};
};

struct Comparison {
  Scenario scenario;
  MemoryBudget budget;
  std::int64_t parameters = 0;  ///< of the model, adapters included
  std::int64_t trainable = 0;
  std::vector<Report> rows;  ///< as asked
  Conclusion conclusion;
  std::int64_t tokens = 0;  ///< per sample, into the first block; 0 without blocks
  Attention attention = Attention::Math;
  std::vector<std::string> notes;  ///< what PyTorch does otherwise on this device; what is guessed
};

/// `progress` is told after each row how many are done, `batches` while batches are tried. Once
/// stopped, further rows have no largest batch.
Comparison compare(const Scenario& scenario,
                   const std::function<void(std::size_t done)>& progress = {},
                   const BatchProgress& batches = {}, const std::function<bool()>& is_stopped = {});

/// The same for those who say nothing of what follows from it: the remedies of a conclusion are
/// predictions of their own.
Comparison compare_rows(const Scenario& scenario);

/// Strategies that a comparison shows when none are named.
std::vector<StrategySpec> default_strategies();

/// Of a strategy; the scenario's own batch does not matter.
BatchLimits batch_limits(const Scenario& scenario, const StrategySpec& strategy,
                         const MemoryBudget& budget, const BatchProgress& progress = {});

/// NCCL's own memory on a rank of the scenario's mesh, outside of PyTorch's.
Bytes communicator_bytes_of(const Scenario& scenario);

MemoryBudget memory_budget_of(const Scenario& scenario);

/// Fills in what rows are against vanilla, if it is among them.
void add_ratios(std::vector<Report>& rows);

/// The step as it runs on the scenario's device; of several pipeline stages that of the rank that
/// it names, or of the first.
std::shared_ptr<const Trace> trace_of(const Scenario& scenario);

/// Of all rank classes of the scenario's mesh.
std::vector<std::shared_ptr<const Trace>> traces_of(const Scenario& scenario);

}  // namespace tidemark
