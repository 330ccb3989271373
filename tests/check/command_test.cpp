// `tidemark check` as a user meets it: files in, lines and exit codes out.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "base/error.h"
#include "tests/check/repository.h"

namespace tidemark::regression::command_test {
namespace {

namespace fs = std::filesystem;

std::string replaced(std::string text, const std::string& part, const std::string& by) {
  const std::size_t at = text.find(part);
  EXPECT_NE(at, std::string::npos) << part;
  return at == std::string::npos ? text : text.replace(at, part.size(), by);
}

/// Checks the experiment, of a ViT-B in model/, after one line of its config has changed.
Outcome checked_after_change(const Repository& repository, const std::string& before,
                             const std::string& now) {
  const std::string config =
      file_text(std::string(TIDEMARK_SOURCE_DIR) + "/examples/vit-b-16/config.json");
  fs::create_directory(repository.folder().path() / "model");
  write_text(repository.folder() / "model/config.json", config);
  EXPECT_EQ(repository.run("check --update").exit_code, 0);
  write_text(repository.folder() / "model/config.json", replaced(config, before, now));
  return repository.run("check");
}

TEST(Check, PassesOnWhatItRecorded) {
  const Repository repository;
  const Outcome first = repository.run("check");
  EXPECT_EQ(first.exit_code, 3);
  EXPECT_NE(first.output.find("there is no baseline yet"), std::string::npos);
  EXPECT_EQ(repository.run("check --allow-new").exit_code, 0);
  EXPECT_EQ(repository.text(), check_text(two));  // a check changes nothing
  const Outcome update = repository.run("check --update");
  EXPECT_EQ(update.exit_code, 0);
  EXPECT_EQ(update.errors, "tidemark.json: 2 experiments written, the first baseline\n");
  const Outcome check = repository.run("check");
  EXPECT_EQ(check.exit_code, 0);
  EXPECT_EQ(check.output, "tidemark.json: 2 experiments, all as expected\n");
  EXPECT_EQ(check.errors, "");
}

TEST(Check, RunsPlansBesideTheFile) {
  const Repository repository(check_text(R"({"model": "vit-ti-16", "plan": "a.plan.json"})"));
  EXPECT_EQ(repository.run("explain vit-ti-16 --strategy mesa --plan-out a.plan.json").exit_code,
            0);
  EXPECT_EQ(repository.run("check --update").exit_code, 0);
  EXPECT_EQ(repository.run("check").exit_code, 0);
  EXPECT_EQ(repository.run("explain vit-ti-16 --strategy vanilla --plan-out a.plan.json").exit_code,
            0);
  const Outcome changed = repository.run("check");
  EXPECT_EQ(changed.exit_code, 3);
  EXPECT_NE(changed.output.find("FAILED vit-ti-16/plan:a"), std::string::npos) << changed.output;
  EXPECT_NE(changed.output.find("the plan changed: a.plan.json (the fingerprint of its file is "),
            std::string::npos)
      << changed.output;
  repository.run("explain gpt2 --strategy mesa --plan-out a.plan.json");
  const Outcome wrong = repository.run("check");
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_NE(wrong.output.find("a.plan.json: /decisions/0/tensors/0: vit-ti-16 has no tensor"),
            std::string::npos)
      << wrong.output;
}

TEST(Check, FailsForOneByteAndSaysHowToAcceptIt) {
  const Repository repository;
  repository.run("check --update");
  const std::string text = repository.text();
  const std::size_t digit = text.find_first_of(',', text.find("\"live\": ")) - 1;
  std::string changed = text;
  changed[digit] = text[digit] == '9' ? '8' : static_cast<char>(text[digit] + 1);
  repository.write(changed);
  const Outcome outcome = repository.run("check");
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_NE(outcome.output.find("1 B"), std::string::npos) << outcome.output;
  EXPECT_EQ(outcome.errors, "If this is meant: tidemark check tidemark.json --update\n");
  const Outcome update = repository.run("check --update");
  EXPECT_NE(update.errors.find("1 changed, 0 new, 0 gone"), std::string::npos) << update.errors;
  EXPECT_EQ(repository.text(), text);
  EXPECT_EQ(repository.run("check --update").errors,
            "tidemark.json: 2 experiments, nothing to update\n");
}

// The main case: somebody widens a model, and the check names the tensors that grew.
TEST(Check, NamesTheTensorsOfAChangedConfig) {
  const Repository repository(
      check_text(R"({"model": "model/config.json", "batch": 64, "precision": "amp-bf16"})",
                 "  \"defaults\": {\"strategies\": [\"vanilla\", \"checkpoint\"]},\n"));
  const Outcome outcome = checked_after_change(repository, "\"intermediate_size\": 3072",
                                               "\"intermediate_size\": 4096");
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_NE(outcome.output.find("the model changed"), std::string::npos) << outcome.output;
  // fc1's output of 64 samples of 197 tokens, two bytes each, in 12 blocks: 3072 → 4096 wide.
  EXPECT_NE(outcome.output.find("+296 MiB      886  1182       12  blocks.*.mlp.fc1"),
            std::string::npos)
      << outcome.output;
}

// A result of another strategy or batch is another question, not a change of the numbers.
TEST(Check, ReadsOfAMeasuredResultWhatItIsOf) {
  const Repository repository(check_text(R"({"id": "replayed", "measured": "run.json"})"));
  const auto measure = [&](const std::string& strategy, int batch) {
    write_text(repository.folder() / "run.json",
               fmt::format(R"({{"model": "vit-ti-16", "batch": {}, "strategy": "{}", )"
                           R"("measured": {{"live_peak_bytes": 1000}}}})",
                           batch, strategy));
  };
  measure("mesa", 2);
  ASSERT_EQ(repository.run("check --update").exit_code, 0);
  EXPECT_EQ(repository.run("check").exit_code, 0);
  measure("pareprop", 4);
  const Outcome other = repository.run("check");
  EXPECT_EQ(other.exit_code, 3);
  EXPECT_NE(other.output.find("the settings changed: batch 2 → 4, strategy mesa → pareprop"),
            std::string::npos)
      << other.output;
  repository.write(check_text(R"({"id": "replayed", "measured": "run.json", "strategy": "mesa"})"));
  const Outcome contradiction = repository.run("check");
  EXPECT_EQ(contradiction.exit_code, 1);
  EXPECT_NE(contradiction.output.find("/strategy: found 'pareprop'; the experiment says 'mesa'"),
            std::string::npos)
      << contradiction.output;
}

TEST(Check, ReadsMeasuredResults) {
  const Repository repository(
      check_text(R"({"id": "replayed", "measured": "run.json", "tolerance": {"step": "5%"}})"));
  const auto measure = [&](int live, int step) {
    write_text(
        repository.folder() / "run.json",
        fmt::format(R"({{"backend": "cpu", "measured": {{"live_peak_bytes": {}, )"
                    R"("planned_bytes": 2000, "step_ns": {}, "overlap_ns": 7}}, "more": 1}})",
                    live, step));
  };
  measure(1000, 10'000);
  ASSERT_EQ(repository.run("check --update").exit_code, 0);
  measure(1000, 10'400);
  EXPECT_EQ(repository.run("check").exit_code, 0);
  measure(1000, 10'600);
  EXPECT_EQ(repository.run("check").exit_code, 3);
  measure(1001, 10'000);
  EXPECT_EQ(repository.run("check").exit_code, 3);
  write_text(repository.folder() / "run.json", R"({"measured": {"overlap_ns": 7}})");
  const Outcome outcome = repository.run("check");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.output.find("run.json: /measured: found none of live_peak_bytes"),
            std::string::npos)
      << outcome.output;
}

// A run that somebody recorded is evidence like a replay's: its peaks stay what they were.
TEST(Check, TakesARecordingsPeaks) {
  const Repository repository(check_text(
      R"({"id": "recorded", "measured": "run.json", "tolerance": {"allocated": "1 KiB"}})"));
  const std::string snapshot =
      std::string(TIDEMARK_TESTS_DIR) + "/reference/snapshots/two_streams.pickle";
  ASSERT_EQ(repository.run("explain " + snapshot + " --format json -o run.json").exit_code, 0);
  ASSERT_EQ(repository.run("check --update").exit_code, 0);
  EXPECT_EQ(repository.run("check").exit_code, 0);
  const std::string other =
      std::string(TIDEMARK_TESTS_DIR) + "/reference/snapshots/out_of_memory.pickle";
  ASSERT_EQ(repository.run("explain " + other + " --format json -o run.json").exit_code, 0);
  const Outcome changed = repository.run("check");
  EXPECT_EQ(changed.exit_code, 3);
  EXPECT_NE(changed.output.find("+20.0 MiB"), std::string::npos) << changed.output;
}

TEST(Check, HoldsBudgetsEvenWhenItUpdates) {
  const Repository repository(check_text(
      R"({"model": "vit-b-16", "batch": 64, "budget": "24GiB", "reserve": "5%"},
         {"model": "vit-b-16", "batch": 64, "budget": "9GiB", "id": "tight"},
         {"model": "vit-b-16", "batch": 64, "budget": "9GiB", "reserve": "10%", "id": "over"})"));
  const Outcome needs = tidemark("compare vit-b-16 -b 64 --strategies vanilla --format csv");
  const Outcome update = repository.run("check --update");
  EXPECT_EQ(update.exit_code, 3) << needs.output;
  EXPECT_NE(update.output.find("3 experiments, 2 as expected, 1 not"), std::string::npos)
      << update.output << needs.output;
  EXPECT_NE(update.output.find("FAILED over"), std::string::npos);
  EXPECT_NE(update.output.find("does not fit in 8.10 GiB"), std::string::npos) << update.output;
}

TEST(Check, WritesFurtherReportsOfTheSameRun) {
  const Repository repository;
  repository.run("check --update");
  const Outcome outcome = repository.run(
      "check --format github --also junit=a.xml,sarif=b.sarif,json=c.json,markdown=d.md");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.output, "tidemark: tidemark.json: 2 experiments, all as expected\n");
  for (const auto& [file, format] : {std::pair("a.xml", "junit"), std::pair("b.sarif", "sarif"),
                                     std::pair("c.json", "json"), std::pair("d.md", "markdown")})
    EXPECT_EQ(file_text(repository.folder() / file),
              repository.run(std::string("check --format ") + format).output);
}

TEST(Check, FindsPathsFromWhereTheFileIs) {
  const Repository repository(check_text(R"({"model": "../model/config.json"})"));
  fs::create_directories(repository.folder().path() / "model");
  fs::create_directories(repository.folder().path() / "ci");
  fs::copy_file(std::string(TIDEMARK_SOURCE_DIR) + "/examples/gpt2/config.json",
                repository.folder() / "model/config.json");
  fs::rename(repository.path(), repository.folder() / "ci/tidemark.json");
  EXPECT_EQ(repository.run("check ci/tidemark.json --update").exit_code, 0);
  EXPECT_EQ(repository.run("check ci/tidemark.json").exit_code, 0);
}

TEST(Check, IsTheSameToTheByteEveryTime) {
  const Repository a, b;
  a.run("check --update");
  b.run("check --update");
  EXPECT_EQ(a.text(), b.text());
  EXPECT_EQ(a.run("check --format json").output, b.run("check --format json").output);
}

// Four that cannot be run, each for its own reason, and one that can.
TEST(Check, RunsTheOthersWhereSomeExperimentsCannotBeRead) {
  const Repository repository;
  ASSERT_EQ(repository.run("check --update").exit_code, 0);
  const std::string broken = R"(
    {"model": "vit-b-17"}, {"model": "gpt2", "sequence": 9999},
    {"model": "gpt2", "device": "h101"}, {"id": "typo", "model": "gpt2", "bach": 8},)";
  repository.write(
      replaced(repository.text(), "\"experiments\": [", "\"experiments\": [" + broken));
  const Outcome outcome = repository.run("check");
  EXPECT_EQ(outcome.exit_code, 1);  // not 3: some verdicts are missing
  for (const char* line :
       {"tidemark.json: 6 experiments, 2 as expected, 4 not",
        "cannot be run: unknown model 'vit-b-17' (did you mean 'vit-b-16'?", "FAILED gpt2/s9999",
        "cannot be run: unknown device 'h101' (did you mean 'h100'?", "FAILED typo",
        "cannot be run: /experiments/3: unknown key 'bach' (did you mean 'batch'?"})
    EXPECT_NE(outcome.output.find(line), std::string::npos) << line << "\n" << outcome.output;
  EXPECT_EQ(outcome.errors, "");  // an update would not help
  const Outcome update = repository.run("check --update");
  EXPECT_EQ(update.exit_code, 1);
  EXPECT_NE(update.errors.find("(and 3 more: tidemark check lists them)"), std::string::npos)
      << update.errors;
}

TEST(Check, StartsFromTheModelsOfItsFolder) {
  const Folder folder;
  const auto run = [&](const std::string& line) {
    Surroundings around;
    around.folder = folder.path();
    return tidemark(line, around);
  };
  fs::create_directories(folder.path() / "nets/small");
  fs::create_directories(folder.path() / "other");
  fs::create_directories(folder.path() / ".cache");
  const fs::path config = std::string(TIDEMARK_SOURCE_DIR) + "/examples/gpt2/config.json";
  fs::copy_file(config, folder / "nets/small/config.json");
  fs::copy_file(config, folder / ".cache/config.json");
  write_text(folder / "other/config.json", R"({"name": "a web site"})");
  const Outcome none = run("check --update");
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_EQ(none.errors,
            "tidemark: tidemark.json: there is no such file (tidemark check --init writes a first "
            "one)\n");
  const Outcome init = run("check --init");
  EXPECT_EQ(init.exit_code, 0) << init.errors;
  EXPECT_EQ(init.errors,
            "tidemark.json: written with 2 experiments (1 model found, 1 config.json of no family "
            "that Tidemark knows); edit it, then: tidemark check --update\n");
  EXPECT_NE(file_text(folder / "tidemark.json").find(R"({"models": ["nets/small/config.json"])"),
            std::string::npos);
  EXPECT_EQ(run("check --update").exit_code, 0);
  EXPECT_EQ(run("check").exit_code, 0);
}

TEST(Check, StartsFromAPresetWhereTheFolderHasNoModel) {
  const Folder folder;
  Surroundings around;
  around.folder = folder.path();
  EXPECT_EQ(tidemark("check ci.json --init", around).errors,
            "ci.json: written with 2 experiments (no model in its folder, so a preset as an "
            "example); edit it, then: tidemark check ci.json --update\n");
}

// One more layer: its name is the answer, and the eleven others are as they were.
TEST(Check, NamesTheNewBlockOfAChangedConfig) {
  const Repository repository(check_text(R"({"model": "model/config.json", "batch": 2})"));
  const Outcome outcome =
      checked_after_change(repository, "\"num_hidden_layers\": 12", "\"num_hidden_layers\": 13");
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_NE(outcome.output.find("12 → 13 blocks, 201 → 217 ops (new: blocks.12)"),
            std::string::npos)
      << outcome.output;
  EXPECT_NE(outcome.output.find("[NEW] +"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find(" blocks.12 (new block; "), std::string::npos) << outcome.output;
}

struct Mistake {
  const char* arguments;
  int exit_code;
  const char* message;
};

class CheckMistakes : public testing::TestWithParam<Mistake> {};

TEST_P(CheckMistakes, GetOneLineAndTheirExitCode) {
  const Repository repository;
  write_text(repository.folder() / "corrupt.json", "{\"format\": \"tidemark-check\", ");
  write_text(repository.folder() / "old.json", R"({"format": "tidemark-check", "version": 0})");
  write_text(repository.folder() / "no_model.json", check_text(R"({"model": "vit-b-17"})"));
  write_text(repository.folder() / "conflict.json",
             "{\n<<<<<<< HEAD\n  \"format\": 1\n=======\n  \"format\": 2\n>>>>>>> branch\n}\n");
  const Outcome outcome = repository.run(GetParam().arguments);
  EXPECT_EQ(outcome.exit_code, GetParam().exit_code);
  EXPECT_EQ(outcome.output, "");
  EXPECT_NE(outcome.errors.find(GetParam().message), std::string::npos) << outcome.errors;
  EXPECT_EQ(std::ranges::count(outcome.errors, '\n'), 1) << outcome.errors;
}

INSTANTIATE_TEST_SUITE_P(
    All, CheckMistakes,
    testing::Values(
        Mistake{"check none.json", 1,
                "none.json: there is no such file (tidemark check none.json --init writes a first"},
        Mistake{"check none/none.json --update", 1, "none/none.json: there is no such file"},
        Mistake{"check --init", 1, "tidemark.json: exists already and stays as it is"},
        Mistake{"check none/none.json --init", 1, "none/none.json: cannot write"},
        Mistake{"check --init --update", 2, "give it alone"},
        Mistake{"check conflict.json", 1,
                "conflict.json:2:1: found a merge conflict (its markers are in lines 2, 4, 6)"},
        Mistake{"check .", 1, "cannot read: Is a directory"},
        Mistake{"check corrupt.json", 1, "corrupt.json:1:30: "},
        Mistake{"check old.json", 1, "old.json: /version: found version 0"},
        Mistake{"check no_model.json --update", 1,
                "no_model.json: nothing is updated: vit-b-17 cannot be run: unknown model "
                "'vit-b-17' (did you mean 'vit-b-16'?"},
        Mistake{"check --format xml", 2, "unknown format 'xml'"},
        Mistake{"check --format customsmallerisbetter", 2, "did you mean 'customSmallerIsBetter'?"},
        Mistake{"check --also junit", 2, "--also: 'junit' is not FORMAT=FILE"},
        Mistake{"check --also junit=", 2, "is not FORMAT=FILE"},
        Mistake{"check --also junti=a.xml", 2, "did you mean 'junit'?"},
        Mistake{"check --update --allow-new", 2, "leave out --allow-new"},
        Mistake{"check --also json=no/such/folder.json", 1, "no/such/folder.json: cannot write"},
        Mistake{"check --updat", 2, "did you mean '--update'?"},
        Mistake{"check tidemark.json other.json", 2, "one operand too many"}));

TEST(Update, OfAFileThatCannotBeWrittenChangesNothing) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  const Repository repository;
  fs::permissions(repository.path(), fs::perms::owner_read);
  const Outcome outcome = repository.run("check --update");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.errors, "tidemark: tidemark.json: cannot write: Permission denied\n");
  EXPECT_EQ(repository.text(), check_text(two));
}

TEST(Update, LeavesNoFileBeside) {
  const Repository repository;
  repository.run("check --update");
  repository.run("check --update");
  EXPECT_EQ(std::distance(fs::directory_iterator(repository.folder().path()), {}), 1);
}

TEST(Update, CountsWhatChangedWhatIsNewAndWhatIsGone) {
  const Repository repository(
      check_text(R"({"model": "vit-ti-16", "batch": [1, 2]}, {"id": "gone", "model": "gpt2"})"));
  EXPECT_EQ(repository.run("check --update").exit_code, 0);
  EXPECT_EQ(repository.run("check --update").errors,
            "tidemark.json: 3 experiments, nothing to update\n");
  std::string text = replaced(repository.text(), R"("batch": [1, 2])", R"("batch": [1, 2, 3, 4])");
  text = replaced(text, R"(, {"id": "gone", "model": "gpt2"})", "");
  repository.write(text);
  EXPECT_EQ(
      repository.run("check --update").errors,
      "tidemark.json: 4 experiments written: 0 changed, 2 new, 1 gone (git diff shows them)\n");
}

TEST(Update, KeepsAByteOrderMark) {
  const Repository repository("\xEF\xBB\xBF" + check_text(two));
  EXPECT_EQ(repository.run("check --update").exit_code, 0);
  EXPECT_EQ(repository.run("check").exit_code, 0);
  EXPECT_TRUE(repository.text().starts_with("\xEF\xBB\xBF{")) << repository.text();
}

TEST(Update, SaysWhereTheOldNumbersFollowOtherRules) {
  const Repository repository;
  EXPECT_EQ(repository.run("check --update").exit_code, 0);
  repository.write(replaced(repository.text(), "pytorch-2.6", "pytorch-1.9"));
  EXPECT_EQ(repository.run("check").exit_code, 3);
  EXPECT_EQ(repository.run("check --update").errors,
            "tidemark.json: 2 experiments written, the old ones were not comparable\n");
  EXPECT_EQ(repository.run("check").exit_code, 0);
}

// All wait for each other; each finds what the one before it wrote, and the file is whole.
TEST(Update, MayBeAskedForManyTimesAtOnce) {
  const Repository repository, alone;
  alone.run("check --update");
  std::vector<Outcome> outcomes(8);
  {
    std::vector<std::jthread> threads;
    for (Outcome& outcome : outcomes)
      threads.emplace_back([&] { outcome = repository.run("check --update"); });
  }
  int firsts = 0;
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    firsts += outcome.errors.find("the first baseline") != std::string::npos;
  }
  EXPECT_EQ(firsts, 1);
  EXPECT_EQ(repository.text(), alone.text());
}

// Somebody edits the file while the experiments run: the edit stays, and the update gives up.
TEST(Update, LeavesAFileThatIsEditedMeanwhile) {
  const Repository repository;
  const std::string edited = check_text(R"({"model": "vit-ti-16", "batch": [1, 2, 3]})");
  try {
    update_check_file(repository.path(), "1.0.0",
                      [&](std::size_t, std::size_t) { repository.write(edited); });
    FAIL() << "wrote over the edit";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("somebody changed it"), std::string::npos);
  }
  EXPECT_EQ(repository.text(), edited);
}

}  // namespace
}  // namespace tidemark::regression::command_test
