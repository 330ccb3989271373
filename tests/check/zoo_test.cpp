// Tidemark's own memory numbers are reviewed as everybody's: tests/zoo/tidemark.json expects what
// every preset needs with every usual strategy. After a change that is meant:
//   tidemark check tests/zoo/tidemark.json --update
#include <gtest/gtest.h>

#include <set>

#include "analysis/check/check_file.h"
#include "analysis/comparison.h"
#include "base/files.h"
#include "tests/cli/program.h"
#include "traces/presets.h"

namespace tidemark::regression::zoo_test {
namespace {

const std::string zoo = std::string(TIDEMARK_SOURCE_DIR) + "/tests/zoo/tidemark.json";

TEST(Zoo, IsAsExpected) {
  const Outcome outcome = tidemark("check tests/zoo/tidemark.json");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output << outcome.errors;
}

TEST(Zoo, HasEveryPresetWithEveryUsualStrategy) {
  std::set<std::pair<std::string, std::string>> listed, wanted;
  for (const Experiment& experiment :
       read_check_file(read_file(zoo, FileKind::Check), zoo).experiments)
    listed.emplace(experiment.model, experiment.strategy.text);
  for (const Model& model : known_models())
    for (const StrategySpec& strategy : default_strategies())
      wanted.emplace(model.name, strategy.text);
  EXPECT_EQ(listed, wanted);
}

}  // namespace
}  // namespace tidemark::regression::zoo_test
