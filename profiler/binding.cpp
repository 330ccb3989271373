// Makes kernel calls of each run by its task, with the addresses and layouts of its operands.
#include "profiler/binding.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/quoted.h"
#include "profiler/call_settings.h"
#include "profiler/gradient_places.h"
#include "simulator/needs.h"

namespace tidemark::profiler {
namespace {

class Binder {
 public:
  Binder(const Trace& trace, const Plan& plan, const Schedule& schedule, const Addresses& addresses)
      : trace_(trace),
        schedule_(schedule),
        addresses_(addresses),
        wraps_(plan.quirks.codes_per_use),
        needs_(derive_needs(trace)),
        layouts_(value_layouts(trace)),
        places_(trace, schedule, layouts_),
        codes_of_value_(schedule.buffers.size(), no_buffer),
        is_noted_(schedule.buffers.size()) {
    for (const Step& step : schedule.steps)
      if (const Run* run = std::get_if<Run>(&step); run && run->task == Task::Quantize)
        codes_of_value_[index(schedule.reads(*run)[0])] = written(*run, Role::Codes);
  }

  void bind(const Run& run, std::vector<Call>& calls) {
    switch (run.task) {
      case Task::Forward:
      case Task::Recompute:
        return calls.push_back(forward(run));
      case Task::Seed:
        return calls.push_back(seed(run));
      case Task::Backward:
        return calls.push_back(backward(run));
      case Task::Accumulate:
        return calls.push_back(accumulate(run));
      case Task::Reconstruct:
        return calls.push_back(reconstruct(run));
      case Task::Quantize:
        return calls.push_back(quantize(run));
      case Task::Dequantize:
        return calls.push_back(dequantize(run));
      case Task::Optimizer:
        return optimize(run, calls);
    }
  }

 private:
  [[noreturn]] void fail(const Run& run, std::string_view why) const {
    const std::string op =
        run.op == no_op ? std::string() : fmt::format(" of {}", quoted(trace_[run.op].name));
    throw InputError(fmt::format("cannot replay {}{}: {}", to_string(run.task), op, why));
  }

  std::byte* address(BufferId buffer) const {
    return addresses_.arena + addresses_.offsets[index(buffer)];
  }

  Array absent(TensorId tensor) const {
    return {nullptr, trace_[tensor].dtype, trace_[tensor].shape, layouts_[index(tensor)].strides};
  }

  Array value(const Run& run, TensorId tensor, BufferId buffer) const {
    if (buffer == no_buffer)
      fail(run, fmt::format("{} is not among its operands", quoted(trace_[tensor].name)));
    return array_at(address(buffer), trace_[tensor].dtype, layouts_[index(tensor)]);
  }

  Array gradient(const Run& run, TensorId tensor, BufferId buffer) {
    const auto layout = places_.of(tensor, buffer);
    if (!layout)
      fail(run, fmt::format("the gradient of {} has no strides in the memory that it shares",
                            quoted(trace_[tensor].name)));
    return array_at(address(buffer), trace_[tensor].dtype, *layout);
  }

  // The buffer of a role among the operands that holds the tensor's storage.
  BufferId find(std::span<const BufferId> buffers, Role role, TensorId storage) const {
    for (const BufferId buffer : buffers)
      if (schedule_[buffer].role == role && schedule_[buffer].tensor == storage) return buffer;
    return no_buffer;
  }

  // What a conversion makes; a copy of the values by group may lie beside it.
  BufferId written(const Run& run, Role role) const {
    const auto writes = schedule_.writes(run);
    const auto has_role = [&](BufferId buffer) { return schedule_[buffer].role == role; };
    return *std::ranges::find_if(writes, has_role);
  }

  Call call_of(Pass pass, const Op& op) const {
    Call call;
    call.pass = pass, call.kind = op.kind;
    call.settings = settings_of(trace_, op);
    call.moves = moves_of(trace_, op);
    call.key = op.rng_key;
    return call;
  }

  Call forward(const Run& run) {
    const Op& op = trace_[run.op];
    Call call = call_of(Pass::Forward, op);
    for (const TensorId input : trace_.inputs(op))
      call.inputs.push_back(
          value(run, input, find(schedule_.reads(run), Role::Value, trace_[input].storage)));
    for (const TensorId output : trace_.outputs(op)) {
      const BufferId buffer = find(schedule_.writes(run), Role::Value, trace_[output].storage);
      call.outputs.push_back(value(run, output, buffer));
      if (row_of(op.kind).notes_min_max) watch(buffer, call.outputs.back());
    }
    return call;
  }

