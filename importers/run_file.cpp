// Chunk after chunk, each of at most a megabyte, into columns of rows.
#include "importers/run_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "base/error.h"
#include "base/json_reader.h"
#include "base/quoted.h"

namespace tidemark::importers {
namespace {

/// As of snapshots: what one would wait for.
constexpr std::uint64_t largest_run = std::uint64_t{4} << 30;

class RunReader {
 public:
  RunReader(std::istream& file, const std::string& name) : file_(file), name_(name) {}
  RunFile read() &&;

 private:
  bool next_chunk();
  void take_chunk();
  void take_process();
  void take_names();
  template <typename Row>
  void take_rows(std::vector<Row>& into);
  template <typename Row>
  void take_timed(std::vector<Row>& into);
  void check_names() const;
  [[noreturn]] void fail(std::string_view problem) const {
    throw InputError(fmt::format("{}: byte {}: {}", printable(name_, 200), at_, problem));
  }

  std::istream& file_;
  const std::string& name_;
  RunFile run_;
  ChunkHead head_;
  std::string chunk_;
  std::uint64_t at_ = 0, next_ = 0;  // of the chunk under way, and behind it
};

RunFile RunReader::read() && {
  std::string magic(run_magic.size(), '\0');
  file_.read(magic.data(), static_cast<std::streamsize>(magic.size()));
  if (magic != run_magic) fail("does not begin as a recorded run (tidemark record writes them)");
  next_ = run_magic.size();
  while (next_chunk()) take_chunk();
  check_names();
  return std::move(run_);
}

// A process that was killed leaves the front of a chunk at the end: that is no error.
bool RunReader::next_chunk() {
  at_ = next_;
  file_.read(reinterpret_cast<char*>(&head_), sizeof head_);
  const auto got = static_cast<std::uint64_t>(file_.gcount());
  if (got < sizeof head_) return run_.cut_bytes = got, false;
  if (head_.bytes > largest_chunk)
    fail(fmt::format("a chunk of {} bytes; need at most {}", head_.bytes, largest_chunk));
  chunk_.resize(head_.bytes);
  file_.read(chunk_.data(), static_cast<std::streamsize>(chunk_.size()));
  const auto bytes = static_cast<std::uint64_t>(file_.gcount());
  next_ += sizeof head_ + bytes;
  if (bytes < chunk_.size()) return run_.cut_bytes = sizeof head_ + bytes, false;
  if (next_ > largest_run) fail("the file is larger than 4 GiB, which is not read");
  return true;
}

void RunReader::take_chunk() {
  switch (head_.kind) {
    case chunk_process:
      return take_process();
    case chunk_note:
      return run_.notes.push_back(printable(chunk_, 400));
    case chunk_names:
      return take_names();
    case chunk_kernels:
      return take_timed(run_.kernels);
    case chunk_transfers:
      return take_timed(run_.transfers);
    case chunk_memory:
      return take_rows(run_.memory);
    case chunk_pools:
      return take_rows(run_.pools);
    case chunk_ranges:
      return take_timed(run_.ranges);
    case chunk_launches:
      return take_rows(run_.launches);
    case chunk_marks:
      return take_rows(run_.marks);
    case chunk_snapshot:
      run_.snapshot += chunk_;
      return;
    case chunk_end: {
      std::vector<EndRow> ends;
      take_rows(ends);
      if (!ends.empty()) run_.end = ends.back();
      return;
    }
  }
  ++run_.unknown_chunks;
}

void RunReader::take_process() {
  const JsonDocument document(chunk_, name_);
  const JsonView root = document.root();
  run_.pid = root.integer_or("pid", run_.pid);
  run_.cupti_version = root.integer_or("cupti", run_.cupti_version);
  if (const auto command = root.find("command"))
    for (const JsonView word : command->items())
      run_.command.push_back(printable(word.text(), 200));
}

void RunReader::take_names() {
  for (std::string_view rest = chunk_; !rest.empty();) {
    std::uint32_t length = 0;
    if (rest.size() < sizeof length) fail("a name without its length");
    std::memcpy(&length, rest.data(), sizeof length);
    rest.remove_prefix(sizeof length);
    if (length > rest.size())
      fail(fmt::format("a name of {} bytes in a chunk that ends before", length));
    run_.names.emplace_back(rest.substr(0, length));
    rest.remove_prefix(length);
  }
}

template <typename Row>
void RunReader::take_rows(std::vector<Row>& into) {
  if (chunk_.size() % sizeof(Row) != 0)
    fail(fmt::format("rows of {} bytes in a chunk of {}", sizeof(Row), chunk_.size()));
  const std::size_t before = into.size();
  into.resize(before + chunk_.size() / sizeof(Row));
  if (!chunk_.empty()) std::memcpy(into.data() + before, chunk_.data(), chunk_.size());
}

// Zero at both ends is CUPTI's word for "not measured".
template <typename Row>
void RunReader::take_timed(std::vector<Row>& into) {
  const auto before = static_cast<std::ptrdiff_t>(into.size());
  take_rows(into);
  const auto is_untimed = [](const Row& row) { return row.end == 0 || row.begin > row.end; };
  const auto left = std::remove_if(into.begin() + before, into.end(), is_untimed);
  run_.without_times += static_cast<std::size_t>(into.end() - left);
  into.erase(left, into.end());
}

void RunReader::check_names() const {
  const auto check = [&](const auto& rows, std::string_view what) {
    for (const auto& row : rows)
      if (row.name >= run_.names.size())
        throw InputError(fmt::format("{}: a {} has name {}, of {} that the file holds",
                                     printable(name_, 200), what, row.name, run_.names.size()));
  };
  check(run_.kernels, "kernel");
  check(run_.ranges, "range");
}

}  // namespace

bool is_run_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string magic(run_magic.size(), '\0');
  file.read(magic.data(), static_cast<std::streamsize>(magic.size()));
  return file && magic == run_magic;
}

