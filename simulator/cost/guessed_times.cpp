// Counts the ops and lists the first few different operations.
#include "simulator/cost/guessed_times.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/quoted.h"
#include "traces/pair_ops.h"

namespace tidemark {

bool is_time_guessed(const Trace& trace, const Op& op, std::uint32_t gradients) {
  const OpaqueRow* row = opaque_row(trace, op);
  if (!row || turns_pairs(*row)) return false;  // which are one walk
  return !row->forward.is_known() || (gradients != 0 && !row->backward.is_known());
}

std::string note_on_guessed_times(const Trace& trace, const std::vector<std::uint32_t>& gradients) {
  if (trace.opaque_rows.empty()) return {};
  constexpr std::size_t most_named = 3;
  std::vector<std::string_view> operations;
  std::size_t guessed = 0;
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    if (!is_time_guessed(trace, trace.ops[i], gradients[i])) continue;
    ++guessed;
    const std::string_view operation = operation_name(trace, trace.ops[i]);
    if (std::ranges::find(operations, operation) == operations.end())
      operations.push_back(operation);
  }
  if (guessed == 0) return {};
  std::string names;
  for (std::size_t i = 0; i < std::min(most_named, operations.size()); ++i)
    names += (i == 0 ? "" : ", ") + printable(operations[i]);
  if (operations.size() > most_named)
    names += fmt::format(" and {} more", operations.size() - most_named);
  if (guessed == 1)
    return fmt::format(
        "the time of 1 opaque op is a guess, one walk over its operands: {} (its row says neither "
        "flops nor moved_bytes of a pass)",
        names);
  return fmt::format(
      "the times of {} opaque ops are guesses, one walk over their operands: {} (their rows say "
      "neither flops nor moved_bytes of a pass)",
      guessed, names);
}

}  // namespace tidemark
