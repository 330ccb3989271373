// What JAX's and Megatron's names mean in a trace, and what such plans cost.
#include "analysis/planning/named_policies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/planning/recomputed_blocks.h"
#include "tests/analysis/planning/scenarios.h"

namespace tidemark::named_policies_test {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAre;

const NamedPolicy& find(const std::vector<NamedPolicy>& policies, std::string_view paste) {
  const auto found = std::ranges::find_if(policies, [&](const NamedPolicy& policy) {
    return policy.paste.find(paste) != std::string::npos;
  });
  EXPECT_NE(found, policies.end()) << paste;
  return *found;
}

// Of block 3, without "blocks.3.".
std::vector<std::string> recomputed(const Trace& trace, const NamedPolicy& policy) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < trace.ops.size(); ++i)
    if (policy.recomputed[i] && trace.ops[i].block == 3 && !is_view(trace.ops[i].kind))
      names.emplace_back(trace.ops[i].name.substr(9));
  return names;
}

TEST(NamedPolicies, SayWhichOpsRunAgain) {
  const auto trace = trace_of(planned_scenario("gpt2", Precision::Fp32));
  const std::vector<NamedPolicy> policies = named_policies(*trace);
  EXPECT_THAT(recomputed(*trace, find(policies, "policies.dots_saveable")),
              testing::Not(testing::Contains(testing::EndsWith("mlp.fc1"))));
  EXPECT_THAT(recomputed(*trace, find(policies, "modules core_attn (")),
              UnorderedElementsAre("attn.flash"));
  EXPECT_THAT(recomputed(*trace, find(policies, "modules layernorm (")),
              UnorderedElementsAre("norm1", "norm2"));
  EXPECT_THAT(recomputed(*trace, find(policies, "modules core_attn mlp (")),
              testing::IsSupersetOf({"attn.flash", "mlp.fc1", "mlp.gelu", "mlp.fc2"}));
  for (const NamedPolicy& policy : policies)
    for (std::size_t i = 0; i < trace->ops.size(); ++i)
      EXPECT_TRUE(trace->ops[i].block >= 0 || !policy.recomputed[i]) << policy.paste;
}

// Between keeping everything and recomputing whole blocks, in memory and in time.
TEST(NamedPolicies, CanBeCarriedOut) {
  for (const char* model : {"gpt2", "bert-base", "llama-7b", "vit-b-16"}) {
    const Scenario scenario = planned_scenario(model, Precision::AmpBf16, 2);
    const auto trace = trace_of(scenario);
    const Report vanilla = report_of(scenario, "vanilla");
    for (const NamedPolicy& policy : named_policies(*trace)) {
      const auto step = recomputed_in_blocks(trace, policy.recomputed);
      ASSERT_TRUE(step) << model << " " << policy.paste;
      EXPECT_EQ(check(*trace, step->plan), std::vector<std::string>());
      const Report report =
          evaluate(*trace, *step, scenario.device, memory_budget_of(scenario)).report;
      EXPECT_LE(report.live_peak, vanilla.live_peak) << model << " " << policy.paste;
      EXPECT_GT(report.step, vanilla.step) << model << " " << policy.paste;
    }
  }
}

// The last product of a block is read by nothing that is missing; the one before the second norm
// is, where the sum is made again.
TEST(NamedPolicies, KeepWhatRerunsRead) {
  Scenario scenario = planned_scenario("gpt2", Precision::Fp32);
  scenario.step.dropout = 0;
  const auto trace = trace_of(scenario);
  const std::vector<NamedPolicy> policies = named_policies(*trace);
  const auto step =
      recomputed_in_blocks(trace, find(policies, "policies.dots_saveable").recomputed);
  ASSERT_TRUE(step);
  const auto tensor = [&](const std::string& name) {
    return static_cast<TensorId>(std::ranges::find(trace->tensors, name, &Tensor::name) -
                                 trace->tensors.begin());
  };
  EXPECT_TRUE(is_kept_for_recovery(step->plan, tensor("blocks.3.attn.proj")));
  EXPECT_FALSE(is_kept_for_recovery(step->plan, tensor("blocks.3.mlp.fc2")));
  EXPECT_EQ(step->plan.decisions[index(tensor("blocks.3.add1"))].action, Action::Recompute);
  EXPECT_EQ(step->plan.decisions[index(tensor("blocks.3.add2"))].action, Action::Keep);
  EXPECT_EQ(step->plan.regions.size(), 12u);
}

TEST(NamedPolicies, StandAmongTheForms) {
  const Scenario scenario = offload_scenario();
  const Planning planning = plan_within(
      scenario, {.budget = gib(20), .allowed = {Allowed::Offload}, .lists_forms = true});
  std::string pastes;
  for (const EmittedForm& form : planning.forms) pastes += form.paste + "\n";
  EXPECT_THAT(pastes, HasSubstr("jax.checkpoint_policies."));
  EXPECT_THAT(pastes, HasSubstr("--recompute-modules"));
  EXPECT_THAT(pastes, HasSubstr("{\"offload\": True}"));
}

}  // namespace
}  // namespace tidemark::named_policies_test
