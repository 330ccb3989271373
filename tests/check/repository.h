// A user's repository with a tidemark.json in it.
#pragma once

#include <string>

#include "tests/check/check_example.h"
#include "tests/cli/program.h"

namespace tidemark::regression {

inline constexpr const char* two = R"({"model": "vit-ti-16", "batch": [1, 2]})";

/// A folder with a tidemark.json in it, and the program run there.
class Repository {
 public:
  explicit Repository(const std::string& text = check_text(two)) { write(text); }
  void write(const std::string& text) const { write_text(path(), text); }
  std::string text() const { return file_text(path()); }
  std::string path() const { return folder_ / "tidemark.json"; }
  const Folder& folder() const { return folder_; }
  Outcome run(const std::string& line) const {
    Surroundings around;
    around.folder = folder_.path();
    return tidemark(line, around);
  }

 private:
  Folder folder_;
};

}  // namespace tidemark::regression
