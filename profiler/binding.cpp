// Makes kernel calls of each node of the joint graph by its task, with the addresses and layouts of
// the instances that it reads and writes.
#include "profiler/binding.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "base/quoted.h"
#include "profiler/call_settings.h"
#include "profiler/gradient_places.h"
#include "simulator/needs.h"
#include "traces/optimizer_of.h"

namespace tidemark::profiler {
namespace {

class Binder {
 public:
  Binder(const PlannedStep& step, const Needs& needs, const JointGraph& graph,
         const Schedule& schedule, const Addresses& addresses)
      : trace_(*step.trace),
        graph_(graph),
        schedule_(schedule),
        addresses_(addresses),
        wraps_(step.plan.quirks.codes_per_use),
        needs_(needs),
        layouts_(value_layouts(trace_)),
        places_(trace_, graph, layouts_),
        buffer_of_(graph.instances.size(), no_buffer),
        noted_(graph.instances.size()),
        updated_(graph.instances.size()) {}

  void bind(const Run& run, const Node& node, std::vector<Call>& calls) {
    CHECK(node.task == run.task && node.op == run.op && node.reads == run.reads &&
          node.writes == run.writes);
    find_buffers(graph_.reads(node), schedule_.reads(run));
    find_buffers(graph_.writes(node), schedule_.writes(run));
    switch (run.task) {
      case Task::Forward:
      case Task::Recompute:
        return forward(node, calls);
      case Task::Seed:
        return calls.push_back(seed(node));
      case Task::Backward:
        return calls.push_back(backward(node));
      case Task::Accumulate:
        return calls.push_back(accumulate(node));
      case Task::Reconstruct:
        return calls.push_back(reconstruct(node));
      case Task::Quantize:
        return quantize(node, calls);
      case Task::Dequantize:
        return calls.push_back(dequantize(node));
      case Task::Optimizer:
        return optimize(node, calls);
      case Task::WeightGradient:
      case Task::Pack:
      case Task::AllReduce:
      case Task::AllGather:
      case Task::ReduceScatter:
        fail(node, "steps of one rank are replayed, and this one is of several");
    }
  }

 private:
  using Instances = std::span<const InstanceId>;

  [[noreturn]] void fail(const Node& node, std::string_view why) const {
    const std::string op =
        node.op == no_op ? std::string() : fmt::format(" of {}", quoted(trace_[node.op].name));
    throw InputError(fmt::format("cannot replay {}{}: {}", to_string(*node.task), op, why));
  }

  void find_buffers(Instances instances, std::span<const BufferId> buffers) {
    for (std::size_t k = 0; k < instances.size(); ++k) buffer_of_[index(instances[k])] = buffers[k];
  }

  std::byte* address(InstanceId id) const {
    return addresses_.arena + addresses_.offsets[index(buffer_of_[index(id)])];
  }

  Array absent(TensorId tensor) const {
    return {nullptr, trace_[tensor].dtype, trace_[tensor].shape, layouts_[index(tensor)].strides};
  }

  Array value(const Node& node, TensorId tensor, InstanceId id) const {
    if (id == no_instance)
      fail(node, fmt::format("{} is not among its operands", quoted(trace_[tensor].name)));
    return array_at(address(id), trace_[tensor].dtype, layouts_[index(tensor)]);
  }

  Array gradient(const Node& node, TensorId tensor, InstanceId id) const {
    const auto layout = places_.of(tensor, id);
    if (!layout)
      fail(node, fmt::format("the gradient of {} has no strides in the memory that it shares",
                             quoted(trace_[tensor].name)));
    return array_at(address(id), trace_[tensor].dtype, *layout);
  }

  // The instance of a role among the operands that holds the tensor's storage.
  InstanceId find(Instances instances, Role role, TensorId storage) const {
    for (const InstanceId id : instances)
      if (graph_[id].role == role && graph_[id].tensor == storage) return id;
    return no_instance;
  }

  // What a conversion makes; a copy of the values by group may lie beside it.
  InstanceId written(const Node& node, Role role) const {
    return find(graph_.writes(node), role, graph_[graph_.reads(node)[0]].tensor);
  }

