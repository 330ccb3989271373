// Anything that holds memory numbers, reduced to named tables of whole numbers, so that any two can
// be compared: timelines, reports and baselines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/recording.h"

namespace tidemark {

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

struct Profile {
  std::string title;
  std::vector<ProfileTable> tables;
};

/// Totals, by category, block, op and role at the peak, and times by task, op and block.
Profile profile_of(const Recording& recording);

/// Of a timeline, of a comparison, sweep or explanation in JSON, or of a tidemark.json with its
/// numbers. InputError for all else.
Profile read_profile(const std::string& path);

}  // namespace tidemark
