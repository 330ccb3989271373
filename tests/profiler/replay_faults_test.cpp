// What goes wrong in a replay is told in one line; nothing hangs and nothing is half done.
#include <gmock/gmock.h>

#include <atomic>

#include "kernels/cpu/cpu_backend.h"
#include "profiler/null_backend.h"
#include "profiler/replay_report.h"
#include "tests/profiler/replayed.h"

namespace tidemark {
namespace {

ReplayQuestion question(const Model& model, std::string_view strategy) {
  ReplayQuestion q;
  q.trace = std::make_shared<Trace>(build_trace(model, {.batch = 2}));
  q.strategy = parse_strategy(strategy);
  q.device = find_device("a100-80gb");
  q.steps = 2;
  return q;
}

std::string error_of(const ReplayQuestion& q, Backend& backend) {
  try {
    replay(q, backend);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(ReplayFaults, EachFailingAllocationIsTold) {
  for (std::size_t failing = 1; failing <= 9; ++failing) {
    const auto backend = make_cpu_backend({.run = cpu::run, .failing_allocation = failing});
    EXPECT_THAT(error_of(question(small_vit(), "pareprop"), *backend), testing::HasSubstr("memory"))
        << failing;
  }
}

TEST(ReplayFaults, AnArenaLargerThanTheMachineIsRefused) {
  ReplayQuestion q = question(small_vit(), "vanilla");
  q.trace = std::make_shared<Trace>(build_trace(small_vit(), {.batch = 1 << 26}));
  q.checks_gradients = false;
  const auto backend = make_cpu_backend();
  EXPECT_THAT(error_of(q, *backend), testing::HasSubstr("memory"));
}

TEST(ReplayFaults, ALossThatIsNoNumberStopsTheReplay) {
  ReplayQuestion q = question(small_vit(), "vanilla");
  q.data = [](const Trace& trace, TensorId input, std::int64_t step) {
    std::vector<double> values;
    if (trace[input].name == "images" && step == 1)
      values.assign(static_cast<std::size_t>(numel(trace[input].shape)), NAN);
    return values;
  };
  const auto backend = make_cpu_backend();
  EXPECT_THAT(error_of(q, *backend), testing::HasSubstr("step 1: the loss is nan"));
}

// A kernel that throws on one stream while the other waits for it.
TEST(ReplayFaults, AnErrorInTheMiddleOfAStepEndsBothStreams) {
  static std::atomic<int> calls = 0;  // of both streams' threads
  calls = 0;
  const auto backend = make_cpu_backend({.run = [](const Call& call, cpu::Workspace& workspace) {
    if (++calls == 200) throw InputError("kernel 200 failed");
    cpu::run(call, workspace);
  }});
  ReplayQuestion q = question(small_vit(), "pareprop");
  EXPECT_THAT(error_of(q, *backend), testing::HasSubstr("kernel 200 failed"));
}

TEST(ReplayFaults, OptimizersWithoutAKernelAreNamed) {
  ReplayQuestion q = question(small_vit(), "vanilla");
  q.trace = std::make_shared<Trace>(
      build_trace(small_vit(), {.batch = 2, .optimizer = Optimizer::AdamW8bit}));
  const auto backend = make_cpu_backend();
  EXPECT_THAT(error_of(q, *backend), testing::HasSubstr("use --optimizer adamw"));
}

TEST(ReplayFaults, StoppingKeepsWhatWasMeasured) {
  const auto backend = make_cpu_backend();
  ReplayQuestion q = question(small_vit(), "vanilla");
  q.steps = 100, q.checks_gradients = false;
  std::int64_t seen = 0;
  const ReplayAnswer answer = replay(
      q, *backend, [&](std::int64_t done, std::int64_t) { seen = done; },
      [&] { return seen >= 4; });
  EXPECT_EQ(answer.report.losses.size(), 4u);
  EXPECT_TRUE(answer.measured.has_value());
  EXPECT_GT(answer.report.measured.step.count(), 0);
}

TEST(ReplayReport, AStrategyThatDoesNotApplyRunsNothing) {
  const auto backend = make_cpu_backend();
  const ReplayAnswer answer = replay(question(small_llama(), "checkpoint:selective"), *backend);
  EXPECT_FALSE(answer.report.applies);
  EXPECT_FALSE(answer.measured.has_value());
}

// The null backend takes the predicted time of each run: LLaMA-7B on any machine.
TEST(NullBackend, MeasuresWhatIsPredicted) {
  NullBackend backend;
  ReplayQuestion q;
  q.trace = std::make_shared<Trace>(
      build_trace(small_llama(), {.batch = 64, .precision = Precision::Bf16}));
  q.strategy = parse_strategy("checkpoint");
  q.device = find_device("a100-80gb");
  const ReplayAnswer answer = replay(q, backend);
  const ReplayReport& report = answer.report;
  EXPECT_EQ(report.measured.live_peak, report.predicted.live_peak);
  EXPECT_EQ(report.measured.planned, report.predicted.planned);
  EXPECT_EQ(report.measured.recompute, report.predicted.recompute);
  EXPECT_TRUE(report.losses.empty());
}

}  // namespace
}  // namespace tidemark
