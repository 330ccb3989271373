// Options without effect are said, those with one are not.
#include "analysis/idle_options.h"

#include <gtest/gtest.h>

namespace tidemark::idle_options_test {
namespace {

StepOptions all_set() {
  StepOptions step;
  step.framework = "megatron";
  step.sequence_parallel = step.tp_overlap = true;
  step.context_form = ContextForm::Ring;
  step.schedule = PipelineSchedule{};
  step.mesh.expert_tensor = 1;
  step.shard = parse_sharding("fsdp2");
  return step;
}

TEST(IdleOptions, SaysEachWhereOneRankIsAll) {
  EXPECT_EQ(idle_options(all_set()),
            (std::vector<std::string>{
                "--sp cuts what tp ranks share, and here is one: it changes nothing",
                "--tp-overlap hides what tp ranks exchange under --sp with --framework megatron, "
                "and here is none: it changes nothing",
                "--cp-form is about tokens of a sample that cp ranks share, and here is one: it "
                "changes nothing",
                "--schedule orders what pp stages do, and here is one: it changes nothing",
                "etp cuts experts that ep ranks share, and here is one: it changes nothing",
                "--shard is about what dp or cp ranks share, and here is one: it changes "
                "nothing"}));
}

TEST(IdleOptions, SaysNothingOfOptionsThatAreNotSet) {
  EXPECT_EQ(idle_options(StepOptions()), std::vector<std::string>());
}

TEST(IdleOptions, SaysNothingWhereRanksShare) {
  StepOptions step = all_set();
  step.mesh = parse_mesh("pp=2,dp=2,cp=2,tp=2,ep=2,etp=1");
  EXPECT_EQ(idle_options(step), std::vector<std::string>());
}

TEST(IdleOptions, MegatronHasItsBuffersOnOneRankToo) {
  StepOptions step;
  step.shard = parse_sharding("megatron");
  EXPECT_EQ(idle_options(step), std::vector<std::string>());
}

}  // namespace
}  // namespace tidemark::idle_options_test
