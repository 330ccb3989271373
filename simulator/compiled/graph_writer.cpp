// Example, a block's end:
//   eager      fc2 ─► dropout ─► add ─► layer_norm ─► qkv         each writes and keeps its own
//   compiled   fc2 ─► one op: sum, mask, normalized, 1/σ, y ─► qkv
// A part runs as late as it can, right before the kernel that first reads what it makes: so
// Inductor fuses an activation with the product of it that comes later in the model's code.
#include "simulator/compiled/graph_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "simulator/compiled/float8_rows.h"
#include "simulator/compiled/partition.h"
#include "traces/fp8_linear.h"
#include "traces/pair_ops.h"

namespace tidemark {
namespace {

constexpr std::size_t most_operands = 16;

// Ranks exchange by kernels of a library, too, and what is the same for all of them has another
// gradient.
bool is_exchange(OpKind kind) {
  return kind == OpKind::Replicate || kind == OpKind::Scatter ||
         row_of(kind).work == Work::Exchange;
}

bool is_kernel(const Trace& trace, const Op& op) {
  return is_product(row_of(op.kind).work) || op.kind == OpKind::Embedding || is_exchange(op.kind) ||
         is_float8_linear(trace, op) || turns_pairs(trace, op);
}

// transformers' model returns its logits beside the loss. Nobody uses their gradient, so autograd
// hands the compiled backward zeros for it. GPT2LMHeadModel's class names no loss that transformers
// knows: it warns, which ends the graph, and the logits have a gradient from the next one.
bool returns_logits(const Trace& trace) { return trace.family != "gpt2"; }

/// Calls that are one Triton kernel, or a few that Inductor's scheduler makes of them.
struct Fusion {
  std::vector<FxId> calls;
  std::size_t before = 0;  ///< the op that it runs before
};

class FxCompiler {
 public:
  FxCompiler(const Trace& trace, const FxRegion& region, const std::vector<bool>* kept,
             TraceEdit& edit)
      : trace_(trace),
        region_(region),
        graph_(fx_graph_of(trace, region)),
        has_gradient_(requires_gradient(trace_)),
        producer_(trace_.tensors.size(), no_op),
        is_saved_(graph_.calls.size()),
        is_held_(graph_.calls.size()),
        is_written_(graph_.calls.size()),
        is_read_later_(graph_.calls.size()),
        fusion_of_(graph_.calls.size(), none),
        place_(graph_.calls.size(), no_tensor),
        is_copied_(trace_.ops.size()),
        edit_(edit) {
    for (std::size_t i = index(region.begin); i < index(region.end); ++i)
      for (const TensorId output : trace_.outputs(trace_.ops[i]))
        producer_[index(output)] = static_cast<OpId>(i);
    for (const FxId id : saved_values(graph_)) is_saved_[index(base(id))] = true;
    if (!kept) return;
    for (const FxId id : saved_values(graph_, *kept)) is_held_[index(base(id))] = true;
  }

  void run() && {
    fuse();
    find_written();
    find_needs();
    const std::size_t begin = index(region_.begin), end = index(region_.end);
    std::vector<std::vector<std::size_t>> before(end - begin + 1);
    for (std::size_t f = 0; f < fusions_.size(); ++f)
      before[fusions_[f].before - begin].push_back(f);
    for (std::size_t i = begin; i <= end; ++i) {
      for (const std::size_t f : before[i - begin]) write(f);
      if (i < end && is_kernel(trace_, trace_.ops[i])) copy(static_cast<OpId>(i));
    }
    for (const TensorId output : region_.outputs)
      edit_.redirect(output, operand(graph_.by_tensor[index(output)]));
  }

 private:
  static constexpr std::size_t none = ~std::size_t{0};

  FxId base(FxId id) const { return base_of(graph_, id); }
  const FxNode& at(FxId id) const { return graph_[id]; }
  bool is_of_kernel(FxId id) const {
    if (at(id).op == no_op || at(id).kind == FxKind::View) return false;
    return is_kernel(trace_, trace_[at(id).op]) &&
           (at(id).kind == FxKind::Kernel || at(id).kind == FxKind::KernelSet ||
            at(id).kind == FxKind::Element || is_cast_of_product(id));
  }
  // … in eight bits, which is written with it.
  bool is_cast_of_product(FxId id) const {
    return at(id).kind == FxKind::Pointwise && is_float8_linear(trace_, trace_[at(id).op]);
  }
  bool is_fused(FxId id) const {
    return at(id).kind != FxKind::Input && at(id).kind != FxKind::View && !is_of_kernel(id);
  }

