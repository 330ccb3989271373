// At the bytes of a strategy that has a name, the plan of its class is at least as fast: strategies
// of every class, models of every shape, precisions.
#include <gtest/gtest.h>

#include <cctype>
#include <map>
#include <string_view>

#include "analysis/planning/plan_searches.h"
#include "tests/analysis/planning/scenarios.h"

namespace tidemark::named_strategies_slow_test {
namespace {

using Class = std::vector<Allowed>;

struct Named {
  const char* strategy;
  Class allowed;
};

const std::vector<Named>& named_strategies() {
  static const Class exact = {Allowed::Exact}, overlap = {Allowed::Overlap},
                     offload = {Allowed::Offload}, lossy = {Allowed::Lossy},
                     coupled = {Allowed::Coupled}, pareprop = {Allowed::Coupled, Allowed::Overlap};
  static const std::vector<Named> all = {
      {"vanilla", exact},
      {"checkpoint", exact},
      {"checkpoint:blocks", exact},
      {"checkpoint:sqrt", exact},
      {"checkpoint:every=2", exact},
      {"checkpoint:every=3", exact},
      {"checkpoint:every=4", exact},
      {"checkpoint:selective", exact},
      {"checkpoint+overlap", overlap},
      {"checkpoint:every=2+overlap", overlap},
      {"offload", offload},
      {"checkpoint+offload", offload},
      {"reversible", coupled},
      {"pareprop", pareprop},
      {"mesa", lossy},
      {"lowmemorybp", lossy},
      {"mesa+checkpoint", lossy},
      {"mesa:delayed", lossy},
      {"mesa:delayed+checkpoint", lossy},
      {"lowmemorybp+checkpoint", lossy},
  };
  return all;
}

class AtItsOwnBytes : public testing::TestWithParam<const char*> {};

void expect_no_strategy_is_faster(const Scenario& scenario) {
  const auto trace = trace_of(scenario);
  std::map<Class, std::unique_ptr<PlanSearches>> searches;
  for (const auto& [strategy, allowed] : named_strategies()) {
    SCOPED_TRACE(testing::Message() << strategy << " " << to_string(*scenario.step.precision) << " "
                                    << to_text(scenario.step.tuning));
    const Report named = report_of(scenario, strategy);
    if (!named.applies) continue;
    std::unique_ptr<PlanSearches>& search = searches[allowed];
    if (!search)
      search = std::make_unique<PlanSearches>(trace, scenario.device, memory_budget_of(scenario),
                                              PlanRequest{.allowed = allowed});
    const std::optional<FoundPlan> found = search->within(named.allocated_peak, false);
    if (!found) {
      ADD_FAILURE() << "no plan in " << named.allocated_peak.count << " B";
      continue;
    }
    const Report plan = search->report_of(*found);
    EXPECT_LE(plan.allocated_peak, named.allocated_peak);
    const double ratio =
        static_cast<double>(plan.step.count()) / static_cast<double>(named.step.count());
    EXPECT_LE(ratio, 1);
  }
}

// Of three networks whose blocks are those of another here, each in the precision that sets it
// apart most: scores in memory (MViT), casts of weights (DeiT), few bytes beside weights (Mistral).
std::vector<Precision> precisions_for(std::string_view model) {
  if (model == "mvit-b-16") return {Precision::Fp32};
  if (model == "deit-s") return {Precision::AmpBf16};
  if (model == "mistral-7b") return {Precision::Bf16};
  return {Precision::Fp32, Precision::AmpBf16, Precision::Bf16};
}

TEST_P(AtItsOwnBytes, NoStrategyIsFasterThanThePlan) {
  for (const Precision precision : precisions_for(GetParam()))
    expect_no_strategy_is_faster(planned_scenario(GetParam(), precision));
}

std::string name_of(const testing::TestParamInfo<const char*>& tested) {
  std::string name = tested.param;
  std::ranges::replace_if(
      name, [](char c) { return !std::isalnum(c); }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Models, AtItsOwnBytes,
                         testing::Values("gpt2", "bert-base", "vit-b-16", "deit-s", "swin-t",
                                         "mvit-b-16", "mvitv2-t", "llama-7b", "mistral-7b"),
                         name_of);

class OfAdapters : public testing::TestWithParam<const char*> {};

// Where parameters stand still, all that is left to decide about is what blocks save, down to what
// norms keep of each token.
TEST_P(OfAdapters, NoStrategyIsFasterThanThePlanAtItsOwnBytes) {
  const std::string_view model = GetParam();
  // Mistral's blocks are LLaMA's but for the width of keys and values.
  for (const std::int64_t batch : {1, 16}) {
    if (model == "mistral-7b" && batch > 1) continue;
    Scenario scenario = planned_scenario(GetParam(), Precision::Fp32, batch);
    scenario.step.tuning = parse_tuning("lora");
    expect_no_strategy_is_faster(scenario);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, OfAdapters,
                         testing::Values("gpt2", "t5-base", "vit-b-16", "llama-7b", "mistral-7b"),
                         name_of);

}  // namespace
}  // namespace tidemark::named_strategies_slow_test
