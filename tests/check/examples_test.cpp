// What examples/ci shows works as it stands there, and docs/check.md shows what is printed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "tests/check/repository.h"

namespace tidemark::regression::examples_test {
namespace {

namespace fs = std::filesystem;

const std::string source = TIDEMARK_SOURCE_DIR;

TEST(Example, OfACheckFileIsUpToDate) {
  const Outcome outcome = tidemark("check examples/ci/tidemark.json");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output << outcome.errors;
}

TEST(Example, OfAWorkflowUsesOptionsThatExist) {
  const std::string text = file_text(source + "/examples/ci/memory.yml");
  const std::size_t begin = text.find("bin/tidemark check") + 13, end = text.find("\n\n", begin);
  ASSERT_NE(end, std::string::npos);
  const Repository repository;
  repository.run("check --update");
  const std::string program = TIDEMARK_PROGRAM;
  std::string line = text.substr(begin, end - begin);
  std::ranges::replace(line, '\n', ' ');  // as YAML's > does
  Surroundings around;
  around.folder = repository.folder().path();
  around.environment.push_back("GITHUB_STEP_SUMMARY=" + (repository.folder() / "summary.md"));
  const Outcome outcome = run_command({"/bin/sh", "-c", program + " " + line}, around);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  for (const char* file : {"summary.md", "memory.xml", "memory.sarif", "memory.json"})
    EXPECT_TRUE(fs::exists(repository.folder() / file)) << file;
}

TEST(Example, OfAHookChecksWhatIsStaged) {
  if (run_command({"/bin/sh", "-c", "command -v git"}).exit_code != 0)
    GTEST_SKIP() << "git is not installed";
  const Repository repository;
  repository.run("check --update");
  const std::string program = TIDEMARK_PROGRAM;
  Surroundings around;
  around.folder = repository.folder().path();
  around.environment = {"PATH=" + program.substr(0, program.rfind('/')) + ":/usr/bin:/bin",
                        "HOME=" + repository.folder().path().string(), "GIT_CONFIG_NOSYSTEM=1",
                        "LC_ALL=C.UTF-8"};
  const auto shell = [&](const std::string& line) {
    return run_command({"/bin/sh", "-c", line}, around);
  };
  ASSERT_EQ(shell("git init -q . && git config user.name a && git config user.email a@b && "
                  "cp '" +
                  source + "/examples/ci/pre-commit' .git/hooks/ && git add -A")
                .exit_code,
            0);
  EXPECT_EQ(shell("git commit -q -m one").exit_code, 0);
  const std::string text = repository.text();
  std::string other = text;
  other.replace(other.find("\"batch\": \"1\""), 12, "\"batch\": \"7\"");
  repository.write(other);
  EXPECT_EQ(shell("git commit -q --allow-empty -m not-staged").exit_code, 0);
  const Outcome refused = shell("git commit -q -a -m staged");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.errors.find("batch 7 → 1"), std::string::npos)
      << refused.errors << refused.output;
}

/// The text of a document's block: behind "<!-- NAME -->", between the fences.
std::pair<std::size_t, std::size_t> block(const std::string& document, const std::string& name) {
  const std::size_t marker = document.find("<!-- " + name + " -->\n```");
  EXPECT_NE(marker, std::string::npos) << name;
  const std::size_t begin = document.find('\n', document.find("```", marker)) + 1;
  return {begin, document.find("```", begin)};
}

// The story of docs/check.md, told again. UPDATE_GOLDEN=1 writes it anew.
TEST(Document, CheckGoldenShowsWhatTheProgramPrints) {
  const std::string path = source + "/docs/check.md";
  std::string document = file_text(path);
  const bool updates = std::getenv("UPDATE_GOLDEN") != nullptr;
  const auto expect = [&](const std::string& name, const std::string& text) {
    const auto [begin, end] = block(document, name);
    if (updates) {
      document.replace(begin, end - begin, text);
    } else {
      EXPECT_EQ(document.substr(begin, end - begin), text) << name;
    }
  };
  const Repository repository(check_text(
      R"({"model": "model/config.json", "batch": 64, "strategies": ["vanilla", "checkpoint"]})",
      "  \"defaults\": {\"device\": \"rtx-4090\", \"precision\": \"amp-bf16\"},\n"));
  expect("file", repository.text());
  fs::create_directory(repository.folder().path() / "model");
  std::string config = file_text(source + "/examples/vit-b-16/config.json");
  write_text(repository.folder() / "model/config.json", config);
  const Outcome update = repository.run("check --update");
  expect("update", "$ tidemark check --update\n" + update.output + update.errors);
  const std::string text = repository.text();
  const std::size_t entry = text.find("      {\"id\"");
  expect("entry", text.substr(entry, text.find("\n\n", entry) + 1 - entry));
  const std::string narrow = "\"intermediate_size\": 3072";
  config.replace(config.find(narrow), narrow.size(), "\"intermediate_size\": 4096");
  write_text(repository.folder() / "model/config.json", config);
  const Outcome check = repository.run("check");
  expect("check", "$ tidemark check\n" + check.output + check.errors);
  expect("github", repository.run("check --format github").output);
  if (updates) write_text(path, document);
}

}  // namespace
}  // namespace tidemark::regression::examples_test
