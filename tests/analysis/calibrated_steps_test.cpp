// Steps that an H200 was timed on, beside what its calibration predicts of them: the device file
// holds times of single kernels in other networks, of one block each. The shares of odd and even
// rows alone are from heads of GPT-2 and BERT, whose steps therefore prove less than the others.
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "analysis/report.h"
#include "base/files.h"
#include "base/json_reader.h"
#include "simulator/strategies/strategy.h"
#include "traces/models/model_config.h"

namespace tidemark::calibrated_steps_test {
namespace {

const std::filesystem::path results =
    std::filesystem::path(TIDEMARK_SOURCE_DIR) / "bench/results/nvidia-h200/2026-11-27/calibrated";

struct Timed {
  std::string model, strategy;
  std::int64_t batch = 0, planned_bytes = 0;
  double step_ns = 0;
};

Timed read_timed(const JsonView& replay) {
  const JsonView measured = replay.at("measured");
  return {std::string(replay.at("model").text()), std::string(replay.at("strategy").text()),
          replay.at("batch").integer(1, 1 << 20),
          measured.at("planned_bytes").integer(1, std::int64_t{1} << 50),
          measured.at("step_ns").number(1, 1e18)};
}

std::optional<std::int64_t> sequence_of(const std::string& model) {
  if (model == "gpt2") return 1024;
  if (model == "bert-base" || model == "roberta-base") return 512;
  return {};
}

TEST(CalibratedSteps, OfAnH200AreWithinFivePercent) {
  const Device device = find_device((results / "device.json").string());
  std::istringstream lines(read_file(results / "replays.jsonl", FileKind::Device));
  std::size_t steps = 0;
  double sum = 0;
  for (std::string line; std::getline(lines, line); ++steps) {
    const JsonDocument document(line, "replays.jsonl");
    const Timed timed = read_timed(document.root());
    StepOptions step{.batch = timed.batch, .precision = Precision::Bf16};
    step.sequence = sequence_of(timed.model);
    const Evaluation predicted =
        evaluate(std::make_shared<const Trace>(build_trace(find_model(timed.model), step)),
                 parse_strategy(timed.strategy), device, {.capacity = device.capacity});
    EXPECT_EQ(predicted.report.planned.count, timed.planned_bytes);
    const double error = static_cast<double>(predicted.report.step.count()) / timed.step_ns - 1;
    EXPECT_LE(std::abs(error), 0.05) << timed.model << ' ' << timed.strategy;
    sum += error;
  }
  ASSERT_EQ(steps, 18u);
  EXPECT_LE(std::abs(sum / static_cast<double>(steps)), 0.01);  // neither too fast nor too slow
}

}  // namespace
}  // namespace tidemark::calibrated_steps_test
