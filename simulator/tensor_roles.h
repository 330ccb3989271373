// Many tensors by one name: "blocks.*.mlp.gelu" is that of every block.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/name_index.h"
#include "traces/trace.h"

namespace tidemark {

/// "blocks.*.mlp.gelu": every number between dots becomes a star.
std::string role_of(std::string_view tensor_name);

/// The tensors of a trace, which must outlive it, by name and by role. A star stands for any one
/// number: "stages.0.blocks.*.add1" are those of the first stage.
class TensorRoles {
 public:
  explicit TensorRoles(const Trace& trace);

  /// The tensor of this name, or else all that the stars stand for, in the order of the trace.
  std::vector<TensorId> find(std::string_view name) const;

  /// The shortest list of roles and names for which find() gives the chosen tensors and no others:
  /// a role where all of its tensors are chosen, else the name of each.
  std::vector<std::string> names_for(const std::vector<bool>& is_chosen) const;

  /// The name that was probably meant, or "": a role for what has stars.
  std::string_view nearest(std::string_view name) const;

 private:
  const Trace& trace_;
  NameIndex names_;
  std::map<std::string, std::vector<TensorId>> by_role_;
};

}  // namespace tidemark
