// Tables are there if something was recorded for them, and columns since some version or other:
// what is needed is asked for by name, what is not may be missing. Names and numbers are those of
// the "SQLite Export Schema Reference" of Nsight Systems (docs.nvidia.com/nsight-systems).
#include "importers/nsys_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "importers/gpu_names.h"

namespace tidemark::importers {
namespace {

constexpr std::int64_t furthest = std::int64_t{1} << 61;  // so that differences are numbers, too

std::int64_t time_of(const SqliteRow& row, std::size_t column) {
  const std::int64_t time = row.integer(column);
  if (time < -furthest || time > furthest) row.fail("its time is no time of a recording");
  return time;
}

class TableReader {
 public:
  explicit TableReader(SqliteFile& file) : file_(file) {}
  NsysTables read() &&;

 private:
  void read_kernels();
  void read_copies();
  void read_others();
  void add_run(const SqliteRow& row, std::uint32_t name);
  void name_kernels();
  void keep_the_busiest();
  void read_memory();
  std::vector<std::pair<std::int64_t, const char*>> kinds_of_memory();
  std::uint32_t name(const std::string& text);
  std::int64_t number_of(std::string_view table, std::string_view name, std::int64_t otherwise);

  SqliteFile& file_;
  NsysTables made_;
  std::map<std::string, std::uint32_t> names_;
  std::unordered_map<std::int64_t, std::uint32_t> kernel_names_;  // by number of their text
};

/// The columns that all that ran has, in this order, before its own.
std::vector<SqliteColumn> of_runs(std::initializer_list<SqliteColumn> own) {
  std::vector<SqliteColumn> columns = {{"start"},
                                       {"end"},
                                       {"deviceId"},
                                       {"streamId"},
                                       {"contextId", false},
                                       {"correlationId", false},
                                       {"globalPid", false}};
  columns.insert(columns.end(), own);
  return columns;
}
constexpr std::size_t first_own = 7;

NsysTables TableReader::read() && {
  if (!file_.has("StringIds"))
    file_.fail(
        "is a database of SQLite, but no export of Nsight Systems (nsys export --type sqlite -o "
        "report.sqlite report.nsys-rep)");
  read_kernels();
  read_copies();
  read_others();
  if (made_.runs.empty())
    file_.fail("holds no kernel, copy or fill of a GPU (nsys profile --trace=cuda,nvtx)");
  keep_the_busiest();
  read_memory();
  return std::move(made_);
}

// Names as the compiler has them say the same on every machine; older exports have only names that
// were made readable.
void TableReader::read_kernels() {
  file_.each_row("CUPTI_ACTIVITY_KIND_KERNEL",
                 of_runs({{"mangledName", false}, {"demangledName", false}, {"shortName", false}}),
                 [&](const SqliteRow& row) {
                   std::int64_t text = 0;
                   for (const std::size_t column : {first_own + 2, first_own + 1, first_own})
                     text = row.integer_or(column, text);
                   const auto next = static_cast<std::uint32_t>(made_.names.size());
                   const auto [known, is_new] = kernel_names_.try_emplace(text, next);
                   if (is_new) made_.names.emplace_back("(no name)");
                   add_run(row, known->second);
                 });
  name_kernels();
}

void TableReader::name_kernels() {
  if (kernel_names_.empty()) return;
  file_.each_row("StringIds", {{"id"}, {"value"}}, [&](const SqliteRow& row) {
    const auto wanted = kernel_names_.find(row.integer(0));
    if (wanted != kernel_names_.end())
      made_.names[wanted->second] = kernel_name(std::string(row.text(1)));
  });
}

void TableReader::read_copies() {
  const std::int64_t pageable =
      number_of("ENUM_CUDA_MEM_KIND", "CUDA_MEMOPR_MEMORY_KIND_PAGEABLE", 0);
  file_.each_row("CUPTI_ACTIVITY_KIND_MEMCPY",
                 of_runs({{"copyKind"}, {"srcKind", false}, {"dstKind", false}}),
                 [&](const SqliteRow& row) {
                   constexpr std::int64_t unknown = -1;
                   const bool is_pageable = row.integer_or(first_own + 1, unknown) == pageable ||
                                            row.integer_or(first_own + 2, unknown) == pageable;
                   add_run(row, name(copy_name(row.integer(first_own), is_pageable)));
                 });
}

// Whole graphs are recorded where --cuda-graph-trace=node was not asked for.
void TableReader::read_others() {
  file_.each_row("CUPTI_ACTIVITY_KIND_MEMSET", of_runs({}),
                 [&](const SqliteRow& row) { add_run(row, name("fill")); });
  file_.each_row("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", of_runs({{"graphId", false}}),
                 [&](const SqliteRow& row) {
                   const std::int64_t graph = row.integer_or(first_own, 0);
                   add_run(row, name(fmt::format("CUDA graph {}", graph)));
                 });
}

void TableReader::add_run(const SqliteRow& row, std::uint32_t name) {
  const NsysRun run{.begin = time_of(row, 0),
                    .end = time_of(row, 1),
                    .process = row.integer_or(6, 0),
                    .device = row.integer(2),
                    .context = row.integer_or(4, 0),
                    .stream = row.integer(3),
                    .correlation = row.integer_or(5, 0),
                    .name = name};
  if (run.begin == 0 && run.end == 0) return;  // CUPTI could not time it
  if (run.end < run.begin) row.fail("end is before start");
  made_.runs.push_back(run);
}

std::uint32_t TableReader::name(const std::string& text) {
  const auto [known, is_new] =
      names_.try_emplace(text, static_cast<std::uint32_t>(made_.names.size()));
  if (is_new) made_.names.push_back(text);
  return known->second;
}

// Devices are numbered by each process for itself: of two processes 0 may be two GPUs.
void TableReader::keep_the_busiest() {
  std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> counts;
  for (const NsysRun& run : made_.runs) ++counts[{run.process, run.device}];
  const auto busiest = std::ranges::max_element(counts, {}, [](auto& row) { return row.second; });
  std::tie(made_.process, made_.device) = busiest->first;
  std::erase_if(made_.runs, [&](const NsysRun& run) {
    return run.process != made_.process || run.device != made_.device;
  });
}

// Of the device: what lies in the host's memory is none of its.
std::vector<std::pair<std::int64_t, const char*>> TableReader::kinds_of_memory() {
  struct Kind {
    std::string_view name;
    std::int64_t usual_number;
    const char* shown;
  };
  constexpr Kind kinds[] = {
      {"CUDA_MEMOPR_MEMORY_KIND_DEVICE", 2, driver_memory_name},
      {"CUDA_MEMOPR_MEMORY_KIND_ARRAY", 3, driver_memory_name},
      {"CUDA_MEMOPR_MEMORY_KIND_MANAGED", 4, managed_memory_name},
      {"CUDA_MEMOPR_MEMORY_KIND_DEVICE_STATIC", 5, static_memory_name},
      {"CUDA_MEMOPR_MEMORY_KIND_MANAGED_STATIC", 6, static_memory_name},
  };
  std::vector<std::pair<std::int64_t, const char*>> found;
  for (const Kind& kind : kinds)
    found.emplace_back(number_of("ENUM_CUDA_MEM_KIND", kind.name, kind.usual_number), kind.shown);
  return found;
}

// Only with --cuda-memory-usage=true. Some versions write it without times, all of them 0: that is
// a list, and no curve.
void TableReader::read_memory() {
  const auto kinds = kinds_of_memory();
  const std::int64_t released =
      number_of("ENUM_CUDA_DEV_MEM_EVENT_OPER", "CUDA_DEV_MEM_EVENT_OPR_DEALLOCATION", 1);
  file_.each_row(
      "CUDA_GPU_MEMORY_USAGE_EVENTS",
      {{"start"},
       {"deviceId"},
       {"address"},
       {"bytes"},
       {"memoryOperationType"},
       {"memKind", false},
       {"globalPid", false},
       {"localMemoryPoolAddress", false}},
      [&](const SqliteRow& row) {
        constexpr std::int64_t device = 2, most = std::int64_t{1} << 48;  // what addresses can name
        const auto kind = std::ranges::find(kinds, row.integer_or(5, device),
                                            &std::pair<std::int64_t, const char*>::first);
        const std::int64_t time = time_of(row, 0), bytes = row.integer(3);
        if (time == 0 || kind == kinds.end() || row.integer(1) != made_.device ||
            row.integer_or(6, made_.process) != made_.process)
          return;
        if (bytes < 0 || bytes > most) row.fail("bytes is no size of memory");
        const bool is_pooled = row.integer_or(7, 0) != 0;
        made_.memory.push_back({.time = time,
                                .address = row.integer(2),
                                .bytes = bytes,
                                .name = is_pooled ? pool_memory_name : kind->second,
                                .appears = row.integer(4) != released});
      });
  std::ranges::stable_sort(made_.memory, {}, &NsysMemory::time);
}

// What a number means is said by a table of the export, where there is one.
std::int64_t TableReader::number_of(std::string_view table, std::string_view name,
                                    std::int64_t otherwise) {
  std::int64_t found = otherwise;
  if (file_.has(table, "name"))
    file_.each_row(table, {{"id"}, {"name"}}, [&](const SqliteRow& row) {
      if (row.has(1) && row.text(1) == name) found = row.integer(0);
    });
  return found;
}

}  // namespace

NsysTables read_nsys_tables(SqliteFile& file) { return TableReader(file).read(); }

}  // namespace tidemark::importers
