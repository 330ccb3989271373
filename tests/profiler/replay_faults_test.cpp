// What goes wrong in a replay is told in one line; nothing hangs and nothing is half done.
#include <gmock/gmock.h>

#include <atomic>

#include "kernels/cpu/cpu_backend.h"
#include "profiler/null_backend.h"
#include "profiler/replay_report.h"
#include "tests/profiler/replayed.h"
#include "traces/presets.h"

namespace tidemark::profiler::replay_faults_test {
namespace {

ReplayScenario scenario(const Model& model, std::string_view strategy) {
  ReplayScenario q;
  q.trace = std::make_shared<Trace>(build_trace(model, {.batch = 2}));
  q.strategy = parse_strategy(strategy);
  q.device = find_device("a100-80gb");
  q.steps = 2;
  return q;
}

std::string error_of(const ReplayScenario& q, Backend& backend) {
  try {
    replay(q, backend);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(ReplayFaults, EachFailingAllocationIsTold) {
  const ReplayScenario q = scenario(small_vit(), "pareprop");
  std::size_t failing = 1;
  for (;; ++failing) {
    const auto backend = make_cpu_backend({.run = cpu::run, .failing_allocation = failing});
    const std::string error = error_of(q, *backend);
    if (error == "no error") break;  // there are not so many
    EXPECT_THAT(error, testing::HasSubstr("this allocation was made to fail")) << failing;
  }
  // Four replays, the one on one stream among them, of arena and host memory; two keep their
  // gradients.
  EXPECT_EQ(failing, 4 * 2 + 2 + 1);
}

TEST(ReplayFaults, AnArenaLargerThanTheMachineIsRefused) {
  ReplayScenario q = scenario(small_vit(), "vanilla");
  q.trace = std::make_shared<Trace>(build_trace(small_vit(), {.batch = 1 << 26}));
  q.checks_gradients = false;
  const auto backend = make_cpu_backend();
  EXPECT_THAT(error_of(q, *backend), testing::HasSubstr("memory"));
}

TEST(ReplayFaults, ALossThatIsNoNumberStopsTheReplay) {
  ReplayScenario q = scenario(small_vit(), "vanilla");
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
  ReplayScenario q = scenario(small_vit(), "pareprop");
  EXPECT_THAT(error_of(q, *backend), testing::HasSubstr("kernel 200 failed"));
}

TEST(ReplayFaults, OptimizersWithoutAKernelAreNamed) {
  ReplayScenario q = scenario(small_vit(), "vanilla");
  q.trace =
      std::make_shared<Trace>(build_trace(small_vit(), {.batch = 2, .optimizer = Optimizer::Muon}));
  const auto backend = make_cpu_backend();
  EXPECT_THAT(error_of(q, *backend), testing::HasSubstr("use --optimizer adamw"));
}

TEST(ReplayFaults, StoppingKeepsWhatWasMeasured) {
  const auto backend = make_cpu_backend();
  ReplayScenario q = scenario(small_vit(), "vanilla");
  q.steps = 100, q.checks_gradients = false;
  std::int64_t seen = 0;
  const ReplayEvaluation evaluation = replay(
      q, *backend, [&](std::int64_t done, std::int64_t) { seen = done; },
      [&] { return seen >= 4; });
  EXPECT_EQ(evaluation.report.losses.size(), 4u);
  EXPECT_TRUE(evaluation.measured.has_value());
  EXPECT_GT(evaluation.report.measured.step.count(), 0);
}

TEST(ReplayReport, AStrategyThatDoesNotApplyRunsNothing) {
  const auto backend = make_cpu_backend();
  const ReplayEvaluation evaluation = replay(scenario(small_neox(), "reversible"), *backend);
  EXPECT_FALSE(evaluation.report.applies);
  EXPECT_FALSE(evaluation.measured.has_value());
}

// One definition for both sides, and not that of the time in which both streams are busy, which is
// no saving: by that more than half would be hidden.
TEST(NullBackend, HidesWhatIsPredictedToBeHidden) {
  NullBackend backend;
  ReplayScenario q = scenario(find_model("vit-b-16"), "pareprop");
  q.trace = std::make_shared<Trace>(
      build_trace(find_model("vit-b-16"), {.batch = 32, .precision = Precision::AmpFp16}));
  q.device = find_device("a100-80gb");
  const ReplayReport report = replay(q, backend).report;
  EXPECT_NEAR(report.measured.hidden_share().value(), report.predicted.hidden_share().value(),
              1e-4);
  EXPECT_LT(report.predicted.hidden_share().value(), 0.5);
  EXPECT_GT(report.measured.overlap, report.measured.recovery->alone / 2);
}

TEST(ReplayReport, AStopInTheStepsOnOneStreamLeavesHiddenUnknown) {
  NullBackend backend;
  ReplayScenario q = scenario(small_llama(), "pareprop");
  std::int64_t done = 0;
  const auto progress = [&](std::int64_t now, std::int64_t) { done = now; };
  const ReplayReport report =
      replay(q, backend, progress, [&] { return done > q.steps + q.warm_up; }).report;
  EXPECT_EQ(report.steps_timed, q.steps);
  EXPECT_GT(report.measured.step.count(), 0);
  EXPECT_FALSE(report.measured.recovery.has_value());
  EXPECT_TRUE(report.predicted.recovery.has_value());
}

// Two clocks, one timeline: the null backend takes the predicted time of each run and keeps order
// and events by itself, where the host is late (small batches) and where it is not.
TEST(NullBackend, MeasuresWhatIsPredicted) {
  for (const std::int64_t batch : {1, 8192})
    for (const char* strategy : {"vanilla", "checkpoint", "mesa", "reversible", "pareprop",
                                 "pareprop:released", "overlap+checkpoint"}) {
      SCOPED_TRACE(testing::Message() << strategy << ", batch " << batch);
      NullBackend backend;
      ReplayScenario q = scenario(small_llama(), strategy);
      q.trace = std::make_shared<Trace>(
          build_trace(small_llama(), {.batch = batch, .precision = Precision::Bf16}));
      const ReplayEvaluation evaluation = replay(q, backend);
      const ReplayNumbers &measured = evaluation.report.measured,
                          &wanted = evaluation.report.predicted;
      EXPECT_TRUE(evaluation.report.losses.empty());
      EXPECT_EQ(measured.planned, wanted.planned);
      EXPECT_GT(wanted.step.count(), 0);
      const bool is_exact = evaluation.predicted.schedule.streams == 1;
      // What two streams share is predicted in fractions of nanoseconds.
      const auto runs = is_exact ? 0.0 : static_cast<double>(evaluation.measured->runs.size());
      const auto expect_near = [&](Nanoseconds a, Nanoseconds b) {
        EXPECT_NEAR(static_cast<double>(a.count()), static_cast<double>(b.count()), runs);
      };
      expect_near(measured.step, wanted.step);
      expect_near(measured.overlap, wanted.overlap);
      ASSERT_TRUE(measured.recovery && wanted.recovery);
      EXPECT_EQ(measured.recovery->alone, wanted.recovery->alone);
      expect_near(measured.recovery->hidden, wanted.recovery->hidden);
      expect_near(evaluation.measured->idle, evaluation.predicted.timeline.idle);
      if (!is_exact) continue;
      EXPECT_EQ(measured.live_peak, wanted.live_peak);
      EXPECT_EQ(measured.at_peak, wanted.at_peak);
    }
}

}  // namespace
}  // namespace tidemark::profiler::replay_faults_test
