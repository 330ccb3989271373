// Functions of PyTorch's own Python code (2.6 and 2.15 have the same names) whose allocations are
// of one kind.
#include "importers/stack_category.h"

#include <algorithm>

namespace tidemark::importers {
namespace {

struct CategoryRow {
  std::string_view function;
  std::string_view file;  ///< a part of its path
  Category category;
};

/// The first row that a frame of the stack fits.
constexpr std::array category_rows = {
    // State comes to be in the first step of an optimizer; what else it takes, it gives back.
    CategoryRow{"_init_group", "torch/optim/", Category::OptimizerState},
    CategoryRow{"step", "torch/optim/", Category::Temporary},
    // Module.to() and .cuda(); modules that are made on the device.
    CategoryRow{"_apply", "torch/nn/modules/module.py", Category::Parameter},
    CategoryRow{"__init__", "torch/nn/modules/", Category::Parameter},
    // The forward of a module.
    CategoryRow{"_call_impl", "torch/nn/modules/module.py", Category::Activation}};

}  // namespace

Category category_of(const MemorySnapshot& snapshot, StackId stack) {
  const auto frames = snapshot.stack(stack);
  const auto fits = [&](const CategoryRow& row) {
    return std::ranges::any_of(frames, [&](std::uint32_t number) {
      const Frame& frame = snapshot.frames[number];
      return frame.function == row.function && frame.file.find(row.file) != std::string::npos;
    });
  };
  const auto* const row = std::ranges::find_if(category_rows, fits);
  return row == category_rows.end() ? Category::Unknown : row->category;
}

void set_categories(RecordedTimeline& timeline, const MemorySnapshot& snapshot,
                    const std::vector<StackId>& stacks) {
  Trace trace = *timeline.trace;
  for (std::size_t i = 0; i < trace.tensors.size(); ++i)
    trace.tensors[i].category = category_of(snapshot, stacks[i]);
  timeline.timeline.baseline = {};
  for (Buffer& buffer : timeline.schedule.buffers) {
    buffer.category = trace[buffer.tensor].category;
    if (buffer.persistent)
      timeline.timeline.baseline[static_cast<std::size_t>(buffer.category)] += buffer.size;
  }
  timeline.trace = std::make_shared<const Trace>(std::move(trace));
}

}  // namespace tidemark::importers
