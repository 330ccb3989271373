#include "traces/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>

namespace tidemark {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replace = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replace, row[j] + 1, row[j + 1] + 1});
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

std::string_view nearest_name(std::string_view name, const std::vector<std::string_view>& known) {
  if (name.size() > 256) return {};
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(2, name.size() / 3) + 1;
  for (const std::string_view candidate : known) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) best = candidate, best_distance = distance;
  }
  return best;
}

std::string unknown_name(std::string_view what, std::string_view name,
                         const std::vector<std::string_view>& known) {
  const std::string_view shown = name.substr(0, 64);
  const std::string_view near = nearest_name(name, known);
  const std::string hint = near.empty() ? "" : fmt::format("did you mean '{}'? ", near);
  return fmt::format("unknown {} '{}' ({}known: {})", what, shown, hint, fmt::join(known, ", "));
}

}  // namespace tidemark
