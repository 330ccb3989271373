// `tidemark view` as a program: pictures without a display, a window on a display of our own, and
// one line for everything that is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/commands/scenario.h"
#include "tests/cli/program.h"
#ifdef TIDEMARK_HAVE_GUI
#include "cli/commands/command_line.h"
#include "cli/commands/view_command.h"
#include "gui/header.h"
#include "gui/model.h"
#endif

namespace tidemark::cli::view_command_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr int no_display = 5;

class View : public testing::Test {
 protected:
  void SetUp() override {
    const Outcome outcome = tidemark("view --screenshot " + (folder_ / "probe.png"));
    if (outcome.errors.find("built without windows") != std::string::npos) {
      EXPECT_EQ(outcome.exit_code, no_display);
      GTEST_SKIP() << "this program was built without windows";
    }
  }

  std::string file_start(const std::string& name, std::size_t count) const {
    return file_text(folder_ / name).substr(0, count);
  }

  Folder folder_;
};

TEST_F(View, DrawsAPictureWithoutADisplay) {
  const Outcome outcome = tidemark(
      "view vit-b-16 --batch 8 --strategy pareprop --size 640x480 "
      "--screenshot " +
      (folder_ / "out.png"));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(outcome.errors, StartsWith("wrote "));
  EXPECT_EQ(file_start("out.png", 4), "\x89PNG");
}

TEST_F(View, DrawsAPlanUnderTheNameOfItsFile) {
  const std::string plan = folder_ / "mesa.plan.json";
  ASSERT_EQ(tidemark("explain vit-ti-16 --strategy mesa --plan-out " + plan).exit_code, 0);
  const Outcome outcome = tidemark("view vit-ti-16 --plan " + plan +
                                   " --size 640x480 --screenshot " + (folder_ / "out.svg"));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(file_text(folder_ / "out.svg"), HasSubstr("plan:mesa"));
}

TEST_F(View, DrawsTheSameEachTime) {
  for (const char* name : {"a.png", "b.png"})
    EXPECT_EQ(tidemark("view gpt2 --strategies vanilla,checkpoint --size 640x480 --screenshot " +
                       (folder_ / name))
                  .exit_code,
              0);
  EXPECT_EQ(file_text(folder_ / "a.png"), file_text(folder_ / "b.png"));
}

TEST_F(View, DrawsTimelineFilesAndSvg) {
  const std::string timeline = folder_ / "step.timeline.json";
  ASSERT_EQ(tidemark("explain vit-b-16 -b 4 --format timeline -o " + timeline).exit_code, 0);
  EXPECT_EQ(
      tidemark_with({"view", timeline, timeline, "--screenshot", folder_ / "two.png"}).exit_code,
      0);
  EXPECT_EQ(tidemark_with({"view", timeline, "--screenshot", folder_ / "step.svg"}).exit_code, 0);
  EXPECT_THAT(file_text(folder_ / "step.svg"), HasSubstr("<svg"));
}

TEST_F(View, PlaysAScript) {
  write_text(folder_ / "keys", "1 press slash\n4 type blocks.3\n8 press escape\n");
  const Outcome outcome = tidemark("view vit-b-16 --size 640x480 --script " + (folder_ / "keys") +
                                   " --screenshot " + (folder_ / "out.png"));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  write_text(folder_ / "keys", "1 press nothing\n");
  const Outcome wrong = tidemark("view vit-b-16 --script " + (folder_ / "keys") + " --screenshot " +
                                 (folder_ / "out.png"));
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_THAT(wrong.errors, HasSubstr("keys:1: unknown key 'nothing'"));
}

TEST_F(View, TellsWhatIsWrongInOneLine) {
  write_text(folder_ / "broken.timeline.json", "{\"format\": \"tidemark-timeline\"");
  const auto problem = [](const std::string& line, int exit_code) {
    const Outcome outcome = tidemark("view " + line);
    EXPECT_EQ(outcome.exit_code, exit_code) << line << outcome.errors;
    EXPECT_EQ(std::ranges::count(outcome.errors, '\n'), 1) << outcome.errors;
    return outcome.errors;
  };
  const std::string shot = " --screenshot " + (folder_ / "x.png");
  EXPECT_THAT(problem((folder_ / "broken.timeline.json") + shot, 1), HasSubstr("broken.timeline"));
  EXPECT_THAT(problem((folder_ / "missing.timeline.json") + shot, 1),
              HasSubstr("missing.timeline"));
  EXPECT_THAT(problem("vit-b-17" + shot, 2), HasSubstr("vit-b-16"));
  EXPECT_THAT(problem("vit-b-16 --size 12" + shot, 2), HasSubstr("WIDTHxHEIGHT"));
  EXPECT_THAT(problem("vit-b-16 --size 9x9" + shot, 2), HasSubstr("from 320 to"));
  EXPECT_THAT(problem("vit-b-16 --scale 9" + shot, 2), HasSubstr("from 0.5 to 4"));
  EXPECT_THAT(problem("vit-b-16 --screenshot x.gif", 2), HasSubstr("must end in .png or .svg"));
  EXPECT_THAT(problem("vit-b-16 gpt2" + shot, 2), HasSubstr("only timeline files"));
  EXPECT_THAT(problem("vit-b-16 --strategy reversible+checkpoint" + shot, 1),
              HasSubstr("does not apply"));
  EXPECT_THAT(problem("x.timeline.json --batch 3" + shot, 2), HasSubstr("cannot change"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "x.png"));
}

