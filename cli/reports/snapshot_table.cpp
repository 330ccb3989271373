// What a recording says about its peak: how much, of what the allocator held, and who made it.
#include <fmt/format.h>

#include <algorithm>

#include "base/quoted.h"
#include "cli/reports/memory_picture.h"
#include "cli/reports/print_snapshot.h"
#include "cli/text/text_table.h"
#include "cli/text/units_text.h"

namespace tidemark::cli {
namespace {

using importers::OutOfMemory;
using importers::PoolState;
using importers::SnapshotReport;
using importers::StackGroup;

std::string percent(Bytes part, Bytes whole) {
  return fmt::format("{:.1f} %", 100 * static_cast<double>(part.count) /
                                     static_cast<double>(std::max<std::int64_t>(1, whole.count)));
}

std::string plural(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string head(const SnapshotFacts& facts, const Style& style) {
  const SnapshotReport& report = facts.report;
  std::string text =
      fmt::format("{}: memory snapshot of cuda:{}, {} in {}, {} in use before the first\n",
                  style.paint(printable(facts.file, 200), Ink::Bold), report.device,
                  plural(report.events, "event"), to_text(report.duration),
                  plural(report.blocks_before, "block"));
  const std::string& settings = facts.snapshot.settings_text;
  if (!settings.empty()) text += fmt::format("allocator: {}\n", printable(settings, 200));
  if (report.events == 0)
    text +=
        "It has no events (call torch.cuda.memory._record_memory_history() before the run): what "
        "follows is the pool at the moment of the dump.\n";
  return text;
}

std::string numbers(const SnapshotReport& report) {
  const SizeUnit unit(report.reserved_peak);
  std::string text = fmt::format("peak: active {} {}", unit(report.active_peak), unit.name());
  text += fmt::format(" · allocated {} · reserved {} {}\n", unit(report.allocated_peak),
                      unit(report.reserved_peak), unit.name());
  return text;
}

// "reserved 20.1 GiB = 17.3 in use + 2.8 free, in 41 gaps of which the largest has 512 MiB"
std::string pool_text(const PoolState& pool) {
  const SizeUnit unit(pool.reserved);
  std::string text =
      fmt::format("reserved {} in {} = {} in {} + {} free", unit.with_unit(pool.reserved),
                  plural(pool.segments, "segment"), unit.with_unit(pool.active),
                  plural(pool.blocks, "block"), unit.with_unit(pool.free()));
  if (pool.gaps > 0)
    text += fmt::format(" ({}), in {}, the largest {}", percent(pool.free(), pool.reserved),
                        plural(pool.gaps, "gap"), to_text(pool.largest_gap));
  if (pool.unused.count > 0)
    text += fmt::format("; {} in segments with nothing in them", to_text(pool.unused));
  return text + "\n";
}

std::string alive_table(const SnapshotFacts& facts, const Style& style, std::size_t top) {
  const auto& alive = facts.report.alive;
  const std::size_t shown = std::min(top, alive.size());
  const SizeUnit unit(alive.empty() ? Bytes{} : alive.front().size);
  TextTable table;
  table.add_column({"size", Align::Right, 10, std::string(unit.name())});
  table.add_column({"share", Align::Right, 8});
  table.add_column({"blocks", Align::Right, 9});
  table.add_column({"allocated by", Align::Left});
  Bytes rest = facts.report.active_peak;
  for (const StackGroup& group : std::span(alive).first(shown)) {
    rest -= group.size;
    table.add_row({{unit(group.size)},
                   {percent(group.size, facts.report.active_peak)},
                   {fmt::format("{}", group.blocks)},
                   {site_of(facts.snapshot, group.stack)}});
  }
  std::string text = table.draw(style, "--format json has all");
  if (shown < alive.size())
    text += fmt::format("… and {} more, {} (--top N shows more)\n", alive.size() - shown,
                        to_text(rest));
  return text;
}

std::string failures_text(const SnapshotFacts& facts) {
  std::string text;
  for (const OutOfMemory& failure : facts.report.failures)
    text += fmt::format(
        "\nOut of memory at {}: {} were asked for by {}; the device had {} left.\n  {}",
        to_text(failure.time), to_text(failure.requested), site_of(facts.snapshot, failure.stack),
        to_text(failure.device_free), pool_text(failure.pool));
  return text;
}

std::string notes(const SnapshotReport& report) {
  std::string text;
  if (report.devices_with_events > 1)
    text += fmt::format("note: {} devices were recorded; this is the one with most events\n",
                        report.devices_with_events);
  if (report.unknown_events > 0)
    text += fmt::format("note: {} of a kind that a newer PyTorch has brought were left out\n",
                        plural(report.unknown_events, "event"));
  if (report.contradictions > 0)
    text += fmt::format("note: {} of what is not there were left out (the recording has holes)\n",
                        plural(report.contradictions, "event"));
  return text;
}

}  // namespace

std::string snapshot_table(const SnapshotFacts& facts, const Style& style, std::size_t top) {
  const SnapshotReport& report = facts.report;
  std::string text = head(facts, style) + numbers(report);
  text += "\nBlocks in use over the recording:\n";
  text += memory_picture(facts.made.schedule, facts.made.timeline, style);
  text += fmt::format("The peak, {}, is at {} of {}; {} of it were asked for.\n",
                      to_text(report.active_peak), to_text(report.peak_time),
                      to_text(report.duration), to_text(report.requested_at_peak));
  text += "\nThe pool at the peak:\n  " + pool_text(report.at_peak);
  text += "The pool at the end:\n  " + pool_text(report.at_end);
  text += failures_text(facts);
  text += fmt::format("\nIn use at the peak, by {} that allocated it:\n",
                      plural(report.alive.size(), "stack"));
  text += alive_table(facts, style, top) + notes(report);
  return style.unicode ? text : to_ascii(text);
}

}  // namespace tidemark::cli
