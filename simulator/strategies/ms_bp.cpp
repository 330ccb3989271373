// MS-BP (arXiv 2406.16282, section 4.2): a norm whose affine part is merged into the next linear
// can compute its gradient from its output, which that linear keeps anyway. The norm then adds one
// fp32 number per row.
//   before   x ─norm─► y ─(cast, reorder)─► y' ─linear─►    x and y' are kept
//   after    x ─ms──► z ─(cast, reorder)─► z' ─linear'─►    z is kept, z' is made from it again
#include <algorithm>

#include "simulator/needs.h"
#include "simulator/strategies/block_list.h"
#include "simulator/strategies/consumers.h"
#include "simulator/strategies/trace_edit.h"
#include "traces/trace_builder.h"

namespace tidemark {
namespace {

bool is_norm(OpKind kind) { return kind == OpKind::LayerNorm || kind == OpKind::RmsNorm; }
bool is_ms_norm(OpKind kind) { return kind == OpKind::MsLayerNorm || kind == OpKind::MsRmsNorm; }

// What the norm's output ends up in, through casts and reorderings.
struct Readers {
  std::vector<OpId> passing;  ///< casts and reorderings, in op order
  std::vector<OpId> linears;
  std::vector<OpId> residuals;  ///< post-norm blocks: the shortcut of the next add
  bool others = false;
};

Readers readers_of(const Trace& trace, const Consumers& consumers, TensorId tensor) {
  Readers found;
  std::vector<TensorId> open = {tensor};
  while (!open.empty()) {
    const TensorId next = open.back();
    open.pop_back();
    for (const OpId id : consumers(next)) {
      const Op& op = trace[id];
      if (passes_through(op.kind)) {
        found.passing.push_back(id);
        open.push_back(trace.outputs(op)[0]);
      } else if (op.kind == OpKind::Linear && trace.inputs(op)[0] == next) {
        found.linears.push_back(id);
      } else if (op.residual && trace.inputs(op)[0] == tensor && next == tensor) {
        found.residuals.push_back(id);
      } else {
        found.others = true;
      }
    }
  }
  return found;
}

// β goes into the next linear's bias. An adapter starts from the merged input and needs none.
bool takes_affine(const Op& norm, const Op& linear) {
  return norm.kind == OpKind::RmsNorm || linear.inputs == 3 || is_adapter(linear.name);
}

// A weight that something else reads too, such as a head tied to the embedding, must stay as it is.
bool is_of_one_linear(const Trace& trace, const Consumers& consumers, TensorId weight) {
  const auto readers = consumers(weight);
  if (readers.size() != 1) return false;
  const Op& reader = trace[readers[0]];
  if (reader.kind != OpKind::Cast) return true;
  return is_of_one_linear(trace, consumers, trace.outputs(reader)[0]);
}

// What autocast reads in place of a parameter.
TensorId parameter_of(const Trace& trace, const Needs& needs, TensorId tensor) {
  const OpId producer = needs.producer[index(tensor)];
  return producer == no_op ? tensor : parameter_of(trace, needs, trace.inputs(trace[producer])[0]);
}

bool is_convertible(const Trace& trace, const Needs& needs, const Consumers& consumers,
                    const Op& norm, const Readers& readers) {
  constexpr std::uint32_t of_weight = 2;
  if (readers.others || readers.linears.empty()) return false;
  const auto keeps_input = [&](OpId id) { return (needs.gradients[index(id)] & of_weight) != 0; };
  const auto may_change = [&](OpId id) {
    const TensorId weight = parameter_of(trace, needs, trace.inputs(trace[id])[1]);
    return takes_affine(norm, trace[id]) && is_of_one_linear(trace, consumers, weight);
  };
  return std::ranges::any_of(readers.linears, keeps_input) &&
         std::ranges::all_of(readers.linears, may_change);
}

class NormRewriting {
 public:
  NormRewriting(const Trace& trace, const std::vector<bool>& is_meant)
      : trace_(trace),
        is_meant_(is_meant),
        needs_(derive_needs(trace)),
        consumers_(trace),
        edit_(trace) {
    affine_.assign(trace.tensors.size(), no_tensor);
    leave_out_.assign(trace.ops.size(), false);
    for (const Op& op : trace.ops) {
      const Readers readers = convertible(op);
      if (!readers.linears.empty() && readers.residuals.empty())
        leave_out_makers(trace.inputs(op)[1]);
    }
  }

  bool run() {
    bool found = false;
    for (std::size_t i = 0; i < trace_.ops.size(); ++i) {
      const auto id = static_cast<OpId>(i);
      const Op& op = trace_.ops[i];
      if (leave_out_[i]) continue;
      if (convert(id)) {
        found = true;
      } else if (op.residual && affine_[index(trace_.inputs(op)[0])] != no_tensor) {
        edit_.copy_with_input0(id, affine_[index(trace_.inputs(op)[0])]);
      } else {
        edit_.copy(id);
      }
    }
    return found;
  }

  Trace finish() { return edit_.finish(); }