  Call call_of(Pass pass, const Op& op) const {
    Call call;
    call.pass = pass, call.kind = op.kind;
    if (const OpaqueRow* row = opaque_row(trace_, op)) call.formula = row->computes;
    call.settings = settings_of(trace_, op);
    call.moves = moves_of(trace_, op);
    call.key = op.rng_key;
    return call;
  }

  void forward(const Node& node, std::vector<Call>& calls) {
    const Op& op = trace_[node.op];
    Call call = call_of(Pass::Forward, op);
    for (const TensorId input : trace_.inputs(op))
      call.inputs.push_back(
          value(node, input, find(graph_.reads(node), Role::Value, trace_[input].storage)));
    for (const TensorId output : trace_.outputs(op)) {
      const InstanceId made = find(graph_.writes(node), Role::Value, trace_[output].storage);
      call.outputs.push_back(value(node, output, made));
      const InstanceId ranges = find(graph_.writes(node), Role::Ranges, output);
      if (ranges != no_instance) watch(call.outputs.back(), address(made), ranges);
      const InstanceId codes = find(graph_.writes(node), Role::Codes, output);
      if (codes != no_instance) {
        call.outputs.back().groups.codes = reinterpret_cast<std::uint8_t*>(address(codes));
        call.outputs.back().groups.dither = rounding_key(codes);
      }
      if (ranges != no_instance && is_delayed(ranges)) calls.push_back(move_range(made, ranges));
    }
    calls.push_back(std::move(call));
    for (const InstanceId codes : graph_.writes(node))
      if (graph_[codes].role == Role::Codes) calls.push_back(first_codes(node, codes));
  }

  // What is quantized next has its minimum and maximum noted while it is written.
  void watch(Array& output, const std::byte* first, InstanceId ranges) {
    output.groups = groups_of(quantizer_of(ranges), output.shape, first);
    noted_[index(ranges)] = true;
  }

  bool is_delayed(InstanceId ranges) const {
    return graph_.encodings[graph_[ranges].encoding].delayed;
  }

  // Before this micro-batch's extremes are noted, the last one's move the range.
  Call move_range(InstanceId value, InstanceId ranges) {
    Call call;
    call.pass = Pass::MoveRange;
    call.inputs.push_back(flat_value(value));
    call.quantizer = quantizer_of(ranges);
    call.quantizer.continues = updated_[index(graph_[ranges].over)];
    updated_[index(ranges)] = true;
    return call;
  }

  // Codes that are written in passing need a range: in the first step they are made afterwards.
  Call first_codes(const Node& node, InstanceId codes) const {
    const TensorId storage = graph_[codes].tensor;
    const InstanceId ranges = find(graph_.writes(node), Role::Ranges, storage);
    Call call = quantize(node, find(graph_.writes(node), Role::Value, storage), codes, ranges);
    call.quantizer.knows_min_max = call.quantizer.has_codes = true;
    call.quantizer.continues = updated_[index(graph_[ranges].over)];
    return call;
  }

  Call seed(const Node& node) const {
    Call call;
    call.pass = Pass::Fill;
    call.outputs.push_back(gradient(node, trace_.loss, graph_.writes(node)[0]));
    return call;
  }

  Call backward(const Node& node) const {
    const Op& op = trace_[node.op];
    const bool is_ms_norm = op.kind == OpKind::MsLayerNorm || op.kind == OpKind::MsRmsNorm;
    if (is_ms_norm && op.outputs < 2)
      fail(node,
           "it needs 1/σ, which these framework rules do not keep (use --framework "
           "transformers-4.57)");
    Call call = call_of(Pass::Backward, op);
    const Operands saved = needs_.saved[index(node.op)];
    for (int i = 0; i < op.inputs; ++i) call.inputs.push_back(saved_value(node, op, i, saved));
    for (int j = 0; j < op.outputs; ++j) {
      call.outputs.push_back(saved_value(node, op, 16 + j, saved));
      call.d_outputs.push_back(incoming(node, trace_.outputs(op)[static_cast<std::size_t>(j)]));
    }
    for (std::size_t i = 0, written = 0; i < op.inputs; ++i)
      call.d_inputs.push_back(outgoing(node, i, written));
    return call;
  }

