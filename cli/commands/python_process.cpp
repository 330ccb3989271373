// posix_spawn, because nothing else of this program has to reach the child.
#include "cli/commands/python_process.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <span>
#include <system_error>

#include "base/embedded_file.h"
#include "base/error.h"
#include "base/files.h"
#include "base/quoted.h"

extern char** environ;

namespace tidemark::cli {

std::span<const EmbeddedFile> embedded_package();
std::span<const EmbeddedFile> embedded_recording();

namespace {

void write_files(std::span<const EmbeddedFile> files, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  for (const EmbeddedFile& file : files)
    write_file((folder / file.name).string(), std::string(file.text));
}

// The variables of this process, with the folder before other places of modules.
std::vector<std::string> variables_with(const std::filesystem::path& modules) {
  constexpr std::string_view key = "PYTHONPATH=";
  std::vector<std::string> variables;
  std::string path = std::string(key) + modules.string();
  for (char** at = environ; *at; ++at) {
    const std::string_view variable(*at);
    if (!variable.starts_with(key))
      variables.emplace_back(variable);
    else if (variable.size() > key.size())
      path.append(":").append(variable.substr(key.size()));
  }
  variables.push_back(std::move(path));
  return variables;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::error_code error;
  const std::filesystem::path base = std::filesystem::temp_directory_path(error);
  std::string name = (base / "tidemark-XXXXXX").string();
  if (error || !::mkdtemp(name.data()))
    throw InputError(fmt::format("cannot make a folder in {}: {} (TMPDIR names another place)",
                                 printable(base.string(), 200), std::strerror(errno)));
  path_ = name;
}

TemporaryFolder::TemporaryFolder(const std::filesystem::path& base, const std::string& prefix) {
  std::string name = (base / (prefix + "-XXXXXX")).string();
  if (!::mkdtemp(name.data()))
    throw InputError(fmt::format("cannot make a folder in {}: {}", printable(base.string(), 200),
                                 std::strerror(errno)));
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string find_python(const std::string* named) {
  if (named) return *named;
  if (const char* environment = std::getenv("VIRTUAL_ENV"); environment && *environment)
    return (std::filesystem::path(environment) / "bin" / "python3").string();
  return "python3";
}

void unpack_package(const std::filesystem::path& folder) {
  write_files(embedded_package(), folder / "tidemark");
  write_files(embedded_recording(), folder / "tidemark" / "recording");
}

int run_python(const std::string& python, const std::filesystem::path& modules,
               const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {python};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<std::string> variables = variables_with(modules);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t child = 0;
  const int problem = ::posix_spawnp(&child, python.c_str(), &actions, nullptr,
                                     pointers_to(words).data(), pointers_to(variables).data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (problem != 0)
    throw InputError(fmt::format(
        "cannot run {}: {} (install Python 3.9 or newer with PyTorch, or name one: --python FILE)",
        tidemark::quoted(python), std::strerror(problem)));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status))
    throw InputError(
        fmt::format("{} was ended by signal {}", printable(python, 200), WTERMSIG(status)));
  return WEXITSTATUS(status);
}

}  // namespace tidemark::cli
