#include "simulator/lowering/schedule_writer.h"

#include <algorithm>

namespace tidemark {

void ScheduleWriter::reserve(std::size_t buffers, std::size_t steps, std::size_t operands) {
  schedule_.buffers.reserve(buffers);
  schedule_.steps.reserve(steps);
  schedule_.operands.reserve(operands);
}

BufferId ScheduleWriter::place(Bytes bytes, TensorId tensor, Role role, Category category) {
  const auto id = static_cast<BufferId>(schedule_.buffers.size());
  schedule_.buffers.push_back({bytes, tensor, role, category, stream, true});
  return id;
}

BufferId ScheduleWriter::allocate(Bytes bytes, TensorId tensor, Role role, Category category) {
  const auto id = static_cast<BufferId>(schedule_.buffers.size());
  schedule_.buffers.push_back({bytes, tensor, role, category, stream, false});
  schedule_.steps.emplace_back(Allocate{id});
  return id;
}

void ScheduleWriter::free(BufferId buffer) {
  if (!schedule_[buffer].persistent) order_.free(buffer, stream);
}

void ScheduleWriter::add_once(std::vector<BufferId>& list, BufferId buffer) {
  if (std::ranges::find(list, buffer) == list.end()) list.push_back(buffer);
}

void ScheduleWriter::run(Task task, OpId op) {
  order_.before_run(stream, reads_, writes_);
  const auto first = static_cast<std::uint32_t>(schedule_.operands.size());
  schedule_.operands.insert(schedule_.operands.end(), reads_.begin(), reads_.end());
  schedule_.operands.insert(schedule_.operands.end(), writes_.begin(), writes_.end());
  schedule_.steps.emplace_back(Run{task, stream, op, first,
                                   static_cast<std::uint32_t>(reads_.size()),
                                   static_cast<std::uint32_t>(writes_.size())});
}

void ScheduleWriter::copy_out(BufferId buffer) {
  order_.before_run(stream, {buffer}, {});
  schedule_.steps.emplace_back(CopyOut{buffer, stream});
}

void ScheduleWriter::copy_in(BufferId buffer) {
  order_.before_run(stream, {}, {buffer});
  schedule_.steps.emplace_back(CopyIn{buffer, stream});
}

void ScheduleWriter::begin_backward() {
  in_backward_ = true;
  position_ = trace_.ops.size();
}

void ScheduleWriter::leave(std::size_t op) {
  if (held_.empty()) return;
  for (const BufferId buffer : held_[op]) free(buffer);
  held_[op].clear();
}

void ScheduleWriter::release(BufferId buffer, OpId until) {
  if (!in_backward_ || until == no_op || position_ <= index(until)) return free(buffer);
  held_.resize(trace_.ops.size());
  held_[index(until)].push_back(buffer);
}

}  // namespace tidemark
