// The values that are present while a schedule is written: where each storage is, how many reads of
// it are still to come after the forward pass, and what brings an absent one back.
#pragma once

#include "simulator/lowering/schedule_writer.h"
#include "simulator/needs.h"
#include "simulator/plan.h"

namespace tidemark {

class Values {
 public:
  /// `reads`, by storage: how often it is read after the forward pass.
  Values(const Trace& trace, const Plan& plan, const Needs& needs, std::vector<std::uint32_t> reads,
         ScheduleWriter& writer);

  BufferId of(TensorId storage) const { return buffer_[index(storage)]; }
  /// The value if it is present, else its codes; no_buffer if there is neither.
  BufferId of_value_or_codes(TensorId storage) const {
    return is_present(storage) ? of(storage) : codes_[index(storage)];
  }
  bool is_present(TensorId storage) const { return of(storage) != no_buffer; }
  std::uint32_t reads_to_come(TensorId storage) const { return reads_[index(storage)]; }

  /// A parameter or an input: there all the time.
  void place(TensorId storage);
  void allocate(TensorId storage);
  /// Brings an absent value back from its codes or from the host.
  void ensure_present(TensorId storage);
  /// The last forward read is done: keeps, codes, copies out or frees, as the plan says.
  void end_forward(TensorId storage, bool is_made_again);
  /// One read less to come. True if it was the last: somebody has to forget the storage.
  bool count_read(TensorId storage) { return --reads_[index(storage)] == 0; }
  /// No read to come any more.
  void forget(TensorId storage);

  /// One byte per element beside the value.
  BufferId quantize(TensorId storage);
  void dequantize(BufferId codes, TensorId storage);
  /// Frees the value alone.
  void drop(TensorId storage);

 private:
  BufferId allocate_by_group(TensorId storage);

  const Trace& trace_;
  const Plan& plan_;
  const Needs& needs_;
  ScheduleWriter& writer_;
  std::vector<std::uint32_t> reads_;
  std::vector<BufferId> buffer_, codes_;
  std::vector<bool> on_host_;
};

}  // namespace tidemark
