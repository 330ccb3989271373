// Writes table cells with exact values for sorting, and the assumptions as lists; escapes texts.
#include "cli/reports/html_parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/export/svg.h"
#include "cli/reports/print_comparison.h"
#include "cli/text/units_text.h"

namespace tidemark::cli {
namespace {

struct Cell {
  std::string text;
  std::string value = {};  ///< exact, for sorting
  std::string_view kind = {};
};

std::string cell_html(const Cell& cell) {
  std::string text = "<td";
  if (!cell.kind.empty()) text += fmt::format(" class=\"{}\"", cell.kind);
  if (!cell.value.empty()) text += fmt::format(" data-value=\"{}\"", cell.value);
  return text + fmt::format(">{}</td>", exports::xml_escaped(cell.text));
}

Cell change(const std::optional<double>& ratio) {
  if (!ratio) return {"", "1"};
  const std::string text = *ratio == 1 ? "" : change_text(*ratio);
  return {text, fmt::format("{}", *ratio), text.starts_with("+") ? "bad" : "good"};
}

std::vector<Cell> cells_of(const Report& row, const SizeUnit& size, const TimeUnit& time,
                           bool has_batches) {
  const auto bytes = [&](Bytes b) { return Cell{size(b), fmt::format("{}", b.count)}; };
  const auto duration = [&](Nanoseconds t) {
    return Cell{t.count() == 0 ? "" : time(t), fmt::format("{}", t.count())};
  };
  std::vector<Cell> cells = {
      {row.strategy},
      bytes(row.allocated_peak),
      change(row.memory_ratio),
      bytes(row.reserved_peak),
      bytes(row.planned),
      bytes(row.live_peak),
      duration(row.step),
      change(row.time_ratio),
      {throughput_text(row), fmt::format("{}", row.throughput)},
      {mfu_text(row), fmt::format("{}", row.mfu)},
      duration(row.recovery.alone),
      duration(row.recovery.hidden),
      {fits_text(row), "", row.fits && row.over_budget == Bytes{} ? "text good" : "text bad"}};
  if (has_batches) {
    cells.push_back({batches_text(row), fmt::format("{}", row.batches ? row.batches->every : 0)});
  }
  return cells;
}

std::string item(const std::string& text) {
  return fmt::format("<li>{}</li>\n", exports::xml_escaped(text));
}

// Each note once, with the strategies that it is about.
std::string notes(const Comparison& comparison) {
  struct Note {
    std::string text, strategies;
    bool applies;
  };
  std::vector<Note> found;
  const auto add = [&](const Report& row, const std::string& text) {
    if (text.empty()) return;
    const auto known = std::ranges::find(found, text, &Note::text);
    if (known == found.end()) return found.push_back({text, row.strategy, row.applies});
    known->strategies += ", " + row.strategy;
  };
  for (const Report& row : comparison.rows) {
    add(row, row.applies ? row.caution : refusal_text(row.strategy, row.reason));
    if (row.launch_bound)
      add(row, "launch-bound: for more than a tenth of the step, the device waits for the host");
  }
  std::string text;
  for (const std::string& note : notes_on(comparison)) text += item(note);
  for (const Note& note : found)
    text += fmt::format("<li><b>{}</b>{}: {}</li>\n", exports::xml_escaped(note.strategies),
                        note.applies ? "" : " does not apply", exports::xml_escaped(note.text));
  return text.empty() ? text : "<ul>\n" + text + "</ul>\n";
}

std::string allocator_text(const allocator::AllocatorSettings& settings) {
  return settings == allocator::AllocatorSettings()
             ? "Allocated and reserved: PyTorch's caching allocator with its default settings."
             : "Allocated and reserved: PyTorch's caching allocator as set by --alloc-conf.";
}

}  // namespace

std::string report_table(const Comparison& comparison) {
  Bytes largest;
  Nanoseconds longest{};
  bool has_batches = false;
  for (const Report& row : comparison.rows) {
    largest = std::max({largest, row.allocated_peak, row.reserved_peak});
    longest = std::max(longest, row.step);
    has_batches |= row.batches.has_value();
  }
  const SizeUnit size(largest);
  const TimeUnit time(longest);
  std::vector<std::string> titles = {"strategy",
                                     fmt::format("allocated [{}]", size.name()),
                                     "change",
                                     "reserved",
                                     "planned",
                                     "live",
                                     fmt::format("step [{}]", time.name()),
                                     "change",
                                     throughput_title(comparison),
                                     "MFU",
                                     "recompute",
                                     "hidden",
                                     "fits"};
  if (has_batches) titles.emplace_back("max batch");
  std::string text = "<div class=\"wide\"><table class=\"sorted\">\n<thead><tr>";
  for (const std::string& title : titles)
    text += fmt::format("<th>{}</th>", exports::xml_escaped(title));
  text += "</tr></thead>\n<tbody>\n";
  for (const Report& row : comparison.rows) {
    if (!row.applies) continue;
    text += "<tr>";
    for (const Cell& cell : cells_of(row, size, time, has_batches)) text += cell_html(cell);
    text += "</tr>\n";
  }
  return text + "</tbody>\n</table></div>\n" + notes(comparison);
}

std::string assumptions(const Comparison& comparison) {
  const Device& device = comparison.scenario.device;
  const Framework& framework = find_framework(comparison.scenario.step.framework);
  std::string text = "<ul>\n";
  text += item(fmt::format("Which tensors are cast, copied and kept: {} ({}).", framework.title,
                           framework.source));
  text += item(allocator_text(comparison.budget.allocator));
  text += item(fmt::format(
      "Room for tensors: {}{}.", to_text(comparison.budget.capacity),
      comparison.scenario.budget
          ? std::string(", a budget")
          : fmt::format(", the device's {} less {} for the CUDA context", to_text(device.capacity),
                        to_text(device.context.value_or(Bytes{})))));
  text += item(fmt::format(
      "Times: a cost model of {} with {} SMs and {:.0f} GB/s; {} for the host to launch a kernel. "
      "tidemark devices {} names the source of each figure.",
      device.title, device.sm_count, device.bytes_per_second / 1e9, to_text(device.host_launch),
      device.name));
  text += item(
      "Live: present tensors in the order that the schedule guarantees. Planned: one arena with a "
      "fixed offset for each tensor. Recompute: in the step on one stream; hidden: how much "
      "shorter the step is on two.");
  text += item(
      "MFU: FLOP of the network's matrix products, forward and backward without recomputation, "
      "over "
      "the step's time and the device's nominal rate in this precision (arXiv 2204.02311, "
      "appendix B).");
  text += item(
      "Not in these numbers: data loading, communication between devices, and memory of "
      "libraries beyond the CUDA context.");
  return text + "</ul>\n";
}

std::string script_escaped(std::string_view json) {
  std::string out;
  for (const char c : json) {
    // In JSON a '<' stands only in strings, where an escape means the same.
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace tidemark::cli
