// {"format": "tidemark-timed-steps", "version": 1, "steps": [{"compare": "gpt2 -b 8", "seconds":
// 0.2}]}
#include "cli/commands/timed_steps.h"

#include <fmt/format.h>

#include <cmath>
#include <sstream>

#include "base/error.h"
#include "base/json_reader.h"
#include "cli/commands/command_line.h"
#include "cli/commands/scenario.h"

namespace tidemark::cli {
namespace {

constexpr std::string_view format_name = "tidemark-timed-steps";
constexpr std::size_t most_steps = 64;  // each is predicted a few hundred times

Options options_that_ask(const std::string& asked) {
  std::vector<std::string> words = {"tidemark", "compare"};
  std::istringstream text(asked);
  for (std::string word; text >> word;) words.push_back(word);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  const CommandLine line = parse_command_line(static_cast<int>(arguments.size()), arguments.data());
  if (!line.command) throw UsageError("no step is asked about");
  return line.options;
}

Scenario scenario_in(const std::string& asked) {
  const Options options = options_that_ask(asked);
  if (points_of(options).size() > 1)
    throw UsageError("a list of values; need the one of the step that was timed");
  Scenario scenario = scenario_of(options);
  scenario.strategies = {one_strategy(options)};
  scenario.finds_largest_batch = false;
  if (!scenario.device.curves.empty())
    throw UsageError("--device: has measured times of kernels already; need one without curves");
  return scenario;
}

TimedStep read_step(const JsonView& view, std::string_view file) {
  view.allow_only({"compare", "seconds"});
  TimedStep step;
  step.place = fmt::format("{}: {}", file, view.at("compare").pointer());
  step.asked = view.at("compare").text();
  step.measured = Nanoseconds{std::llround(view.at("seconds").number(1e-6, 1e6) * 1e9)};
  try {
    step.scenario = scenario_in(step.asked);
  } catch (const InputError& error) {
    view.at("compare").fail(error.what());
  }
  return step;
}

// Each may be in a cluster of its own.
bool is_same_device(Device a, const Device& b) {
  a.interconnect = b.interconnect;
  return a == b;
}

}  // namespace

std::vector<TimedStep> read_timed_steps(std::string_view json, std::string_view file) {
  const JsonDocument document(json, file);
  const JsonView root = document.root();
  root.allow_only({"format", "version", "steps"});
  if (root.at("format").text() != format_name)
    root.at("format").fail(fmt::format("found another format; need '{}'", format_name));
  root.at("version").integer(1, 1);
  const JsonView listed = root.at("steps");
  if (listed.items().size() == 0 || listed.items().size() > most_steps)
    listed.fail(fmt::format("found {} steps; need 1 to {}", listed.items().size(), most_steps));
  std::vector<TimedStep> steps;
  for (const JsonView view : listed.items()) {
    steps.push_back(read_step(view, file));
    const Device &first = steps.front().scenario.device, &here = steps.back().scenario.device;
    if (!is_same_device(here, first))
      view.at("compare").fail(fmt::format(
          "found a step on {}; need all on {}, as the first",
          here.name == first.name ? "another device of that name" : here.name, first.name));
  }
  return steps;
}

}  // namespace tidemark::cli
