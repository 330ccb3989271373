// `tidemark capture`: what is found and said without a Python that could capture anything. With
// one, tests/python captures.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/cli/program.h"

namespace tidemark::cli::capture_command_test {
namespace {

TEST(Capture, NeedsAFunction) {
  const Outcome outcome = tidemark("capture");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(
      outcome.errors.find("need SCRIPT.py:FUNCTION, as in tidemark capture train.py:make_step"),
      std::string::npos)
      << outcome.errors;
}

TEST(Capture, SaysWhichPythonThereIsNot) {
  const Outcome outcome = tidemark("capture train.py:make_step --python /no/such/python");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.errors.find("cannot run '/no/such/python': No such file or directory"),
            std::string::npos)
      << outcome.errors;
  EXPECT_NE(outcome.errors.find("--python FILE"), std::string::npos) << outcome.errors;
}

TEST(Capture, WritesTraceFilesOnly) {
  const Outcome outcome = tidemark("capture train.py:make_step -o step.txt");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.errors.find(".trace.json"), std::string::npos) << outcome.errors;
}

// A program that stands in for Python: it finds the package, and what it writes is read back.
TEST(Capture, HandsThePackageOnAndReadsTheTrace) {
  const Folder folder;
  write_text(folder / "python",
             "#!/bin/sh\n"
             "test -f \"${PYTHONPATH%%:*}/tidemark/capture.py\" || exit 7\n"
             "test -f \"${PYTHONPATH%%:*}/tidemark/recording/stand_in.c\" || exit 8\n"
             "echo \"$@\" >&2\n"
             "while [ \"$1\" != -o ]; do shift; done\n"
             "cp " TIDEMARK_TESTS_DIR "/fuzz/corpus/trace_json/recorded.json \"$2\"\n");
  std::filesystem::permissions(folder / "python", std::filesystem::perms::owner_all);
  const Outcome outcome =
      tidemark_with({"capture", "train.py:make_step", "-d", "h100", "--precision", "bfloat16", "-b",
                     "4", "--padded", "--optimizer", "adam", "-q", "--python", folder / "python",
                     "--", "--steps", "-q"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_NE(outcome.errors.find("-m tidemark.capture train.py:make_step -o "), std::string::npos);
  EXPECT_NE(outcome.errors.find("--sm 90 --multiprocessors 132 --memory 85017755648 --title=NVIDIA "
                                "H100 SXM5 80 GB --batch 4 --optimizer adam --padded --precision "
                                "bf16 --quiet -- --steps -q\n"),
            std::string::npos)
      << outcome.errors;
  EXPECT_NE(outcome.output.find("\"optimizer\": \"RMSprop\""), std::string::npos);
}

TEST(Capture, NamesTheOptimizersThatItMakes) {
  const std::string help = tidemark("capture --help").output;
  EXPECT_NE(help.find("--optimizer NAME    adamw, adam or sgd (default adamw), where FUNCTION"),
            std::string::npos)
      << help;
}

TEST(Capture, FailsWhereItsPythonFails) {
  const Folder folder;
  write_text(folder / "python", "#!/bin/sh\necho 'tidemark capture: no PyTorch' >&2\nexit 1\n");
  std::filesystem::permissions(folder / "python", std::filesystem::perms::owner_all);
  const Outcome outcome =
      tidemark_with({"capture", "train.py:make_step", "--python", folder / "python"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.errors.find("nothing was captured; the line above says why"), std::string::npos)
      << outcome.errors;
}

// Ctrl-C, or kill: it ends as its Python does, and leaves nothing behind.
TEST(Capture, IsStoppedWithItsPython) {
  const Folder folder;
  for (const auto& [line, code] :
       {std::pair{"exit 130", 130}, std::pair{"exit 143", 143}, std::pair{"kill -TERM $$", 143}}) {
    write_text(folder / "python", fmt::format("#!/bin/sh\n"
                                              "echo \"${{PYTHONPATH%%:*}}\" > {}\n{}\n",
                                              folder / "modules", line));
    std::filesystem::permissions(folder / "python", std::filesystem::perms::owner_all);
    const Outcome outcome =
        tidemark_with({"capture", "train.py:make_step", "--python", folder / "python"});
    EXPECT_EQ(outcome.exit_code, code);
    EXPECT_EQ(outcome.errors, "stopped: nothing was captured\n");
    std::string modules = file_text(folder / "modules");
    modules.pop_back();
    EXPECT_FALSE(std::filesystem::exists(modules)) << modules;
  }
}

}  // namespace
}  // namespace tidemark::cli::capture_command_test
