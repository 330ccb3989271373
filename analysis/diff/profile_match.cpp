// Finds a single step among many by its facts; many beside many become one table per number.
#include "analysis/diff/profile_match.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/quoted.h"

namespace tidemark::diff {
namespace {

constexpr std::size_t most_named = 4;

using Cases = std::vector<const ProfileCase*>;

/// How a step is told from others in tables of many.
std::string name_of(const ProfileCase& one, bool by_facts) {
  return by_facts ? to_text(one.facts) : one.key;
}

/// A table per number with a row per step: what can be said of many at once.
std::vector<ProfileTable> spread(const Profile& profile, bool by_facts) {
  std::vector<ProfileTable> tables;
  const auto table_of = [&](const std::string& name, Measure measure) -> ProfileTable& {
    const auto known = std::ranges::find_if(tables, [&](const ProfileTable& table) {
      return table.name == name && table.measure == measure;
    });
    if (known != tables.end()) return *known;
    return tables.emplace_back(ProfileTable{name, measure, RowKind::Thing, {}});
  };
  for (const ProfileCase& one : profile.cases) {
    const std::string key = name_of(one, by_facts);
    for (const ProfileTable& table : one.tables)
      if (table.kind == RowKind::Fact)
        for (const ProfileRow& row : table.rows)
          table_of(row.key, table.measure).rows.push_back({key, row.value});
  }
  return tables;
}

std::string names_of(const Cases& cases) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(most_named, cases.size()); ++i)
    names.push_back(printable(cases[i]->key, 100));
  const std::size_t left = cases.size() - names.size();
  return fmt::format("{}{}", fmt::join(names, ", "),
                     left == 0 ? "" : fmt::format(", … and {} more", left));
}

/// Keeps those that state the same, or nothing; all of them if that would leave none.
void narrow(Cases& cases, const StepFacts& wanted, std::string StepFacts::*fact) {
  if ((wanted.*fact).empty()) return;
  Cases same;
  std::ranges::copy_if(cases, std::back_inserter(same), [&](const ProfileCase* one) {
    return (one->facts.*fact).empty() || one->facts.*fact == wanted.*fact;
  });
  if (!same.empty()) cases = std::move(same);
}

/// The step of `many` that `one` is, or is to be compared with.
const ProfileCase& find_case(const Profile& many, const Profile& one) {
  const StepFacts& wanted = one.cases.front().facts;
  Cases found;
  for (const ProfileCase& candidate : many.cases)
    if (candidate.facts.strategy == wanted.strategy) found.push_back(&candidate);
  if (found.empty()) {
    Cases all;
    for (const ProfileCase& candidate : many.cases) all.push_back(&candidate);
    throw UsageError(fmt::format("{} has no step with the strategy of {} (it has: {})",
                                 printable(many.title, 200), printable(one.title, 200),
                                 names_of(all)));
  }
  for (const auto fact :
       {&StepFacts::device, &StepFacts::batch, &StepFacts::sequence, &StepFacts::image})
    narrow(found, wanted, fact);
  if (found.size() > 1)
    throw UsageError(fmt::format(
        "{} has more than one step that {} could be compared with: {} (compare with a file that "
        "has one of them)",
        printable(many.title, 200), printable(one.title, 200), names_of(found)));
  return *found.front();
}

void require_distinct(const Profile& profile, bool by_facts) {
  std::set<std::string> known;
  for (const ProfileCase& one : profile.cases)
    if (!known.insert(name_of(one, by_facts)).second)
      throw UsageError(fmt::format("{} has more than one step of {}, which {}",
                                   printable(profile.title, 200),
                                   printable(name_of(one, by_facts), 200),
                                   by_facts ? "a file of another kind cannot tell apart (compare "
                                              "two files of one kind)"
                                            : "nothing tells apart (keep one of them)"));
}

std::string title_of(const Profile& profile, const ProfileCase& chosen) {
  return profile.kind == ProfileKind::OneStep ? profile.title
                                              : fmt::format("{} · {}", profile.title, chosen.key);
}

MatchedTables matched(const Profile& before, const ProfileCase& old, const Profile& after,
                      const ProfileCase& now) {
  return {title_of(before, old), title_of(after, now), old.tables, now.tables};
}

}  // namespace

std::string to_text(const StepFacts& facts) {
  std::string text;
  const auto add = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) text += fmt::format("{}{}{}", text.empty() ? "" : " · ", name, value);
  };
  add("batch ", facts.batch);
  add("sequence ", facts.sequence);
  add("image ", facts.image);
  add("", facts.device);
  add("", facts.strategy);
  return text;
}

MatchedTables match(const Profile& before, const Profile& after) {
  if (before.cases.size() == 1 && after.cases.size() == 1)
    return matched(before, before.cases.front(), after, after.cases.front());
  const auto is_step = [](const Profile& p) { return p.kind == ProfileKind::OneStep; };
  if (is_step(before))
    return matched(before, before.cases.front(), after, find_case(after, before));
  if (is_step(after)) return matched(before, find_case(before, after), after, after.cases.front());
  const bool by_facts = before.kind != after.kind;
  require_distinct(before, by_facts), require_distinct(after, by_facts);
  return {before.title, after.title, spread(before, by_facts), spread(after, by_facts)};
}

}  // namespace tidemark::diff
