// How far proofs are below plans: bounds that say less than they could are told here.
#include <gtest/gtest.h>

#include "tests/analysis/planning/scenarios.h"

namespace tidemark::gaps_test {
namespace {

struct Question {
  const char *model, *device;
  Precision precision;
  std::int64_t batch, budget;  ///< MiB
  double most;                 ///< of the gap
};

std::ostream& operator<<(std::ostream& out, const Question& q) {
  return out << q.model << " " << to_string(q.precision) << " × " << q.batch << " on " << q.device
             << " in " << q.budget << " MiB";
}

void expect_gaps(const std::vector<Question>& questions, const std::vector<Allowed>& allowed) {
  for (const Question& q : questions) {
    Scenario scenario = planned_scenario(q.model, q.precision, q.batch);
    scenario.device = find_device(q.device);
    const Planning planning =
        plan_within(scenario, {.budget = Bytes{q.budget << 20}, .allowed = allowed});
    ASSERT_TRUE(planning.feasible) << q;
    EXPECT_GE(planning.gap, 0) << q;
    EXPECT_LE(planning.gap, q.most) << q;
  }
}

// The link has brought away no more than it could until the forward ends, and plans fill it.
TEST(Gaps, OfPlansThatOffloadAreSmall) {
  expect_gaps({{"gpt2", "rtx-4090", Precision::Fp32, 16, 12288, 0.006},
               {"gpt2", "a100-80gb", Precision::AmpBf16, 16, 14172, 0.006},
               {"t5-base", "rtx-4090", Precision::Fp32, 16, 20644, 0.001},
               {"t5-base", "a100-80gb", Precision::AmpBf16, 16, 16730, 0.002},
               {"bert-large", "a100-80gb", Precision::Fp32, 16, 10127, 0.0005},
               {"bert-large", "rtx-4090", Precision::AmpBf16, 16, 10777, 0.006},
               {"swin-t", "rtx-4090", Precision::Fp32, 64, 3174, 0.005},
               {"vit-l-16", "a100-80gb", Precision::AmpFp16, 64, 10486, 0.01}},
              {Allowed::Offload});
}

}  // namespace
}  // namespace tidemark::gaps_test
