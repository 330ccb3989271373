// Every strategy, network and precision: the memory that kernels are given is what was predicted.
#include <mutex>
#include <set>

#include "analysis/report.h"
#include "kernels/cpu/cpu_backend.h"
#include "simulator/arena.h"
#include "tests/profiler/replayed.h"
#include "tests/support/all_strategies.h"
#include "tests/support/fence.h"

namespace tidemark::profiler::network_memory_test {
namespace {

// fence::learn() for the threads of two streams; the kernels run as always.
void run_and_learn(const Call& call, cpu::Workspace& workspace) {
  static std::mutex one_at_a_time;
  {
    const std::lock_guard lock(one_at_a_time);
    fence::learn(call);
  }
  cpu::run(call, workspace);
}

// Tensors inside composed backwards have room of their own, which kernels of ours do not touch.
std::int64_t end_of_what_kernels_get(const Schedule& schedule) {
  const Arena arena = plan_arena(schedule);
  std::int64_t end = 0;
  for (std::size_t i = 0; i < schedule.buffers.size(); ++i) {
    const Buffer& buffer = schedule.buffers[i];
    const bool is_inner = buffer.role == Role::Temporary && buffer.tensor == no_tensor;
    if (!is_inner) end = std::max(end, arena.offsets[i] + buffer.size.count);
  }
  return end;
}

void expect_as_predicted(const Evaluation& predicted, const NamedValues& parameters) {
  const auto backend = make_cpu_backend({.run = run_and_learn});
  Replay replay(predicted.planned, *backend);
  EXPECT_EQ(replay.arena_memory(), predicted.report.planned);
  load(replay, parameters);
  fence::forget();
  const ReplayedStep step = replay.step({.seed = 7});
  // From the first byte that any kernel got to the last one; behind that, only padding, and what
  // kernels never get.
  const auto used = static_cast<std::int64_t>(fence::arena.size());
  EXPECT_LE(used, predicted.report.planned.count);
  EXPECT_GT(used + arena_alignment, end_of_what_kernels_get(predicted.schedule));
  if (predicted.schedule.streams > 1) return;  // which stream is ahead is luck
  const Peak most = peak(predicted.schedule, step.timeline);
  EXPECT_EQ(most.bytes, predicted.report.live_peak);
  EXPECT_EQ(most.by_category, predicted.report.at_peak);
}

class NetworkMemory : public testing::TestWithParam<Model> {};

INSTANTIATE_TEST_SUITE_P(Small, NetworkMemory, testing::ValuesIn(small_models()),
                         [](const auto& of) { return short_name(of.param); });

TEST_P(NetworkMemory, IsAsPredictedToTheByte) {
  const Device device = find_device("a100-80gb");
  std::size_t applied = 0;
  for (const Precision precision : {Precision::Fp32, Precision::Bf16}) {
    const auto network =
        std::make_shared<Trace>(build_trace(GetParam(), {.batch = 2, .precision = precision}));
    NamedValues parameters = initial_parameters(*network);
    for (const char* strategy : all_strategies) {
      SCOPED_TRACE(testing::Message() << strategy << ' ' << to_string(precision));
      const Evaluation predicted = evaluate(network, parse_strategy(strategy), device,
                                            {.capacity = Bytes{std::int64_t{1} << 40}});
      if (!predicted.report.applies) continue;
      ++applied;
      add_initial_parameters(parameters, *predicted.planned.trace, 1);
      expect_as_predicted(predicted, parameters);
    }
  }
  EXPECT_GT(applied, all_strategies.size());  // of twice as many
}

TEST(AllStrategies, ContainEachOfTheTable) {
  std::set<std::string_view> named;
  for (const char* text : all_strategies)
    for (const StrategySpec::Component& component : parse_strategy(text).components)
      named.insert(component.row->name);
  EXPECT_EQ(named.size(), strategies().size());
}

}  // namespace
}  // namespace tidemark::profiler::network_memory_test
