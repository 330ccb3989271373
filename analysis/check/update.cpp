// Updates of one tidemark.json follow each other: a lock on its folder, which leaves no file behind
// and survives the rename that replaces the baseline.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>

#include "analysis/check/check_file.h"
#include "base/error.h"
#include "base/files.h"
#include "base/quoted.h"

namespace tidemark::regression {
namespace {

constexpr std::chrono::seconds longest_wait{60};

/// Held as long as it lives; the system lets go of it if the program dies.
class FolderLock {
 public:
  explicit FolderLock(const std::string& path) {
    std::error_code error;
    const std::filesystem::path file = std::filesystem::weakly_canonical(path, error);
    const std::string folder = error ? std::string(".") : file.parent_path().string();
    descriptor_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor_ < 0) fail(path, std::strerror(errno));
    wait(path);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock() { ::close(descriptor_); }

 private:
  [[noreturn]] static void fail(const std::string& path, std::string_view problem) {
    throw InputError(fmt::format("{}: cannot lock its folder: {}", path, problem));
  }

  void wait(const std::string& path) {
    const auto give_up = std::chrono::steady_clock::now() + longest_wait;
    while (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      const int reason = errno;
      const bool is_taken = reason == EWOULDBLOCK || reason == EINTR;
      if (is_taken && std::chrono::steady_clock::now() < give_up) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        continue;
      }
      ::close(descriptor_);
      if (is_taken) fail(path, "another update has held it for a minute (wait for it, or end it)");
      fail(path, std::strerror(reason));
    }
  }

  int descriptor_ = -1;
};

// A baseline is written whole: a defect now is not forgotten numbers later.
void require_all_run(const CheckFile& file, const std::vector<ExperimentOutcome>& outcomes) {
  const auto has_defect = [](const ExperimentOutcome& outcome) { return !outcome.defect.empty(); };
  const auto first = std::ranges::find_if(outcomes, has_defect);
  if (first == outcomes.end()) return;
  const auto more = std::ranges::count_if(outcomes, has_defect) - 1;
  const std::string& id = file.experiments[static_cast<std::size_t>(first - outcomes.begin())].id;
  throw InputError(
      fmt::format("{}: nothing is updated: {} cannot be run: {}{}", file.path, printable(id, 100),
                  first->defect,
                  more == 0 ? "" : fmt::format(" (and {} more: tidemark check lists them)", more)));
}

}  // namespace

Update update_check_file(const std::string& path, std::string_view tidemark_version,
                         const CheckProgress& progress) {
  const FolderLock lock(path);
  CheckFile before =
      read_check_file(read_file(path, FileKind::Check), path);  // now: others may have updated it
  const std::size_t all = before.experiments.size();
  std::vector<ExperimentOutcome> outcomes =
      run_experiments(path, before.experiments, [&](std::size_t done) {
        if (progress) progress(done, all);
      });
  require_all_run(before, outcomes);
  std::string text = with_baseline(before, baseline_of(before, outcomes, tidemark_version));
  if (read_file(path, FileKind::Check) != before.text)
    throw InputError(fmt::format(
        "{}: somebody changed it during the update; it is left as it is (run the update again)",
        path));
  if (const FileKindRow& kind = row_of(FileKind::Check);
      text.size() > static_cast<std::size_t>(kind.limit.count))
    throw InputError(fmt::format("{}: its numbers make it larger than {}, the limit ({})", path,
                                 to_text(kind.limit), kind.remedy));
  // What could not be read again is not written.
  CheckFile after = read_check_file(std::move(text), path);
  if (after.text != before.text) write_file(path, after.text);
  return {std::move(before), std::move(after), std::move(outcomes)};
}

}  // namespace tidemark::regression
