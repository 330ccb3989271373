#include "gui/comparison.h"

#include <algorithm>
#include <cstdlib>
#include <map>

namespace tidemark {
namespace {

using Sums = std::map<std::string, std::int64_t>;
using Unit = Difference::Unit;

// Time of the runs by what they are.
struct RunSums {
  Sums by_task, by_kind;
};

RunSums sum_runs(const Opened& opened) {
  std::array<std::int64_t, tasks.size()> by_task{};
  std::array<std::int64_t, op_rows.size()> by_kind{};
  std::int64_t copies = 0;
  for (std::size_t r = 0; r < opened.timeline().runs.size(); ++r) {
    const auto id = static_cast<RunId>(r);
    const std::int64_t time = (opened[id].end - opened[id].begin).count();
    const Run* run = opened.run_of(id);
    (run ? by_task[static_cast<std::size_t>(run->task)] : copies) += time;
    if (const OpId op = opened.op_of(id); op != no_op)
      by_kind[static_cast<std::size_t>(opened.trace()[op].kind)] += time;
  }
  RunSums sums;
  for (std::size_t t = 0; t < tasks.size(); ++t)
    sums.by_task[std::string(tasks[t].name)] = by_task[t];
  for (std::size_t k = 0; k < op_rows.size(); ++k)
    sums.by_kind[std::string(op_rows[k].name)] = by_kind[k];
  sums.by_task["copy"] = copies;
  return sums;
}

Sums at_peak(const Opened& opened) {
  Sums sums;
  const BytesByCategory bytes = opened.memory().categories_of(opened.peak());
  for (std::size_t c = 0; c < category_count; ++c)
    sums[std::string(to_string(static_cast<Category>(c)))] = bytes[c].count;
  return sums;
}

void add(std::vector<Difference>& rows, std::string_view group, Unit unit, const Sums& a,
         const Sums& b) {
  Sums all = a;
  all.insert(b.begin(), b.end());  // for the names
  const auto of = [](const Sums& sums, const std::string& name) {
    const auto found = sums.find(name);
    return found == sums.end() ? 0 : found->second;
  };
  std::vector<Difference> added;
  for (const auto& [name, amount] : all)
    if (of(a, name) != 0 || of(b, name) != 0)
      added.push_back({group, name, unit, of(a, name), of(b, name)});
  std::ranges::stable_sort(added, std::ranges::greater{},
                           [](const Difference& row) { return std::abs(row.change()); });
  rows.insert(rows.end(), added.begin(), added.end());
}

}  // namespace

std::vector<Difference> differences(const Opened& a, const Opened& b) {
  std::vector<Difference> rows;
  const auto time = [&](const char* name, Nanoseconds of_a, Nanoseconds of_b) {
    rows.push_back({"step", name, Unit::Time, of_a.count(), of_b.count()});
  };
  const auto memory = [&](const char* name, Bytes of_a, Bytes of_b) {
    rows.push_back({"step", name, Unit::Memory, of_a.count, of_b.count});
  };
  time("duration", a.timeline().duration, b.timeline().duration);
  memory("live peak", a.memory().total_of(a.peak()), b.memory().total_of(b.peak()));
  memory("arena", a.recording.planned, b.recording.planned);
  time("overlap", a.timeline().overlap, b.timeline().overlap);
  time("idle", a.timeline().idle, b.timeline().idle);
  std::erase_if(rows, [](const Difference& row) { return row.a == 0 && row.b == 0; });
  add(rows, "at the peak", Unit::Memory, at_peak(a), at_peak(b));
  const RunSums of_a = sum_runs(a), of_b = sum_runs(b);
  add(rows, "time by task", Unit::Time, of_a.by_task, of_b.by_task);
  add(rows, "time by kind", Unit::Time, of_a.by_kind, of_b.by_kind);
  return rows;
}

std::string amount_text(Unit unit, std::int64_t amount) {
  return unit == Unit::Time ? to_text(Nanoseconds{amount}) : to_text(Bytes{amount});
}

}  // namespace tidemark
