// Trains two small networks under every strategy; writes the page and the picture of how it went.
// usage: tidemark_train REPOSITORY [STEPS] [SEEDS] [PICTURE]     the page goes to standard output
// Exit code 1: a strategy did not end within noise.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <span>

#include "analysis/export/svg.h"
#include "base/error.h"
#include "base/files.h"
#include "examples/training/learning_curves.h"
#include "examples/training/noise.h"
#include "examples/training/page.h"

namespace tidemark::training {
namespace {

constexpr std::array<std::string_view, 12> trained_strategies = {
    "vanilla",    "checkpoint",      "overlap+checkpoint",
    "mesa",       "mesa+checkpoint", "approx-bp",
    "ms-bp",      "lowmemorybp",     "mesa+lowmemorybp",
    "reversible", "pareprop",        "reversible+lowmemorybp"};

struct Arguments {
  std::string repository, picture;
  std::int64_t steps = 600, seeds = 3;
};

std::int64_t positive(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < 1)
    throw UsageError(fmt::format("'{}' is no number from 1 on", text));
  return number;
}

Arguments parse(std::span<char* const> words) {
  if (words.size() < 2 || words.size() > 5)
    throw UsageError("usage: tidemark_train REPOSITORY [STEPS] [SEEDS] [PICTURE]");
  Arguments arguments{.repository = words[1], .picture = ""};
  if (words.size() > 2) arguments.steps = positive(words[2]);
  if (words.size() > 3) arguments.seeds = positive(words[3]);
  if (words.size() > 4) arguments.picture = words[4];
  return arguments;
}

Outcome learn(Task task, const Arguments& arguments, Backend& backend) {
  Outcome outcome{.task = std::move(task), .seeds = arguments.seeds, .strategies = {}};
  for (const std::string_view strategy : trained_strategies) {
    fmt::print(stderr, "{}: {}\n", outcome.task.title, strategy);
    const std::int64_t seeds =
        arguments.seeds * (outcome.strategies.empty() ? vanilla_seeds_per_seed : 1);
    outcome.strategies.push_back(train(outcome.task, strategy, arguments.steps, seeds, backend));
  }
  return outcome;
}

int run(const Arguments& arguments) {
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  std::vector<Outcome> outcomes;
  outcomes.push_back(
      learn(digits_task(read_digits(arguments.repository + "/examples/training/data/digits.txt")),
            arguments, *backend));
  outcomes.push_back(
      learn(text_task(corpus_of(read_pages(arguments.repository + "/docs", "training.md"))),
            arguments, *backend));

  std::vector<std::string> pictures;
  for (const Outcome& outcome : outcomes)
    pictures.push_back(learning_curves(outcome.task.title, outcome.strategies));
  if (!arguments.picture.empty()) write_file(arguments.picture, exports::stacked(pictures));
  fmt::print("{}", page(outcomes, arguments.steps));
  return std::ranges::all_of(outcomes, all_within_noise) ? 0 : 1;
}

}  // namespace
}  // namespace tidemark::training

int main(int count, char** words) {
  try {
    return tidemark::training::run(
        tidemark::training::parse({words, static_cast<std::size_t>(count)}));
  } catch (const tidemark::UsageError& error) {
    fmt::print(stderr, "tidemark_train: {}\n", error.what());
    return 2;
  } catch (const tidemark::InputError& error) {
    fmt::print(stderr, "tidemark_train: {}\n", error.what());
    return 1;
  }
}