  // What is quantized next has its minimum and maximum noted while it is written. Mesa's released
  // code makes passes of its own.
  void watch(BufferId buffer, Array& output) {
    const BufferId codes = codes_of_value_[index(buffer)];
    if (codes == no_buffer || wraps_) return;
    output.groups = all_codes(codes).groups;
    output.groups.first = address(buffer);
    is_noted_[index(buffer)] = true;
  }

  Call seed(const Run& run) {
    Call call;
    call.pass = Pass::Fill;
    call.outputs.push_back(gradient(run, trace_.loss, schedule_.writes(run)[0]));
    return call;
  }

  Call backward(const Run& run) {
    const Op& op = trace_[run.op];
    const bool is_ms_norm = op.kind == OpKind::MsLayerNorm || op.kind == OpKind::MsRmsNorm;
    if (is_ms_norm && op.outputs < 2)
      fail(run, "it needs 1/σ, which these framework rules do not keep (use --framework torch-2)");
    Call call = call_of(Pass::Backward, op);
    const Operands saved = needs_.saved[index(run.op)];
    for (int i = 0; i < op.inputs; ++i) call.inputs.push_back(saved_value(run, op, i, saved));
    for (int j = 0; j < op.outputs; ++j) {
      call.outputs.push_back(saved_value(run, op, 16 + j, saved));
      call.d_outputs.push_back(incoming(run, trace_.outputs(op)[static_cast<std::size_t>(j)]));
    }
    for (std::size_t i = 0, written = 0; i < op.inputs; ++i)
      call.d_inputs.push_back(outgoing(run, trace_.inputs(op)[i], written));
    return call;
  }

  Array saved_value(const Run& run, const Op& op, int bit, Operands saved) {
    const TensorId tensor = operand(trace_, op, bit);
    if ((saved >> bit & 1) == 0) return absent(tensor);
    const TensorId storage = trace_[tensor].storage;
    const BufferId codes = find(schedule_.reads(run), Role::Codes, storage);
    if (codes != no_buffer) return coded_value(tensor, codes);
    return value(run, tensor, find(schedule_.reads(run), Role::Value, storage));
  }

  // Codes lie as the values of their storage did.
  Array coded_value(TensorId tensor, BufferId codes) {
    Array array = array_at(address(codes), DType::UInt8, layouts_[index(tensor)]);
    array.groups = all_codes(codes).groups;
    return array;
  }

  Array incoming(const Run& run, TensorId output) {
    for (const BufferId buffer : schedule_.reads(run))
      if (places_.of(output, buffer)) return gradient(run, output, buffer);
    return absent(output);
  }

  // Gradients are written in the order of the inputs; those that alias are not written.
  Array outgoing(const Run& run, TensorId input, std::size_t& written) {
    const auto writes = schedule_.writes(run);
    if (written >= writes.size()) return absent(input);
    const Buffer& next = schedule_[writes[written]];
    if (next.role != Role::Gradient || next.tensor != input) return absent(input);
    return gradient(run, input, writes[written++]);
  }

  Call accumulate(const Run& run) {
    const auto reads = schedule_.reads(run);
    const BufferId result = schedule_.writes(run)[0];
    const TensorId tensor = summed_tensor(run, reads, result);
    Call call;
    call.pass = Pass::Accumulate;
    for (const BufferId buffer : reads) call.inputs.push_back(gradient(run, tensor, buffer));
    call.outputs.push_back(gradient(run, tensor, result));
    return call;
  }

  // A new sum is named after its tensor. In place, it is the input of the op whose gradient both
  // the contribution and the memory can hold.
  TensorId summed_tensor(const Run& run, std::span<const BufferId> reads, BufferId result) {
    if (std::ranges::find(reads, result) == reads.end()) return schedule_[result].tensor;
    for (const TensorId input : trace_.inputs(trace_[run.op])) {
      const auto holds = [&](BufferId buffer) { return places_.of(input, buffer).has_value(); };
      if (holds(result) && std::ranges::all_of(reads, holds)) return input;
    }
    fail(run, "what it sums is no gradient of the op's inputs");
  }

  Call reconstruct(const Run& run) const {
    const Op& op = trace_[run.op];
    const TensorId sum = trace_.outputs(op)[0], shortcut = trace_.inputs(op)[0];
    const TensorId branch = trace_.inputs(op)[1];
    Call call;
    call.pass = Pass::Subtract;
    for (const TensorId read : {sum, branch})
      call.inputs.push_back(
          value(run, read, find(schedule_.reads(run), Role::Value, trace_[read].storage)));
    call.outputs.push_back(
        value(run, shortcut, find(schedule_.writes(run), Role::Value, trace_[shortcut].storage)));
    return call;
  }

