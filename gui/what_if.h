// What the what-if panel can change, and what comes of it: the same functions as the command
// line's.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "analysis/comparison.h"
#include "gui/opened.h"

namespace tidemark::gui {

/// The inputs of one or more predicted recordings that differ only in their strategy.
struct WhatIf {
  Scenario scenario;                     ///< its strategies are not used
  std::vector<StrategySpec> strategies;  ///< the first is the one shown
  std::string allocator = {};            ///< settings as typed; the scenario's are not used
  std::vector<StrategySpec> plans = {};  ///< of the command line: offered beside the strategies
};

/// What the panel lets one choose from.
std::vector<StrategySpec> offered(const WhatIf& what_if);

/// An evaluation as a view wants it.
struct Prediction {
  std::shared_ptr<const Opened> opened;  ///< null if the strategy does not apply
  Report report;
};

/// The scenario with what is typed beside it. Throws InputError if that cannot be read.
Scenario scenario_of(const WhatIf& what_if);

/// One per strategy. Throws InputError for inputs that make no step.
std::vector<Prediction> predict(const WhatIf& what_if);

/// Compares many strategies beside the drawing: a change is shown at once, the comparison follows.
class Frontier {
 public:
  Frontier();
  Frontier(const Frontier&) = delete;
  Frontier& operator=(const Frontier&) = delete;
  ~Frontier();

  /// What was asked before is dropped.
  void ask(Scenario scenario);
  /// The newest finished comparison; empty before the first.
  std::shared_ptr<const Comparison> newest() const;
  /// Is the newest one not yet of the last scenario?
  bool is_catching_up() const;
  void wait() const;

 private:
  void work(const std::stop_token& stop);
  bool is_outdated(std::uint64_t scenario) const;

  mutable std::mutex mutex_;
  mutable std::condition_variable_any changed_;
  Scenario scenario_;
  std::uint64_t asked_ = 0, answered_ = 0;
  std::shared_ptr<const Comparison> newest_;
  std::jthread worker_;  ///< last: it uses the others
};

}  // namespace tidemark::gui
