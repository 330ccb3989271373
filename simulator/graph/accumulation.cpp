// What one micro-batch leaves behind is gradients: its reads are counted anew, and its copies on
// the host are of no use to the next.
#include "simulator/graph/accumulation.h"

namespace tidemark {

void accumulate(const MicroBatches& batches, const Derived& derived, SavedValues& values,
                MicroBatch& batch) {
  for (std::int64_t i = 0; i < batches.count; ++i) {
    values.present.expect(derived.recovery.uses);
    if (values.offloaded) values.offloaded->forget_all();
    batch.append();
  }
}

}  // namespace tidemark