  Array saved_value(const Node& node, const Op& op, int bit, Operands saved) const {
    const TensorId tensor = operand(trace_, op, bit);
    if ((saved >> bit & 1) == 0) return absent(tensor);
    const TensorId storage = trace_[tensor].storage;
    const Instances reads = graph_.reads(node);
    const InstanceId codes = find(reads, Role::Codes, storage);
    if (codes != no_instance) return coded_value(tensor, codes, find(reads, Role::Ranges, storage));
    return value(node, tensor, find(reads, Role::Value, storage));
  }

  // Codes lie as the values of their storage did.
  Array coded_value(TensorId tensor, InstanceId codes, InstanceId ranges) const {
    Array array = array_at(address(codes), DType::UInt8, layouts_[index(tensor)]);
    array.groups = all_codes(codes, ranges).groups;
    return array;
  }

  Array incoming(const Node& node, TensorId output) const {
    for (const InstanceId read : graph_.reads(node))
      if (places_.has(output, read)) return gradient(node, output, read);
    return absent(output);
  }

  // Those that are wanted and not handed on are written, in the order of the inputs.
  Array outgoing(const Node& node, std::size_t input, std::size_t& written) const {
    const Op& op = trace_[node.op];
    const TensorId tensor = trace_.inputs(op)[input];
    const std::size_t i = index(node.op);
    const bool is_written = ((needs_.gradients[i] & ~needs_.handed_on[i]) >> input & 1) != 0;
    if (!is_written) return absent(tensor);
    return gradient(node, tensor, graph_.writes(node)[written++]);
  }

  Call accumulate(const Node& node) const {
    const TensorId tensor = trace_.inputs(trace_[node.op])[node.input];
    Call call;
    call.pass = Pass::Accumulate;
    for (const InstanceId read : graph_.reads(node))
      call.inputs.push_back(gradient(node, tensor, read));
    call.outputs.push_back(gradient(node, tensor, graph_.writes(node)[0]));
    return call;
  }

  Call reconstruct(const Node& node) const {
    const Op& op = trace_[node.op];
    const TensorId sum = trace_.outputs(op)[0], shortcut = trace_.inputs(op)[0];
    const TensorId branch = trace_.inputs(op)[1];
    Call call;
    call.pass = Pass::Subtract;
    for (const TensorId read : {sum, branch})
      call.inputs.push_back(
          value(node, read, find(graph_.reads(node), Role::Value, trace_[read].storage)));
    call.outputs.push_back(
        value(node, shortcut, find(graph_.writes(node), Role::Value, trace_[shortcut].storage)));
    return call;
  }

  // As if row-major: the storage as it lies.
  Array flat_value(InstanceId id) const {
    const Tensor& tensor = trace_[graph_[id].tensor];
    return array_at(address(id), tensor.dtype, dense(tensor.shape));
  }

  Array all_codes(InstanceId codes, InstanceId ranges) const {
    return coded(address(codes), trace_[graph_[codes].tensor].shape, quantizer_of(ranges));
  }

  Quantizer quantizer_of(InstanceId ranges) const {
    const Instance& instance = graph_[ranges];
    Quantizer quantizer =
        profiler::quantizer_of(graph_.encodings[instance.encoding], trace_[instance.tensor].shape);
    quantizer.ranges = reinterpret_cast<GroupRange*>(address(ranges));
    quantizer.wraps = wraps_;
    return quantizer;
  }

  // Random numbers of a rounding: the same whatever else the plan does, others for each use and
  // each micro-batch, and far from the keys of the trace's own random ops.
  std::uint64_t rounding_key(InstanceId codes) const {
    constexpr std::uint64_t beyond_ops = std::uint64_t{1} << 63;
    const Instance& made = graph_[codes];
    return beyond_ops | std::uint64_t{made.version} << 32 | index(made.tensor);
  }

