// Kernels read and write their own arrays and nothing else of the arena; see tests/support/fence.h.
#include "tests/support/fence.h"

#include "kernels/cpu/cpu_backend.h"
#include "tests/profiler/replayed.h"

namespace tidemark::profiler::fence_test {
namespace {

using cpu::Workspace;

void step_inside_the_fence(const PlannedStep& planned) {
  fence::forget();
  const auto backend = make_cpu_backend({.run = fence::run_from_step_one});
  Replay replay(planned, *backend);
  load(replay, initial_parameters(replay.trace()));
  replay.step({.number = 0});
  EXPECT_TRUE(std::isfinite(replay.step({.number = 1}).loss));
}

// Strategies of one stream: two would open and close each other's fences.
TEST(Fence, NoKernelLeavesItsArrays) {
  if (!is_sanitized) GTEST_SKIP() << "needs AddressSanitizer (cmake --preset asan)";
  for (const Model& model : small_models())
    for (const Precision precision : {Precision::Fp32, Precision::AmpFp16})
      for (const Attention attention : {Attention::Math, Attention::Flash})
        for (const char* strategy :
             {"vanilla", "checkpoint", "mesa", "mesa:delayed", "lowmemorybp", "reversible"}) {
          SCOPED_TRACE(model.name + " " + strategy);
          StepOptions options{.batch = 2};
          options.precision = precision, options.attention = attention;
          const PlannedStep planned = plan_step(
              std::make_shared<Trace>(build_trace(model, options)), parse_strategy(strategy));
          if (planned.refusal.empty()) step_inside_the_fence(planned);
        }
}

// Two neighbours in one block of memory, and a kernel that goes one element too far.
TEST(FenceDeathTest, EndsTheProgramOneElementBehindAnArray) {
  if (!is_sanitized) GTEST_SKIP() << "needs AddressSanitizer (cmake --preset asan)";
  alignas(8) std::array<float, 64> block{};
  auto* const data = reinterpret_cast<std::byte*>(block.data());
  Call call, neighbour;
  call.outputs = {array_at(data, DType::Float32, dense({16}))};
  neighbour.outputs = {array_at(data + 32 * sizeof(float), DType::Float32, dense({32}))};
  fence::forget();
  fence::learn(call), fence::learn(neighbour);
  EXPECT_EQ(fence::arena.size(), sizeof block);
  Workspace workspace;
  const auto last = [](const Call& c, Workspace&) { elements<float>(c.outputs[0])[15] = 1; };
  const auto beyond = [](const Call& c, Workspace&) { elements<float>(c.outputs[0])[16] = 1; };
  fence::run(call, workspace, last);
  EXPECT_EQ(block[15], 1);
  EXPECT_DEATH(fence::run(call, workspace, beyond), "use-after-poison");
  block[16] = 2;  // open again behind the kernel
}

}  // namespace
}  // namespace tidemark::profiler::fence_test
