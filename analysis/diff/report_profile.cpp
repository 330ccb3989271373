// Every key of a report that names a size, time or batch becomes a row; one function per report.
#include "analysis/diff/report_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/check/peak_groups.h"
#include "simulator/tensor_roles.h"

namespace tidemark::diff {
namespace {

/// Parts that make up one whole, which has to be a size itself: nothing here can overflow.
class Whole {
 public:
  std::int64_t add(JsonView part) {
    const std::int64_t value = part.integer();
    if (value > largest_size - sum_)
      part.fail(fmt::format("found parts of more than {} in all; need less",
                            to_text(Bytes{largest_size})));
    sum_ += value;
    return value;
  }

 private:
  std::int64_t sum_ = 0;
};

ProfileTable& table(ProfileCase& one, std::string_view name, Measure measure, RowKind kind) {
  for (ProfileTable& known : one.tables)
    if (known.name == name) return known;
  return one.tables.emplace_back(ProfileTable{std::string(name), measure, kind, {}});
}

// "a_b_bytes" and "a b_bytes" have one name: of two the first counts.
void add_row(ProfileTable& table, std::string_view name, std::int64_t value) {
  if (std::ranges::find(table.rows, name, &ProfileRow::key) == table.rows.end())
    table.rows.push_back({std::string(name), value});
}

/// All sizes, times and batches that an object states, in tables that a timeline has, too.
void add_numbers(JsonView object, ProfileCase& one) {
  for (const JsonView member : object.members()) {
    std::string name;
    Measure measure{};
    if (member.kind() != JsonKind::Integer || !understand(member.key(), name, measure)) continue;
    add_fact(one, name == "overlap" ? "two streams busy" : name, measure,
             member.integer(-largest_size, largest_size));
  }
  const auto bytes = object.find("at_peak_bytes");
  if (!bytes) return;
  ProfileTable& at_peak = table(one, "at the peak, by category", Measure::Size, RowKind::Part);
  Whole whole;
  for (const JsonView member : bytes->members())
    if (const std::int64_t value = whole.add(member); value != 0)
      add_row(at_peak, member.key(), value);
}

void add_alive(JsonView alive, ProfileCase& one) {
  std::map<std::string, std::int64_t> blocks, roles_at_peak;
  Whole whole;
  for (const JsonView buffer : alive.items()) {
    const std::int64_t bytes = whole.add(buffer.at("bytes"));
    const std::string_view block = buffer.at("block").text(), tensor = buffer.at("tensor").text(),
                           role = buffer.at("role").text();
    blocks[block.empty() ? "(outside of blocks)" : std::string(block)] += bytes;
    const std::string name = role_of(tensor);
    roles_at_peak[tensor.empty()    ? fmt::format("({})", role)
                  : role == "value" ? name
                                    : fmt::format("{} ({})", name, role)] += bytes;
  }
  const auto add = [&](std::string_view name, const std::map<std::string, std::int64_t>& sums) {
    ProfileTable& rows = table(one, name, Measure::Size, RowKind::Part);
    for (const auto& [key, value] : sums) rows.rows.push_back({key, value});
  };
  add("at the peak, by block", blocks);
  add("at the peak, by role", roles_at_peak);
}

/// Options that were not given are null.
std::string number_or_nothing(JsonView object, std::string_view key) {
  const auto value = object.find(key);
  const bool is_known = value && value->kind() == JsonKind::Integer;
  return is_known ? std::to_string(value->integer()) : std::string();
}

/// Of a comparison or an explanation.
StepFacts facts_of(JsonView root, JsonView row) {
  const JsonView options = root.at("options");
  return {number_or_nothing(options, "batch"), number_or_nothing(options, "sequence"),
          number_or_nothing(options, "image"), std::string(root.at("device").at("name").text()),
          std::string(row.at("strategy").text())};
}

ProfileCase case_of(JsonView root, JsonView row) {
  ProfileCase one = {"", facts_of(root, row), {}};
  one.key = one.facts.strategy;
  add_numbers(row, one);
  return one;
}

std::string_view name_of_model(JsonView root) { return root.at("model").at("name").text(); }

}  // namespace

bool understand(std::string_view key, std::string& name, Measure& measure) {
  if (key.ends_with("_bytes")) {
    measure = Measure::Size, key.remove_suffix(6);
  } else if (key.ends_with("_ns")) {
    measure = Measure::Time, key.remove_suffix(3);
  } else if (key.starts_with("largest_batch")) {
    measure = Measure::Count;
  } else {
    return false;
  }
  name = key;
  std::ranges::replace(name, '_', ' ');
  return true;
}

void add_fact(ProfileCase& one, std::string_view name, Measure measure, std::int64_t value) {
  const char* where = measure == Measure::Size   ? "totals"
                      : measure == Measure::Time ? "time"
                                                 : "batch";
  add_row(table(one, where, measure, RowKind::Fact), name, value);
}

Profile profile_of_comparison(JsonView root) {
  Profile profile{
      .title = fmt::format("{} on {}", name_of_model(root), root.at("device").at("name").text()),
      .kind = ProfileKind::Comparison,
      .source = "predicted",
      .cases = {}};
  for (const JsonView row : root.at("rows").items()) profile.cases.push_back(case_of(root, row));
  return profile;
}

Profile profile_of_sweep(JsonView root) {
  Profile profile{.title = "sweep", .kind = ProfileKind::Sweep, .source = "predicted", .cases = {}};
  for (const JsonView point : root.at("points").items()) {
    profile.title = fmt::format("sweep of {}", name_of_model(point));
    for (const JsonView row : point.at("rows").items()) {
      profile.cases.push_back(case_of(point, row));
      profile.cases.back().key = to_text(profile.cases.back().facts);
    }
  }
  return profile;
}

Profile profile_of_explanation(JsonView root) {
  ProfileCase one = case_of(root, root.at("report"));
  if (const auto alive = root.find("alive")) add_alive(*alive, one);
  return {.title = fmt::format("{} · {} · predicted for {}", name_of_model(root), one.key,
                               one.facts.device),
          .kind = ProfileKind::OneStep,
          .source = "predicted",
          .cases = {std::move(one)}};
}

bool was_measured(JsonView replay) {
  const auto measured = replay.find("measured");
  return measured && measured->kind() == JsonKind::Object;
}

Profile profile_of_replay(JsonView root, Side side) {
  const bool is_measured = side == Side::Measured && was_measured(root);
  const auto text = [&](const char* key) { return std::string(root.at(key).text()); };
  ProfileCase one = {text("strategy"), {}, {}};
  one.facts = {.batch = number_or_nothing(root, "batch"),
               .device = text("predicted_for"),
               .strategy = one.key};
  if (const auto numbers = root.find(is_measured ? "measured" : "predicted"))
    add_numbers(*numbers, one);
  if (is_measured) add_numbers(root, one);  // fastest and slowest step, what the system saw
  return {.title = fmt::format(
              "{} · {} · {}", text("model"), one.key,
              is_measured ? "measured on " + text("backend") : "predicted for " + one.facts.device),
          .kind = ProfileKind::OneStep,
          .source = is_measured ? "measured" : "predicted",
          .cases = {std::move(one)}};
}

Profile profile_of_replays(JsonView root, Side side) {
  Profile profile{.title = "", .kind = ProfileKind::Comparison, .source = "", .cases = {}};
  for (const JsonView row : root.at("rows").items()) {
    Profile replay = profile_of_replay(row, side);
    profile.source = profile.cases.empty() || profile.source == replay.source ? replay.source
                                                                              : std::string_view();
    profile.title =
        fmt::format("{} · {}", row.at("model").text(),
                    replay.source == "measured"
                        ? fmt::format("measured on {}", row.at("backend").text())
                        : fmt::format("predicted for {}", replay.cases[0].facts.device));
    profile.cases.push_back(std::move(replay.cases.front()));
  }
  return profile;
}

}  // namespace tidemark::diff
