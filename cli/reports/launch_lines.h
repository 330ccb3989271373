// How other programs are told to run a layout: the options of Megatron-LM, torchtitan, DeepSpeed
// and accelerate that say it. What a program does not have is said instead.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/layouts/layout_search.h"

namespace tidemark::cli {

struct LaunchLine {
  std::string_view program;  ///< "Megatron-LM"
  std::string line;          ///< the command, or "" if the program does not run such a layout
  std::string why_not;       ///< what it does not have
};

/// One of each program, in a fixed order. The commands leave the model and its data to the user's
/// own options, where "…" stands.
std::vector<LaunchLine> launch_lines(const LayoutRequest& request, const MeshLayout& layout);

}  // namespace tidemark::cli
