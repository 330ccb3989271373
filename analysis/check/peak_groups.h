// Who is alive at the peak, in groups of equal role: what a baseline keeps of a peak, so that a
// later check can say what grew. The tensors blocks.0.mlp.gelu to blocks.11.mlp.gelu have one role.
#pragma once

#include <string>
#include <vector>

#include "analysis/report.h"

namespace tidemark::regression {

/// Of a group: what each of the blocks [first, last] of the trace has of it.
struct BlockShare {
  std::size_t first = 0, last = 0;
  std::int64_t tensors = 0;  ///< in one block
  Bytes bytes;               ///< in one block

  bool operator==(const BlockShare&) const = default;
};

struct PeakGroup {
  std::string role;      ///< "blocks.*.mlp.gelu"; "" for memory that holds no tensor
  std::string contents;  ///< "activation", "parameter", "codes", "gradient", "temporary", …
  std::string op;        ///< kind of the op that makes the tensor; "" for parameters and inputs
  std::string decision;  ///< "keep", "recompute, keep", …; "not saved"; "persistent"; ""
  std::int64_t tensors = 0;
  Bytes bytes;
  std::string reason = {};  ///< of the decision about the largest tensor; not kept in baselines
  std::vector<BlockShare> blocks = {};  ///< in the order of the trace; not kept in baselines

  bool operator==(const PeakGroup&) const = default;
};

/// Same role, contents and op: the same thing in two versions of a model.
bool is_same_role(const PeakGroup& a, const PeakGroup& b);

/// All groups, largest first. Tensors are of the block that their name begins with. The bytes add
/// up to the live peak.
std::vector<PeakGroup> peak_groups(const Evaluation& evaluation);

}  // namespace tidemark::regression
