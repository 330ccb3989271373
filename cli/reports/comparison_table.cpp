// A comparison for people: a table with memory bars, then cautions, refusals and units per block.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/reports/print_comparison.h"
#include "cli/text/text_table.h"
#include "cli/text/units_text.h"
#include "cli/text/wrapping.h"

namespace tidemark::cli {
namespace {

struct Units {
  SizeUnit size;
  TimeUnit time;
  double longest_bar;  // bytes
};

Units units_of(const Comparison& comparison) {
  Bytes largest, allocated;
  Nanoseconds longest{};
  for (const Report& row : comparison.rows) {
    allocated = std::max(allocated, row.allocated_peak);
    largest = std::max({largest, row.allocated_peak, row.reserved_peak});
    longest = std::max(longest, row.step);
  }
  return {SizeUnit(largest), TimeUnit(longest),
          static_cast<double>(std::max(allocated, Bytes{1}).count)};
}

// The table, and what stands in each of its columns.
struct Columns {
  using Cell = std::function<TextCell(const Report&)>;

  void add(TextColumn look, Cell cell) {
    table.add_column(std::move(look));
    cells.push_back(std::move(cell));
  }

  TextTable table;
  std::vector<Cell> cells;
};

TextCell change_cell(const std::optional<double>& ratio) {
  if (!ratio || *ratio == 1) return {};
  const std::string text = change_text(*ratio);
  const Ink ink = text.starts_with("+") ? Ink::Bad : text == "0.0 %" ? Ink::Plain : Ink::Good;
  return {text, ink};
}

bool is_any_communicating(const Comparison& comparison) {
  return std::ranges::any_of(
      comparison.rows, [](const Report& row) { return row.communication.alone > Nanoseconds{}; });
}

bool is_any_named(const Comparison& comparison) {
  return std::ranges::any_of(comparison.rows, [](const Report& row) { return !!row.rank; });
}

void add_memory(Columns& columns, const Units& units, bool has_ranks) {
  const auto size = [unit = units.size](Bytes Report::*member) {
    return [unit, member](const Report& row) { return TextCell{unit(row.*member)}; };
  };
  const auto bar = [scale = units.longest_bar](const Report& row) {
    return TextCell{"", Ink::Bar, static_cast<double>(row.allocated_peak.count) / scale};
  };
  columns.add({"strategy", Align::Left}, [](const Report& row) {
    return TextCell{row.strategy, Ink::Bold};
  });
  columns.add({"", Align::Bar, 6}, bar);
  if (has_ranks)
    columns.add({"rank", Align::Left}, [](const Report& row) {
      return TextCell{row.rank ? tidemark::to_text(*row.rank) : ""};
    });
  const std::string unit(units.size.name());
  columns.add({"allocated", Align::Right, 10, unit}, size(&Report::allocated_peak));
  columns.add({"change"}, [](const Report& row) { return change_cell(row.memory_ratio); });
  columns.add({"reserved", Align::Right, 5, unit}, size(&Report::reserved_peak));
  columns.add({"planned", Align::Right, 4, unit}, size(&Report::planned));
  columns.add({"host", Align::Right, 6, unit}, [unit = units.size](const Report& row) {
    return TextCell{row.pinned.count == 0 ? "" : unit(row.pinned)};
  });
}

void add_time(Columns& columns, const TimeUnit& unit, const std::string& throughput) {
  const auto time = [unit](Nanoseconds RecoveryTime::*member) {
    return [unit, member](const Report& row) {
      const Nanoseconds value = row.recovery.*member;
      return TextCell{value.count() == 0 ? "" : unit(value)};
    };
  };
  const std::string name(unit.name());
  const auto step = [unit](const Report& row) {
    return TextCell{(row.launch_bound ? "*" : "") + unit(row.step)};
  };
  columns.add({"step", Align::Right, 10, name}, step);
  columns.add({"change", Align::Right, 9},
              [](const Report& row) { return change_cell(row.time_ratio); });
  columns.add({throughput, Align::Right, 8},
              [](const Report& row) { return TextCell{throughput_text(row)}; });
  columns.add({"MFU", Align::Right, 7}, [](const Report& row) { return TextCell{mfu_text(row)}; });
  columns.add({"recompute", Align::Right, 3, name}, time(&RecoveryTime::alone));
  columns.add({"hidden", Align::Right, 2, name}, time(&RecoveryTime::hidden));
}

void add_communication(Columns& columns, const TimeUnit& unit) {
  const auto time = [unit](Nanoseconds Communication::*member) {
    return [unit, member](const Report& row) { return TextCell{unit(row.communication.*member)}; };
  };
  columns.add({"exchange", Align::Right, 4, std::string(unit.name())}, time(&Communication::alone));
  columns.add({"exposed", Align::Right, 6, std::string(unit.name())},
              time(&Communication::exposed));
}

void add_bubble(Columns& columns, const TimeUnit& unit) {
  columns.add({"bubble", Align::Right, 7, std::string(unit.name())},
              [unit](const Report& row) { return TextCell{unit(row.bubble)}; });
}

void add_fit(Columns& columns, bool has_batches) {
  columns.add({"fits", Align::Left}, [](const Report& row) {
    return TextCell{fits_text(row), row.fits && row.over_budget == Bytes{} ? Ink::Good : Ink::Bad};
  });
  if (!has_batches) return;
  columns.add({"max batch"}, [](const Report& row) { return TextCell{batches_text(row)}; });
}

}  // namespace

std::string comparison_rows(const Comparison& comparison, const Style& style,
                            std::string_view complete) {
  const Units units = units_of(comparison);
  Columns columns;
  const bool has_ranks = is_any_named(comparison);
  add_memory(columns, units, has_ranks);
  add_time(columns, units.time, throughput_title(comparison));
  if (is_any_communicating(comparison)) add_communication(columns, units.time);
  if (has_ranks) add_bubble(columns, units.time);
  add_fit(columns, comparison.scenario.finds_largest_batch);
  for (const Report& row : comparison.rows) {
    if (!row.applies) continue;
    std::vector<TextCell> cells;
    for (const Columns::Cell& cell : columns.cells) cells.push_back(cell(row));
    columns.table.add_row(std::move(cells));
  }
  const double mark = static_cast<double>(comparison.budget.capacity.count) / units.longest_bar;
  if (mark < 1) columns.table.set_mark(mark, "marks what the device has room for");
  std::string text = columns.table.draw(style, fmt::format("--format {} has all", complete));
  if (std::ranges::any_of(comparison.rows, &Report::launch_bound))
    text += "* launch-bound: for more than a tenth of the step, the device waits for the host\n";
  for (const std::string& note : notes_on(comparison)) {
    std::string head;
    for (const std::string& line : wrapped_lines(note, style.width - 2))
      text += std::exchange(head, "  ") + line + "\n";
  }
  return text;
}

std::string cautions_text(const Comparison& comparison, const Style& style) {
  std::string text;
  std::vector<std::string_view> told;
  for (const Report& row : comparison.rows) {
    const bool is_new = std::ranges::find(told, row.caution) == told.end();
    if (!row.applies || row.caution.empty() || !is_new) continue;
    told.push_back(row.caution);
    std::string names;
    for (const Report& other : comparison.rows)
      if (other.applies && other.caution == row.caution)
        names += (names.empty() ? "" : ", ") + other.strategy;
    std::string head = "  ";
    for (const std::string& line : wrapped_lines(names + ": " + row.caution, style.width - 2))
      text += std::exchange(head, "    ") + line + "\n";
  }
  return text.empty() ? text : "\nNot only memory and time:\n" + text;
}

namespace {

std::string refusal_of(const Report& row) { return refusal_text(row.strategy, row.reason); }

// The strategies that are refused with the reason of this one.
std::vector<std::string_view> refused_alike(const Comparison& comparison, const Report& row) {
  std::vector<std::string_view> names;
  for (const Report& other : comparison.rows)
    if (!other.applies && refusal_of(other) == refusal_of(row)) names.push_back(other.strategy);
  return names;
}

// What holds for many is said once.
constexpr std::size_t many = 4;

std::string draw_refusals(const Comparison& comparison, const Style& style) {
  std::string together, text;
  std::size_t longest = 0;
  std::vector<const Report*> alone;
  for (const Report& row : comparison.rows) {
    if (row.applies) continue;
    const std::vector<std::string_view> names = refused_alike(comparison, row);
    if (names.size() < many) {
      longest = std::max(longest, row.strategy.size());
      alone.push_back(&row);
    } else if (names.front() == row.strategy) {
      std::string head = "  ";
      const std::string sentence = fmt::format("{}: {}", fmt::join(names, ", "), refusal_of(row));
      for (const std::string& line : wrapped_lines(sentence, style.width - 4))
        together += std::exchange(head, "    ") + line + "\n";
    }
  }
  const std::size_t indent = longest + 4;
  for (const Report* row : alone) {
    std::string head = fmt::format("  {}", style.paint(row->strategy, Ink::Bold));
    head.append(indent - 2 - row->strategy.size(), ' ');
    for (const std::string& line : wrapped_lines(refusal_of(*row), style.width - indent))
      text += std::exchange(head, std::string(indent, ' ')) + line + "\n";
  }
  return text.empty() && together.empty() ? "" : "\nDoes not apply:\n" + together + text;
}

}  // namespace

std::string block_units_table(const Comparison& comparison, const Style& style);

std::string comparison_table(const Comparison& comparison, const Style& style, bool shows_units) {
  std::string text;
  for (const std::string& line : describe_scenario(comparison)) text += line + "\n";
  text += style.paint(origin_of_numbers(comparison), Ink::Dim) + "\n";
  if (std::ranges::any_of(comparison.rows, &Report::applies))
    text += "\n" + comparison_rows(comparison, style, "csv");
  text += cautions_text(comparison, style) + draw_refusals(comparison, style);
  if (shows_units) text += block_units_table(comparison, style);
  text += fmt::format("\n{}\n", to_text(comparison.conclusion));
  return style.unicode ? text : to_ascii(text);
}

}  // namespace tidemark::cli
