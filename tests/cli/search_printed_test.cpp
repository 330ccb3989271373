// What is printed of a search: the layouts, what was left out, how to run the fastest, what binds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/reports/print_search.h"
#include "simulator/parallel/cluster.h"
#include "tests/support/small_models.h"

namespace tidemark::cli::search_printed_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using Json = nlohmann::ordered_json;

constexpr std::int64_t mib = 1 << 20;

std::string command_of(const MeshLayout& layout) {
  return "tidemark compare --mesh " + to_text(layout.mesh);
}

FoundLayout found(std::int64_t data, std::int64_t stages, Nanoseconds step) {
  FoundLayout one;
  one.layout.mesh[Axis::Data] = data;
  one.layout.mesh[Axis::Pipeline] = stages;
  one.layout.batch = 3;
  one.layout.micro_batches = 2;
  one.key = to_text(one.layout.mesh);
  one.numbers.allocated = {20 * mib};
  one.numbers.reserved = {24 * mib};
  one.numbers.step = step;
  one.numbers.exposed = Nanoseconds{1'000'000};
  one.numbers.bubble = Nanoseconds{2'000'000};
  one.numbers.throughput = 123.4;
  one.numbers.mfu = 0.4567;
  one.numbers.stage = 1;
  return one;
}

/// Two layouts of a small model on two GPUs of a cluster.
LayoutSearch search() {
  LayoutSearch made;
  made.request.scenario.model = small_llama(4);
  made.request.scenario.device = device_of(find_cluster("dgx-h100"));
  made.request.scenario.strategies = {parse_strategy("vanilla"), parse_strategy("checkpoint")};
  made.request.gpus = 2;
  made.request.global_batch = 12;
  made.found = {found(2, 1, Nanoseconds{50'000'000}), found(1, 2, Nanoseconds{80'000'000})};
  made.found[0].is_on_front = true;
  made.found[1].layout.strategy = 1;
  made.all = 9;
  made.simulated = 5;
  made.throughput_unit = "tokens";
  return made;
}

std::string table(const LayoutSearch& made) {
  return print_search(made, command_of, Format::Table, {.width = 240});
}

TEST(SearchTable, SaysWhatWasAsked) {
  LayoutSearch made = search();
  EXPECT_THAT(table(made), AllOf(HasSubstr(" on 2 GPUs (dgx-h100): NVIDIA H100"),
                                 HasSubstr("\nglobal batch 12 · ")));
  made.request.gpus = 1;
  made.request.scenario.device = find_device("t4");
  EXPECT_THAT(table(made), HasSubstr(" on 1 GPU: NVIDIA T4"));
}

// Which stage needs most, and how long it waits, is said where there are stages.
TEST(SearchTable, HasALineForEachLayout) {
  const std::string text = table(search());
  EXPECT_THAT(text, HasSubstr("\n*  dp=2  3 × 2            ddp    vanilla"));
  EXPECT_THAT(text, HasSubstr("vanilla               20.00     24.00  50.00       123  45.7 %"));
  EXPECT_THAT(text, HasSubstr("\n   pp=2  3 × 2  1f1b"));
  EXPECT_THAT(text, HasSubstr("checkpoint  pp1       20.00     24.00  80.00       123  45.7 %"));
  EXPECT_THAT(text, HasSubstr("\nTo run the fastest:\n  tidemark compare --mesh dp=2\n"));
}

TEST(SearchTable, RoundsRatesToThreeDigits) {
  LayoutSearch made = search();
  const auto rate = [&](double throughput) {
    made.found[0].numbers.throughput = throughput;
    made.found[1].numbers.throughput = throughput;
    const std::string text = table(made);
    const std::size_t end = text.find("  45.7 %");
    return text.substr(text.rfind(' ', end - 1) + 1, end - text.rfind(' ', end - 1) - 1);
  };
  EXPECT_EQ(rate(1234.5), "1234");
  EXPECT_EQ(rate(100), "100");
  EXPECT_EQ(rate(99.94), "99.9");
  EXPECT_EQ(rate(10), "10.0");
  EXPECT_EQ(rate(9.99), "9.99");
}

TEST(SearchTable, LeavesOutTheShareOfAnUnknownPeak) {
  LayoutSearch made = search();
  for (FoundLayout& one : made.found) one.numbers.mfu = 0;
  EXPECT_THAT(table(made), Not(HasSubstr("MFU")));
}

TEST(SearchTable, CountsWhatItLeftOut) {
  LayoutSearch made = search();
  EXPECT_THAT(table(made), AllOf(HasSubstr("\n9 layouts, 5 of them simulated, 2 shown\n"),
                                 Not(HasSubstr("left out because"))));
  made.cut[static_cast<std::size_t>(LayoutRule::Blocks)] = 4;
  made.tensor_refusal = "7 heads";
  made.strategy_refusal = "no blocks";
  made.refusal = "too long";
  EXPECT_THAT(table(made), AllOf(HasSubstr("layouts  left out because\n      4  blocks do not"),
                                 HasSubstr("\ntp: 7 heads\n"), HasSubstr("\nrefused: too long\n"),
                                 Not(HasSubstr("strategy: no blocks"))));
  made.found.clear();  // then it is why
  EXPECT_THAT(table(made), HasSubstr("\nstrategy: no blocks\n"));
}

