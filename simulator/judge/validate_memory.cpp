// A buffer is absent, empty, full or freed, with clocks of its uses; breaches are complaints.
#include "simulator/judge/validate_memory.h"

#include "simulator/judge/validate_numbers.h"
#include "traces/replicas.h"

namespace tidemark::judge {

Memory::Memory(const Trace& trace, const Schedule& schedule)
    : trace_(trace),
      schedule_(schedule),
      clocks_(schedule.streams, schedule.events),
      cells_(schedule.buffers.size()),
      step_(schedule.steps.size()) {
  for (std::size_t b = 0; b < cells_.size(); ++b) {
    const Buffer& buffer = schedule.buffers[b];
    cells_[b].used.resize(schedule.streams);
    if (!buffer.persistent) continue;
    cells_[b].state = State::Full;
    // Gradients that outlive the step begin as zeros, and so do ranges.
    if (buffer.role == Role::Value || buffer.role == Role::Shard)
      cells_[b].number = Numbers::initial(buffer.tensor);
  }
  check_buffers();
}

// Rows, or of flat parameters elements, are dealt out in equal parts, the last filled up. Master
// weights are fp32, but DeepSpeed's lie elsewhere.
std::int64_t Memory::shard_bytes(const Tensor& tensor) const {
  const std::int64_t grouped = trace_.step.shard->shard_ranks;
  const std::int64_t ranks = grouped > 0 ? grouped : replicas_of(trace_.step.mesh);
  const Sharding::Kind kind = trace_.step.shard->kind;
  const bool is_wide = trace_.step.master_weights && !is_zero(kind);
  const std::int64_t element = is_wide ? size_of(DType::Float32) : size_of(tensor.dtype);
  if (kind != Sharding::Kind::Fsdp2) return (numel(tensor.shape) + ranks - 1) / ranks * element;
  const std::int64_t rows = tensor.shape.rank() == 0 ? 1 : tensor.shape[0];
  return (rows + ranks - 1) / ranks * (numel(tensor.shape) / rows) * element;
}

// Codes fill whole bytes, and each group has what decodes them, behind the codes where these are
// floats.
Bytes Memory::expected_size(const Buffer& buffer) const {
  const Tensor& tensor = trace_[buffer.tensor];
  if (buffer.role == Role::Shard || buffer.role == Role::GradientShard)
    return Bytes{shard_bytes(tensor)};
  const bool is_coded = buffer.role == Role::Codes || buffer.role == Role::Ranges;
  if (!is_coded) return size(tensor);
  if (buffer.encoding >= schedule_.encodings.size()) return {-1};
  const Encoding& encoding = schedule_.encodings[buffer.encoding];
  const std::int64_t elements = numel(tensor.shape);
  if (encoding.format == CodeFormat::Float8) {
    if (buffer.role == Role::Ranges) return {-1};
    const std::int64_t groups = encoding.group == 0 ? 1 : elements / std::int64_t{encoding.group};
    return {(elements + 3) / 4 * 4 + groups * encoding.metadata};
  }
  if (buffer.role == Role::Codes)
    return {elements / 8 * encoding.bits + (elements % 8 * encoding.bits + 7) / 8};
  if (encoding.group == 0) return {encoding.metadata};
  if (encoding.axis >= tensor.shape.rank()) return {-1};
  return {tensor.shape[encoding.axis] / std::int64_t{encoding.group} * encoding.metadata};
}

// A value lies in its storage's buffer, a gradient in one of the tensor's size.
void Memory::check_buffers() {
  for (std::size_t b = 0; b < cells_.size(); ++b) {
    const Buffer& buffer = schedule_.buffers[b];
    if (buffer.role == Role::OptimizerState || buffer.role == Role::Temporary) continue;
    const Tensor& tensor = trace_[buffer.tensor];
    const Bytes wanted = expected_size(buffer);
    if (buffer.size != wanted)
      complain("{} has {} bytes; need {}", name(static_cast<BufferId>(b)), buffer.size.count,
               wanted.count);
    if (buffer.role != Role::Gradient && tensor.storage != buffer.tensor)
      complain("{} is a view; need the tensor that owns the bytes", name(static_cast<BufferId>(b)));
  }
}

std::string Memory::where() const {
  if (step_ >= schedule_.steps.size()) return {};
  const Run* run = std::get_if<Run>(&schedule_.steps[step_]);
  if (!run) return fmt::format("step {}: ", step_);
  if (index(run->op) >= trace_.ops.size())
    return fmt::format("step {} ({}): ", step_, to_string(run->task));
  return fmt::format("step {} ({} of {}): ", step_, to_string(run->task), trace_[run->op].name);
}

std::string Memory::name(TensorId tensor) const {
  return tensor == no_tensor ? "no tensor" : trace_[tensor].name;
}

std::string Memory::name(BufferId id) const {
  const Buffer& buffer = schedule_[id];
  return fmt::format("{} of {} (buffer {})", roles[static_cast<std::size_t>(buffer.role)].name,
                     name(buffer.tensor), index(id));
}

void Memory::allocate(Allocate step) {
  Cell& cell = cells_[index(step.buffer)];
  if (cell.state == State::Freed) return complain("{} had its lifetime already", name(step.buffer));
  if (cell.state != State::Absent) return complain("{} is present already", name(step.buffer));
  cell.state = State::Empty;
  const StreamId stream = schedule_[step.buffer].stream;
  clocks_.count(stream);  // whoever uses it elsewhere has to wait for what comes behind
  cell.born = clocks_[stream];
}

void Memory::free(Free step) {
  Cell& cell = cells_[index(step.buffer)];
  if (schedule_[step.buffer].persistent) return complain("{} is persistent", name(step.buffer));
  if (cell.state == State::Absent || cell.state == State::Freed)
    return complain("{} is not present", name(step.buffer));
  if (!follows(clocks_[step.stream], cell.used))
    complain("{} may still be in use on another stream", name(step.buffer));
  cell.state = State::Freed;
}

void Memory::wait(Wait step) {
  if (!clocks_.wait(step)) complain("event {} was not recorded", index(step.event));
}

void Memory::synchronize(Synchronize step) {
  if (!clocks_.synchronize(step)) complain("event {} was not recorded", index(step.event));
}

void Memory::begin_work(StreamId stream) {
  clocks_.count(stream);
  stream_ = stream;
}

bool Memory::is_usable(BufferId buffer, const char* verb) {
  Cell& cell = cells_[index(buffer)];
  if (cell.state == State::Absent || cell.state == State::Freed) {
    complain("{} {}, which is not present", verb, name(buffer));
    return false;
  }
  if (!follows(clocks_[stream_], cell.born))
    complain("{} {} on a stream that has not waited for its memory", verb, name(buffer));
  return true;
}

std::uint64_t Memory::read(BufferId buffer) {
  if (!is_usable(buffer, "reads")) return 0;
  Cell& cell = cells_[index(buffer)];
  const Moment& now = clocks_[stream_];
  if (cell.state == State::Empty) {
    complain("reads {}, which is empty", name(buffer));
    return 0;
  }
  if (now[index(cell.writer)] < cell.written)
    complain("reads {}, but has not waited for what writes it", name(buffer));
  cell.used[index(stream_)] = now[index(stream_)];
  return cell.number;
}

void Memory::write(BufferId buffer, std::uint64_t number) {
  if (!is_usable(buffer, "writes")) return;
  Cell& cell = cells_[index(buffer)];
  const Moment& now = clocks_[stream_];
  if (!follows(now, cell.used))
    complain("writes {}, but has not waited for its earlier uses", name(buffer));
  cell.state = State::Full;
  cell.number = number;
  cell.writer = stream_;
  cell.written = cell.used[index(stream_)] = now[index(stream_)];
}

void Memory::copy(CopyOut step) {
  begin_work(step.stream);
  const Buffer& buffer = schedule_[step.buffer];
  const std::uint64_t number = read(step.buffer);
  if (number != 0)
    host_[{buffer.tensor, buffer.role}] = {number, step.stream,
                                           clocks_[step.stream][index(step.stream)]};
}

void Memory::copy(CopyIn step) {
  begin_work(step.stream);
  const Buffer& buffer = schedule_[step.buffer];
  const auto copy = host_.find({buffer.tensor, buffer.role});
  if (copy == host_.end()) return complain("the host has no copy of {}", name(step.buffer));
  const auto& [number, stream, copied] = copy->second;
  if (clocks_[step.stream][index(stream)] < copied)
    complain("brings back {}, but has not waited for its copy", name(step.buffer));
  write(step.buffer, number);
}

void Memory::check_balance() {
  for (std::size_t b = 0; b < cells_.size(); ++b)
    if ((cells_[b].state == State::Empty || cells_[b].state == State::Full) &&
        !schedule_.buffers[b].persistent)
      complain("{} is left behind", name(static_cast<BufferId>(b)));
}

}  // namespace tidemark::judge
