// Bytes → file of timed steps → its steps written → read again. Must be steps of one device that
// `compare` would take, the same again, or be refused in one line that begins with the file.
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands/timed_steps.h"
#include "simulator/cost/figure_text.h"
#include "tests/fuzz/refusals.h"

namespace {

using namespace tidemark;
using Steps = std::vector<cli::TimedStep>;

Steps read(std::string_view text) {
  Steps steps;
  try {
    steps = cli::read_timed_steps(text, "fuzz");
  } catch (const InputError& error) {
    require_one_line(error.what());
    require(std::string_view(error.what()).starts_with("fuzz:"));
  }
  return steps;
}

std::string written(const Steps& steps) {
  std::string listed;
  for (const cli::TimedStep& step : steps)
    listed +=
        fmt::format(R"({}{{"compare": {}, "seconds": {}}})", listed.empty() ? "" : ", ",
                    json_quoted(step.asked), static_cast<double>(step.measured.count()) / 1e9);
  return fmt::format(R"({{"format": "tidemark-timed-steps", "version": 1, "steps": [{}]}})",
                     listed);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Steps steps = read({reinterpret_cast<const char*>(data), size});
  if (steps.empty()) return 0;
  for (const cli::TimedStep& step : steps) {
    require(step.measured > Nanoseconds{});
    require(step.scenario.strategies.size() == 1 && step.scenario.step.batch > 0);
    require(step.scenario.device.name == steps.front().scenario.device.name);
    require(memory_budget_of(step.scenario).capacity > Bytes());
  }
  const Steps again = read(written(steps));
  require(again.size() == steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    require(again[i].asked == steps[i].asked && again[i].measured == steps[i].measured);
    require(again[i].scenario.step == steps[i].scenario.step);
  }
  return 0;
}
