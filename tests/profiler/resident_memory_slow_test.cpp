// The operating system as a witness: what the process holds during a step is the planned arena.
#include <gtest/gtest.h>

#include "profiler/replay_report.h"
#include "traces/presets.h"

namespace tidemark::profiler::resident_memory_slow_test {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool is_instrumented = true;  // shadow memory counts as resident, too
#else
constexpr bool is_instrumented = false;
#endif

TEST(ResidentMemory, OfAStepAboveOneGibibyteIsThePlannedArena) {
  if (is_instrumented) GTEST_SKIP() << "a sanitizer's shadow memory is resident, too";
  const auto backend = make_cpu_backend();
  for (const std::string_view strategy : {"vanilla", "pareprop"}) {
    ReplayScenario scenario;
    scenario.trace = std::make_shared<const Trace>(
        build_trace(find_model("vit-b-16"), {.batch = 2, .image = 32}));
    scenario.strategy = parse_strategy(strategy);
    scenario.device = find_device("a100-80gb");
    scenario.steps = 1, scenario.checks_gradients = false;
    const ReplayReport report = replay(scenario, *backend).report;
    ASSERT_GT(report.measured.planned, Bytes{std::int64_t{1} << 30});
    if (!report.resident) GTEST_SKIP() << "the system does not say what is resident";
    const auto planned = static_cast<double>(report.measured.planned.count);
    EXPECT_NEAR(static_cast<double>(report.resident->count) / planned, 1, 0.03) << strategy;
  }
}

}  // namespace
}  // namespace tidemark::profiler::resident_memory_slow_test
