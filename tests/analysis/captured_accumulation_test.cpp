// Captured steps of one micro-batch, asked about as steps of three, beside what PyTorch's own
// allocator said of those (scripts/capture_models/measure_accumulated.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "analysis/report.h"
#include "base/error.h"
#include "base/json_reader.h"
#include "simulator/parallel/rank_trace.h"
#include "tests/support/measured_steps.h"
#include "traces/trace_json.h"

namespace tidemark::captured_accumulation_test {
namespace {

constexpr std::int64_t most = std::int64_t{1} << 40;

StepOptions of_micro_batches(std::int64_t count) {
  StepOptions step;
  step.accumulate.count = count;
  return step;
}

Report report_of(const std::string& path, std::int64_t micro_batches) {
  const auto trace =
      std::make_shared<const Trace>(as_stated(load_trace(path), of_micro_batches(micro_batches)));
  return evaluate(trace, parse_strategy("vanilla"), find_device("a100-80gb"),
                  MemoryBudget{Bytes{most}})
      .report;
}

class CapturedAccumulation : public testing::TestWithParam<const char*> {};

TEST_P(CapturedAccumulation, NeedsWhatPyTorchNeeds) {
  const std::string folder = std::string(TIDEMARK_TESTS_DIR "/reference/") + GetParam() + "/";
  const JsonDocument document = read_json(folder + "accumulated.json", FileKind::TrainingData);
  std::size_t count = 0;
  for (const JsonView view : document.root().at("steps").items()) {
    const std::string name(view.at("name").text());
    const Report report =
        report_of(folder + name + ".trace.json.zst", view.at("micro_batches").integer(2, 8));
    // The loss and the gradient that the backward begins with, 4 bytes each, are held longer there.
    EXPECT_THAT(report.live_peak.count - view.at("live").integer(0, most),
                testing::AllOf(testing::Ge(-8), testing::Le(0)))
        << name;
    EXPECT_LE(
        std::abs(percent_off(report.allocated_peak.count, view.at("allocated").integer(0, most))),
        2.0)
        << name;
    ++count;
  }
  EXPECT_EQ(count, 5u);
}

INSTANTIATE_TEST_SUITE_P(Fixtures, CapturedAccumulation,
                         testing::Values("captures", "captures_torch-2.15"), [](const auto& test) {
                           return std::string(test.param).ends_with("15") ? "Torch2_15"
                                                                          : "Torch2_6";
                         });

TEST(CapturedMicroBatches, AreRefusedWhereTheyCannotBe) {
  Trace trace = load_trace(TIDEMARK_TESTS_DIR "/reference/captures/small-fp32.trace.json.zst");
  EXPECT_EQ(as_stated(trace, StepOptions()), trace);
  trace.step.update_in_backward = true;
  EXPECT_THROW(as_stated(trace, of_micro_batches(2)), InputError);
}

}  // namespace
}  // namespace tidemark::captured_accumulation_test