TEST_F(View, WithoutADisplayIsFive) {
  const Outcome outcome = tidemark("view vit-b-16");  // the environment names no display
  EXPECT_EQ(outcome.exit_code, no_display);
  EXPECT_THAT(outcome.errors, HasSubstr("DISPLAY"));
  EXPECT_THAT(outcome.errors, HasSubstr("--screenshot"));
  EXPECT_EQ(std::ranges::count(outcome.errors, '\n'), 1);
}

#ifdef TIDEMARK_HAVE_GUI

CommandLine parsed(const std::string& line) {
  std::vector<std::string> arguments = words(line);
  return parse_command_line(static_cast<int>(arguments.size()), pointers(arguments).data());
}

// What the window copies gives, typed again, the inputs that it showed.
TEST(CopiedCommandLine, ReproducesTheInputs) {
  const Options began = parsed("tidemark view vit-b-16 --optimizer sgd --strategy mesa").options;
  gui::WhatIf changed{scenario_of(began), parse_strategies("checkpoint:every=2,pareprop")};
  changed.scenario.step.batch = 96;
  changed.scenario.step.image = 384;
  changed.scenario.step.precision = Precision::AmpBf16;
  changed.scenario.step.attention = Attention::Math;
  changed.scenario.device = find_device("h100");
  changed.scenario.budget = Bytes{12345678901};
  const std::string line = view_command_line(began, changed);
  EXPECT_EQ(line,
            "tidemark view vit-b-16 --batch 96 --image 384 --precision amp-bf16 --attention math "
            "--optimizer sgd --device h100 --budget 12345678901B --strategies "
            "checkpoint:every=2,pareprop");
  const Options again = parsed(line).options;
  const Scenario scenario = scenario_of(again);
  EXPECT_EQ(scenario.step, changed.scenario.step);
  EXPECT_EQ(scenario.device.name, "h100");
  EXPECT_EQ(scenario.budget, changed.scenario.budget);
  EXPECT_EQ(parse_strategies(*again.strategies).size(), 2u);
}

TEST(CopiedCommandLine, NamesPlansByTheirFiles) {
  const std::string path = std::string(TIDEMARK_SOURCE_DIR) + "/examples/plans/vit-cheap.plan.json";
  const Options began =
      parsed("tidemark view vit-b-16 -b 2 --strategy mesa --plan " + path).options;
  gui::WhatIf changed{scenario_of(began), named_strategies(began)};
  EXPECT_EQ(view_command_line(began, changed),
            "tidemark view vit-b-16 --batch 2 --strategies mesa --plan " + path);
  changed.strategies = parse_strategies("vanilla");
  EXPECT_EQ(view_command_line(began, changed),
            "tidemark view vit-b-16 --batch 2 --strategies vanilla");
}

TEST(CopiedCommandLine, OfAPlanAsksForThePlan) {
  const Options began = parsed("tidemark view gpt2 -b 4 --precision bf16 --strategy mesa").options;
  gui::WhatIf changed{scenario_of(began), parse_strategies("vanilla")};
  changed.planned = gui::PlanChoice{Bytes{std::int64_t{3} << 30}};
  const std::string line = view_command_line(began, changed);
  EXPECT_EQ(line, "tidemark plan gpt2 --batch 4 --precision bf16 --budget 3221225472B");
  changed.planned->allowed = Allowed::Anything;
  EXPECT_EQ(view_command_line(began, changed), line + " --allow anything");
  EXPECT_EQ(parsed(line).options.budget, "3221225472B");
}

