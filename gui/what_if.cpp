// Predicts the strategies of the panel, and compares in a thread that drops outdated requests.
#include "gui/what_if.h"

#include "analysis/recording/predicted_recording.h"

namespace tidemark::gui {
namespace {

// Thrown out of a comparison that nobody waits for any more.
struct Outdated {};

}  // namespace

std::vector<StrategySpec> offered(const WhatIf& what_if) {
  std::vector<StrategySpec> specs = default_strategies();
  specs.insert(specs.end(), what_if.plans.begin(), what_if.plans.end());
  return specs;
}

Scenario scenario_of(const WhatIf& what_if) {
  Scenario scenario = what_if.scenario;
  scenario.allocator = what_if.allocator.empty()
                           ? allocator::AllocatorSettings{}
                           : allocator::parse_allocator_settings(what_if.allocator);
  return scenario;
}

std::vector<Prediction> predict(const WhatIf& what_if) {
  const auto trace = trace_of(what_if.scenario);
  const MemoryBudget budget = memory_budget_of(scenario_of(what_if));
  // A device smaller than its CUDA context, or a budget of nothing.
  if (budget.capacity < Bytes{1}) throw InputError("nothing fits in 0 bytes");
  std::vector<Prediction> predictions;
  for (const StrategySpec& strategy : what_if.strategies) {
    const Evaluation made = evaluate(trace, strategy, what_if.scenario.device, budget);
    predictions.push_back({nullptr, made.report});
    if (made.report.applies)
      predictions.back().opened =
          std::make_shared<const Opened>(recording_of(made, what_if.scenario.device));
  }
  return predictions;
}

Frontier::Frontier() : worker_([this](const std::stop_token& stop) { work(stop); }) {}

Frontier::~Frontier() {
  worker_.request_stop();
  const std::scoped_lock lock(mutex_);
  ++asked_;  // ends a comparison that is under way
  changed_.notify_all();
}

void Frontier::ask(Scenario scenario) {
  const std::scoped_lock lock(mutex_);
  scenario_ = std::move(scenario);
  ++asked_;
  changed_.notify_all();
}

std::shared_ptr<const Comparison> Frontier::newest() const {
  const std::scoped_lock lock(mutex_);
  return newest_;
}

bool Frontier::is_catching_up() const {
  const std::scoped_lock lock(mutex_);
  return answered_ != asked_;
}

void Frontier::wait() const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return answered_ == asked_; });
}

bool Frontier::is_outdated(std::uint64_t scenario) const {
  const std::scoped_lock lock(mutex_);
  return scenario != asked_;
}

void Frontier::work(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [this] { return answered_ != asked_; })) {
    const std::uint64_t number = asked_;
    const Scenario scenario = scenario_;
    lock.unlock();
    std::shared_ptr<const Comparison> made;
    try {
      // Between two strategies it looks whether the question is still the one that is asked: while
      // a slider is dragged most comparisons are given up after a few milliseconds.
      made = std::make_shared<const Comparison>(compare(scenario, [&](std::size_t) {
        if (is_outdated(number)) throw Outdated();
      }));
    } catch (const Outdated&) {
    } catch (const InputError&) {  // what is wrong is said where the strategy itself is predicted
    }
    lock.lock();
    // Asked anew while this was made: not shown, not even for a frame.
    if (number != asked_) continue;
    newest_ = made;
    answered_ = number;
    changed_.notify_all();
  }
}

}  // namespace tidemark::gui
