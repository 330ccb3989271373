// Which file it is, is said by its "format".
#include <fmt/format.h>

#include <map>

#include "simulator/check/check_file.h"
#include "simulator/profile.h"
#include "simulator/recording_format.h"
#include "traces/error.h"
#include "traces/files.h"
#include "traces/json_reader.h"
#include "traces/quoted.h"

namespace tidemark {
namespace {

ProfileTable& table(Profile& profile, std::string_view name, Measure measure, RowKind kind) {
  for (ProfileTable& known : profile.tables)
    if (known.name == name) return known;
  return profile.tables.emplace_back(ProfileTable{std::string(name), measure, kind, {}});
}

/// "live_peak_bytes" is "live peak" in bytes; what is no size, time or batch is nothing.
bool understand(std::string_view key, std::string& name, Measure& measure) {
  if (key.ends_with("_bytes")) {
    measure = Measure::Size, key.remove_suffix(6);
  } else if (key.ends_with("_ns")) {
    measure = Measure::Time, key.remove_suffix(3);
  } else if (key == "largest_batch") {
    measure = Measure::Count;
  } else {
    return false;
  }
  name = key;
  for (char& c : name)
    if (c == '_') c = ' ';
  return true;
}

constexpr std::int64_t any = std::numeric_limits<std::int64_t>::max();

/// One strategy's numbers, each in a table of its own with a row per strategy.
void add_report(JsonView row, const std::string& key, Profile& profile) {
  for (const JsonView member : row.members()) {
    std::string name;
    Measure measure{};
    if (member.kind() != JsonKind::Integer || !understand(member.key(), name, measure)) continue;
    table(profile, name, measure, RowKind::Thing).rows.push_back({key, member.integer(-any, any)});
  }
}

void add_categories(JsonView bytes, Profile& profile) {
  ProfileTable& categories_at_peak =
      table(profile, "at the peak, by category", Measure::Size, RowKind::Part);
  for (const JsonView member : bytes.members())
    if (const std::int64_t value = member.integer(); value != 0)
      categories_at_peak.rows.push_back({std::string(member.key()), value});
}

/// The same, in tables that also a timeline has.
void add_single_report(JsonView row, Profile& profile) {
  for (const JsonView member : row.members()) {
    std::string name;
    Measure measure{};
    if (member.kind() != JsonKind::Integer || !understand(member.key(), name, measure)) continue;
    const bool is_time = measure == Measure::Time;
    if (name == "overlap") name = "two streams busy";
    table(profile,
          is_time                     ? "time"
          : measure == Measure::Count ? "largest batch"
                                      : "totals",
          measure, RowKind::Fact)
        .rows.push_back({name, member.integer(-any, any)});
  }
}

void add_alive(JsonView alive, Profile& profile) {
  std::map<std::string, std::int64_t> blocks, roles_at_peak;
  for (const JsonView buffer : alive.items()) {
    const std::int64_t bytes = buffer.at("bytes").integer();
    const std::string_view block = buffer.at("block").text(), tensor = buffer.at("tensor").text(),
                           role = buffer.at("role").text();
    blocks[block.empty() ? "(outside of blocks)" : std::string(block)] += bytes;
    const std::string name = role_of(tensor);
    roles_at_peak[tensor.empty()    ? fmt::format("({})", role)
                  : role == "value" ? name
                                    : fmt::format("{} ({})", name, role)] += bytes;
  }
  const auto add = [&](std::string_view name, const std::map<std::string, std::int64_t>& sums) {
    ProfileTable& rows = table(profile, name, Measure::Size, RowKind::Part);
    for (const auto& [key, value] : sums) rows.rows.push_back({key, value});
  };
  add("at the peak, by block", blocks);
  add("at the peak, by role", roles_at_peak);
}

std::string strategy_of(JsonView row) { return std::string(row.at("strategy").text()); }

Profile profile_of_comparison(JsonView root) {
  Profile profile;
  for (const JsonView row : root.at("rows").items()) add_report(row, strategy_of(row), profile);
  profile.title = fmt::format("{} on {}", root.at("model").at("name").text(),
                              root.at("device").at("name").text());
  return profile;
}

Profile profile_of_sweep(JsonView root) {
  Profile profile;
  profile.title = "sweep";
  for (const JsonView point : root.at("points").items()) {
    const JsonView options = point.at("options");
    std::string prefix = fmt::format("batch {}", options.at("batch").integer());
    for (const char* key : {"sequence", "image"})
      if (const auto value = options.find(key))
        prefix += fmt::format(" · {} {}", key, value->integer());
    prefix += fmt::format(" · {}", point.at("device").at("name").text());
    for (const JsonView row : point.at("rows").items())
      add_report(row, fmt::format("{} · {}", prefix, strategy_of(row)), profile);
  }
  return profile;
}

Profile profile_of_explanation(JsonView root) {
  Profile profile;
  const JsonView report = root.at("report");
  profile.title = fmt::format("{} · {} · predicted for {}", root.at("model").at("name").text(),
                              strategy_of(report), root.at("device").at("name").text());
  add_single_report(report, profile);
  if (const auto bytes = report.find("at_peak_bytes")) add_categories(*bytes, profile);
  if (const auto alive = root.find("alive")) add_alive(*alive, profile);
  return profile;
}

Profile profile_of_baseline(std::string text, const std::string& path) {
  const CheckFile file = read_check_file(std::move(text), path);
  if (!file.baseline)
    throw InputError(fmt::format("{}: has no numbers yet (tidemark check --update writes them)",
                                 printable(path, 200)));
  Profile profile;
  profile.title = fmt::format("baseline of tidemark {}", file.baseline->tidemark);
  for (const Expected& experiment : file.baseline->experiments)
    for (const MetricRow& metric : metrics)
      if (const auto& value = experiment.values[index(metric.value)])
        table(profile, metric.name, metric.unit == "ns" ? Measure::Time : Measure::Size,
              RowKind::Thing)
            .rows.push_back({experiment.id, *value});
  return profile;
}

[[noreturn]] void refuse(JsonView root) {
  root.fail(
      "is no timeline, no report and no baseline (they are written by tidemark explain --format "
      "timeline, compare or explain --format json, and check --update)");
}

}  // namespace

Profile read_profile(const std::string& path) {
  std::string text = read_file(path, JsonDocument::max_size);
  const JsonDocument document(text, path);
  const JsonView root = document.root();
  if (root.kind() != JsonKind::Object) refuse(root);
  const auto format = root.find("format");
  if (!format || format->kind() != JsonKind::Text) refuse(root);
  const std::string_view name = format->text();
  if (name == timeline_format) return profile_of(read_recording(root, path));
  if (name == "tidemark-compare-1") return profile_of_comparison(root);
  if (name == "tidemark-sweep-1") return profile_of_sweep(root);
  if (name == "tidemark-explain-1") return profile_of_explanation(root);
  if (name == "tidemark-check") return profile_of_baseline(std::move(text), path);
  refuse(root);
}

}  // namespace tidemark
