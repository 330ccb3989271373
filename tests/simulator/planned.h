// The plan of a strategy that is expected to apply.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string_view>
#include <utility>

#include "simulator/strategies/strategy.h"

namespace tidemark {

inline PlannedStep planned(Trace trace, std::string_view strategy) {
  PlannedStep step =
      plan_step(std::make_shared<const Trace>(std::move(trace)), parse_strategy(strategy));
  EXPECT_EQ(step.refusal, "") << strategy;
  return step;
}

}  // namespace tidemark
