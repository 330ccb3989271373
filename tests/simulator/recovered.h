// What a plan runs again, and behind what a value is freed, in words.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "simulator/lower.h"
#include "simulator/strategies/strategy.h"

namespace tidemark {

/// Names of the ops that recovery runs again, in order.
inline std::vector<std::string> run_again(const PlannedStep& step) {
  std::vector<std::string> names;
  const Derived derived = derive(*step.trace, step.plan);
  for (std::size_t i = 0; i < step.trace->ops.size(); ++i)
    if (derived.recovery.reruns[i]) names.push_back(step.trace->ops[i].name);
  return names;
}

/// "backward gelu": the run before a tensor's value is freed for the first time; or "never".
inline std::string last_run_before_free_of(const Trace& trace, const Schedule& schedule,
                                           std::string_view tensor) {
  std::string last;
  for (const Step& step : schedule.steps) {
    if (const auto* run = std::get_if<tidemark::Run>(&step); run && run->op != no_op)
      last = fmt::format("{} {}", to_string(run->task), std::string_view(trace[run->op].name));
    const auto* free = std::get_if<Free>(&step);
    if (free && schedule[free->buffer].role == Role::Value &&
        trace[schedule[free->buffer].tensor].name == tensor)
      return last;
  }
  return "never";
}

}  // namespace tidemark
