// Gathers and words the facts about a run, a buffer, a report and a range of time.
#include "gui/facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gui/navigation.h"

namespace tidemark::gui {
namespace {

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

std::string shapes_of(const Opened& opened, const Op& op) {
  std::string text;
  for (const TensorId output : opened.trace().outputs(op)) {
    const Tensor& tensor = opened.trace()[output];
    if (!text.empty()) text += ", ";
    text += fmt::format("{} {}", to_text(tensor.shape), to_string(tensor.dtype));
  }
  return text;
}

// To the microsecond: neighbouring runs differ.
std::string moment_text(Nanoseconds moment) {
  return tick_text(static_cast<double>(moment.count()), 1000);
}

Bytes sum_of(const Schedule& schedule, std::span<const BufferId> buffers) {
  Bytes sum;
  for (const BufferId buffer : buffers) sum += schedule[buffer].size;
  return sum;
}

// An amount of memory is told as all others are; only rates count in thousands, as datasheets do.
std::string amount_text(double bytes) {
  return to_text(Bytes{static_cast<std::int64_t>(std::llround(bytes))});
}

void add_work(const Opened& opened, const Cost& cost, Nanoseconds duration,
              std::vector<Fact>& facts) {
  const double seconds = static_cast<double>(duration.count()) * 1e-9;
  if (seconds <= 0) return;
  if (cost.flops > 0)
    facts.push_back({"computes", fmt::format("{}, {}/s", decimal_text(cost.flops, "FLOP"),
                                             decimal_text(cost.flops / seconds, "FLOP"))});
  if (cost.bytes <= 0) return;
  const double share =
      opened.device() ? cost.bytes / seconds / opened.device()->bytes_per_second : 0;
  facts.push_back({"moves", fmt::format("{}, {}/s, {} of the bandwidth", amount_text(cost.bytes),
                                        decimal_text(cost.bytes / seconds, "B"), percent(share))});
  facts.push_back({"predicted alone", fmt::format("{} ({} kernel{})", to_text(cost.time),
                                                  cost.kernels, cost.kernels == 1 ? "" : "s")});
}

std::string fits_text(const Report& report) {
  const std::string capacity = to_text(report.capacity);
  if (report.fits) return "yes, in " + capacity;
  if (report.short_by.count == 0) return "no, kept out of " + capacity + " by fragmentation";
  return fmt::format("no, {} short of {}", to_text(report.short_by), capacity);
}

Nanoseconds clipped(double moment, const Opened& opened) {
  return Nanoseconds{static_cast<std::int64_t>(std::clamp(moment, 0.0, opened.end()))};
}

}  // namespace

std::string change_text(Bytes before, Bytes after) {
  const Bytes change{std::abs(after.count - before.count)};
  return (after < before ? "−" : "+") + to_text(change);
}

std::string change_text(double ratio) {
  const double percent = 100 * (ratio - 1);
  // What rounds to nothing has no sign.
  if (std::abs(percent) < 0.05) return "0.0 %";
  return fmt::format("{}{:.1f} %", percent < 0 ? "−" : "+", std::abs(percent));
}

// Rates and FLOPs count in thousands, memory in 1024: the units say which.
std::string decimal_text(double value, std::string_view unit) {
  constexpr std::array<std::string_view, 6> prefixes{"", "k", "M", "G", "T", "P"};
  std::size_t i = 0;
  while (value >= 1000 && i + 1 < prefixes.size()) value /= 1000, ++i;
  const int decimals = i == 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return fmt::format("{:.{}f} {}{}", value, decimals, prefixes[i], unit);
}

std::vector<Fact> facts_of(const Opened& opened, RunId run) {
  const TimedRun& timed = opened[run];
  const Step& step = opened.schedule().steps[timed.step];
  const Nanoseconds duration = timed.end - timed.begin;
  std::vector<Fact> facts{{"", opened.describe(run)}};
  if (const OpId op = opened.op_of(run); op != no_op) {
    const Op& of_trace = opened.trace()[op];
    facts.push_back({"kind", fmt::format("{}, {}", operation_name(opened.trace(), of_trace),
                                         opened.block_name(of_trace.block))});
    facts.push_back({"makes", shapes_of(opened, of_trace)});
  }
  facts.push_back({"time", fmt::format("{} to {} on stream {}", moment_text(timed.begin),
                                       moment_text(timed.end), index(timed.stream))});
  facts.push_back({"duration", to_text(duration)});
  facts.push_back({"reads", to_text(sum_of(opened.schedule(), reads_of(opened.schedule(), step)))});
  facts.push_back(
      {"writes", to_text(sum_of(opened.schedule(), writes_of(opened.schedule(), step)))});
  if (const auto cost = opened.cost_of(run)) add_work(opened, *cost, duration, facts);
  return facts;
}

std::vector<Fact> facts_of(const Opened& opened, BufferId buffer, Nanoseconds moment) {
  const Buffer& what = opened.schedule()[buffer];
  std::vector<Fact> facts{{"", opened.describe(buffer)}};
  facts.push_back({"size", fmt::format("{} ({} B)", to_text(what.size), what.size.count)});
  if (what.tensor != no_tensor) {
    const Tensor& tensor = opened.trace()[what.tensor];
    facts.push_back(
        {"tensor", fmt::format("{} {}", to_text(tensor.shape), to_string(tensor.dtype))});
  }
  facts.push_back({"category", fmt::format("{}, {}", to_string(what.category),
                                           roles[static_cast<std::size_t>(what.role)].name)});
  facts.push_back({"block", opened.block_name(opened.block_of(buffer))});
  // Parameters and optimizer states are there before the step and after it.
  if (what.persistent) {
    facts.push_back({"lives", "through the whole step"});
  } else if (const StateId first = opened.buffers().first_state(buffer);
             first < opened.memory().states()) {
    const StateId last = opened.buffers().last_state(buffer);
    facts.push_back({"lives", fmt::format("{} to {}", moment_text(opened.memory().begin_of(first)),
                                          last < opened.memory().states()
                                              ? moment_text(opened.memory().begin_of(last))
                                              : "the end")});
  }
  if (const auto writer = opened.buffers().first_writer(buffer))
    facts.push_back({"written by", opened.describe(*writer)});
  if (const auto next = opened.buffers().next_use(buffer, moment))
    facts.push_back({"next use", fmt::format("{} at {}", opened.describe(*next),
                                             moment_text(opened[*next].begin))});
  if (const auto reader = opened.buffers().last_reader(buffer))
    facts.push_back({"freed after", opened.describe(*reader)});
  if (!opened.recording.offsets.empty())
    facts.push_back({"address", fmt::format("{} (byte {}) of the arena",
                                            to_text(Bytes{opened.recording.offsets[index(buffer)]}),
                                            opened.recording.offsets[index(buffer)])});
  if (const auto decision = opened.decision_of(buffer); !decision.empty())
    facts.push_back({"decision", std::string(decision)});
  return facts;
}

std::vector<Fact> facts_of(const Report& report) {
  return {{"allocated", to_text(report.allocated_peak) + " at most"},
          {"reserved", to_text(report.reserved_peak) + " at most, held from the device"},
          {"fits", fits_text(report)},
          {"step", to_text(report.step)},
          {"samples/s", fmt::format("{:.1f}", report.samples_per_second)}};
}

RangeFacts facts_of(const Opened& opened, Range range) {
  const Nanoseconds begin = clipped(range.begin, opened), end = clipped(range.end, opened);
  RangeFacts facts;
  facts.span = end - begin;
  for (std::size_t s = 0; s < opened.lanes().size(); ++s)
    facts.busy.push_back(Nanoseconds{opened.lanes()[s].covered(begin.count(), end.count())});
  facts.overlap = opened.overlap(begin, end);
  // Idle is when no stream is busy, not the sum of what each stream waits.
  facts.idle = facts.span - opened.busy(begin, end);
  const Workload work = opened.work_in(begin, end);
  facts.runs = work.runs;
  // Of an unknown device nothing is known about what its kernels move: nothing is better than 0.
  if (opened.device()) facts.bytes_moved = work.bytes, facts.flops = work.flops;
  facts.at_begin = opened.memory().total_of(opened.memory().at(range.begin));
  facts.highest = opened.memory().total_of(opened.memory().highest_in(range.begin, range.end));
  return facts;
}

std::vector<Fact> lines_of(const RangeFacts& facts) {
  const auto of_span = [&](Nanoseconds time) {
    const double span = static_cast<double>(std::max<std::int64_t>(1, facts.span.count()));
    return fmt::format("{} ({})", to_text(time), percent(static_cast<double>(time.count()) / span));
  };
  std::vector<Fact> lines{{"", "Range of " + to_text(facts.span)}};
  for (std::size_t s = 0; s < facts.busy.size(); ++s)
    lines.push_back({fmt::format("stream {} busy", s), of_span(facts.busy[s])});
  if (facts.busy.size() > 1) lines.push_back({"overlap", of_span(facts.overlap)});
  lines.push_back({"idle", of_span(facts.idle)});
  lines.push_back({"runs that begin", fmt::format("{}", facts.runs)});
  if (facts.bytes_moved) {
    lines.push_back({"they move", amount_text(*facts.bytes_moved)});
    lines.push_back({"they compute", decimal_text(*facts.flops, "FLOP")});
  }
  lines.push_back({"live at its begin", to_text(facts.at_begin)});
  lines.push_back({"live at most", to_text(facts.highest)});
  return lines;
}

}  // namespace tidemark::gui