// What ranks do not share does not stand under what does not divide.
TEST(SearchTable, CountsWhatRanksDoNotShareByItsName) {
  LayoutSearch made = search();
  made.cut[static_cast<std::size_t>(LayoutRule::Tensor)] = 2;
  made.cut[static_cast<std::size_t>(LayoutRule::Undivided)] = 7;
  made.undivided = {{"--mesh: tp: experts (add --sp)", 3}, {"--mesh: tp: scans (take tp=1)", 4}};
  EXPECT_THAT(table(made), HasSubstr("      2  heads, columns or tokens do not divide by tp\n"
                                     "      3  --mesh: tp: experts (add --sp)\n"
                                     "      4  --mesh: tp: scans (take tp=1)\n"));
  const Json json = Json::parse(print_search(made, command_of, Format::Json, {}));
  EXPECT_EQ(json.at("left_out").at("undivided"), 7);
  EXPECT_EQ(json.at("undivided"), Json(made.undivided));
}

TEST(SearchTable, SaysWhatBindsWhereNothingFits) {
  LayoutSearch made = search();
  made.nearest = made.found[0];
  made.found.clear();
  made.nearest->numbers.capacity = {16 * mib};
  made.nearest->numbers.short_by = {4 * mib};
  made.nearest_peak = "backward of loss";
  made.nearest_bytes[static_cast<std::size_t>(Category::Activation)] = {5 * mib};
  made.nearest_bytes[static_cast<std::size_t>(Category::OptimizerState)] = {9 * mib};
  EXPECT_THAT(table(made),
              AllOf(HasSubstr("Nothing fits. The nearest is dp=2: it needs 20.0 MiB of 16.0 MiB, "
                              "4.00 MiB more than there is. Its peak is at backward of loss, with "
                              "9.00 MiB of optimizer state,"),
                    HasSubstr("5.00 MiB of activation.\n"),
                    HasSubstr("  tidemark compare --mesh dp=2\n"), Not(HasSubstr("To run"))));
  made.nearest->numbers.short_by = {};
  made.nearest_bytes[static_cast<std::size_t>(Category::Input)] = {1 * mib};
  made.nearest_bytes[static_cast<std::size_t>(Category::Temporary)] = {2 * mib};
  const std::string fragmented = table(made);
  EXPECT_THAT(fragmented, HasSubstr("16.0 MiB, and fragmentation takes the rest."));
  EXPECT_THAT(fragmented, AllOf(HasSubstr("2.00 MiB of temporary."), Not(HasSubstr("of input"))));
}

TEST(SearchTable, SaysThatItWasStopped) {
  LayoutSearch made = search();
  made.found.clear();
  EXPECT_THAT(table(made), HasSubstr("\nNo layout was found.\n"));
  made.nearest_global_batch = 12;
  EXPECT_THAT(table(made),
              HasSubstr("\nNo layout was found. The nearest global batch that has some: 12.\n"));
  made.is_stopped = true;
  EXPECT_THAT(table(made),
              HasSubstr("\nNothing that fits was found before the search was stopped"));
}

TEST(SearchJson, HasExactNumbers) {
  LayoutSearch made = search();
  made.cut[static_cast<std::size_t>(LayoutRule::Batch)] = 3;
  const Json json = Json::parse(print_search(made, command_of, Format::Json, {}));
  EXPECT_EQ(json["format"], "tidemark-search");
  EXPECT_EQ(json["cluster"], "dgx-h100");
  EXPECT_EQ(json["gpus"], 2);
  EXPECT_EQ(json["global_batch"], 12);
  EXPECT_EQ(json["layouts"], 9);
  EXPECT_EQ(json["left_out"].front(), 3);
  EXPECT_EQ(json["nearest"], nullptr);
  ASSERT_EQ(json["rows"].size(), 2u);
  const Json& row = json["rows"][1];
  EXPECT_EQ(row["mesh"], "pp=2");
  EXPECT_EQ(row["schedule"], "1f1b");
  EXPECT_EQ(row["strategy"], "checkpoint");
  EXPECT_EQ(row["rank"], "pp1");
  EXPECT_EQ(row["allocated_bytes"], 20 * mib);
  EXPECT_EQ(row["step_ns"], 80'000'000);
  EXPECT_EQ(row["bubble_ns"], 2'000'000);
  EXPECT_EQ(row["is_on_front"], false);
  EXPECT_EQ(row["command"], "tidemark compare --mesh pp=2");
  EXPECT_EQ(json["rows"][0]["rank"], "");
  EXPECT_EQ(json["rows"][0]["schedule"], "");
  EXPECT_EQ(json["rows"][0]["is_on_front"], true);
}

// What was not simulated to its end has no peak.
TEST(SearchJson, NamesTheNearest) {
  LayoutSearch made = search();
  made.nearest = made.found[0];
  made.found.clear();
  made.nearest->numbers.short_by = {4 * mib};
  EXPECT_EQ(Json::parse(print_search(made, command_of, Format::Json, {}))["nearest"]["peak_at"],
            nullptr);
  made.nearest_peak = "backward of loss";
  const Json nearest = Json::parse(print_search(made, command_of, Format::Json, {}))["nearest"];
  EXPECT_EQ(nearest["layout"], "dp=2");
  EXPECT_EQ(nearest["allocated_bytes"], 20 * mib);
  EXPECT_EQ(nearest["short_by_bytes"], 4 * mib);
  EXPECT_EQ(nearest["peak_at"], "backward of loss");
  EXPECT_EQ(nearest["command"], "tidemark compare --mesh dp=2");
}

}  // namespace
}  // namespace tidemark::cli::search_printed_test