  // Which op each call must run before: the first kernel that needs it, by whatever way.
  std::vector<std::size_t> deadlines() const {
    std::vector<std::size_t> latest(graph_.calls.size(), index(region_.end));
    for (std::size_t i = graph_.calls.size(); i-- > 0;) {
      const FxNode& call = graph_.calls[i];
      const auto id = static_cast<FxId>(i);
      if (call.in_backward) continue;
      const std::size_t own = is_of_kernel(id) ? index(call.op) : latest[i];
      for (const FxId read : call.reads) latest[index(read)] = std::min(latest[index(read)], own);
    }
    for (std::size_t i = 0; i < graph_.calls.size(); ++i)
      if (graph_.calls[i].in_backward) latest[i] = latest[index(base(graph_.calls[i].reads[0]))];
    return latest;
  }

  // Connected calls of one deadline.
  void fuse() {
    const std::vector<std::size_t> deadline = deadlines();
    std::vector<std::size_t> parent(graph_.calls.size());
    for (std::size_t i = 0; i < parent.size(); ++i) parent[i] = i;
    const auto root = [&](std::size_t i) {
      while (parent[i] != i) i = parent[i] = parent[parent[i]];
      return i;
    };
    for (std::size_t i = 0; i < graph_.calls.size(); ++i) {
      if (!is_fused(static_cast<FxId>(i))) continue;
      for (const FxId read : graph_.calls[i].reads) {
        const FxId from = base(read);
        if (is_fused(from) && deadline[index(from)] == deadline[i])
          parent[root(i)] = root(index(from));
      }
    }
    std::map<std::size_t, std::size_t> known;
    for (std::size_t i = 0; i < graph_.calls.size(); ++i) {
      if (!is_fused(static_cast<FxId>(i))) continue;
      const auto [place, is_new] = known.emplace(root(i), fusions_.size());
      if (is_new) fusions_.push_back({.calls = {}, .before = deadline[i]});
      fusions_[place->second].calls.push_back(static_cast<FxId>(i));
      fusion_of_[i] = place->second;
    }
  }

  // Fused values that lie in memory: what is kept, what kernels read, what other fusions read.
  void find_written() {
    const auto note = [&](FxId id) { is_written_[index(id)] = is_fused(id); };
    for (const TensorId output : region_.outputs) {
      const FxId made = base(graph_.by_tensor[index(output)]);
      note(made), is_read_later_[index(made)] = is_fused(made) && output != trace_.loss;
    }
    for (std::size_t i = 0; i < graph_.calls.size(); ++i) {
      const auto id = static_cast<FxId>(i);
      if (is_saved_[i] || is_held_[i]) note(id);
      for (const FxId read : graph_.calls[i].reads) {
        const FxId from = base(read);
        if (!is_fused(from)) continue;
        if (is_of_kernel(id) || (is_fused(id) && fusion_of_[i] != fusion_of_[index(from)] &&
                                 at(from).tensor != no_tensor))
          note(from), is_read_later_[index(from)] = true;
      }
    }
  }

  // The fusion that makes the op's gradients: the one that has its result.
  std::size_t fusion_of(OpId op) const {
    const FxId result = base(graph_.by_tensor[index(trace_.outputs(trace_[op])[0])]);
    return fusion_of_[index(result)];
  }

  // Kept values from which what the backward reads is made again.
  void add_needs(std::set<FxId>& needs, FxId value) const {
    const FxId from = base(value);
    if (is_saved_[index(from)] || at(from).kind == FxKind::Input) {
      needs.insert(from);
      return;
    }
    CHECK(is_fused(from) || is_cast_of_product(from));
    for (const FxId read : at(from).reads) add_needs(needs, read);
  }

  void find_needs() {
    needs_.resize(fusions_.size());
    for (const BackwardRead& read : graph_.backward) {
      if (is_float8_linear(trace_, trace_[read.op])) {
        add_needs(needs_of_product_[read.op], read.value);
        continue;
      }
      if (is_kernel(trace_, trace_[read.op])) {  // which keeps what it reads by its own row
        if (!at(read.value).in_backward) continue;
        add_needs(needs_of_product_[read.op], read.value);
        cast_in_backward_[read.op] += size(at(read.value));
        continue;
      }
      const std::size_t fusion = fusion_of(read.op);
      if (fusion != none) add_needs(needs_[fusion], read.value);
    }
  }

