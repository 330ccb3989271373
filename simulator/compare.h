// The what-if table: one model and batch on one card, one row per strategy.
#pragma once

#include <functional>

#include "simulator/conclusion.h"
#include "traces/models/model_config.h"

namespace tidemark {

struct Question {
  Model model;
  StepOptions step;
  Device device;
  std::vector<StrategySpec> strategies;
  std::optional<Bytes> budget = {};  ///< instead of the device's capacity less its CUDA context
  AllocatorSettings allocator = {};
  bool finds_largest_batch = false;
  /// A given step, instead of the model's; `step` is then its own.
  std::shared_ptr<const Trace> trace = {};
};

struct Comparison {
  Question question;
  Room room;
  std::int64_t parameters = 0;  ///< of the model, adapters included
  std::int64_t trainable = 0;
  std::vector<Report> rows;  ///< as asked
  Conclusion conclusion;
  std::int64_t tokens = 0;  ///< per sample, into the first block; 0 without blocks
  Attention attention = Attention::Math;
  std::vector<std::string> notes;  ///< what PyTorch does otherwise on this card
};

/// `progress` is told after each row how many are done, `batches` while batches are tried.
Comparison compare(const Question& question,
                   const std::function<void(std::size_t done)>& progress = {},
                   const BatchProgress& batches = {});

/// Strategies that a comparison shows when none are named.
std::vector<StrategySpec> default_strategies();

/// Of a strategy; the question's own batch does not matter.
BatchLimits batch_limits(const Question& question, const StrategySpec& strategy, const Room& room,
                         const BatchProgress& progress = {});

Room room_of(const Question& question);

/// The step as it runs on the question's device.
std::shared_ptr<const Trace> trace_of(const Question& question);

}  // namespace tidemark
