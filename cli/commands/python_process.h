// A Python program as a child process, with the modules that travel inside of this program.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/commands/child_process.h"

namespace tidemark::cli {

/// A folder of its own under the system's for temporary files, removed with what is in it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  /// In `base`, its name begins with `prefix`.
  TemporaryFolder(const std::filesystem::path& base, const std::string& prefix);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// The interpreter that was named, that of the virtual environment that is active, or python3.
std::string find_python(const std::string* named);

/// Puts the package `tidemark` into the folder.
void unpack_package(const std::filesystem::path& folder);

/// Runs the interpreter with the folder as first place of modules; what it writes to standard
/// output goes to standard error. InputError if there is no such program.
Ending run_python(const std::string& python, const std::filesystem::path& modules,
                  const std::vector<std::string>& arguments);

}  // namespace tidemark::cli
