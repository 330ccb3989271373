#include "simulator/lowering/values.h"

#include <utility>

namespace tidemark {

Values::Values(const Trace& trace, const Plan& plan, const Needs& needs,
               std::vector<std::uint32_t> reads, ScheduleWriter& writer)
    : trace_(trace),
      plan_(plan),
      needs_(needs),
      writer_(writer),
      reads_(std::move(reads)),
      buffer_(trace.tensors.size(), no_buffer),
      codes_(trace.tensors.size(), no_buffer),
      on_host_(trace.tensors.size()) {}

void Values::place(TensorId storage) {
  const Tensor& tensor = trace_[storage];
  buffer_[index(storage)] = writer_.place(size(tensor), storage, Role::Value, tensor.category);
}

void Values::allocate(TensorId storage) {
  const Tensor& tensor = trace_[storage];
  buffer_[index(storage)] = writer_.allocate(size(tensor), storage, Role::Value, tensor.category);
}

void Values::ensure_present(TensorId storage) {
  if (is_present(storage)) return;
  if (on_host_[index(storage)]) {
    allocate(storage);
    return writer_.copy_in(of(storage));
  }
  CHECK(codes_[index(storage)] != no_buffer);
  dequantize(codes_[index(storage)], storage);
}

void Values::end_forward(TensorId storage, bool is_made_again) {
  const std::size_t s = index(storage);
  if (reads_[s] == 0 || is_made_again) return drop(storage);
  switch (plan_.actions[s]) {
    case Action::Keep:
      return;
    case Action::Quantize:
      codes_[s] = quantize(storage);
      break;
    case Action::Offload:
      writer_.copy_out(of(storage));
      on_host_[s] = true;
      break;
    case Action::Recompute:
    case Action::Reconstruct:
      break;
  }
  drop(storage);
}

void Values::forget(TensorId storage) {
  drop(storage);
  const BufferId codes = std::exchange(codes_[index(storage)], no_buffer);
  if (codes != no_buffer) writer_.free(codes);
}

void Values::drop(TensorId storage) {
  BufferId& buffer = buffer_[index(storage)];
  if (buffer == no_buffer || writer_.schedule()[buffer].persistent) return;
  const auto& held = plan_.value_release_after;
  writer_.release(buffer, held.empty() ? no_op : held[index(storage)]);
  buffer = no_buffer;
}

BufferId Values::quantize(TensorId storage) {
  const BufferId by_group = allocate_by_group(storage);
  const BufferId codes =
      writer_.allocate({numel(trace_[storage].shape)}, storage, Role::Codes, Category::Activation);
  writer_.begin_run();
  writer_.read(of(storage));
  writer_.write(codes);
  if (by_group != no_buffer) writer_.write(by_group);
  writer_.run(Task::Quantize, needs_.producer[index(storage)]);
  if (by_group != no_buffer) writer_.free(by_group);
  return codes;
}

void Values::dequantize(BufferId codes, TensorId storage) {
  const BufferId by_group = allocate_by_group(storage);
  allocate(storage);
  writer_.begin_run();
  writer_.read(codes);
  writer_.write(of(storage));
  if (by_group != no_buffer) writer_.write(by_group);
  writer_.run(Task::Dequantize, needs_.producer[index(storage)]);
  if (by_group != no_buffer) writer_.free(by_group);
}

BufferId Values::allocate_by_group(TensorId storage) {
  if (!plan_.released.copies_by_group) return no_buffer;
  return writer_.allocate(size(trace_[storage]), storage, Role::Temporary, Category::Temporary);
}

}  // namespace tidemark
