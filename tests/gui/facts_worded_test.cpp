// The words and numbers of facts, from values that are known: what a tooltip says, line by line.
#include <gmock/gmock.h>

#include "gui/facts.h"
#include "tests/gui/robot.h"

namespace tidemark::gui::facts_worded_test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

std::vector<std::string> texts_of(const std::vector<Fact>& facts) {
  std::vector<std::string> texts;
  for (const Fact& fact : facts)
    texts.push_back(fact.name.empty() ? fact.value : fact.name + ": " + fact.value);
  return texts;
}

std::vector<std::string> names_of_facts(const std::vector<Fact>& facts) {
  std::vector<std::string> names;
  for (const Fact& fact : facts) names.push_back(fact.name);
  return names;
}

struct Amount {
  double value;
  const char* text;
};

// Three digits, or all of what is below a thousand of the unit itself.
TEST(DecimalText, HasThreeDigitsAndThePrefixOfThousands) {
  for (const auto& [value, text] :
       {Amount{0, "0 B"}, Amount{999, "999 B"}, Amount{1000, "1.00 kB"}, Amount{9994, "9.99 kB"},
        Amount{10'000, "10.0 kB"}, Amount{99'940, "99.9 kB"}, Amount{100'000, "100 kB"},
        Amount{1.5e6, "1.50 MB"}, Amount{2.039e9, "2.04 GB"}, Amount{312e12, "312 TB"},
        Amount{4e15, "4.00 PB"}, Amount{7e18, "7000 PB"}})
    EXPECT_EQ(decimal_text(value, "B"), text) << value;
}

TEST(LinesOfARange, OfOneStreamSpeakOfNoOverlap) {
  RangeFacts facts;
  facts.span = 200us;
  facts.busy = {150us};
  facts.idle = 50us;
  facts.runs = 3;
  facts.at_begin = Bytes{3 << 20};
  facts.highest = Bytes{5 << 20};
  EXPECT_THAT(
      texts_of(lines_of(facts)),
      ElementsAre("Range of 200 µs", "stream 0 busy: 150 µs (75 %)", "idle: 50.0 µs (25 %)",
                  "runs that begin: 3", "live at its begin: 3.00 MiB", "live at most: 5.00 MiB"));
}

TEST(LinesOfARange, OfTwoStreamsOnAKnownDeviceSayWhatTheirRunsDo) {
  RangeFacts facts;
  facts.span = 1000us;
  facts.busy = {900us, 300us};
  facts.overlap = 250us;
  facts.idle = 50us;
  facts.runs = 7;
  facts.bytes_moved = 2.0 * (1 << 20);
  facts.flops = 1.25e12;
  EXPECT_THAT(
      texts_of(lines_of(facts)),
      ElementsAre("Range of 1.00 ms", "stream 0 busy: 900 µs (90 %)",
                  "stream 1 busy: 300 µs (30 %)", "overlap: 250 µs (25 %)", "idle: 50.0 µs (5 %)",
                  "runs that begin: 7", "they move: 2.00 MiB", "they compute: 1.25 TFLOP",
                  "live at its begin: 0 B", "live at most: 0 B"));
}

TEST(LinesOfARange, OfNoLengthDivideByNothing) {
  RangeFacts facts;
  facts.busy = {0us};
  EXPECT_THAT(texts_of(lines_of(facts)),
              ElementsAre("Range of 0 ns", "stream 0 busy: 0 ns (0 %)", "idle: 0 ns (0 %)",
                          "runs that begin: 0", "live at its begin: 0 B", "live at most: 0 B"));
}

TEST(FactsOfAReport, AreMemoryInBothSensesAndTime) {
  Report report;
  report.fits = true;
  report.capacity = Bytes{16LL << 30};
  report.allocated_peak = Bytes{3LL << 30};
  report.reserved_peak = Bytes{4LL << 30};
  report.step = 12'500us;
  report.samples_per_second = 640.04;
  EXPECT_THAT(
      texts_of(facts_of(report)),
      ElementsAre("allocated: 3.00 GiB at most", "reserved: 4.00 GiB at most, held from the device",
                  "fits: yes, in 16.0 GiB", "step: 12.5 ms", "samples/s: 640.0"));
}

class FactsOfAStep : public testing::Test {
 protected:
  const std::shared_ptr<const Opened> opened_ = predict(vit({"vanilla"})).front().opened;

  // The first run of this task whose op has this name.
  RunId run_of(Task task, std::string_view op) const {
    for (std::uint32_t i = 0; i < opened_->timeline().runs.size(); ++i) {
      const Step& step = opened_->schedule().steps[(*opened_)[RunId{i}].step];
      const auto* run = std::get_if<tidemark::Run>(&step);
      if (run && run->task == task && run->op != no_op && opened_->trace()[run->op].name == op)
        return RunId{i};
    }
    ADD_FAILURE() << "no " << to_string(task) << " of " << op;
    return RunId{0};
  }
};

TEST_F(FactsOfAStep, AProductComputesWhatAnElementwiseKernelOnlyMoves) {
  EXPECT_THAT(names_of_facts(facts_of(*opened_, run_of(Task::Forward, "blocks.0.mlp.fc1"))),
              ElementsAre("", "kind", "makes", "time", "duration", "reads", "writes", "computes",
                          "moves", "predicted alone"));
  EXPECT_THAT(names_of_facts(facts_of(*opened_, run_of(Task::Forward, "blocks.0.mlp.gelu"))),
              ElementsAre("", "kind", "makes", "time", "duration", "reads", "writes", "moves",
                          "predicted alone"));
}

TEST_F(FactsOfAStep, ARunSaysWhatItIsWhereAndWhatItMakes) {
  const std::vector<std::string> gelu =
      texts_of(facts_of(*opened_, run_of(Task::Forward, "blocks.3.mlp.gelu")));
  ASSERT_GE(gelu.size(), 7u);
  EXPECT_EQ(gelu[0], "forward of blocks.3.mlp.gelu");
  EXPECT_EQ(gelu[1], "kind: gelu, blocks.3");
  EXPECT_EQ(gelu[2], "makes: [8, 197, 3072] float32");
  EXPECT_THAT(gelu[3], testing::EndsWith(" on stream 0"));
  EXPECT_EQ(gelu[5], "reads: 18.5 MiB");  // 8 · 197 · 3072 · 4 B
  EXPECT_EQ(gelu[6], "writes: 18.5 MiB");
}

TEST_F(FactsOfAStep, AParameterLivesThroughTheWholeStepAndAnActivationForAWhile) {
  std::size_t parameters = 0, activations = 0;
  for (std::uint32_t b = 0; b < opened_->schedule().buffers.size(); ++b) {
    const Buffer& buffer = opened_->schedule().buffers[b];
    const auto facts = facts_of(*opened_, BufferId{b}, Nanoseconds{});
    const auto lives = std::ranges::find(facts, "lives", &Fact::name);
    ASSERT_NE(lives, facts.end()) << opened_->describe(BufferId{b});
    EXPECT_EQ(lives->value == "through the whole step", buffer.persistent);
    if (buffer.category == Category::Parameter) ++parameters;
    if (buffer.category != Category::Activation) continue;
    ++activations;
    EXPECT_EQ(std::ranges::count(facts, "written by", &Fact::name), 1);
  }
  EXPECT_GT(parameters, 100u);
  EXPECT_GT(activations, 100u);
}

}  // namespace
}  // namespace tidemark::gui::facts_worded_test
