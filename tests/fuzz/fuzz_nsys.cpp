// Bytes as the file of an export of Nsight Systems: the reader returns a timeline whose runs follow
// one another and whose blocks come before they go, or throws InputError of one line.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "importers/nsys.h"
#include "tests/fuzz/refusals.h"

namespace {

/// A file with what was put into it last; gone with the process.
class OneFile {
 public:
  OneFile() : path_(std::filesystem::temp_directory_path() / "fuzz-XXXXXX.sqlite") {
    constexpr int length_of_ending = 7;
    file_ = ::mkstemps(path_.data(), length_of_ending);
    tidemark::require(file_ >= 0);
  }
  OneFile(const OneFile&) = delete;
  OneFile& operator=(const OneFile&) = delete;
  ~OneFile() { ::unlink(path_.c_str()); }

  const std::string& with(const std::uint8_t* data, std::size_t size) {
    tidemark::require(::ftruncate(file_, 0) == 0);
    tidemark::require(::pwrite(file_, data, size, 0) == static_cast<ssize_t>(size));
    return path_;
  }

 private:
  std::string path_;
  int file_ = -1;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tidemark;
  static OneFile file;
  importers::RecordedTimeline made;
  try {
    made = importers::read_nsys(file.with(data, size), "fuzz");
  } catch (const InputError& error) {
    require_one_line(error.what());
    return 0;
  }
  std::vector<Nanoseconds> busy(made.schedule.streams);
  for (const TimedRun& run : made.timeline.runs) {
    require(run.begin >= busy.at(index(run.stream)) && run.end >= run.begin);
    require(run.end <= made.timeline.duration);
    busy[index(run.stream)] = run.end;
  }
  std::vector<bool> is_present(made.schedule.buffers.size());
  for (const MemoryEvent& event : made.timeline.memory) {
    require(is_present.at(index(event.buffer)) != event.appears);
    is_present[index(event.buffer)] = event.appears;
  }
  const Peak top = peak(made.schedule, made.timeline);
  require(total(top.by_category) == top.bytes);
  require(made.callers.size() == made.trace->tensors.size());
  return 0;
}
