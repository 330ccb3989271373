// Walks the events and runs of a range once.
#include "gui/range_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

namespace tidemark::gui {
namespace {

// Finds the row of an op's kind, of the optimizer, or of copies.
class RangeRows {
 public:
  explicit RangeRows(const Opened& opened) : opened_(opened) {}

  RangeRow& of(OpId op, std::string_view otherwise) {
    const std::string_view kind =
        op == no_op ? otherwise : operation_name(opened_.trace(), opened_.trace()[op]);
    const auto [found, is_new] = known_.try_emplace(kind, rows_.size());
    if (is_new) rows_.push_back({.kind = std::string(kind)});
    return rows_[found->second];
  }

  std::vector<RangeRow> take() {
    std::ranges::stable_sort(rows_, [](const RangeRow& a, const RangeRow& b) {
      return std::pair(b.busy, b.allocated) < std::pair(a.busy, a.allocated);
    });
    return std::move(rows_);
  }

 private:
  const Opened& opened_;
  std::unordered_map<std::string_view, std::size_t> known_;  ///< names of the trace, or literals
  std::vector<RangeRow> rows_;
};

void add_runs(const Opened& opened, std::int64_t begin, std::int64_t end, RangeRows& rows) {
  for (const TrackIndex& lane : opened.lanes())
    for (std::size_t i = lane.first_after(static_cast<double>(begin));
         i < lane.size() && lane.begin_of(i) < end; ++i) {
      const RunId id{lane.item_of(i)};
      const Run* run = opened.run_of(id);
      RangeRow& row = rows.of(opened.op_of(id), run ? to_string(run->task) : "copy");
      ++row.runs;
      row.busy += Nanoseconds{std::min(end, lane.end_of(i)) - std::max(begin, lane.begin_of(i))};
    }
}

void add_events(const Opened& opened, StateId first, StateId last, RangeRows& rows,
                RangeTable& table) {
  for (StateId state = first; state < last; ++state) {
    const MemoryEvent& event = opened.timeline().memory[state];
    const Buffer& buffer = opened.schedule()[event.buffer];
    RangeRow& row = rows.of(opened.home_of(event.buffer), to_string(buffer.category));
    (event.appears ? table.allocated : table.freed) += buffer.size;
    (event.appears ? row.allocated : row.freed) += buffer.size;
    ++(event.appears ? table.allocations : table.frees);
    // What came and went in between makes no difference.
    if (opened.buffers().is_alive(event.buffer, first) !=
        opened.buffers().is_alive(event.buffer, last))
      table.tensors.push_back({event.buffer, event.appears});
  }
}

// The largest; a buffer that leaves and comes back in the range was counted at each event.
void keep_largest(const Opened& opened, std::vector<RangeTensor>& tensors, std::size_t& others) {
  std::ranges::stable_sort(tensors, {}, &RangeTensor::buffer);
  const auto last = std::unique(tensors.begin(), tensors.end(),
                                [](const auto& a, const auto& b) { return a.buffer == b.buffer; });
  tensors.erase(last, tensors.end());
  std::ranges::stable_sort(tensors, std::ranges::greater{}, [&](const RangeTensor& one) {
    return opened.schedule()[one.buffer].size;
  });
  if (tensors.size() <= RangeTable::most_listed) return;
  others = tensors.size() - RangeTable::most_listed;
  tensors.resize(RangeTable::most_listed);
}

}  // namespace

RangeTable range_table(const Opened& opened, Range range) {
  const double begin = std::clamp(range.begin, 0.0, opened.end());
  const double end = std::clamp(range.end, begin, opened.end());
  const StateId first = opened.memory().at(begin), last = opened.memory().at(end);
  RangeTable table;
  table.at_begin = opened.memory().total_of(first), table.at_end = opened.memory().total_of(last);
  RangeRows rows(opened);
  add_runs(opened, static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end), rows);
  add_events(opened, first, last, rows, table);
  table.rows = rows.take();
  keep_largest(opened, table.tensors, table.others);
  return table;
}

std::vector<Fact> lines_of(const RangeTable& table) {
  return {{"live at its end",
           fmt::format("{}, {}", to_text(table.at_end), change_text(table.at_begin, table.at_end))},
          {"allocated", fmt::format("{} in {}", to_text(table.allocated), table.allocations)},
          {"freed", fmt::format("{} in {}", to_text(table.freed), table.frees)}};
}

const RangeTable* NewestRange::look(const Shown& opened, Range range) {
  if (coming_.valid() && !is_catching_up()) newest_ = coming_.get();
  if (coming_.valid() || (opened_ == opened && range_ == range))
    return newest_ ? &*newest_ : nullptr;
  if (opened_ != opened) newest_.reset();
  opened_ = opened, range_ = range;
  const auto make = [opened, range] { return range_table(*opened, range); };
  const std::size_t events = opened->memory().at(range.end) - opened->memory().at(range.begin);
  if (events + facts_of(*opened, range).runs <= most_at_once) {
    newest_ = make();
  } else {
    coming_ = std::async(std::launch::async, make);
  }
  return newest_ ? &*newest_ : nullptr;
}

}  // namespace tidemark::gui
