// The numbers of a replay in order, predicted and measured: key, title and whether a time.
#include "cli/reports/print_replay.h"

namespace tidemark::cli {

std::vector<ReplayField> replay_fields(const profiler::ReplayReport& report) {
  const profiler::ReplayNumbers &p = report.predicted, &m = report.measured;
  const auto known = [&](std::int64_t number) {
    return report.steps_timed > 0 ? std::optional(number) : std::nullopt;
  };
  const auto bytes = [&](std::string_view key, std::string_view title, Bytes a, Bytes b) {
    return ReplayField{key, title, false, false, a.count, known(b.count)};
  };
  const auto time = [&](std::string_view key, std::string_view title, Nanoseconds a,
                        Nanoseconds b) {
    return ReplayField{key, title, true, false, a.count(), known(b.count())};
  };
  std::vector<ReplayField> fields = {
      bytes("live_peak_bytes", "live peak", p.live_peak, m.live_peak)};
  for (const auto& category : categories) {
    const auto c = static_cast<std::size_t>(category.value);
    if (p.at_peak[c].count != 0 || m.at_peak[c].count != 0)
      fields.push_back({category.name, category.name, false, true, p.at_peak[c].count,
                        known(m.at_peak[c].count)});
  }
  fields.push_back(bytes("planned_bytes", "planned arena", p.planned, m.planned));
  fields.push_back(time("step_ns", "step", p.step, m.step));
  fields.push_back(time("overlap_ns", "both streams busy", p.overlap, m.overlap));
  if (p.recovery) {
    const auto of = [&](std::string_view key, std::string_view title,
                        Nanoseconds RecoveryTime::*what) {
      ReplayField field = time(key, title, (*p.recovery).*what, {});
      field.measured.reset();
      if (m.recovery) field.measured = ((*m.recovery).*what).count();
      fields.push_back(field);
    };
    of("recompute_ns", "recovery", &RecoveryTime::alone);
    of("hidden_recompute_ns", "recovery, hidden", &RecoveryTime::hidden);
  }
  return fields;
}

}  // namespace tidemark::cli