 private:
  /// Who reads the op's output if it is a norm that can be converted; nobody else.
  Readers convertible(const Op& op) const {
    const auto id = static_cast<std::size_t>(&op - trace_.ops.data());
    if (!is_norm(op.kind) || needs_.gradients[id] == 0) return {};
    if (!is_meant_[op.block < 0 ? trace_.blocks.size() : static_cast<std::size_t>(op.block)])
      return {};
    Readers readers = readers_of(trace_, consumers_, trace_.outputs(op)[0]);
    return is_convertible(trace_, needs_, consumers_, op, readers) ? readers : Readers();
  }

  // What made the gain out of a parameter (Gemma) has no reader once the gain is merged.
  void leave_out_makers(TensorId gain) {
    const OpId maker = needs_.producer[index(gain)];
    if (maker == no_op || consumers_(gain).size() != 1) return;
    leave_out_[index(maker)] = true;
    leave_out_makers(trace_.inputs(trace_[maker])[0]);
  }

  bool convert(OpId id) {
    const Op& norm = trace_[id];
    const Readers readers = convertible(norm);
    if (readers.linears.empty()) return false;
    const TensorId y = trace_.outputs(norm)[0];
    std::vector<Tensor> statistics;
    if (norm.outputs > 1)  // 1/std, one per row
      statistics.push_back(
          {.name = edit_.name(norm.name + ".ms_rstd"), .shape = trace_[y].shape.with_back(1)});
    const bool layer_norm = norm.kind == OpKind::LayerNorm;
    edit_.copy_as(id, layer_norm ? OpKind::MsLayerNorm : OpKind::MsRmsNorm, 1, 1, statistics);
    if (!readers.residuals.empty()) apply_affine(norm, y);
    return true;
  }

  // The shortcut of a post-norm block reads z·γ + β, which the merge took away.
  void apply_affine(const Op& norm, TensorId y) {
    const TensorId z = edit_.map(y);
    Tensor like = edit_[z];
    like.storage = no_tensor, like.held_until = no_op;
    const auto inputs = trace_.inputs(norm);
    like.name = edit_.name(norm.name + ".affine_mul");
    TensorId shortcut = edit_.emit(OpKind::Mul, like.name, {z, edit_.map(inputs[1])}, like, true);
    if (inputs.size() > 2) {
      like.name = edit_.name(norm.name + ".affine_add");
      shortcut = edit_.emit(OpKind::Add, like.name, {shortcut, edit_.map(inputs[2])}, like, true);
    }
    affine_[index(y)] = shortcut;
  }

  const Trace& trace_;
  const std::vector<bool>& is_meant_;  ///< by block, and outside of all
  const Needs needs_;
  const Consumers consumers_;
  TraceEdit edit_;
  std::vector<TensorId> affine_;  ///< by old norm output: what the shortcut reads instead
  std::vector<bool> leave_out_;   ///< by old op
};

}  // namespace

Rewritten rewrite_norms(const Trace& trace, const StrategyArguments& arguments) {
  const auto meant = meant_blocks(trace, arguments);
  if (const auto* refusal = std::get_if<Refusal>(&meant)) return *refusal;
  NormRewriting rewriting(trace, std::get<0>(meant));
  if (!rewriting.run())
    return "no norm feeds only linears that keep their input and can take its affine part";
  return rewriting.finish();
}

Rewritten rewrite_low_memory_bp(const Trace& trace, const StrategyArguments& arguments) {
  const auto meant = meant_blocks(trace, arguments);
  if (const auto* refusal = std::get_if<Refusal>(&meant)) return *refusal;
  Rewritten activations = rewrite_activations(trace, arguments);
  const auto* without_norms = std::get_if<Trace>(&activations);
  Rewritten norms = rewrite_norms(without_norms ? *without_norms : trace, arguments);
  if (std::holds_alternative<Trace>(norms)) return norms;
  if (without_norms) return activations;
  return std::get<Refusal>(activations) + "; " + std::get<Refusal>(norms);
}

Refusal share_norm_outputs(const Trace& trace, const Needs& needs, const StrategyArguments&,
                           Plan& plan) {
  const Consumers consumers(trace);
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const Op& op = trace.ops[i];
    if (!is_ms_norm(op.kind)) continue;
    Readers readers = readers_of(trace, consumers, trace.outputs(op)[0]);
    bool copies = false;
    for (const OpId id : readers.passing) {
      const TensorId copy = trace.outputs(trace[id])[0];
      if (trace[copy].storage != copy || needs.uses[index(copy)] == 0) continue;
      decide(plan, copy, Action::Recompute, "cast or reordered again from the norm's kept output");
      copies = true;
    }
    if (!copies) continue;
    const OpId last = *std::ranges::max_element(readers.linears);
    const OpId begin = *std::ranges::min_element(readers.passing);
    const auto end = static_cast<OpId>(index(last) + 1);
    plan.regions.push_back({begin, begin, end, static_cast<std::int32_t>(plan.regions.size())});
  }
  return {};
}

}  // namespace tidemark