  TensorId operand(FxId id) {
    TensorId& place = place_[index(id)];
    if (place != no_tensor) return place;
    const TensorId tensor = at(id).tensor;
    CHECK(tensor != no_tensor);
    if (at(id).kind == FxKind::View && producer_[index(tensor)] != no_op &&
        !is_kernel(trace_, trace_[producer_[index(tensor)]]))
      copy(producer_[index(tensor)]);
    return place = edit_.map(tensor);
  }

  // With what its operands are now.
  void copy(OpId id) {
    if (is_copied_[index(id)]) return;
    is_copied_[index(id)] = true;
    const Op& op = trace_[id];
    for (const TensorId input : trace_.inputs(op))
      if (input != no_tensor) edit_.redirect(input, operand(graph_.by_tensor[index(input)]));
    const FxId made = graph_.by_tensor[index(trace_.outputs(op)[0])];
    if (is_kernel(trace_, op) && at(base(made)).op != id) return;  // an equal one has run
    if (is_float8_linear(trace_, op)) return write_float8(id);
    if (needs_of_product_.contains(id)) return write_product(id);
    edit_.copy(id);
  }

  // Its backward reads casts of its operands, which are kept or made again.
  void write_product(OpId id) {
    const Op& op = trace_[id];
    const TensorId a = trace_.inputs(op)[0], b = trace_.inputs(op)[1], out = trace_.outputs(op)[0];
    std::vector<TensorId> inputs = {edit_.map(a), edit_.map(b)};
    OpaqueRow row{.operation = std::string(to_string(op.kind)),
                  .gradients = inputs_with_gradient(trace_, op, has_gradient_)};
    for (const FxId need : needs_of_product_.at(id)) {
      const FxId of_a = base(graph_.by_tensor[index(a)]), of_b = base(graph_.by_tensor[index(b)]);
      const std::size_t place = need == of_a ? 0 : need == of_b ? 1 : inputs.size();
      if (place == inputs.size()) inputs.push_back(operand(need));
      row.saved |= input_bit(static_cast<int>(place));
    }
    CHECK(inputs.size() <= most_operands);
    const std::int64_t flops = 2 * numel(trace_[out].shape) * trace_[a].shape.back();
    row.forward.flops = flops;
    row.backward.flops = flops * std::popcount(row.gradients);
    row.backward.workspace = cast_in_backward_.at(id);
    Tensor product = trace_[out];
    product.storage = no_tensor;
    const std::array made = {edit_.external(product)};
    edit_.redirect(out, made[0]);
    edit_.emit_opaque(id, op.name, std::move(row), inputs, made);
  }

  // The casts of its weight first, which a checkpoint by op runs again without it.
  void write_float8(OpId id) {
    const Op& op = trace_[id];
    const TensorId x = trace_.inputs(op)[0], weight = trace_.inputs(op)[1];
    const TensorId y = trace_.outputs(op)[0];
    const std::set<FxId>& needs = needs_of_product_[id];
    std::vector<TensorId> inputs = {edit_.map(x), edit_.map(weight)}, codes;
    Tensor made = trace_[y];
    made.storage = no_tensor;
    std::vector<TensorId> outputs = {edit_.external(made)};
    for (const FxId need : needs) {
      if (at(need).op != id || !is_cast_of_product(need)) continue;
      const bool is_of_weight = at(need).suffix.starts_with("weight");
      (is_of_weight ? codes : outputs).push_back(place_[index(need)] = new_tensor(need));
    }
    const Float8Product sizes = sizes_of(id, outputs.size() > 1);
    if (!codes.empty())
      edit_.emit_opaque(id, edit_.name(op.name + ".cast"), float8_codes_row(sizes),
                        std::array{inputs[1]}, codes);
    OpaqueRow row = float8_product_row(sizes);
    for (const FxId need : needs) {
      const TensorId kept = operand(need);
      if (const auto out = std::ranges::find(outputs, kept); out != outputs.end()) {
        row.saved |= output_bit(static_cast<int>(out - outputs.begin()));
        continue;
      }
      auto in = std::ranges::find(inputs, kept);
      if (in == inputs.end()) in = inputs.insert(in, kept);
      row.saved |= input_bit(static_cast<int>(in - inputs.begin()));
    }
    CHECK(inputs.size() <= most_operands);
    edit_.redirect(y, outputs[0]);
    edit_.emit_opaque(id, op.name, std::move(row), inputs, outputs);
  }