  // As if row-major: the storage as it lies.
  Array flat_value(BufferId buffer) const {
    const Tensor& tensor = trace_[schedule_[buffer].tensor];
    return array_at(address(buffer), tensor.dtype, dense(tensor.shape));
  }

  Array all_codes(BufferId codes) {
    return coded(address(codes), trace_[schedule_[codes].tensor].shape, quantizer_of(codes));
  }

  Quantizer quantizer_of(BufferId codes) {
    const Shape& shape = trace_[schedule_[codes].tensor].shape;
    Quantizer quantizer = quantizer_for(shape);
    const auto [entry, is_new] = first_range_.try_emplace(index(codes), next_range_);
    if (is_new) next_range_ += quantizer.groups;
    quantizer.ranges = addresses_.ranges + entry->second;
    quantizer.wraps = wraps_;
    return quantizer;
  }

  Call quantize(const Run& run) {
    const BufferId value = schedule_.reads(run)[0], codes = written(run, Role::Codes);
    Call call;
    call.pass = Pass::Quantize;
    call.key = index(codes);
    call.inputs.push_back(flat_value(value));
    call.outputs.push_back(all_codes(codes));
    call.quantizer = quantizer_of(codes);
    call.quantizer.knows_min_max = is_noted_[index(value)];
    return call;
  }

  Call dequantize(const Run& run) {
    const BufferId codes = schedule_.reads(run)[0], value = written(run, Role::Value);
    Call call;
    call.pass = Pass::Dequantize;
    call.inputs.push_back(all_codes(codes));
    call.outputs.push_back(flat_value(value));
    return call;
  }

  // Per parameter: its gradient, itself, its state and the framework's temporaries.
  void optimize(const Run& run, std::vector<Call>& calls) {
    if (trace_.step.optimizer == Optimizer::AdamW8bit)
      fail(run, "kernels exist for sgd and adamw (use --optimizer adamw)");
    for (const BufferId written : schedule_.writes(run)) {
      if (schedule_[written].role != Role::Value) continue;
      const TensorId parameter = schedule_[written].tensor;
      const BufferId slope = find(schedule_.reads(run), Role::Gradient, parameter);
      const BufferId state = find(schedule_.writes(run), Role::OptimizerState, parameter);
      if (slope == no_buffer) fail(run, "a parameter has no gradient of its own");
      const DType dtype = trace_[parameter].dtype;
      Call call;
      call.pass = Pass::Update;
      call.inputs.push_back(gradient(run, parameter, slope));
      call.outputs.push_back(value(run, parameter, written));
      if (state != no_buffer)
        call.outputs.push_back(
            array_at(address(state), dtype, dense({2, numel(trace_[parameter].shape)})));
      for (const BufferId other : schedule_.writes(run))
        if (schedule_[other].role == Role::Temporary && schedule_[other].tensor == parameter)
          call.outputs.push_back(
              array_at(address(other), dtype, dense({numel(trace_[parameter].shape)})));
      calls.push_back(std::move(call));
    }
  }

  const Trace& trace_;
  const Schedule& schedule_;
  const Addresses& addresses_;
  const bool wraps_;
  const Needs needs_;
  const std::vector<Layout> layouts_;
  GradientPlaces places_;
  std::vector<BufferId> codes_of_value_;  ///< by buffer of a value: what it is quantized to
  std::vector<bool> is_noted_;  ///< by buffer of a value: its writer noted minimum and maximum
  std::map<std::size_t, std::int64_t> first_range_;  ///< by buffer of codes
  std::int64_t next_range_ = 0;
};

}  // namespace

std::int64_t quantizer_groups(const Trace& trace, const Schedule& schedule) {
  std::int64_t groups = 0;
  for (const Buffer& buffer : schedule.buffers)
    if (buffer.role == Role::Codes) groups += quantizer_for(trace[buffer.tensor].shape).groups;
  return groups;
}

Binding::Binding(const Trace& trace, const Plan& plan, const Schedule& schedule,
                 const Addresses& addresses) {
  Binder binder(trace, plan, schedule, addresses);
  first_.reserve(schedule.steps.size() + 1);
  for (const Step& step : schedule.steps) {
    first_.push_back(static_cast<std::uint32_t>(calls_.size()));
    if (const Run* run = std::get_if<Run>(&step)) binder.bind(*run, calls_);
  }
  first_.push_back(static_cast<std::uint32_t>(calls_.size()));
}

}  // namespace tidemark::profiler
