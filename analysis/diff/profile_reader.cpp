// Which file it is, is said by its "format".
#include <fmt/format.h>

#include <algorithm>

#include "analysis/check/check_file.h"
#include "analysis/diff/profile.h"
#include "analysis/diff/report_profile.h"
#include "analysis/recording/recording_format.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json_reader.h"
#include "base/quoted.h"

namespace tidemark::diff {
namespace {

// The settings name a device with its fingerprint behind a blank.
StepFacts facts_of(const regression::Settings& settings) {
  StepFacts facts;
  for (const auto& [key, value] : settings) {
    if (key == "batch") facts.batch = value;
    if (key == "sequence") facts.sequence = value;
    if (key == "image") facts.image = value;
    if (key == "device") facts.device = value.substr(0, value.find(' '));
    if (key == "strategy") facts.strategy = value;
  }
  return facts;
}

Profile profile_of_baseline(std::string text, const std::string& path) {
  const regression::CheckFile file = regression::read_check_file(std::move(text), path);
  if (!file.baseline)
    throw InputError(fmt::format("{}: has no numbers yet (tidemark check --update writes them)",
                                 printable(path, 200)));
  Profile profile{.title = fmt::format("baseline of tidemark {}", file.baseline->tidemark),
                  .kind = ProfileKind::Baseline,
                  .source = {},
                  .cases = {}};
  for (const regression::Expected& experiment : file.baseline->experiments) {
    ProfileCase& one = profile.cases.emplace_back();
    one.key = experiment.id;
    one.facts = facts_of(experiment.settings);
    for (const regression::MetricRow& metric : regression::metrics) {
      std::string name;
      Measure measure{};
      const auto& value = experiment.values[index(metric.value)];
      if (value && understand(metric.measured, name, measure)) add_fact(one, name, measure, *value);
    }
  }
  return profile;
}

[[noreturn]] void refuse(JsonView root) {
  root.fail(
      "is no timeline, no report and no baseline (they are written by tidemark explain or replay "
      "--format timeline, compare, explain or replay --format json, and check --update)");
}

std::string_view format_of(JsonView root) {
  if (root.kind() != JsonKind::Object) return "";
  const auto format = root.find("format");
  return format && format->kind() == JsonKind::Text ? format->text() : std::string_view();
}

constexpr std::string_view one_replay = "tidemark-replay-1", replays = "tidemark-compare-replay-1";

Profile with_numbers(Profile profile, JsonView root) {
  if (std::ranges::all_of(profile.cases, [](const auto& one) { return one.tables.empty(); }))
    root.fail("has no numbers: no strategy applies");
  return profile;
}

Profile profile_of_report(JsonView root) {
  const std::string_view format = format_of(root);
  if (format == "tidemark-compare-1") return profile_of_comparison(root);
  if (format == "tidemark-sweep-1") return profile_of_sweep(root);
  if (format == "tidemark-explain-1") return profile_of_explanation(root);
  if (format == one_replay) return profile_of_replay(root, Side::Measured);
  if (format == replays) return profile_of_replays(root, Side::Measured);
  refuse(root);
}

}  // namespace

Profile read_profile_text(std::string text, const std::string& file) {
  const JsonDocument document(text, file);
  const JsonView root = document.root();
  const std::string_view format = format_of(root);
  if (format == timeline_format) return profile_of(read_recording(root, file));
  if (format == "tidemark-check") return profile_of_baseline(std::move(text), file);
  return with_numbers(profile_of_report(root), root);
}

Profile read_profile(const std::string& path) {
  return read_profile_text(read_file(path, FileKind::Recording), path);
}

std::pair<Profile, Profile> read_both_sides_text(std::string_view text, const std::string& file) {
  const JsonDocument document(text, file);
  const JsonView root = document.root();
  const std::string_view format = format_of(root);
  const auto need_two = [&](std::string_view why) {
    throw UsageError(
        fmt::format("{}: {}; name a second file to compare it with", printable(file, 200), why));
  };
  if (format != one_replay && format != replays)
    need_two("only a replay's report has two sides, predicted and measured");
  const auto sides = [&](auto profile_of_side) {
    return std::pair(with_numbers(profile_of_side(root, Side::Predicted), root),
                     with_numbers(profile_of_side(root, Side::Measured), root));
  };
  auto both = sides(format == one_replay ? profile_of_replay : profile_of_replays);
  if (both.second.source != "measured") need_two("not all of it was measured");
  return both;
}

std::pair<Profile, Profile> read_both_sides(const std::string& path) {
  return read_both_sides_text(read_file(path, FileKind::Recording), path);
}

}  // namespace tidemark::diff