  Float8Product sizes_of(OpId id, bool keeps_codes_of_x) const {
    const Op& op = trace_[id];
    const TensorId x = trace_.inputs(op)[0], weight = trace_.inputs(op)[1];
    const TensorId y = trace_.outputs(op)[0];
    const FxNode& product = at(base(graph_.by_tensor[index(y)]));
    Float8Product sizes{.x = numel(trace_[x].shape),
                        .w = numel(trace_[weight].shape),
                        .y = numel(trace_[y].shape),
                        .rows = product.shape[0],
                        .wide = size_of(trace_[y].dtype),
                        .stored = size_of(trace_[weight].dtype),
                        .codes_x = at(base(product.reads[0])).op == id,
                        .x_is_fused = is_fused(base(graph_.by_tensor[index(x)])),
                        .keeps_codes_of_x = keeps_codes_of_x,
                        .wanted = inputs_with_gradient(trace_, op, has_gradient_)};
    for (const FxId need : needs_of_product_.at(id))
      if (!is_cast_of_product(need)) sizes.needs += size(at(need));
    return sizes;
  }

  void add_inputs(FxId read, std::size_t fusion, std::vector<FxId>& inputs) const {
    const FxId from = base(read);
    if (fusion_of_[index(from)] == fusion && is_fused(from)) return;
    if (is_fused(from) && !is_written_[index(from)]) {
      for (const FxId earlier : at(from).reads) add_inputs(earlier, fusion, inputs);
      return;
    }
    if (std::ranges::find(inputs, from) == inputs.end()) inputs.push_back(from);
  }

  // Inputs whose gradient is that of the sum, in its memory.
  std::vector<FxId> addends(FxId sum, std::size_t fusion) const {
    std::vector<FxId> found;
    if (!at(sum).is_sum) return found;
    for (const FxId read : at(sum).reads) {
      const FxId from = base(read);
      if (at(from).shape != at(sum).shape && numel(at(from).shape) != numel(at(sum).shape))
        continue;
      if (at(from).dtype != at(sum).dtype) continue;
      if (fusion_of_[index(from)] != fusion) {
        found.push_back(from);
        continue;
      }
      const std::vector<FxId> more = addends(from, fusion);
      found.insert(found.end(), more.begin(), more.end());
    }
    return found;
  }

  bool is_cast_alone(const Fusion& fusion, std::size_t f) const {
    return fusion.calls.size() == 1 && needs_[f].empty() &&
           trace_[at(fusion.calls[0]).op].kind == OpKind::Cast &&
           at(fusion.calls[0]).tensor != no_tensor;
  }

  std::string operation(const Fusion& fusion) const {
    std::vector<std::string_view> kinds;
    for (const FxId call : fusion.calls) {
      if (at(call).in_backward) continue;
      const std::string_view kind = to_string(trace_[at(call).op].kind);
      if (std::ranges::find(kinds, kind) == kinds.end()) kinds.push_back(kind);
    }
    return fmt::format("fused {}", fmt::join(kinds, ", "));
  }

  // Of the last op that is no cast.
  Name name(const Fusion& fusion) const {
    const Op* last = &trace_[at(fusion.calls.back()).op];
    for (const FxId call : fusion.calls)
      if (trace_[at(call).op].kind != OpKind::Cast && !at(call).in_backward)
        last = &trace_[at(call).op];
    return last->name;
  }

  TensorId new_tensor(FxId id) {
    const FxNode& call = at(id);
    if (call.tensor != no_tensor) {
      Tensor tensor = trace_[call.tensor];
      tensor.storage = no_tensor;
      tensor.category = Category::Activation;
      tensor.fill = no_fill;
      return edit_.external(tensor);
    }
    std::string text = trace_[call.op].name + "." + std::string(call.suffix);
    while (!names_.insert(text).second) text += "'";
    return edit_.external({.name = edit_.name(text), .shape = call.shape, .dtype = call.dtype});
  }

  // Each way every tensor once: the backward reads what is kept and the gradients of what is read
  // later, and writes those of the inputs.
  void add_moved(std::span<const FxId> inputs, std::span<const FxId> outputs,
                 OpaqueRow& row) const {
    Bytes forward, backward;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Bytes bytes = size(at(inputs[i]));
      const Operands bit = input_bit(static_cast<int>(i));
      forward += bytes;
      if ((row.saved & bit) != 0) backward += bytes;
      if ((row.gradients & bit) != 0) backward += bytes;
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const Bytes bytes = size(at(outputs[i]));
      forward += bytes;
      if ((row.saved & output_bit(static_cast<int>(i))) != 0) backward += bytes;
      if (is_read_later_[index(outputs[i])]) backward += bytes;
    }
    row.forward.moved = forward;
    row.backward.moved = backward;
  }

