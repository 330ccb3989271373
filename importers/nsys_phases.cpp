// A launch is of the innermost range of its own thread that says a phase. The autograd engine
// launches from a thread of its own while the script waits within its range: where a thread says
// nothing, what another one of the process says at that time holds.
#include "importers/nsys_phases.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <map>
#include <string>
#include <unordered_map>

namespace tidemark::importers {
namespace {

// A thread's id has its process's in it (docs of the export: "Serialized process and thread ids").
constexpr std::int64_t threads = 0x1000000;
std::int64_t process_of(std::int64_t thread) { return thread - thread % threads; }

struct Phase {
  std::int64_t begin = 0, end = 0;
  Task task = Task::Forward;
};

/// Ranges that say a phase, by when they begin; those of one thread lie within each other.
class Phases {
 public:
  void add(const Phase& phase) { phases_.push_back(phase); }

  void sort() {
    std::ranges::sort(phases_, [](const Phase& a, const Phase& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
    });
    outer_.assign(phases_.size(), none);
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < phases_.size(); ++i) {
      while (!open.empty() && phases_[open.back()].end <= phases_[i].begin) open.pop_back();
      if (!open.empty()) outer_[i] = open.back();
      open.push_back(i);
    }
  }

  std::optional<Task> at(std::int64_t time) const {
    const auto next = std::ranges::upper_bound(phases_, time, {}, &Phase::begin);
    if (next == phases_.begin()) return std::nullopt;
    auto i = static_cast<std::size_t>(next - phases_.begin()) - 1;
    while (i != none && phases_[i].end < time) i = outer_[i];
    return i == none ? std::nullopt : std::optional(phases_[i].task);
  }

 private:
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  std::vector<Phase> phases_;
  std::vector<std::size_t> outer_;
};

/// Of a process: its threads, and all of them together.
struct ProcessPhases {
  std::map<std::int64_t, Phases> by_thread;
  Phases all;

  std::optional<Task> at(std::int64_t thread, std::int64_t time) const {
    const auto own = by_thread.find(thread);
    const auto said = own == by_thread.end() ? std::nullopt : own->second.at(time);
    return said ? said : all.at(time);
  }
};

// Registered names of ranges are numbers of texts, which are looked up once.
std::unordered_map<std::int64_t, Task> phases_of_texts(SqliteFile& file) {
  std::unordered_map<std::int64_t, Task> found;
  file.each_row("StringIds", {{"id"}, {"value"}}, [&](const SqliteRow& row) {
    if (!row.has(1)) return;
    constexpr std::size_t longest = 400;  // texts may be whole files: no range is called so
    const std::string_view text = row.text(1);
    if (text.size() > longest) return;
    if (const auto phase = phase_of(text)) found.emplace(row.integer(0), *phase);
  });
  return found;
}

ProcessPhases read_phases(SqliteFile& file, std::int64_t process) {
  ProcessPhases found;
  if (!file.has("NVTX_EVENTS")) return found;
  const std::unordered_map<std::int64_t, Task> texts = phases_of_texts(file);
  file.each_row("NVTX_EVENTS",
                {{"start"}, {"end"}, {"text"}, {"globalTid", false}, {"textId", false}},
                [&](const SqliteRow& row) {
                  const std::int64_t thread = row.integer_or(3, 0);
                  if (!row.has(1) || process_of(thread) != process) return;
                  std::optional<Task> task;
                  if (row.has(2)) task = phase_of(row.text(2));
                  const auto named = texts.find(row.integer_or(4, -1));
                  if (!task && named != texts.end()) task = named->second;
                  const Phase phase{row.integer(0), row.integer(1), task.value_or(Task::Forward)};
                  if (!task || phase.end < phase.begin) return;
                  found.by_thread[thread].add(phase);
                  found.all.add(phase);
                });
  for (auto& [thread, phases] : found.by_thread) phases.sort();
  found.all.sort();
  return found;
}

}  // namespace

std::optional<Task> phase_of(std::string_view range) {
  if (range.starts_with("autograd::engine::")) return Task::Backward;
  constexpr std::array<std::pair<std::string_view, Task>, 5> words = {
      {{"forward", Task::Forward},
       {"fwd", Task::Forward},
       {"backward", Task::Backward},
       {"bwd", Task::Backward},
       {"optimizer", Task::Optimizer}}};
  std::string word;
  for (std::size_t i = 0; i <= range.size(); ++i) {
    const int letter = i < range.size() ? static_cast<unsigned char>(range[i]) : ' ';
    if (std::isalpha(letter) != 0) {
      word += static_cast<char>(std::tolower(letter));
      continue;
    }
    for (const auto& [name, task] : words)
      if (word == name) return task;
    word.clear();
  }
  return std::nullopt;
}

void set_phases(SqliteFile& file, NsysTables& tables) {
  const ProcessPhases phases = read_phases(file, tables.process);
  if (phases.by_thread.empty()) return;
  std::unordered_map<std::int64_t, Task> by_launch;
  file.each_row("CUPTI_ACTIVITY_KIND_RUNTIME",
                {{"start"}, {"correlationId", false}, {"globalTid", false}},
                [&](const SqliteRow& row) {
                  const std::int64_t thread = row.integer_or(2, 0);
                  if (!row.has(1) || process_of(thread) != tables.process) return;
                  if (const auto task = phases.at(thread, row.integer(0)))
                    by_launch.emplace(row.integer(1), *task);
                });
  for (NsysRun& run : tables.runs) {
    const auto launched = by_launch.find(run.correlation);
    if (launched != by_launch.end()) run.task = launched->second;
  }
}

}  // namespace tidemark::importers