  Call quantize(const Node& node, InstanceId value, InstanceId codes, InstanceId ranges) const {
    if (graph_.encodings[graph_[ranges].encoding].metadata != sizeof(GroupRange))
      fail(node, fmt::format("kernels keep {} bytes per group of codes", sizeof(GroupRange)));
    Call call;
    call.pass = Pass::Quantize;
    call.key = rounding_key(codes);
    call.inputs.push_back(flat_value(value));
    call.outputs.push_back(all_codes(codes, ranges));
    call.quantizer = quantizer_of(ranges);
    return call;
  }

  void quantize(const Node& node, std::vector<Call>& calls) {
    const InstanceId value = graph_.reads(node)[0], codes = written(node, Role::Codes);
    if (holds_floats(codes)) return calls.push_back(quantize_to_floats(value, codes));
    const InstanceId ranges = written(node, Role::Ranges), before = graph_[ranges].over;
    const bool is_noted = noted_[index(before)];
    Call call = quantize(node, value, codes, ranges);
    call.quantizer.knows_min_max = is_noted;
    // Under what was noted lies what was quantized before.
    call.quantizer.continues = updated_[index(is_noted ? graph_[before].over : before)];
    if (is_delayed(ranges) && !is_noted) calls.push_back(move_range(value, ranges));
    updated_[index(ranges)] = true;
    calls.push_back(std::move(call));
  }

  Call dequantize(const Node& node) const {
    const Instances reads = graph_.reads(node);
    Call call;
    call.pass = Pass::Dequantize;
    if (holds_floats(reads[0]))
      call.inputs = floats(reads[0]);
    else
      call.inputs.push_back(all_codes(reads[0], reads[1]));
    call.outputs.push_back(flat_value(written(node, Role::Value)));
    return call;
  }

  bool holds_floats(InstanceId codes) const {
    return graph_.encodings[graph_[codes].encoding].format == CodeFormat::Float8;
  }

  // The codes, and behind them the magnitude of each group.
  std::vector<Array> floats(InstanceId codes) const {
    const Encoding& encoding = graph_.encodings[graph_[codes].encoding];
    const Shape& shape = trace_[graph_[codes].tensor].shape;
    const Shape groups{groups_of(encoding, shape)};
    std::byte* const magnitudes =
        address(codes) + graph_[codes].size.count - numel(groups) * size_of(DType::Float32);
    return {array_at(address(codes), DType::Float8, dense(shape)),
            array_at(magnitudes, DType::Float32, dense(groups))};
  }

  Call quantize_to_floats(InstanceId value, InstanceId codes) const {
    Call call;
    call.pass = Pass::Quantize;
    call.inputs.push_back(flat_value(value));
    call.outputs = floats(codes);
    return call;
  }

  // One call for all parameters that have as much: of each its gradient, itself, its state and the
  // framework's temporaries.
  void optimize(const Node& node, std::vector<Call>& all) const {
    std::vector<Call> calls;
    const Instances reads = graph_.reads(node), writes = graph_.writes(node);
    for (std::size_t w = 0, r = 0; w < writes.size(); ++w) {
      if (graph_[writes[w]].role != Role::Value) continue;
      const TensorId parameter = graph_[writes[w]].tensor;
      const InstanceId slope = reads[r++];
      if (graph_[slope].tensor != parameter) fail(node, "a parameter has no gradient of its own");
      const OptimizerRow& row = row_with_kernels(node, parameter);
      const Array of_slope = gradient(node, parameter, slope);
      std::vector<Array> outputs = {value(node, parameter, writes[w])};
      for (std::size_t k = w + 1; k < writes.size() && is_of_update(writes[k], parameter); ++k)
        outputs.push_back(graph_[writes[k]].role == Role::OptimizerState
                              ? in_one_piece(writes[k], dtype_of_state(row, parameter))
                              : in_one_piece(writes[k], trace_[parameter].dtype));
      Call call;
      call.pass = Pass::Update, call.optimizer = row.value;
      call.settings.l2_decay = trace_.step.l2_decay;
      call.settings.masters = has_master(parameter);
      add_update(std::move(call), of_slope, outputs, calls);
    }
    std::ranges::move(calls, std::back_inserter(all));
  }