TEST(CopiedCommandLine, ForgetsWhatWasTakenBack) {
  const Options began =
      parsed("tidemark view gpt2 -b 4 --budget 8GiB --precision bf16 --strategy mesa").options;
  gui::WhatIf changed{scenario_of(began), parse_strategies("vanilla")};
  changed.scenario.budget.reset();
  changed.scenario.step.precision.reset();
  EXPECT_EQ(view_command_line(began, changed), "tidemark view gpt2 --batch 4 --strategies vanilla");
}

// Models, options and strategies that people ask about: what the window says is what `compare`
// says, to the byte and to the nanosecond.
TEST(TwentyQuestions, HaveTheSameAnswersInTheWindow) {
  constexpr std::array questions = {
      "vit-ti-16 --batch 4 --strategies vanilla",
      "vit-ti-16 --batch 4 --strategies mesa",
      "vit-ti-16 --batch 8 --strategies pareprop",
      "vit-ti-16 --batch 8 --precision bf16 --strategies vanilla",
      "vit-ti-16 --batch 8 --precision amp-fp16 --strategies checkpoint",
      "vit-ti-16 --batch 2 --optimizer sgd --strategies vanilla",
      "vit-ti-16 --batch 2 --tuning lora:r=4 --strategies vanilla",
      "vit-ti-16 --batch 2 --device rtx-4090 --budget 300MiB --strategies vanilla",
      "vit-ti-16 --batch 2 --strategies lowmemorybp",
      "vit-ti-16 --batch 4 --image 384 --strategies vanilla",
      "swin-t --batch 2 --strategies vanilla",
      "swin-t --batch 2 --strategies checkpoint:every=2",
      "gpt2 --batch 1 --strategies vanilla",
      "gpt2 --batch 1 --sequence 256 --strategies offload",
      "gpt2 --batch 2 --loss fused-linear --strategies vanilla",
      "gpt2 --batch 2 --accumulate 4 --strategies vanilla",
      "gpt2 --batch 1 --alloc-conf expandable_segments:True --strategies vanilla",
      "gpt2 --batch 1 --mesh pp=2 --accumulate 4 --strategies vanilla",
      "gpt2 --batch 1 --gpus 4 --shard fsdp2 --strategies vanilla",
      "bert-base --batch 2 --strategies vanilla"};
  static_assert(questions.size() == 20);
  for (const std::string question : questions) {
    SCOPED_TRACE(question);
    const Outcome outcome = tidemark("compare " + question + " --format json");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
    const auto row = nlohmann::json::parse(outcome.output).at("rows").at(0);
    const gui::ViewRequest request = view_request(parsed("tidemark view " + question).options);
    const gui::Prediction shown = gui::predict(*request.what_if).front();
    const Report& report = shown.report;
    EXPECT_EQ(report.strategy, row.at("strategy"));
    EXPECT_EQ(report.live_peak.count, row.at("live_peak_bytes"));
    EXPECT_EQ(report.planned.count, row.at("planned_bytes"));
    EXPECT_EQ(report.allocated_peak.count, row.at("allocated_peak_bytes"));
    EXPECT_EQ(report.reserved_peak.count, row.at("reserved_peak_bytes"));
    EXPECT_EQ(report.step.count(), row.at("step_ns"));
    EXPECT_EQ(report.fits, row.at("fits"));
    EXPECT_EQ(report.caution, row.at("caution"));
    // The curve is drawn from the same bytes.
    const gui::MemoryPyramid& memory = shown.opened->memory();
    EXPECT_EQ(memory.total_of(shown.opened->peak()).count, row.at("live_peak_bytes"));
    // And the row above everything says them.
    const auto gauges = gui::gauges_of(*shown.opened, &report, nullptr);
    EXPECT_THAT(gauges.at(0).value,
                StartsWith(to_text(Bytes{row.at("reserved_peak_bytes").get<std::int64_t>()})));
    EXPECT_EQ(gauges.at(3).value, to_text(Bytes{row.at("live_peak_bytes").get<std::int64_t>()}));
  }
}

