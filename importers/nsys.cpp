// The recording's times begin with its session; the timeline with the first thing that is kept.
#include "importers/nsys.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <set>

#include "base/error.h"
#include "base/quoted.h"
#include "importers/nsys_phases.h"
#include "importers/nsys_tables.h"

namespace tidemark::importers {
namespace {

constexpr std::int64_t longest_recording = std::int64_t{1} << 50;  // of a timeline: 13 days

constexpr std::string_view remedy =
    "export it (again): nsys export --type sqlite -o report.sqlite report.nsys-rep";

bool is_unexported(const std::string& path) {
  return path.ends_with(".nsys-rep") || path.ends_with(".qdrep");
}

class NsysReading {
 public:
  NsysReading(SqliteFile& file, const std::string& name)
      : tables_(read_nsys_tables(file)), file_(file) {
    set_phases(file, tables_);
    find_times();
    TimelineBuilder builder(name, Nanoseconds{last_ - first_});
    add_runs(builder);
    add_memory(builder);
    made_ = std::move(builder).finish();
    made_.device = fmt::format("cuda:{}", tables_.device);
  }
  RecordedTimeline take() && { return std::move(made_); }

 private:
  void find_times();
  void add_runs(TimelineBuilder& builder) const;
  void add_memory(TimelineBuilder& builder) const;
  std::map<std::int64_t, BufferId> add_earlier(TimelineBuilder& builder) const;
  Nanoseconds since(std::int64_t time) const { return Nanoseconds{time - first_}; }

  NsysTables tables_;
  const SqliteFile& file_;
  std::int64_t first_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t last_ = std::numeric_limits<std::int64_t>::min();
  RecordedTimeline made_;
};

void NsysReading::find_times() {
  for (const NsysRun& run : tables_.runs) {
    first_ = std::min(first_, run.begin);
    last_ = std::max(last_, run.end);
  }
  for (const NsysMemory& event : tables_.memory) {
    first_ = std::min(first_, event.time);
    last_ = std::max(last_, event.time);
  }
  if (last_ - first_ > longest_recording)
    file_.fail(
        "its first and last record are more than 13 days apart; need one run of a few steps");
}

// Streams are numbered by each context for itself.
void NsysReading::add_runs(TimelineBuilder& builder) const {
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> lanes;
  for (const NsysRun& run : tables_.runs) lanes.try_emplace({run.context, run.stream});
  std::int64_t next = 0;
  for (auto& [stream, lane] : lanes) lane = next++;
  std::vector<RecordedSpan> spans;
  for (const NsysRun& run : tables_.runs)
    spans.push_back({since(run.begin), since(run.end), lanes[{run.context, run.stream}],
                     tables_.names[run.name], run.task});
  builder.add_runs(std::move(spans));
}

// What is given back and was never asked for was there before the recording began.
std::map<std::int64_t, BufferId> NsysReading::add_earlier(TimelineBuilder& builder) const {
  std::map<std::int64_t, BufferId> present;
  std::set<std::int64_t> seen;
  for (const NsysMemory& event : tables_.memory) {
    if (!seen.insert(event.address).second || event.appears) continue;
    const BufferId id = builder.add_buffer(
        event.bytes, builder.tensor("(in use before the recording)", "", event.bytes));
    present.emplace(event.address, id);
    builder.appear(id, Nanoseconds{});
  }
  return present;
}

void NsysReading::add_memory(TimelineBuilder& builder) const {
  std::map<std::int64_t, BufferId> present = add_earlier(builder);
  for (const NsysMemory& event : tables_.memory) {
    const auto found = present.find(event.address);
    if (event.appears && found == present.end()) {
      const BufferId id =
          builder.add_buffer(event.bytes, builder.tensor(event.name, "", event.bytes));
      present.emplace(event.address, id);
      builder.appear(id, since(event.time));
    } else if (!event.appears && found != present.end()) {
      builder.disappear(found->second, since(event.time));
      present.erase(found);
    }
  }
}

}  // namespace

bool is_nsys(const std::string& path) {
  return is_sqlite(path) || path.ends_with(".sqlite") || is_unexported(path);
}

RecordedTimeline read_nsys(const std::string& path, const std::string& name) {
  if (!std::filesystem::exists(path))
    throw InputError(fmt::format("{}: there is no such file", printable(path, 200)));
  if (is_unexported(path) && !is_sqlite(path))
    throw InputError(
        fmt::format("{}: is a report of Nsight Systems, which only its own programs read: nsys "
                    "export --type sqlite -o report.sqlite report.nsys-rep",
                    printable(path, 200)));
  SqliteFile file(path, std::string(remedy));
  return NsysReading(file, name).take();
}

}  // namespace tidemark::importers
