// Anything that holds memory numbers, reduced to named tables of whole numbers, so that any two can
// be compared: timelines, reports and baselines.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "analysis/recording/recording.h"

namespace tidemark::diff {

enum class Measure : std::uint8_t { Size, Time, Count };

inline constexpr std::array measures = {Named{Measure::Size, std::string_view("bytes")},
                                        Named{Measure::Time, std::string_view("nanoseconds")},
                                        Named{Measure::Count, std::string_view("count")}};
static_assert(is_in_order(measures));

/// What a row that only one of two tables has means: a thing that is new or gone, or a fact that
/// the other does not state. Parts are things that make up one whole, and may be summed.
enum class RowKind : std::uint8_t { Fact, Thing, Part };

struct ProfileRow {
  std::string key;
  std::int64_t value = 0;
  /// What it is called where names differ: "block 3". Used if no key of two tables is equal.
  std::string place = {};

  bool operator==(const ProfileRow&) const = default;
};

struct ProfileTable {
  std::string name;  ///< "at the peak, by category"
  Measure measure = Measure::Size;
  RowKind kind = RowKind::Thing;
  std::vector<ProfileRow> rows;
};

/// What tells one step of a file from its others; "" where the file does not say.
struct StepFacts {
  std::string batch = {}, sequence = {}, image = {}, device = {}, strategy = {};

  bool operator==(const StepFacts&) const = default;
};

/// "batch 8 · a100-80gb · vanilla": what the file says.
std::string to_text(const StepFacts& facts);

/// One step's numbers.
struct ProfileCase {
  std::string key;  ///< as its file tells it from others: a strategy, an experiment's id
  StepFacts facts;
  std::vector<ProfileTable> tables;
};

/// Steps of one kind are told apart by the same keys.
enum class ProfileKind : std::uint8_t { OneStep, Comparison, Sweep, Baseline };

struct Profile {
  std::string title;
  ProfileKind kind = ProfileKind::OneStep;
  std::string_view source = {};  ///< "predicted" or "measured"; "" where it may be both
  std::vector<ProfileCase> cases;
};

/// Totals, by category, block, op and role at the peak, and times by task, op, block and stream.
Profile profile_of(const Recording& recording);

/// Of a timeline, of a comparison, sweep, explanation or replay in JSON, or of a tidemark.json with
/// its numbers. A replay stands for what it measured, if it measured. InputError for all else.
Profile read_profile(const std::string& path);

/// As read_profile(), of the text of a file that errors name.
Profile read_profile_text(std::string text, const std::string& file);

/// The two sides of a replay's report: predicted and measured. UsageError for another file, and
/// for a replay that measured nothing.
std::pair<Profile, Profile> read_both_sides(const std::string& path);

/// As read_both_sides(), of the text of a file that errors name.
std::pair<Profile, Profile> read_both_sides_text(std::string_view text, const std::string& file);

}  // namespace tidemark::diff
