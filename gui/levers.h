// What would lower the peak that is shown, tried beside the drawing, and the inputs with it.
#pragma once

#include <span>

#include "analysis/planning/lever_table.h"
#include "gui/newest.h"
#include "gui/what_if.h"

namespace tidemark::gui {

struct LeverQuestion {
  Scenario scenario;
  StrategySpec strategy;
};

/// Shows strategies, then options, then plans, as they are known.
class Levers : public Newest<LeverQuestion, LeverTable> {
 public:
  Levers();
};

/// Those of the table that are called so, in this order.
std::vector<const TriedLever*> levers_named(const LeverTable& table,
                                            std::span<const std::string> names);

/// These inputs with the levers pulled, all together. Strategies join; a plan is that of the front,
/// which the changed inputs have a new one of. Throws InputError where strategies cannot join.
WhatIf with(const WhatIf& what_if, std::span<const TriedLever* const> levers);

/// The same to be looked at without being chosen: the plan as the table has it.
WhatIf imagined(const WhatIf& what_if, const LeverTable& table,
                std::span<const TriedLever* const> levers);

/// A prediction of something that is not chosen.
class Imagined : public Newest<WhatIf, Prediction> {
 public:
  Imagined();
};

}  // namespace tidemark::gui
