// `tidemark diff`: reads two timelines, reports or baselines and prints what differs.
#include "base/error.h"
#include "cli/commands/commands.h"
#include "cli/commands/formats.h"
#include "cli/commands/recorded.h"
#include "cli/commands/scenario.h"
#include "cli/reports/print_diff.h"

namespace tidemark::cli {
namespace {

diff::Profile read_side(const std::string& path) {
  if (!is_imported(path)) return diff::read_profile(path);
  Recording recording = read_step(path);
  recording.planned = {};  // what its segments reached to is no arena that was planned
  return diff::profile_of(recording);
}

}  // namespace

Result run_diff(const Options& options) {
  constexpr std::int64_t usual_top = 12, most = 1'000'000;
  if (options.subject.empty())
    throw UsageError(
        "diff needs two files (timelines, reports in JSON or baselines; tidemark diff --help)");
  const Format format = format_of(options, for_diff);
  const auto top = static_cast<std::size_t>(
      options.top ? parse_count(*options.top, "--top", 0, most) : usual_top);
  const auto [before, after] = options.item.empty()
                                   ? diff::read_both_sides(options.subject)
                                   : std::pair(read_side(options.subject), read_side(options.item));
  const diff::Diff found = diff::diff(before, after);
  return {written_as(format,
                     {{Format::Json, [&] { return diff_json(found); }},
                      {Format::Csv, [&] { return diff_csv(found); }},
                      {Format::Markdown, [&] { return diff_markdown(found, top); }},
                      {Format::Table, [&] { return diff_table(found, style_of(options), top); }}}),
          "", ExitCode::Ok};
}

}  // namespace tidemark::cli
