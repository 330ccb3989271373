// Lines are appended and flushed one by one: a process that is ended loses the one it was writing.
#include "cli/commands/search_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>
#include <span>

#include "base/error.h"
#include "base/files.h"
#include "base/quoted.h"
#include "cli/commands/scenario.h"

namespace tidemark::cli {
namespace {

// A row has 400 bytes.
constexpr FileKindRow records_kind = {FileKind::Recording, "the records of a search",
                                      Bytes{std::int64_t{1} << 30}, "search in more parts"};

/// Where a task finds its number among how many, and the least number.
struct TaskVariables {
  const char* number;
  const char* count;
  const char* least;  ///< null: 0
};

constexpr std::array task_variables = {
    TaskVariables{"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN"},
    TaskVariables{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", nullptr},
    TaskVariables{"PMI_RANK", "PMI_SIZE", nullptr},
    TaskVariables{"SLURM_PROCID", "SLURM_NTASKS", nullptr}};

// Else several processes would do the part of their array task, or numbers that no task has stay
// undone.
void require_single_tasks() {
  const char* const step = std::getenv("SLURM_ARRAY_TASK_STEP");
  if (step && parse_count(step, "SLURM_ARRAY_TASK_STEP", 1, LayoutPart::most) != 1)
    throw UsageError(fmt::format(
        "--part auto: the array counts in steps of {} (give --part I/N, or an array 1-7)",
        printable(step, 40)));
  for (const TaskVariables& row : task_variables) {
    const char* const count = std::getenv(row.count);
    if (&row == &task_variables.front() || !std::getenv(row.number) || !count) continue;
    if (parse_count(count, row.count, 1, LayoutPart::most) > 1)
      throw UsageError(fmt::format(
          "--part auto: {} is set, and {} is {} (give --part I/N, or each array task one process)",
          task_variables.front().number, row.count, printable(count, 40)));
  }
}

LayoutRecords records_in(std::string_view text, const std::string& path) {
  LayoutRecords records = read_layout_records(text, path);
  if (records.arguments.empty() && records.whole > 0)
    throw InputError(fmt::format("{}: names no search", printable(path, 200)));
  return records;
}

LayoutRecords read_records(const std::string& path) {
  return records_in(read_file(path, records_kind), path);
}

// "2, 5, 6"; of many the first, and how many more there are.
std::string missing_parts(const std::set<std::int64_t>& there, std::int64_t count) {
  constexpr std::size_t most = 20;
  std::vector<std::int64_t> missing;
  for (std::int64_t part = 1; part <= count; ++part)
    if (!there.contains(part)) missing.push_back(part);
  const std::size_t shown = std::min(most, missing.size());
  return fmt::format(
      "{}{}", fmt::join(std::span(missing).first(shown), ", "),
      shown == missing.size() ? "" : fmt::format(" and {} more", missing.size() - shown));
}

void require_same(const LayoutRecords& a, const LayoutRecords& b, const std::string& path) {
  if (a.version != b.version)
    throw InputError(fmt::format("{}: is of tidemark {}, and this is {} (begin another file)",
                                 printable(path, 200), printable(b.version, 40),
                                 printable(a.version, 40)));
  if (a.question != b.question || a.part.count != b.part.count)
    throw InputError(fmt::format(
        "{}: has the records of another search (begin another file): tidemark {}",
        printable(path, 200), printable(fmt::format("{}", fmt::join(b.arguments, " ")), 400)));
}

}  // namespace

LayoutPart search_part(const std::string& text) {
  if (text != "auto") return parse_layout_part(text);
  for (const TaskVariables& row : task_variables) {
    const char *number = std::getenv(row.number), *count = std::getenv(row.count);
    if (!number || !count) continue;
    if (&row == &task_variables.front()) require_single_tasks();
    const char* least = row.least ? std::getenv(row.least) : nullptr;
    const std::int64_t first = least ? parse_count(least, row.least, 0, LayoutPart::most) : 0;
    const std::int64_t all = parse_count(count, row.count, 1, LayoutPart::most);
    return {parse_count(number, row.number, first, first + all - 1) - first + 1, all};
  }
  throw UsageError(
      "--part auto: none of SLURM_ARRAY_TASK_ID, OMPI_COMM_WORLD_RANK, PMI_RANK and SLURM_PROCID "
      "is set (give --part 1/7)");
}

std::string records_path(const std::string& path, const LayoutPart& part) {
  if (part.count == 1) return path;
  const std::filesystem::path whole(path);
  const std::string name = fmt::format("{}.{}-of-{}{}", whole.stem().string(), part.index,
                                       part.count, whole.extension().string());
  return (whole.parent_path() / name).string();
}

SearchRecords::SearchRecords(const std::string& path, LayoutRecords asked)
    : path_(path), records_(std::move(asked)) {
  if (path.ends_with(".zst"))
    throw InputError(
        fmt::format("{}: is written line by line, and is not compressed (leave .zst out)",
                    printable(path, 200)));
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) take_up();
  file_.reset(std::fopen(path.c_str(), "ab"));
  if (!file_)
    throw InputError(fmt::format("cannot write {}: {}", printable(path, 200), strerror(errno)));
  if (records_.whole == 0) write(header_line(records_));
}

// Cut off is a line of this search that was torn, and nothing else.
void SearchRecords::take_up() {
  std::error_code failed;
  if (!std::filesystem::is_regular_file(path_, failed))
    throw InputError(fmt::format("{}: is no regular file, which can be read again (name another)",
                                 printable(path_, 200)));
  const std::string text = read_file(path_, records_kind);
  LayoutRecords before = records_in(text, path_);
  if (before.whole > 0) {
    require_same(records_, before, path_);
  } else if (!header_line(records_).starts_with(text)) {
    throw InputError(fmt::format("{}: holds no search (name another file)", printable(path_, 200)));
  }
  if (before.whole != text.size()) std::filesystem::resize_file(path_, before.whole, failed);
  if (failed)
    throw InputError(fmt::format("cannot write {}: {}", printable(path_, 200), failed.message()));
  records_.rows = std::move(before.rows);
  records_.is_done = before.is_done;
  records_.whole = before.whole;
}

const LayoutNumbers* SearchRecords::find(const std::string& key) const {
  const auto found = records_.rows.find(key);
  return found == records_.rows.end() ? nullptr : &found->second;
}

void SearchRecords::add(const FoundLayout& made) { write(row_line(made)); }

void SearchRecords::finish() {
  if (!records_.is_done) write(done_line());
}

void SearchRecords::write(const std::string& line) {
  const bool is_written = std::fwrite(line.data(), 1, line.size(), file_.get()) == line.size();
  if (!is_written || std::fflush(file_.get()) != 0)
    throw InputError(fmt::format("cannot write {}: {}", printable(path_, 200), strerror(errno)));
}

LayoutRecords merged_records(const std::vector<std::string>& paths) {
  LayoutRecords all;
  std::set<std::int64_t> parts;
  for (const std::string& path : paths) {
    LayoutRecords records = read_records(path);
    if (!records.is_done)
      throw InputError(fmt::format("{}: was stopped before its end (run it again: it goes on)",
                                   printable(path, 200)));
    if (parts.empty()) {
      all = records;
    } else {
      require_same(all, records, path);
    }
    parts.insert(records.part.index);
    all.rows.merge(records.rows);
  }
  if (static_cast<std::int64_t>(parts.size()) == all.part.count) return all;
  throw InputError(fmt::format("of {} parts these are missing: {}", all.part.count,
                               missing_parts(parts, all.part.count)));
}

}  // namespace tidemark::cli
