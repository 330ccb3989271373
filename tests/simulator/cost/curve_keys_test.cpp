// What tells kernels of one kind apart, in steps of three networks.
#include "simulator/cost/curve_keys.h"

#include <gmock/gmock.h>

#include <set>

#include "simulator/lower.h"
#include "simulator/strategies/strategy.h"
#include "traces/models/model_config.h"

namespace tidemark::curve_keys_test {
namespace {

using testing::IsSupersetOf;

/// kind → what it is told apart by.
std::set<std::string> keys_of(const char* model, const StepOptions& step, const char* strategy) {
  const PlannedStep planned =
      plan_step(std::make_shared<const Trace>(build_trace(find_model(model), step)),
                parse_strategy(strategy));
  const Schedule schedule = lower(planned);
  std::set<std::string> keys;
  for (const Step& s : schedule.steps)
    if (const Run* run = std::get_if<Run>(&s)) {
      const CurveKeys found = curve_keys(*planned.trace, schedule, *run);
      EXPECT_EQ(found.alike.rfind(found.kind, 0), 0u) << found.alike;
      keys.insert(found.alike);
    }
  return keys;
}

TEST(CurveKeys, OfATransformerWithBiases) {
  EXPECT_THAT(
      keys_of("gpt2", {.batch = 1, .sequence = 100, .precision = Precision::Bf16}, "checkpoint"),
      IsSupersetOf({"forward linear bfloat16, 3 operands",
                    "backward linear bfloat16, 2 operands, odd",
                    "forward flash_attention bfloat16, 3 operands, causal, 128 tokens",
                    "backward flash_attention bfloat16, 3 operands, causal, 128 tokens",
                    "forward layer_norm bfloat16, rows of 1024", "forward add bfloat16",
                    "optimizer bfloat16"}));
}

TEST(CurveKeys, OfCodes) {
  EXPECT_THAT(keys_of("vit-b-16", {.batch = 1, .precision = Precision::Fp32}, "mesa"),
              IsSupersetOf({"forward layer_norm float32, rows of 1024, watched",
                            "forward gelu float32, watched", "backward gelu float32, from codes",
                            "quantize float32"}));
  EXPECT_THAT(keys_of("vit-b-16", {.batch = 1, .precision = Precision::Fp32}, "mesa:delayed"),
              IsSupersetOf({"forward layer_norm float32, rows of 1024, watched, makes codes",
                            "quantize float32, delayed"}));
}

// Windows of 49 tokens end in the middle of a vector, and the scores' bias is one for all.
TEST(CurveKeys, OfWindows) {
  const std::set<std::string> keys =
      keys_of("swin-t", {.batch = 1, .precision = Precision::Fp32, .attention = Attention::Math},
              "vanilla");
  EXPECT_THAT(keys, IsSupersetOf({"forward add float32, spread, odd", "forward matmul float32, odd",
                                  "forward softmax float32, rows of 64, odd"}));
}

}  // namespace
}  // namespace tidemark::curve_keys_test