  // The logits, where the fusion is that of the loss.
  FxId scored(const Fusion& fusion) const {
    for (const FxId call : fusion.calls) {
      const Op& op = trace_[at(call).op];
      if (op.kind == OpKind::LogSoftmax)
        return logits(graph_.by_tensor[index(trace_.inputs(op)[0])]);
    }
    return no_fx;
  }
  FxId logits(FxId id) const {
    const FxId from = base(id);
    return is_fused(from) && at(from).reads.size() == 1 ? logits(at(from).reads[0]) : from;
  }

  void write(std::size_t f) {
    const Fusion& fusion = fusions_[f];
    if (is_cast_alone(fusion, f)) return copy(at(fusion.calls[0]).op);
    std::vector<FxId> inputs, outputs;
    for (const FxId id : fusion.calls) {
      for (const FxId read : at(id).reads) add_inputs(read, f, inputs);
      if (is_written_[index(id)]) outputs.push_back(id);
    }
    if (outputs.empty()) return;  // made again wherever it is read
    const std::size_t read = inputs.size();
    for (const FxId need : needs_[f])
      if (std::ranges::find(outputs, need) == outputs.end() &&
          std::ranges::find(inputs, need) == inputs.end())
        inputs.push_back(need);
    std::vector<FxId> shared;
    for (FxId& output : outputs) {
      if (is_read_later_[index(output)]) shared = addends(output, f);
      if (shared.empty()) continue;
      std::swap(output, outputs[0]);
      break;
    }
    if (inputs.size() > most_operands || outputs.size() > most_operands)
      throw UsageError(fmt::format(
          "--framework {}: what torch.compile makes of so many tensors at once, as norms of single "
          "heads have them, is not known here (plan the eager step: --framework {})",
          trace_.step.framework, default_framework));
    OpaqueRow row{.operation = operation(fusion)};
    Operands held = 0;
    std::vector<TensorId> reads, writes;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      reads.push_back(operand(inputs[i]));
      const TensorId tensor = at(inputs[i]).tensor;
      const auto bit = static_cast<int>(i);
      if (i < read && is_floating(at(inputs[i]).dtype) && tensor != no_tensor &&
          has_gradient_[index(tensor)] != 0)
        row.gradients |= input_bit(bit);
      if (std::ranges::find(shared, inputs[i]) != shared.end()) row.handed_on |= input_bit(bit);
      if (needs_[f].contains(inputs[i])) row.saved |= input_bit(bit);
    }
    row.handed_on &= row.gradients;
    if (row.handed_on == row.gradients) row.handed_on &= row.handed_on - 1;  // a kernel runs
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const TensorId made = new_tensor(outputs[i]);
      place_[index(outputs[i])] = made;
      if (at(outputs[i]).tensor != no_tensor) edit_.redirect(at(outputs[i]).tensor, made);
      writes.push_back(made);
      if (needs_[f].contains(outputs[i])) row.saved |= output_bit(static_cast<int>(i));
      if (is_held_[index(outputs[i])]) held |= output_bit(static_cast<int>(i));
    }
    add_moved(inputs, outputs, row);
    if (const FxId scores = scored(fusion); scores != no_fx && returns_logits(trace_))
      row.backward.workspace = size(at(scores));
    edit_.emit_opaque(at(fusion.calls.back()).op, name(fusion), std::move(row), reads, writes,
                      held);
  }

  const Trace& trace_;
  const FxRegion& region_;
  const FxGraph graph_;
  std::vector<std::uint8_t> has_gradient_;
  std::vector<OpId> producer_;
  std::vector<bool> is_saved_;       ///< by call that owns memory
  std::vector<bool> is_held_;        ///< … in a checkpoint, by its policy
  std::vector<bool> is_written_;     ///< fused values that lie in memory
  std::vector<bool> is_read_later_;  ///< of these, what another op of the forward reads
  std::vector<std::size_t> fusion_of_;
  std::vector<Fusion> fusions_;
  std::vector<std::set<FxId>> needs_;  ///< by fusion
  std::map<OpId, std::set<FxId>> needs_of_product_;
  std::map<OpId, Bytes> cast_in_backward_;
  std::vector<TensorId> place_;
  std::vector<bool> is_copied_;
  std::set<std::string> names_;
  TraceEdit& edit_;
};

}  // namespace

void write_graph(const Trace& trace, const FxRegion& region, TraceEdit& edit) {
  FxCompiler(trace, region, nullptr, edit).run();
}

void write_graph(const Trace& trace, const FxRegion& region, const std::vector<bool>& kept,
                 TraceEdit& edit) {
  FxCompiler(trace, region, &kept, edit).run();
}

}  // namespace tidemark
