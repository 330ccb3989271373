// Writes the fixed introduction, then per task a table with a row for each strategy.
#include "examples/training/page.h"

#include <fmt/format.h>

#include <algorithm>

#include "examples/training/noise.h"

namespace tidemark::training {
namespace {

constexpr std::string_view head = R"(# It trains

A schedule that cannot train is worth nothing, whatever it saves. Here two small networks learn from
real data under every strategy, with the kernels and the schedules that `tidemark replay` runs, on
the CPU in fp32: a ViT learns handwritten digits (`examples/training/data`, CC BY 4.0), a GPT-2
learns the pages of this folder, as they were that day, byte by byte. Each seed has its own initial
parameters, batches and dropout masks, the same under all strategies.

![Loss curves](pictures/training.svg)

All numbers are measured. *Training loss* is the mean over the last tenth of the steps; ± is the
standard deviation over seeds. *Against vanilla* is the difference of the means, in units of
vanilla's own standard deviation σ: up to two, for better or worse, are within noise. *Same bits*
means that every loss of every step is the same number, for all seeds that both have; vanilla has
more, because its noise is the yardstick. The couplings of `reversible` and `pareprop` make another
network than vanilla's, of the same parameters.

The learning rates and regularization were chosen so that vanilla learns without learning by heart, and that
choice matters: with the GPT's rate at 0.003 and 300 steps, `mesa` ended 4.3 σ above vanilla on held-out text
(three seeds), while at 0.002 and 600 steps, shown here, it is within noise. Its running ranges follow
growing activations with a delay, which may be why; that was not examined.

`scripts/regenerate_training.sh` writes this page and the picture anew.
)";

std::string with_deviation(const Spread& spread, int decimals) {
  return fmt::format("{:.{}f} ± {:.{}f}", spread.mean, decimals, spread.deviation, decimals);
}

// `before`: the strategies above it in the table, vanilla first.
std::string against(const Trained& trained, std::span<const Trained> before, Measure measure) {
  if (before.empty()) return "";
  for (const Trained& other : before)
    if (is_identical(trained, other)) return "same bits as " + other.strategy;
  const Trained& vanilla = before.front();
  return fmt::format("{:+.1f} σ{}", in_deviations(trained, vanilla, measure),
                     is_within_noise(trained, vanilla, measure) ? "" : ", **not within noise**");
}

std::string accuracy_of(const Trained& trained) {
  if (!trained.runs.front().accuracy) return "";
  const Spread accuracy = spread(trained, Measure::Accuracy);
  return fmt::format(" {:.1f} % ± {:.1f} |", 100 * accuracy.mean, 100 * accuracy.deviation);
}

std::string row(const Trained& trained, std::span<const Trained> before) {
  if (!trained.refusal.empty())
    return fmt::format("| {} | does not apply: {} |\n", trained.strategy, trained.refusal);
  std::string text =
      fmt::format("| {} | {} |", trained.strategy, to_text(trained.runs.front().planned));
  for (const Measure measure : {Measure::FinalLoss, Measure::HeldOutLoss})
    text += fmt::format(" {} | {} |", with_deviation(spread(trained, measure), 3),
                        against(trained, before, measure));
  return text + accuracy_of(trained) + "\n";
}

std::string section(const Outcome& outcome, std::int64_t steps) {
  const Task& task = outcome.task;
  std::string text = fmt::format(
      "\n## {}\n\n{} steps of {} samples, AdamW at {:g}; tested on {} samples. {} seeds, {} for "
      "vanilla.\n\n"
      "| strategy | memory of a step | training loss | against vanilla | held-out loss | against "
      "vanilla |{}\n|---|---|---|---|---|---|{}\n",
      task.title, steps, task.batch, task.learning_rate,
      task.held_out_batch * task.held_out_batches, outcome.seeds,
      vanilla_seeds_per_seed * outcome.seeds, task.is_classifier ? " held-out accuracy |" : "",
      task.is_classifier ? "---|" : "");
  const std::span<const Trained> all(outcome.strategies);
  for (std::size_t i = 0; i < all.size(); ++i) text += row(all[i], all.first(i));
  return text;
}

}  // namespace

bool all_within_noise(const Outcome& outcome) {
  return std::ranges::all_of(outcome.strategies, [&](const Trained& trained) {
    const Trained& vanilla = outcome.strategies.front();
    return !trained.refusal.empty() || is_identical(trained, vanilla) ||
           (is_within_noise(trained, vanilla, Measure::FinalLoss) &&
            is_within_noise(trained, vanilla, Measure::HeldOutLoss));
  });
}

std::string page(std::span<const Outcome> outcomes, std::int64_t steps) {
  std::string text(head);
  for (const Outcome& outcome : outcomes) text += section(outcome, steps);
  return text;
}

}  // namespace tidemark::training
