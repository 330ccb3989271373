// Strategies as one types them.
#pragma once

#include "simulator/strategies/strategy.h"

namespace tidemark::gui {

/// "checkpoint:every=2+mesa:released"; parse_strategy() reads it back.
std::string strategy_text(const StrategySpec& spec);

}  // namespace tidemark::gui
