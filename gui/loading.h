// Files that are read while the window goes on drawing: a large timeline takes many seconds.
#pragma once

#include <chrono>
#include <deque>
#include <future>

#include "base/read_progress.h"
#include "gui/opened.h"

namespace tidemark::gui {

/// What a file is opened for.
enum class Opening : std::uint8_t {
  Shown,    ///< to be looked at
  Compared  ///< to be compared with what is shown, if there is anything
};

class Loading {
 public:
  using Reader = std::function<Recording(const std::string& path, ReadProgress* progress)>;

  /// What became of a file.
  struct Done {
    std::string path;
    Opening opening;
    std::shared_ptr<const Opened> opened;  ///< null if it cannot be read …
    std::string problem;                   ///< … and why
  };

  explicit Loading(Reader reader) : reader_(std::move(reader)) {}

  /// Reads it when those before it are read.
  void add(std::string path, Opening opening);
  /// The next file that is ready, in the order in which they were added.
  std::optional<Done> next();

  bool is_busy() const { return under_way_.valid(); }
  /// "reading step.timeline.json.zst (412 MiB), 7 s: unpacking, 43 %; 2 more to read"
  std::string text() const;
  /// Until one is ready, or for that long.
  void wait(std::chrono::milliseconds most = std::chrono::hours(24)) const;

 private:
  void start();

  Reader reader_;
  std::deque<std::pair<std::string, Opening>> waiting_;
  std::string path_;  ///< of the one that is under way
  std::chrono::steady_clock::time_point began_;
  ReadProgress progress_;
  std::future<Done> under_way_;
};

}  // namespace tidemark::gui
