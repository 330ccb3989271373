// The package is a part of this program, and unpacked for the process.
#include "cli/commands/python_process.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <span>
#include <system_error>

#include "base/embedded_file.h"
#include "base/error.h"
#include "base/files.h"
#include "base/quoted.h"

namespace tidemark::cli {

std::span<const EmbeddedFile> embedded_package();
std::span<const EmbeddedFile> embedded_recording();

namespace {

void write_files(std::span<const EmbeddedFile> files, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  for (const EmbeddedFile& file : files)
    write_file((folder / file.name).string(), std::string(file.text));
}

// The folder before other places of modules.
std::string module_path(const std::filesystem::path& modules) {
  const char* const before = std::getenv("PYTHONPATH");
  return fmt::format("PYTHONPATH={}{}{}", modules.string(), before && *before ? ":" : "",
                     before ? before : "");
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

Ending run_python(const std::string& python, const std::filesystem::path& modules,
                  const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {python};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return run_program(words, {module_path(modules)}, StandardOutput::ToError,
                     " (install Python 3.9 or newer with PyTorch, or name one: --python FILE)");
}

}  // namespace tidemark::cli
