// What a replay showed, for people and for programs; no arithmetic but differences.
#pragma once

#include <optional>
#include <string>

#include "cli/text/terminal.h"
#include "profiler/replay_report.h"

namespace tidemark::cli {

std::string replay_table(const profiler::ReplayScenario& scenario,
                         const profiler::ReplayReport& report, const Style& style);
/// "tidemark-replay-1": `predicted` and `measured` have the same keys.
std::string replay_json(const profiler::ReplayScenario& scenario,
                        const profiler::ReplayReport& report);
/// "tidemark-compare-replay-1": one such object per strategy.
std::string replays_json(const std::vector<profiler::ReplayScenario>& scenarios,
                         const std::vector<profiler::ReplayReport>& reports);
std::string replay_markdown(const profiler::ReplayReport& report);
std::string replay_csv(const profiler::ReplayReport& report);

/// One number of both columns.
struct ReplayField {
  std::string_view key;    ///< in JSON and CSV: "live_peak_bytes"
  std::string_view title;  ///< in tables
  bool is_time;
  bool is_category;  ///< a part of the live peak
  std::int64_t predicted;
  std::optional<std::int64_t> measured;  ///< unknown where no step was timed
};

/// In the order of tables, categories behind the live peak.
std::vector<ReplayField> replay_fields(const profiler::ReplayReport& report);

}  // namespace tidemark::cli
