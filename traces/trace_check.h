// The parts of check(trace): blocks and loss, tensors, ops, rows. Everything here reads traces of
// strangers, so nothing is read before its index is known to be in range.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/name_index.h"
#include "traces/trace.h"

namespace tidemark {

/// Collects lines "/ops/17/inputs/0: what is wrong; what would be right". The pointers are those
/// of the trace file (docs/trace_format.md).
class Defects {
 public:
  template <typename... Args>
  void add(std::string_view pointer, fmt::format_string<Args...> problem, Args&&... args) {
    lines_.push_back(fmt::format("{}: ", pointer));
    fmt::format_to(std::back_inserter(lines_.back()), problem, std::forward<Args>(args)...);
  }
  std::vector<std::string> take() { return std::move(lines_); }

 private:
  std::vector<std::string> lines_;
};

/// "/ops/17/inputs/0" from "ops", 17, "/inputs/0".
std::string pointer_to(std::string_view list, std::size_t i, std::string_view field);

/// Says which names of one list are empty or taken.
class UniqueNames {
 public:
  UniqueNames(std::string_view list, std::size_t count) : list_(list) { names_.reserve(count); }
  /// To be asked for every i in order, from 0.
  void check(std::size_t i, std::string_view name, Defects& defects);

 private:
  std::string_view list_;
  NameIndex names_;
};

/// What several checks need to know, found without trusting the trace.
struct TraceFacts {
  static constexpr std::uint32_t nobody = 0xffffffff;

  explicit TraceFacts(const Trace& trace);

  std::vector<std::uint32_t> producer;  ///< per tensor: the first op that makes it, or nobody
  std::vector<bool> is_countable;       ///< per tensor: positive dimensions, less than 1 EiB
  bool blocks_are_in_order = true;      ///< none is empty, and none overlap
  std::vector<std::int32_t> owner;      ///< per op, if they are in order: its block, or −1
};

bool exists(const Trace& trace, TensorId id);
/// Are the op's operands, or its attributes, inside their pool?
bool has_operands(const Trace& trace, const Op& op);
bool has_attributes(const Trace& trace, const Op& op);
/// Does block i hold at least one op, all behind those of the block before?
bool follows_in_order(const Trace& trace, std::size_t i);

/// Why `id` cannot be read by op number `op`: out of range, or not made earlier; "" if it can.
std::string read_defect(const Trace& trace, const TraceFacts& facts, TensorId id, std::size_t op);
std::string missing_tensor(const Trace& trace, TensorId id);

/// What the fill needs of a tensor of positive dimensions and does not find; "" if all is there.
std::string_view unmet_need(const Tensor& tensor, const InputFill& fill);

/// Why so many micro-batches are too many; "" if they are not.
std::string micro_batches_defect(const Trace& trace);

void check_tensors(const Trace& trace, const TraceFacts& facts, Defects& defects);
void check_ops(const Trace& trace, const TraceFacts& facts, Defects& defects);
void check_opaque_rows(const Trace& trace, Defects& defects);
void check_lines(const Trace& trace, Defects& defects);

}  // namespace tidemark
