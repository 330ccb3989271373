// Bytes as what tidemark diff reads: a report, a timeline or a baseline. The reader returns numbers
// that can be compared with themselves and with a real step's, or refuses them in one line.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "analysis/diff/diff.h"
#include "tests/fuzz/refusals.h"

namespace {

using namespace tidemark;

/// Steps of a strategy that every report has, with one number of each kind.
const diff::Profile& known_step() {
  static const diff::Profile profile = {
      .title = "known",
      .kind = diff::ProfileKind::OneStep,
      .source = "measured",
      .cases = {{"vanilla",
                 {.batch = "2", .strategy = "vanilla"},
                 {{"totals", diff::Measure::Size, diff::RowKind::Fact, {{"live peak", 1 << 20}}},
                  {"at the peak, by block",
                   diff::Measure::Size,
                   diff::RowKind::Part,
                   {{"h.0", 7, "block 0"}, {"h.1", 9, "block 1"}}}}}}};
  return profile;
}

void compare(const diff::Profile& profile) {
  answer_or_refuse([&] { require(diff::diff(profile, profile).is_empty()); });
  answer_or_refuse([&] { diff::diff(known_step(), profile); });
  answer_or_refuse([&] { diff::diff(profile, known_step()); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  answer_or_refuse([&] { compare(diff::read_profile_text(text, "fuzz")); });
  answer_or_refuse([&] {
    const auto both = diff::read_both_sides_text(text, "fuzz");
    diff::diff(both.first, both.second);
  });
  return 0;
}
