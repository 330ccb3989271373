// The name of a file says what is written into it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/program.h"

namespace tidemark::cli::output_names_test {
namespace {

using testing::AnyOf;
using testing::StartsWith;

struct Written {
  const char* arguments;
  const char* name;
  const char* beginning;
};

class OutputNames : public testing::TestWithParam<Written> {
 protected:
  std::string written(const std::string& more = "") {
    const Outcome outcome =
        tidemark(GetParam().arguments + (" -q -o " + (folder_ / GetParam().name)) + more);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    return file_text(folder_ / GetParam().name);
  }
  Folder folder_;
};

TEST_P(OutputNames, DecideTheFormat) { EXPECT_THAT(written(), StartsWith(GetParam().beginning)); }

TEST_P(OutputNames, GiveWayToAFormatThatIsAskedFor) {
  EXPECT_THAT(written(" --format json"), AnyOf(StartsWith("{\n"), StartsWith("[\n")));
}

constexpr const char* compared = "compare vit-ti-16 --strategies vanilla,mesa";
constexpr const char* explained = "explain vit-ti-16 --strategies checkpoint";
INSTANTIATE_TEST_SUITE_P(
    All, OutputNames,
    testing::Values(Written{compared, "x.json", "{\n  \"format\": \"tidemark-compare-"},
                    Written{compared, "x.csv", "strategy,"},
                    Written{compared, "x.md", "ViT-Ti/16: "}, Written{compared, "X.HTML", "<!"},
                    Written{compared, "x.svg", "<svg"}, Written{compared, "x.txt", "ViT-Ti/16: "},
                    Written{compared, "x", "ViT-Ti/16: "},
                    Written{explained, "x.json", "{\n  \"format\": \"tidemark-explain-"},
                    Written{explained, "x.timeline.json", "{\n  \"format\": \"tidemark-timeline\""},
                    Written{explained, "x.chrome.json", "{"},
                    Written{explained, "x.collapsed", "optimizer_state;"}));

INSTANTIATE_TEST_SUITE_P(Lists, OutputNames,
                         testing::Values(Written{"devices", "x.csv", "name,"},
                                         Written{"models", "x.json", "[\n"}));

}  // namespace
}  // namespace tidemark::cli::output_names_test