RunFile read_run_file(std::istream& file, const std::string& name) {
  return RunReader(file, name).read();
}

RunFile read_run_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw InputError(
        fmt::format("{}: cannot be read: {}", printable(path, 200), std::strerror(errno)));
  return read_run_file(file, path);
}

std::vector<std::string> defects(const RunFile& run) {
  std::vector<std::string> lines = run.notes;
  const auto say_if = [&](bool is_so, const std::string& line) {
    if (is_so) lines.push_back(line);
  };
  const EndRow end = run.end.value_or(EndRow{});
  // Where no process was recorded, the notes are all that there is, and say why.
  const bool has_process = run.pid != 0 || run.notes.empty();
  say_if(has_process && !run.end,
         "the process was killed or replaced: its last records are missing");
  say_if(end.signal != 0, fmt::format("the process was ended by signal {} ({})", end.signal,
                                      strsignal(static_cast<int>(end.signal))));
  say_if(end.error != 0, fmt::format("the recording was cut off while the process went on: {}",
                                     std::strerror(static_cast<int>(end.error))));
  say_if(end.dropped > 0,
         fmt::format("{} RECORDS WERE DROPPED: no buffer was free for them", end.dropped));
  say_if(end.outstanding > 0,
         fmt::format("another client of CUPTI, such as torch.profiler, took over: {} buffers of "
                     "records never came back (record without it)",
                     end.outstanding));
  say_if(end.names_left > 0,
         fmt::format("{} ranges are called (others): too many names", end.names_left));
  say_if(run.without_times > 0,
         fmt::format("{} kernels and copies could not be timed", run.without_times));
  say_if(run.unknown_chunks > 0,
         fmt::format("{} chunks of a later version were left out", run.unknown_chunks));
  return lines;
}

}  // namespace tidemark::importers
