// What a block is for, as far as the stack that allocated it says so.
#pragma once

#include "importers/memory_snapshot.h"
#include "importers/timeline_builder.h"
#include "traces/tensor.h"

namespace tidemark::importers {

/// Unknown where no frame is one of those that PyTorch allocates certain things in; what the
/// autograd engine allocates has no frames at all.
Category category_of(const MemorySnapshot& snapshot, StackId stack);

/// Gives the tensors and buffers of a timeline that was made of a snapshot their categories;
/// `stacks` is by tensor.
void set_categories(RecordedTimeline& timeline, const MemorySnapshot& snapshot,
                    const std::vector<StackId>& stacks);

}  // namespace tidemark::importers