  const OptimizerRow& row_with_kernels(const Node& node, TensorId parameter) const {
    const OptimizerRow& row = optimizer_of(trace_, parameter);
    if (row.is_paged)
      fail(node, fmt::format("the state of {} lies in unified memory, and a replay has none (use "
                             "--optimizer {})",
                             row.name, row.name.substr(std::string_view("paged-").size())));
    if (row.value == Optimizer::Muon || (has_master(parameter) && row.value != Optimizer::AdamW))
      fail(node, fmt::format("no kernel is known for {}{} (use --optimizer adamw)", row.name,
                             has_master(parameter) ? " with master weights" : ""));
    return row;
  }

  bool has_master(TensorId parameter) const {
    return trace_.step.master_weights && size_of(trace_[parameter].dtype) == 2;
  }

  DType dtype_of_state(const OptimizerRow& row, TensorId parameter) const {
    const Tensor& tensor = trace_[parameter];
    if (row.state == StateKind::Blocks8bit &&
        state_bytes(row, tensor, false).count <
            row.states * numel(tensor.shape) * size_of(DType::Float32))
      return DType::UInt8;
    const bool like_parameter =
        row.state == StateKind::LikeParameter || row.state == StateKind::Factored;
    return like_parameter && !has_master(parameter) ? tensor.dtype : DType::Float32;
  }

  /// All of the instance, as elements of a dtype.
  Array in_one_piece(InstanceId id, DType dtype) const {
    return array_at(address(id), dtype, dense({graph_[id].size.count / size_of(dtype)}));
  }

  static void add_update(Call call, const Array& gradient, const std::vector<Array>& outputs,
                         std::vector<Call>& calls) {
    const bool goes_on = !calls.empty() && calls.back().optimizer == call.optimizer &&
                         calls.back().settings.masters == call.settings.masters &&
                         calls.back().outputs.size() == calls.back().inputs.size() * outputs.size();
    if (!goes_on) calls.push_back(std::move(call));
    Call& last = calls.back();
    last.inputs.push_back(gradient);
    last.outputs.insert(last.outputs.end(), outputs.begin(), outputs.end());
  }

  // A parameter's state and temporaries stand behind it.
  bool is_of_update(InstanceId id, TensorId parameter) const {
    return graph_[id].tensor == parameter && graph_[id].role != Role::Value;
  }

  const Trace& trace_;
  const JointGraph& graph_;
  const Schedule& schedule_;
  const Addresses& addresses_;
  const bool wraps_;
  const Needs& needs_;
  const std::vector<Layout> layouts_;
  const GradientPlaces places_;
  std::vector<BufferId> buffer_of_;    ///< by instance that has been an operand
  std::vector<bool> noted_, updated_;  ///< by instance of ranges: how it was written
};

}  // namespace

Binding::Binding(const PlannedStep& step, const JointGraph& graph, const Schedule& schedule,
                 const Addresses& addresses) {
  const std::shared_ptr<const Derived> derived = derived_of(step);
  Binder binder(step, derived->needs, graph, schedule, addresses);
  first_.reserve(schedule.steps.size() + 1);
  std::size_t node = 0;
  for (const Step& issued : schedule.steps) {
    first_.push_back(static_cast<std::uint32_t>(calls_.size()));
    const bool is_copy =
        std::holds_alternative<CopyOut>(issued) || std::holds_alternative<CopyIn>(issued);
    if (const Run* run = std::get_if<Run>(&issued)) binder.bind(*run, graph.nodes[node], calls_);
    if (is_copy || std::holds_alternative<Run>(issued)) ++node;
  }
  CHECK(node == graph.nodes.size());
  first_.push_back(static_cast<std::uint32_t>(calls_.size()));
}

}  // namespace tidemark::profiler
