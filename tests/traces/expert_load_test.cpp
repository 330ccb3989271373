// Loads of experts as text, and as visits.
#include "traces/expert_load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "tests/traces/model_traces.h"

namespace tidemark::expert_load_test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(ExpertLoad, IsWrittenAsItIsRead) {
  for (const char* text : {"even", "worst", "1.5", "8"})
    EXPECT_EQ(to_text(parse_expert_load(text)), text);
  EXPECT_EQ(parse_expert_load("1"), parse_expert_load("even"));
  for (const char* text : {"", "best", "0.5", "1.5x", "nan", "inf", "-1"})
    EXPECT_THROW(parse_expert_load(text), UsageError) << text;
}

TEST(ExpertLoad, DealsOutAllVisits) {
  const Routing routing{.tokens = 8, .per_token = 2, .experts = 4};
  EXPECT_THAT(visits_by_expert({1}, routing), ElementsAre(4, 4, 4, 4));
  EXPECT_THAT(visits_by_expert({1.5}, routing), ElementsAre(6, 4, 3, 3));
  EXPECT_THAT(visits_by_expert({}, routing), ElementsAre(7, 7, 1, 1));
}

// A token visits an expert once: no expert has more visits than there are tokens. With fewer visits
// than experts some get none.
TEST(ExpertLoad, IsWithinWhatTokensCanVisit) {
  for (const std::int64_t experts : {1, 2, 3, 8, 64})
    for (const std::int64_t per_token : {1, 2, 5})
      for (const std::int64_t tokens : {1, 2, 7, 40})
        for (const ExpertLoad load :
             {ExpertLoad{1}, ExpertLoad{1.2}, ExpertLoad{1e9}, ExpertLoad{}}) {
          if (per_token > experts) continue;
          const std::int64_t visits = tokens * per_token;
          const auto by_expert = visits_by_expert(load, {tokens, per_token, experts});
          EXPECT_EQ(std::reduce(by_expert.begin(), by_expert.end()), visits);
          EXPECT_EQ(by_expert.size(), static_cast<std::size_t>(std::min(experts, visits)));
          EXPECT_THAT(by_expert, Each(testing::AllOf(testing::Ge(1), testing::Le(tokens))));
          EXPECT_TRUE(std::ranges::is_sorted(by_expert, std::greater()));
        }
}

TEST(ExpertLoad, OfABusiestGroupHasABound) {
  const Routing routing{.tokens = 100, .per_token = 2, .experts = 8};
  EXPECT_EQ(busiest_visits({1}, routing, 4), 50);
  EXPECT_EQ(busiest_visits({1.5}, routing, 4), 75);
  EXPECT_EQ(busiest_visits({9}, routing, 4), 200);
  EXPECT_EQ(busiest_visits({}, routing, 4), 200);
  EXPECT_EQ(busiest_visits({}, routing, 8), 100);  // one expert each, which a token visits once
  EXPECT_EQ(busiest_visits({3}, routing, 1), 200);
}

TEST(ExpertLoad, IsForExpertsThatRunOneAfterTheOther) {
  const auto refusal = [](const char* framework, const char* model) -> std::string {
    try {
      StepOptions options{.sequence = 64, .expert_load = ExpertLoad{}};
      options.framework = framework;
      require_used_options(build_trace(find_model(model), options));
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal("transformers-4.57", "olmoe-1b-7b"), "");
  EXPECT_THAT(refusal("transformers-5", "olmoe-1b-7b"), HasSubstr("all their rows in one tensor"));
  EXPECT_THAT(refusal("transformers-4.57", "gpt2"), HasSubstr("has no experts"));
}

}  // namespace
}  // namespace tidemark::expert_load_test
