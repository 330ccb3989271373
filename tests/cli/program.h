// Runs the program itself, as a user would: arguments in, output, errors and exit code out.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/sanitized.h"

namespace tidemark {

struct Outcome {
  int exit_code = -1;  ///< 128 + the signal if one ended it
  std::string output;
  std::string errors;
};

/// How a run differs from the usual one.
struct Surroundings {
  std::vector<std::string> environment = {"LC_ALL=C.UTF-8"};
  std::string input = {};
  std::string folder = TIDEMARK_SOURCE_DIR;
  std::string output_path = {};  ///< "" = captured
  bool closes_output = false;
};

inline std::string file_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// An empty folder of this test's own, gone at its end.
class Folder {
 public:
  Folder() {
    std::string name = testing::TempDir() + "tidemark-XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& file) const { return path_ / file; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

/// Any command, with its output in files: nothing can block on a full pipe.
inline Outcome run_command(std::vector<std::string> command, const Surroundings& around = {}) {
  const Folder folder;
  write_text(folder / "in", around.input);
  const std::string output = around.output_path.empty() ? folder / "out" : around.output_path;
  std::vector<std::string> environment = around.environment;
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, (folder / "in").c_str(), O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, output.c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_addopen(&files, 2, (folder / "err").c_str(), O_WRONLY | O_CREAT, 0600);
  if (around.closes_output) posix_spawn_file_actions_addclose(&files, 1);
  posix_spawn_file_actions_addchdir_np(&files, around.folder.c_str());
  pid_t child = 0;
  const int failed = posix_spawnp(&child, command.front().c_str(), &files, nullptr,
                                  pointers(command).data(), pointers(environment).data());
  posix_spawn_file_actions_destroy(&files);
  EXPECT_EQ(failed, 0) << command.front();
  int status = 0;
  ::waitpid(child, &status, 0);
  Outcome outcome;
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (around.output_path.empty()) outcome.output = file_text(folder / "out");
  outcome.errors = file_text(folder / "err");
  return outcome;
}

inline Outcome tidemark_with(const std::vector<std::string>& arguments,
                             const Surroundings& around = {}) {
  std::vector<std::string> command = {TIDEMARK_PROGRAM};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run_command(std::move(command), around);
}

/// "compare vit-b-16 --batch 64": words at blanks.
inline std::vector<std::string> words(const std::string& line) {
  std::vector<std::string> result;
  std::istringstream stream(line);
  for (std::string word; stream >> word;) result.push_back(word);
  return result;
}

inline Outcome tidemark(const std::string& line, const Surroundings& around = {}) {
  return tidemark_with(words(line), around);
}

}  // namespace tidemark
