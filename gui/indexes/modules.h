// The modules that a trace's ops stand in, by the paths that are their names: "blocks.3", and
// within it "blocks.3.attn".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/trace.h"

namespace tidemark::gui {

struct Module {
  std::string name;
  std::int32_t block = -1;  ///< that it is, or stands in; -1 = outside of blocks
};

/// In the order of the trace.
struct Modules {
  std::vector<Module> all;
  std::vector<std::uint32_t> of_op;  ///< index into `all`
};

/// Blocks are modules of their own; of what is outside of them the first part of the path counts,
/// not counting what all blocks stand in, such as "model".
Modules outer_modules(const Trace& trace);
/// One step further in, where the path goes on.
Modules inner_modules(const Trace& trace);

}  // namespace tidemark::gui
