// How a failed CHECK ends, and which known name an unknown one was probably meant to be.
#include "base/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "base/quoted.h"

namespace tidemark {
namespace {

// Insertions, deletions, replacements and exchanges of two neighbours ("cup" for "cpu" is one
// slip).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> older, old, row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    older = std::exchange(old, row);
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replace = old[j] + (a[i] == b[j] ? 0 : 1);
      row[j + 1] = std::min({replace, old[j + 1] + 1, row[j] + 1});
      const bool is_exchange = i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j];
      if (is_exchange) row[j + 1] = std::min(row[j + 1], older[j - 1] + 1);
    }
  }
  return row.back();
}

}  // namespace

void check_failed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "tidemark: bug at %s:%d: %s does not hold; please report it\n", file, line,
               condition);
  std::abort();
}

// The beginning of a name ("a100" of "a100-40gb") is closer than any slip, and so is its last word
// if that is more than a few letters. One slip in three letters is as far as a guess goes: "xml" is
// no "bmf".
std::string_view nearest_name(std::string_view name, const std::vector<std::string_view>& known) {
  if (name.empty() || name.size() > 256) return {};
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(1, name.size() / 3) + 1;
  for (const std::string_view candidate : known) {
    if (candidate.starts_with(name)) return candidate;
    const std::size_t longer = std::max(name.size(), candidate.size());
    // As many insertions at least.
    if (longer - std::min(name.size(), candidate.size()) >= best_distance) continue;
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) best = candidate, best_distance = distance;
  }
  if (!best.empty() || name.size() < 4) return best;
  const auto ends_so = [&](std::string_view candidate) {
    return candidate.ends_with(name) && candidate[candidate.size() - name.size() - 1] == '-';
  };
  const auto found = std::ranges::find_if(known, ends_so);
  return found == known.end() ? std::string_view() : *found;
}

std::string guess_of(std::string_view name, const std::vector<std::string_view>& known) {
  const std::string_view near = nearest_name(name, known);
  return near.empty() ? "" : fmt::format("did you mean '{}'? ", near);
}

std::string unknown_name(std::string_view what, std::string_view name,
                         const std::vector<std::string_view>& known) {
  return fmt::format("unknown {} {} ({}known: {})", what, quoted(name), guess_of(name, known),
                     fmt::join(known, ", "));
}

}  // namespace tidemark
