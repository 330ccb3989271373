// Per task: finds operands by their numbers, complains about what is missing, writes results.
#include "simulator/judge/validate_runs.h"

#include <algorithm>

#include "traces/expert_ops.h"
#include "traces/optimizer_of.h"
#include "traces/replicas.h"

namespace tidemark::judge {
namespace {

bool keeps_more_than_it_updates(const Sharding& sharing) {
  if (sharing.kind == Sharding::Kind::Megatron) return sharing.cuts_states;
  return sharing.kind == Sharding::Kind::Zero1 || sharing.kind == Sharding::Kind::Zero2;
}

}  // namespace

Runs::Runs(const Trace& trace, const Schedule& schedule, Memory& memory)
    : trace_(trace),
      schedule_(schedule),
      memory_(memory),
      numbers_(trace),
      has_run_(trace.ops.size()),
      has_run_back_(trace.ops.size()),
      is_updated_(trace.tensors.size()),
      is_stale_(trace.tensors.size()),
      has_whole_(trace.tensors.size()),
      of_experts_(parameters_of_experts(trace)) {
  for (const Buffer& buffer : schedule.buffers)
    if (buffer.persistent && buffer.role == Role::Value) has_whole_[index(buffer.tensor)] = true;
  const auto sharing = sharing_of(trace.step);
  const auto schedule_of_stages = trace.step.schedule.value_or(PipelineSchedule());
  const bool has_stages = trace.step.mesh[Axis::Pipeline] > 1;
  is_split_ = has_stages && schedule_of_stages.splits_backward();
  is_interleaved_ = is_split_ || (has_stages && schedule_of_stages.chunks > 1);
  if (is_split_) begin_split();
  if (is_interleaved_) {
    forward_runs_.resize(trace.ops.size());
    backward_runs_.resize(trace.ops.size());
  }
  updates_are_cut_ =
      sharing && keeps_more_than_it_updates(*sharing) && replicas_of(trace.step.mesh) > 1;
}

// Operands mostly come in the order in which they are looked for, so the search goes on behind the
// last one found: an optimizer's run may have a hundred thousand.
template <typename Fits>
Runs::Operand* Runs::find(OperandList& operands, Fits fits) {
  for (std::size_t n = 0; n < operands.size(); ++n) {
    Operand& operand = operands[operands.next++ % operands.size()];
    if (!fits(operand)) continue;
    operand.is_expected = true;
    return &operand;
  }
  return nullptr;
}

void Runs::run(const Run& run) {
  memory_.begin_work(run.stream);
  reads_.clear(), writes_.clear();
  for (const BufferId read : schedule_.reads(run)) reads_.push_back({read, memory_.read(read)});
  for (const BufferId write : schedule_.writes(run)) writes_.push_back({write});
  switch (run.task) {
    case Task::Forward:
    case Task::Recompute:
      forward(run);
      break;
    case Task::Seed:
      seed();
      break;
    case Task::Backward:
    case Task::WeightGradient:
      is_split_ ? split_backward(run) : backward(run);
      break;
    case Task::Accumulate:
      accumulate(run);
      break;
    case Task::Reconstruct:
      reconstruct(run);
      break;
    case Task::Quantize:
      quantize();
      break;
    case Task::Dequantize:
      dequantize();
      break;
    case Task::Optimizer:
      optimize();
      break;
    case Task::Pack:
    case Task::AllReduce:
    case Task::AllGather:
    case Task::ReduceScatter:
      exchange(run.task);
      break;
  }
  check_unexpected();
}

void Runs::forward(const Run& run) {
  const Op& op = trace_[run.op];
  if (is_view(op.kind)) return memory_.complain("is a view; nothing runs");
  if (run.task == Task::Forward && is_interleaved_) {
    ++forward_runs_[index(run.op)];
    has_run_[index(run.op)] = true;
  } else if (run.task == Task::Forward) {
    if (index(run.op) < next_op_ && forward_ + 1 < trace_.step.accumulate.count) begin_forward();
    if (index(run.op) < next_op_) memory_.complain("runs again or out of order");
    next_op_ = index(run.op) + 1;
    has_run_[index(run.op)] = true;
  } else {
    if (!has_run_[index(run.op)]) memory_.complain("has not run a first time");
    if (row_of(op.kind).is_random && op.rng_key == 0)
      memory_.complain("is random without a key; it cannot run again");
    if (runs_once(trace_, op)) memory_.complain("runs again, though it may run only once");
  }
  if (const OpaqueRow* row = opaque_row(trace_, op)) check_workspace(row->forward.workspace);
  for (std::size_t k = 0; k < op.inputs; ++k) read_value(op, k);
  const auto outputs = trace_.outputs(op);
  for (std::size_t k = 0; k < op.outputs; ++k) {
    const TensorId storage = trace_[outputs[k]].storage;
    const bool is_written = std::ranges::any_of(
        outputs.first(k), [&](TensorId output) { return trace_[output].storage == storage; });
    if (!is_written) write(Role::Value, storage, numbers_.value(op, op.inputs + k));
  }
  note_extremes(op);
}

// An op may note the extremes of what it writes; until that is quantized, nothing is decoded by
// these ranges. By the last step's ranges it may write the codes, too.
void Runs::note_extremes(const Op& op) {
  const auto outputs = trace_.outputs(op);
  for (Operand& write : writes_) {
    if (write.is_expected || buffer(write).role != Role::Ranges) continue;
    write.is_expected = std::ranges::find(outputs, buffer(write).tensor) != outputs.end();
    if (write.is_expected) memory_.write(write.buffer, 0);
  }
  for (std::size_t k = 0; k < outputs.size(); ++k) write_codes(op, k);
}

void Runs::write_codes(const Op& op, std::size_t k) {
  const TensorId output = trace_.outputs(op)[k];
  const auto is_of = [&](Role role) {
    return [&, role](const Operand& write) {
      return buffer(write).role == role && buffer(write).tensor == output;
    };
  };
  const Operand* const codes = find(writes_, is_of(Role::Codes));
  if (codes == nullptr) return;
  if (!schedule_.encodings[buffer(*codes).encoding].delayed)
    memory_.complain("writes codes of {} by a range that is not there yet", memory_.name(output));
  const Operand* const ranges = find(writes_, is_of(Role::Ranges));
  if (ranges == nullptr)
    return memory_.complain("writes codes of {} without their ranges", memory_.name(output));
  const std::uint64_t number = numbers_.value(op, op.inputs + k);
  memory_.write(codes->buffer, number);
  memory_.write(ranges->buffer, number);
}

void Runs::seed() {
  if (!numbers_.has_gradient(trace_.loss)) return memory_.complain("no gradient is wanted");
  if (is_seeded_ && (is_interleaved_ || backward_ < forward_)) begin_backward();
  if (is_seeded_) memory_.complain("runs again");
  is_seeded_ = true;
  write(Role::Gradient, trace_.loss, numbers_.gradient(trace_.loss));
}

void Runs::backward(const Run& run) {
  const Op& op = trace_[run.op];
  if (run.task != Task::Backward) return memory_.complain("is a half of a pass that has none");
  if (!numbers_.has_backward(op)) return memory_.complain("has no gradient to write");
  if (has_run_back_[index(run.op)] && !is_interleaved_) memory_.complain("runs again");
  has_run_back_[index(run.op)] = true;
  if (is_interleaved_ && ++backward_runs_[index(run.op)] > forward_runs_[index(run.op)] &&
      !is_view(op.kind))
    memory_.complain("goes back through a micro-batch that has not come");
  for (const TensorId output : trace_.outputs(op))
    if (numbers_.has_gradient(output)) read_gradient(output);
  Operands needs = 0;
  for (std::size_t k = 0; k < op.inputs; ++k)
    if (numbers_.contribution(op, k).op != no_op) needs |= gradient_rule(trace_, op, k).needs;
  for (std::size_t k = 0; k < std::size_t{op.inputs} + op.outputs; ++k) {
    const Operands bit = bit_of(op, k);
    if (((needs | op.also_keeps) & bit) != 0) read_saved(op, k, (needs & bit) != 0);
  }
  if (const OpaqueRow* row = opaque_row(trace_, op)) check_workspace(row->backward.workspace);
  for (std::size_t k = 0; k < op.inputs; ++k) {
    const auto& c = numbers_.contribution(op, k);
    if (c.is_fresh && !write_over_value(op, k, c.number) &&
        !add_to_main_gradient(trace_.inputs(op)[k], c.number))
      write(Role::Gradient, trace_.inputs(op)[k], c.number);
  }
}

// Each read is one addend; memory that holds two of them is read twice. Whose gradient the sum is
// follows from its name, or, where it lies in memory named after a later alias, from what fits: two
// inputs may have the same.
void Runs::accumulate(const Run& run) {
  if (writes_.size() == 1 && buffer(writes_[0]).role == Role::GradientShard) return add_shards();
  if (writes_.size() == 1 && buffer(writes_[0]).role == Role::Temporary) return add_to_buffer();
  if (writes_.size() != 1 || buffer(writes_[0]).role != Role::Gradient || reads_.empty())
    return memory_.complain("adds up nothing");
  for (Operand& read : reads_) read.is_expected = true;
  writes_[0].is_expected = true;
  const BufferId written = writes_[0].buffer;
  const auto inputs = trace_.inputs(trace_[run.op]);
  std::vector<TensorId> candidates(inputs.begin(), inputs.end());
  std::stable_partition(candidates.begin(), candidates.end(),
                        [&](TensorId tensor) { return tensor == schedule_[written].tensor; });
  std::optional<std::uint64_t> number;
  for (const TensorId tensor : candidates) {
    if (size(trace_[tensor]) != schedule_[written].size) continue;
    const std::optional<Sum> sum = sum_of_reads(tensor);
    if (!sum || (number && (sum->number != *number || !sum->parts.empty()))) continue;
    number = sum->number;
    sums_.insert({tensor, sum->number});
    if (is_interleaved_) continue;  // the next chunk's come in between
    for (const std::size_t part : sum->parts) parts_added_.insert({tensor, part});
  }
  if (!number) memory_.complain("adds up what are no parts of one input's gradient");
  memory_.write(written, number.value_or(0));
}

std::optional<Runs::Sum> Runs::sum_of_reads(TensorId tensor) {
  Sum sum;
  for (const Operand& read : reads_) {
    const auto addend = addend_of(read, tensor, sum.parts);
    if (!addend) return std::nullopt;
    sum.number += *addend;
  }
  return sum;
}

// Memory of the gradient's size holds one contribution, or a sum, or the zeros that a step begins
// with. Larger memory holds several contributions, and each counts once.
std::optional<std::uint64_t> Runs::addend_of(const Operand& read, TensorId tensor,
                                             std::vector<std::size_t>& parts) {
  const auto& all = numbers_.contributions(tensor);
  if (buffer(read).size == size(trace_[tensor])) {
    const auto is_it = [&](const auto& c) { return c.number == read.number; };
    const bool is_zero = read.number == 0 && buffer(read).tensor == tensor &&
                         buffer(read).role == Role::Gradient;  // as a state's, but that is no part
    if (is_zero || sums_.contains({tensor, read.number}) || std::ranges::any_of(all, is_it))
      return read.number;
    return std::nullopt;
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool is_counted = parts_added_.contains({tensor, i}) || std::ranges::count(parts, i) > 0;
    if (all[i].is_fresh || is_counted) continue;
    const TensorId output = trace_.outputs(trace_[all[i].op])[0];
    if (!numbers_.holds_gradient(read.number, output)) continue;
    parts.push_back(i);
    return all[i].number;
  }
  return std::nullopt;
}

void Runs::reconstruct(const Run& run) {
  const Op& op = trace_[run.op];
  if (!row_of(op.kind).inverts_input0 || !op.residual)
    return memory_.complain("is not the add of a coupling");
  const Tensor& input = trace_[trace_.inputs(op)[0]];
  const Tensor& output = trace_[trace_.outputs(op)[0]];
  if (size(input) != size(output) || size(input) != size(trace_[input.storage]))
    memory_.complain("does not make all of {}", input.name);
  read_value(op, 1);
  read_value(op, 2);  // output 0
  write(Role::Value, input.storage, numbers_.value(op, 0));
}

// Codes carry the number of their value, and so do the ranges that decode them. Floats have what
// decodes them behind them.
void Runs::quantize() {
  if (reads_.size() != 1 || buffer(reads_[0]).role != Role::Value)
    return memory_.complain("reads no value");
  reads_[0].is_expected = true;
  write(Role::Codes, buffer(reads_[0]).tensor, reads_[0].number);
  const bool writes_floats =
      std::ranges::any_of(writes_, [&](const Operand& write) { return holds_floats(write); });
  if (!writes_floats) write(Role::Ranges, buffer(reads_[0]).tensor, reads_[0].number);
}

void Runs::dequantize() {
  if (reads_.empty() || buffer(reads_[0]).role != Role::Codes)
    return memory_.complain("reads no codes");
  reads_[0].is_expected = true;
  if (!holds_floats(reads_[0])) read_ranges(reads_[0]);
  write(Role::Value, buffer(reads_[0]).tensor, reads_[0].number);
}

bool Runs::holds_floats(const Operand& codes) const {
  const Buffer& of = buffer(codes);
  return of.role == Role::Codes && of.encoding < schedule_.encodings.size() &&
         schedule_.encodings[of.encoding].format == CodeFormat::Float8;
}

void Runs::read_ranges(const Operand& codes) {
  const auto is_it = [&](const Operand& read) {
    return buffer(read).role == Role::Ranges && buffer(read).tensor == buffer(codes).tensor &&
           read.number == codes.number;
  };
  if (find(reads_, is_it) == nullptr)
    memory_.complain("does not read the ranges of {}", memory_.name(codes.buffer));
}

// Paged states lie where no schedule sees them.
bool Runs::has_state(TensorId parameter) const {
  const OptimizerRow& row = optimizer_of(trace_, parameter);
  const auto sharing = sharing_of(trace_.step);
  const bool is_cut = sharing && is_fsdp(sharing->kind);  // its shards are fp32
  const bool has_copy =
      trace_.step.master_weights && size_of(trace_[parameter].dtype) == 2 && !is_cut;
  const bool is_paged = paged_state_bytes(row, numel(trace_[parameter].shape)) > Bytes{};
  return !trace_.update && !is_paged && (row.states > 0 || has_copy);
}

void Runs::optimize() {
  if (trace_.update) check_workspaces(trace_.update->pass.workspace);
  for (std::size_t i = 0; i < writes_.size(); ++i) {
    const Role role = buffer(writes_[i]).role;
    if (role != Role::Value && role != Role::Shard) continue;
    const TensorId tensor = buffer(writes_[i]).tensor;
    const std::string name = memory_.name(tensor);
    if (!trace_[tensor].trainable || !numbers_.has_gradient(tensor)) {
      memory_.complain("{} has no gradient", name);
      continue;
    }
    if (is_updated_[index(tensor)]) memory_.complain("updates {} again", name);
    is_updated_[index(tensor)] = true;
    read_shared_gradient(tensor);
    write(role, tensor, 0);  // of no use to any op of this step
    const bool is_kept = role == Role::Shard && has_whole_[index(tensor)];
    const bool is_cut = updates_are_cut_ && replicas(tensor) > 1;
    if (is_cut || is_kept) is_stale_[index(tensor)] = true;
    // Of a parameter that is another rank's there is no state here.
    const bool is_written = std::ranges::any_of(writes_, [&](const Operand& operand) {
      return buffer(operand).role == Role::OptimizerState && buffer(operand).tensor == tensor;
    });
    // Whether states are paged depends on how large a part is.
    const bool may_be_paged =
        row_of(trace_.step.optimizer).is_paged && (is_cut || role == Role::Shard);
    const bool has_one = may_be_paged ? is_written : has_state(tensor) && (is_written || !is_cut);
    if (has_one) write(Role::OptimizerState, tensor, 0);
  }
}

const Runs::Operand* Runs::reads(const Op& op, std::size_t k, Role role) {
  const auto is_it = [&](const Operand& read) {
    return buffer(read).role == role && read.number == numbers_.value(op, k);
  };
  return find(reads_, is_it);
}

void Runs::read_value(const Op& op, std::size_t k) {
  const TensorId tensor = trace_.operands[op.first_operand + k];
  if (!reads(op, k, Role::Value))
    memory_.complain("does not read the value of {}", memory_.name(tensor));
}

void Runs::read_saved(const Op& op, std::size_t k, bool must) {
  const bool may_decode = (decoded_operands(op.kind) & bit_of(op, k)) != 0;
  if (may_decode)
    if (const Operand* codes = reads(op, k, Role::Codes); codes && !holds_floats(*codes))
      return read_ranges(*codes);
  if (reads(op, k, Role::Value) || !must) return;
  memory_.complain("does not read the value of {}",
                   memory_.name(trace_.operands[op.first_operand + k]));
}

// Gradients that the optimizer reads are the sum of those of all micro-batches.
void Runs::read_gradient(TensorId tensor, std::int64_t micro_batches) {
  const auto is_it = [&](std::uint64_t number) {
    if (micro_batches == 1) return numbers_.holds_gradient(number, tensor);
    return number == static_cast<std::uint64_t>(micro_batches) * numbers_.gradient(tensor);
  };
  const bool found = find(
      reads_, [&](const Operand& read) { return holds_gradients(read) && is_it(read.number); });
  if (!found) memory_.complain("does not read the complete gradient of {}", memory_.name(tensor));
}

void Runs::write(Role role, TensorId tensor, std::uint64_t number) {
  const Operand* found = find(writes_, [&](const Operand& write) {
    return !write.is_expected && buffer(write).role == role && buffer(write).tensor == tensor;
  });
  if (found) return memory_.write(found->buffer, number);
  memory_.complain("does not write its {} of {}", roles[static_cast<std::size_t>(role)].name,
                   memory_.name(tensor));
}

// Some gradients take the memory of a value that nobody needs any more.
bool Runs::write_over_value(const Op& op, std::size_t k, std::uint64_t number) {
  const Operands over = gradient_rule(trace_, op, k).over;
  if (over == 0) return false;
  const TensorId value = trace_[operand(trace_, op, __builtin_ctz(over))].storage;
  const Operand* found = find(writes_, [&](const Operand& write) {
    return buffer(write).role == Role::Value && buffer(write).tensor == value;
  });
  if (!found) return false;
  memory_.write(found->buffer, number);
  overwritten_.insert(found->buffer);
  return true;
}

bool Runs::holds_gradients(const Operand& operand) const {
  return buffer(operand).role == Role::Gradient || overwritten_.contains(operand.buffer);
}

void Runs::check_workspace(Bytes size) {
  if (size == Bytes{}) return;
  const bool has_it = std::ranges::any_of(writes_, [&](const Operand& write) {
    return buffer(write).role == Role::Temporary && buffer(write).size == size;
  });
  if (!has_it) memory_.complain("has no workspace of {} bytes", size.count);
}

void Runs::check_workspaces(Bytes sum) {
  Bytes found;
  for (const Operand& write : writes_)
    if (buffer(write).role == Role::Temporary) found += buffer(write).size;
  if (found != sum)
    memory_.complain("has workspaces of {} bytes, not of {}", found.count, sum.count);
}

void Runs::check_unexpected() {
  for (const Operand& read : reads_)
    if (!read.is_expected) memory_.complain("reads {} for nothing", memory_.name(read.buffer));
  for (const Operand& write : writes_) {
    if (write.is_expected) continue;
    if (buffer(write).role != Role::Temporary)
      memory_.complain("writes {} for nothing", memory_.name(write.buffer));
    memory_.write(write.buffer, 0);
  }
}

// Without pipeline stages a micro-batch is complete before the next.
void Runs::begin_forward() {
  check_forward();
  if (trace_.step.mesh[Axis::Pipeline] == 1) begin_backward();
  has_run_.assign(has_run_.size(), false);
  next_op_ = 0;
  ++forward_;
}

void Runs::begin_backward() {
  if (is_interleaved_) {
    parts_added_.clear();
    is_seeded_ = false;
    ++backward_;
    return;
  }
  check_backward();
  has_run_back_.assign(has_run_back_.size(), false);
  parts_added_.clear();
  is_seeded_ = false;
  ++backward_;
}

void Runs::check_complete() {
  check_forward();
  check_backward();
  if (is_interleaved_) {
    check_counts();
  } else {
    for (const std::int64_t done : {forward_ + 1, backward_ + 1})
      if (done != trace_.step.accumulate.count)
        memory_.complain("{} of {} micro-batches ran", done, trace_.step.accumulate.count);
  }
  for (std::size_t t = 0; t < trace_.tensors.size(); ++t) check_trained(static_cast<TensorId>(t));
}

// Chunks of a stage take micro-batches in turn: no order of all ops, but each comes as often.
void Runs::check_counts() {
  const std::int64_t wanted = trace_.step.accumulate.count;
  if (backward_ + 1 != wanted)
    memory_.complain("{} of {} micro-batches were seeded", backward_ + 1, wanted);
  for (std::size_t i = 0; i < trace_.ops.size(); ++i) {
    if (!is_view(trace_.ops[i].kind) && forward_runs_[i] != wanted)
      memory_.complain("{} ran {} times of {}", trace_.ops[i].name, forward_runs_[i], wanted);
    if (is_split_) {
      check_contributions(trace_.ops[i], wanted);
    } else if (numbers_.has_backward(trace_.ops[i]) && backward_runs_[i] != wanted)
      memory_.complain("the backward of {} ran {} times of {}", trace_.ops[i].name,
                       backward_runs_[i], wanted);
  }
}

void Runs::check_forward() {
  for (std::size_t i = 0; i < trace_.ops.size(); ++i)
    if (!is_view(trace_.ops[i].kind) && !has_run_[i])
      memory_.complain("{} did not run", trace_.ops[i].name);
}

void Runs::check_backward() {
  for (std::size_t i = 0; i < trace_.ops.size(); ++i)
    if (numbers_.has_backward(trace_.ops[i]) && !has_run_back_[i])
      memory_.complain("the backward of {} did not run", trace_.ops[i].name);
  if (numbers_.has_gradient(trace_.loss) && !is_seeded_) memory_.complain("the seed did not run");
}

void Runs::check_trained(TensorId tensor) {
  if (!trace_[tensor].trainable || !numbers_.has_gradient(tensor)) return;
  if (trace_[tensor].category == Category::Parameter) {
    if (!is_updated_[index(tensor)]) memory_.complain("{} was not updated", memory_.name(tensor));
    if (is_stale_[index(tensor)])
      memory_.complain("{} was not gathered from the ranks that updated it", memory_.name(tensor));
    return;
  }
  if (numbers_.contributions(tensor).size() > 1 &&
      !sums_.contains({tensor, numbers_.gradient(tensor)}))
    memory_.complain("the gradient of {} was not added up", memory_.name(tensor));
}

}  // namespace tidemark::judge