// A run of PyTorch beside the step that was captured of it.
TEST(CompareInTheWindow, TellsTheCausesThatExplainTells) {
  const std::string folder = TIDEMARK_TESTS_DIR "/reference/beside/";
  const std::string step = folder + "step-2.6.0.trace.json.zst",
                    run = folder + "outputs-2.6.0.pickle";
  const Outcome outcome = tidemark("explain " + step + " --beside " + run + " --format json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  const auto told = nlohmann::json::parse(outcome.output).at("causes");
  const gui::ViewRequest request =
      view_request(parsed("tidemark view " + step + " " + run).options);
  gui::ViewModel model(request.read);
  model.causes_of = request.causes_of;
  gui::ViewState view;
  model.ask(*request.what_if, view);
  model.open(request.files.at(0), gui::Opening::Compared);
  model.loading().wait();
  ASSERT_EQ(model.take_opened(view), "");
  ASSERT_EQ(view.against, 1u);
  model.newest_diff(view).wait();
  const gui::RecordingDiff* made = model.newest_diff(view).newest();
  ASSERT_TRUE(made);
  EXPECT_THAT(made->headline, StartsWith("measured: "));
  ASSERT_EQ(made->causes.size(), told.size());
  for (std::size_t i = 0; i < told.size(); ++i)
    EXPECT_EQ(made->causes[i].cause.bytes.count, told[i].at("bytes")) << made->causes[i].text;
  // Inputs that make no step, as half of a word, are a problem of their own.
  gui::WhatIf half = *request.what_if;
  half.allocator = "exp";
  model.ask(half, view);
  EXPECT_THAT(model.problem(), HasSubstr("exp"));
  EXPECT_NO_THROW(model.newest_diff(view));
}

// The command in a session gives, read again, the inputs that were saved; no other command does.
TEST(CommandOfASession, ReproducesTheInputsAndNothingElse) {
  const Options began = parsed("tidemark view vit-b-16 --optimizer sgd --strategy mesa").options;
  const gui::ViewRequest request = view_request(began);
  gui::WhatIf changed = *request.what_if;
  changed.scenario.step.batch = 96;
  changed.scenario.budget = Bytes{3'000'000'000};
  const gui::WhatIf again = view_request({}).inputs_typed(request.lasting_command_of(changed));
  EXPECT_EQ(again.scenario.step, changed.scenario.step);
  EXPECT_EQ(again.scenario.budget, changed.scenario.budget);
  EXPECT_EQ(again.scenario.device.name, changed.scenario.device.name);
  EXPECT_EQ(again.strategies.front().text, "mesa");
  for (const char* wrong : {"tidemark compare gpt2", "tidemark view", "rm -r x", "tidemark view 'a",
                            "tidemark view gpt2 --screenshot x.png"})
    EXPECT_ANY_THROW(view_request({}).inputs_typed(wrong)) << wrong;
}

TEST_F(View, OpensSessionsAndCheckFiles) {
  write_text(folder_ / "a.session.json",
             R"({"tidemark_session": 1, "command": "tidemark view vit-ti-16 --batch 4"})");
  EXPECT_EQ(tidemark("view " + (folder_ / "a.session.json") + " --screenshot " +
                     (folder_ / "a.png") + " --size 640x480")
                .exit_code,
            0);
  EXPECT_EQ(file_start("a.png", 4), "\x89PNG");
  EXPECT_EQ(
      tidemark("view " + (folder_ / "a.session.json") + " --screenshot " + (folder_ / "a.svg"))
          .exit_code,
      0);
  EXPECT_THAT(file_text(folder_ / "a.svg"), HasSubstr("vit-ti-16"));
  write_text(folder_ / "b.session.json", R"({"tidemark_session": 1, "vieww": {}})");
  const Outcome wrong =
      tidemark("view " + (folder_ / "b.session.json") + " --screenshot " + (folder_ / "b.png"));
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_THAT(wrong.errors, HasSubstr("b.session.json"));
  EXPECT_THAT(wrong.errors, HasSubstr("view"));
}

// What is dropped into the window or picked there.
TEST(InputsOfTheWindow, AreOfModelsPlansAndTraces) {
  const Options began = parsed("tidemark view vit-ti-16 --batch 4").options;
  const gui::ViewRequest request = view_request(began);
  EXPECT_EQ(request.inputs_of("gpt2", nullptr)->scenario.model.name, "gpt2");
  EXPECT_EQ(request.inputs_of("gpt2", nullptr)->scenario.step.batch, 4);
  EXPECT_FALSE(request.inputs_of("step.timeline.json", nullptr)) << "a recording";
  EXPECT_THROW(request.inputs_of("vit-b-17", nullptr), UsageError);
  const std::string plan = std::string(TIDEMARK_SOURCE_DIR) + "/examples/plans/vit-cheap.plan.json";
  EXPECT_THROW(request.inputs_of(plan, nullptr), InputError) << "of which model?";
  const gui::WhatIf now = *request.inputs_of("vit-b-16", nullptr);
  const auto planned = request.inputs_of(plan, &now);
  ASSERT_TRUE(planned);
  EXPECT_EQ(planned->scenario.model.name, "vit-b-16");
  ASSERT_EQ(planned->plans.size(), 1u);
  EXPECT_EQ(planned->strategies.front().text, planned->plans.front().text);
}

#endif

}  // namespace
}  // namespace tidemark::cli::view_command_test
