// explain --graph: which part of the graph goes into the file, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace tidemark::cli::graph_file_test {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* explained = "explain vit-ti-16 -b 2 --strategy checkpoint --graph ";

struct GraphFile : testing::Test {
  Json written(const std::string& more) {
    const Outcome outcome = tidemark(explained + (folder / "g.json") + more);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_EQ(outcome.output, "");
    notes = outcome.errors;
    return Json::parse(file_text(folder / "g.json"));
  }
  Folder folder;
  std::string notes;
};

TEST_F(GraphFile, ShowsTheBlockInTheMiddleAndSaysSo) {
  const Json graph = written("");
  EXPECT_EQ(graph.at("part"), "block blocks.6");
  EXPECT_THAT(notes, HasSubstr("g.json: block blocks.6, 29 of 365 nodes, and 10 beside them; "
                               "326 are left out\n"));
}

TEST_F(GraphFile, ShowsAnotherBlockByNumberOrName) {
  const Json graph = written(" --block 0");
  EXPECT_EQ(graph.at("part"), "block blocks.0");
  EXPECT_EQ(graph, written(" blocks.0"));
}

TEST_F(GraphFile, ShowsAllOnRequest) {
  const Json graph = written(" --block all");
  EXPECT_EQ(graph.at("part"), "all");
  EXPECT_EQ(graph.at("counts").at("left_out"), 0);
  EXPECT_EQ(graph.at("nodes").size(), graph.at("counts").at("all"));
}

TEST_F(GraphFile, ShowsAnOpWithWhoIsBesideIt) {
  const Json graph = written(" blocks.3.mlp.gelu");
  EXPECT_EQ(graph.at("part"), "op blocks.3.mlp.gelu");
  EXPECT_EQ(graph.at("counts").at("shown"), 3);  // forward, again, backward
}

TEST_F(GraphFile, ShowsTheMemoryOfATensorThatNoOpIsCalledLike) {
  EXPECT_EQ(written(" blocks.3.mlp.fc1.weight").at("part"), "tensor blocks.3.mlp.fc1.weight");
  EXPECT_EQ(written(" blocks.3.attn.flash.lse").at("counts").at("shown"), 3);
}

TEST_F(GraphFile, IsWrittenForGraphvizAndCompressedByItsName) {
  const Outcome dot = tidemark(explained + (folder / "g.dot") + " -q");
  EXPECT_EQ(dot.errors, "");
  EXPECT_THAT(file_text(folder / "g.dot"),
              StartsWith("// The joint graph of vit-ti-16 · checkpoint"));
  EXPECT_EQ(tidemark(explained + (folder / "g.dot.zst")).exit_code, 0);
  EXPECT_THAT(file_text(folder / "g.dot.zst"), StartsWith("\x28\xB5\x2F\xFD"));
}

struct Refused {
  const char* arguments;
  const char* problem;
};

class GraphRefusal : public testing::TestWithParam<Refused> {};

TEST_P(GraphRefusal, NamesTheRemedy) {
  const Folder folder;  // where nothing may be written
  const Outcome outcome =
      tidemark(std::string("explain vit-ti-16 ") + GetParam().arguments, {.folder = folder.path()});
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_EQ(outcome.exit_code, 2) << outcome.errors;
  EXPECT_THAT(outcome.errors, HasSubstr(GetParam().problem));
  EXPECT_EQ(outcome.output, "");
}

INSTANTIATE_TEST_SUITE_P(
    All, GraphRefusal,
    testing::Values(
        Refused{"--graph -", "'-' must end in .dot (for graphviz) or .json (for programs)\n"},
        Refused{"--graph picture", "'picture' must end in .dot (for graphviz) or .json"},
        Refused{"--graph g.svg", "; dot -Tsvg FILE.dot -o FILE.svg draws the first"},
        Refused{"--graph g.dot --format json", "--format has no meaning here (leave it out)"},
        Refused{"--graph g.dot -o g.txt", "--output has no meaning here"},
        Refused{"--graph g.dot --top 3", "--top has no meaning here"},
        Refused{"--graph g.dot --saved", "--saved has no meaning here"},
        Refused{"--graph g.dot --plan-out p.plan.json", "--plan-out has no meaning here"},
        Refused{"--graph g.dot --require-fit", "--require-fit has no meaning here"},
        Refused{"--graph g.dot --block 1 blocks.2", "--block 1 and 'blocks.2': "},
        Refused{"--graph g.dot --block 12", "'12' is not a whole number from 0 to 11"},
        Refused{"--graph g.dot --strategy vanilla,mesa", "one at a time here"},
        Refused{"--graph g.dot blocks.3.mlp.gelo", "did you mean 'blocks.3.mlp.gelu'?"},
        Refused{"--block 3", "give --graph FILE.dot as well"}));

TEST(GraphFileErrors, SayThatAStrategyDoesNotApply) {
  const Outcome outcome =
      tidemark("explain examples/toy/mlp.trace.json --strategy checkpoint --graph /tmp/g.dot");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.errors, HasSubstr("checkpoint does not apply: "));
}

TEST(GraphFileErrors, SayThatThereAreNoBlocks) {
  const Outcome outcome =
      tidemark("explain examples/toy/mlp.trace.json --block 0 --graph /tmp/g.dot");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.errors, HasSubstr("has no blocks (all is what can be shown)"));
}

TEST(GraphFileErrors, SayWhereAFileCannotBeWritten) {
  const Outcome outcome = tidemark("explain vit-ti-16 --graph /no/such/folder/g.dot");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.errors, HasSubstr("/no/such/folder"));
}

}  // namespace
}  // namespace tidemark::cli::graph_file_test
