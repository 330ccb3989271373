// Example, two ranks and a linear of four outputs, then one of four inputs:
//   alone   x ─fc1─► [4] ─gelu─► [4] ─fc2─► y
//   rank    x ─replicate─► x ─fc1─► [2] ─gelu─► [2] ─fc2─► a part of y ─all_reduce─► y
// With --sp x and y are parts of the sequence: gathered before fc1, reduced and scattered behind.
#include "simulator/parallel/rank_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/quoted.h"
#include "simulator/compiled/compiled_trace.h"
#include "simulator/parallel/context_trace.h"
#include "simulator/parallel/expert_trace.h"
#include "simulator/parallel/moved_cut.h"
#include "simulator/parallel/recorded_update.h"
#include "simulator/parallel/shards.h"
#include "simulator/parallel/stage_trace.h"
#include "simulator/parallel/tensor_cuts.h"
#include "simulator/strategies/trace_edit.h"
#include "traces/engine_linear.h"
#include "traces/fp8_linear.h"
#include "traces/scan_ops.h"
#include "traces/step_fields.h"
#include "traces/trace_check.h"

namespace tidemark {
namespace {

Shape divided(const Shape& shape, std::size_t dimension, std::int64_t size) {
  std::vector<std::int64_t> dims(shape.dims().begin(), shape.dims().end());
  dims[dimension] = size;
  return Shape(dims);
}

// Reads cut inputs, but writes parts of sums: as large as the whole until they are added up.
bool writes_part_of_sum(RankPart part) { return part == RankPart::Rows || part == RankPart::Table; }

void cut_tensors(const TensorCuts& cuts, Trace& trace) {
  const std::int64_t ranks = trace.step.mesh[Axis::Tensor];
  std::vector<bool> stays(trace.tensors.size());
  for (std::size_t i = 0; i < trace.ops.size(); ++i)
    if (writes_part_of_sum(cuts.part[i]) || cuts.part[i] == RankPart::Gathered)
      stays[index(trace.outputs(trace.ops[i])[0])] = true;
  for (const SequenceScatter& scatter : cuts.scatters) stays[index(scatter.sequence)] = true;
  const Mesh& mesh = trace.step.mesh;
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    Shape& shape = trace.tensors[t].shape;
    if (cuts.is_of_expert[t] && shape.rank() == 2)  // visits
      shape = divided(shape, row_dimension, shape[row_dimension] * mesh.ranks_of_expert() / ranks);
    if (cuts.is_shared[t] && trace.step.sequence_parallel)
      shape = divided(shape, sequence_dimension, shape[sequence_dimension] / ranks);
    if (cuts.dimension[t] == TensorCuts::whole || stays[t]) continue;
    const auto at = static_cast<std::size_t>(cuts.dimension[t]);
    shape =
        divided(shape, at,
                cuts.is_vocabulary[t] ? words_per_rank(shape[at], ranks)
                                      : shape[at] / cuts.ranks_of(static_cast<TensorId>(t), mesh));
  }
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    if (cuts.part[i] != RankPart::Gathered) continue;
    Shape& shape = trace.tensors[index(trace.outputs(trace.ops[i])[0])].shape;
    shape = shape.with_back(shape.back() / ranks);
  }
}

// Columns from which heads or halves of a wider row are taken.
void cut_offsets(const TensorCuts& cuts, Trace& trace) {
  for (const Op& op : trace.ops) {
    if (op.inputs == 0) continue;
    const TensorId x = trace.inputs(op)[0];
    const bool is_along_cut =
        cuts.dimension[index(x)] + 1 == static_cast<int>(trace[x].shape.rank());
    if (!is_along_cut) continue;
    for (std::size_t a = 0; a < op.attributes; ++a) {
      Attribute& attribute = trace.attributes[op.first_attribute + a];
      if (attribute.key == AttributeKey::Offset)
        attribute.value /= static_cast<double>(cuts.ranks_of(x, trace.step.mesh));
    }
  }
}

Trace with_cut_shapes(const TensorCuts& cuts, Trace trace) {
  cut_offsets(cuts, trace);
  cut_tensors(cuts, trace);
  return trace;
}

class RankTrace {
 public:
  RankTrace(const Trace& shaped, const TensorCuts& cuts)
      : from_(shaped), cuts_(cuts), ranks_(shaped.step.mesh[Axis::Tensor]), edit_(shaped) {}

  Trace run() && {
    for (std::size_t i = 0; i < from_.ops.size(); ++i) {
      const auto id = static_cast<OpId>(i);
      for (const SequenceScatter& scatter : cuts_.scatters)
        if (id == scatter.before) take_part(scatter.sequence);
      write(id);
    }
    return edit_.finish();
  }

 private:
  void write(OpId id) {
    switch (cuts_.part[index(id)]) {
      case RankPart::Alike:
        edit_.copy(id);
        return share_parts(id);
      case RankPart::Columns:
        return edit_.copy_with_input0(id, entered(id));
      case RankPart::Gathered:
        edit_.copy_with_input0(id, entered(id));
        return gather_columns(id);
      case RankPart::Rows:
        if (is_engine_product(from_, from_[id])) {
          edit_.copy(id);
          return add_up(id);
        }
        edit_.copy_as(id, from_[id].kind, std::min<std::size_t>(2, from_[id].inputs), 1);
        return add_up(id);
      case RankPart::Table:
        edit_.copy(id);
        return add_up(id);
      case RankPart::Scores:  // the loss makes them in place
        return edit_.redirect(from_.outputs(from_[id])[0], edit_.map(from_.inputs(from_[id])[0]));
      case RankPart::Loss:
        return loss(id);
    }
  }

  // In front of the first op behind which ranks have their own part of the sequence.
  void take_part(TensorId x) {
    Tensor part = result_like(x, "scatter");
    part.shape = divided(part.shape, 1, part.shape[1] / ranks_);
    edit_.redirect(x, edit_.emit(OpKind::Scatter, part.name, {edit_.map(x)}, part));
  }

  // A new tensor for what stands for an old one.
  Tensor result_like(TensorId old, std::string_view suffix) {
    Tensor tensor = from_[old];
    tensor.name = edit_.name(fmt::format("{}.{}", tensor.name, suffix));
    tensor.storage = no_tensor;
    return tensor;
  }

  // What linears by columns read: once for all of a block that read the same. Blocks of a decoder
  // read what the encoder made, each by itself.
  TensorId entered(OpId id) {
    const TensorId x = from_.inputs(from_[id])[0];
    auto& of_blocks = entered_[x];
    const std::int32_t block = from_[id].block;
    if (const auto known = of_blocks.find(block); known != of_blocks.end()) return known->second;
    return of_blocks[block] = whole_of(id, x, cuts_.dimension[index(x)], !of_blocks.empty());
  }

  // `is_again`: a tensor of that name is there.
  TensorId whole_of(OpId id, TensorId x, std::int8_t cut, bool is_again = false) {
    const bool is_part = cut != TensorCuts::whole;
    const std::string_view what = is_part ? "gather" : "replicate";
    Tensor tensor = result_like(x, what);
    if (is_again) tensor.name = edit_.name(fmt::format("{}.{}", from_[id].name, what));
    if (is_part) {
      const auto at = static_cast<std::size_t>(cut);
      tensor.shape = divided(tensor.shape, at, tensor.shape[at] * ranks_in(id));
    } else {
      tensor.storage = edit_[edit_.map(x)].storage;
    }
    tensor.held_until = no_op;
    const OpKind kind = is_part ? OpKind::AllGather : OpKind::Replicate;
    return edit_.emit_beside(id, kind, tensor.name, {edit_.map(x)}, tensor);
  }

  // What all ranks' heads read of what each has made of its own tokens.
  void share_parts(OpId id) {
    for (const TensorId y : from_.outputs(from_[id]))
      if (cuts_.is_shared[index(y)])
        edit_.redirect(
            y,
            whole_of(id, y, from_.step.sequence_parallel ? sequence_dimension : TensorCuts::whole));
  }

  // Whole rows stand for what a rank alone would have written, or the rank's part of the sequence.
  void gather_columns(OpId id) {
    const TensorId y = from_.outputs(from_[id])[0];
    Tensor rows = result_like(y, "gather");
    rows.shape = rows.shape.with_back(rows.shape.back() * ranks_);
    TensorId now = edit_.emit_beside(id, OpKind::AllGather, rows.name, {edit_.map(y)}, rows);
    if (cuts_.dimension[index(y)] != TensorCuts::whole) {
      const auto at = static_cast<std::size_t>(cuts_.dimension[index(y)]);
      rows.name = edit_.name(from_[y].name + ".scatter");
      rows.shape = divided(rows.shape, at, rows.shape[at] / ranks_);
      now = edit_.emit_beside(id, OpKind::Scatter, rows.name, {now}, rows);
    }
    edit_.redirect(y, now);
  }

  // The sum stands for what a rank alone would have written; a bias is added once, behind it.
  void add_up(OpId id) {
    const Op& op = from_[id];
    const TensorId y = from_.outputs(op)[0];
    const bool is_scattered = cuts_.dimension[index(y)] != TensorCuts::whole;
    Tensor sum = result_like(y, is_scattered ? "reduce_scatter" : "all_reduce");
    if (is_scattered) {
      const auto at = static_cast<std::size_t>(cuts_.dimension[index(y)]);
      sum.shape = divided(sum.shape, at, sum.shape[at] / ranks_in(id));
    }
    const OpKind kind = is_scattered ? OpKind::ReduceScatter : OpKind::AllReduce;
    TensorId now = edit_.emit_beside(id, kind, sum.name, {edit_.map(y)}, sum);
    if (op.kind == OpKind::Linear && op.inputs > 2) {
      sum.name = edit_.name(from_[y].name + ".bias_add");
      const TensorId bias = edit_.map(from_.inputs(op)[2]);
      now = edit_.emit_beside(id, OpKind::Add, sum.name, {now, bias}, sum);
    }
    edit_.redirect(y, now);
  }

  // Megatron-LM computes it in fp32 and writes the softmax over the logits; Transformer Engine up
  // to 2.17 writes the gradient over them in their own dtype (pytorch/triton/cross_entropy.py).
  // What torch.compile makes of it reads them once, for all in fp32 that comes behind
  // (core/fusions/fused_cross_entropy.py).
  void loss(OpId id) {
    const Op& op = from_[id];
    const TensorId scores = from_.inputs(op)[0];
    TensorId logits = edit_.map(scores);
    const bool is_native = has_native_loss(from_.step);
    if (edit_[logits].dtype != DType::Float32 && !has_fused_loss(from_.step) && !is_native) {
      Tensor wide{.name = edit_.name(op.name + ".float"), .shape = edit_[logits].shape};
      logits = edit_.emit(OpKind::Cast, wide.name, {logits}, wide);
    }
    edit_.redirect(scores, logits);
    const Shape rows = from_[from_.inputs(op)[1]].shape;
    edit_.copy_as(
        id, OpKind::VocabularyLoss, 2, 1,
        {{.name = edit_.name(op.name + ".softmax"),
          .shape = edit_[logits].shape,
          .dtype = is_native ? DType::Float32 : edit_[logits].dtype,
          .storage = is_native ? no_tensor : edit_[logits].storage},
         {.name = edit_.name(op.name + ".elsewhere"), .shape = rows, .dtype = DType::Bool},
         {.name = edit_.name(op.name + ".targets"), .shape = rows, .dtype = DType::Int64}});
  }

  // That have parts of what the op writes.
  std::int64_t ranks_in(OpId id) const {
    return cuts_.ranks_of(from_.outputs(from_[id])[0], from_.step.mesh);
  }

  const Trace& from_;
  const TensorCuts& cuts_;
  const std::int64_t ranks_;
  TraceEdit edit_;
  std::map<TensorId, std::map<std::int32_t, TensorId>> entered_;  ///< by what is read, and block
};

// The loss as if of ranks: of a framework that has but one, however many ranks there are.
TensorCuts only_loss(const Trace& trace) {
  TensorCuts cuts = TensorCuts::none(trace);
  for (std::size_t i = 1; i < trace.ops.size(); ++i) {
    const Op &scores = trace.ops[i - 1], &loss = trace.ops[i];
    if (scores.kind != OpKind::LogSoftmax || loss.kind != OpKind::NllLoss) continue;
    cuts.part[i - 1] = RankPart::Scores;
    cuts.part[i] = RankPart::Loss;
  }
  return cuts;
}

bool has_replicas_only(const Mesh& mesh) { return mesh.gpus() == mesh[Axis::Data]; }

void set_replicas(Trace& recorded, const StepOptions& step) {
  if (!has_replicas_only(recorded.step.mesh))
    throw InputError(fmt::format("{} was recorded as a part of {} (name the model for another)",
                                 quoted(recorded.model), to_text(recorded.step.mesh)));
  if (!has_replicas_only(step.mesh))
    throw InputError(fmt::format(
        "of {} a recorded step can have replicas only (give --mesh dp=N, or name a model)",
        to_text(step.mesh)));
  if (!step.mesh.is_one()) recorded.step.mesh = step.mesh;
  if (step.shard) recorded.step.shard = step.shard;
}

Trace with_cut_update(Trace recorded) {
  return states_are_cut(recorded.step) ? with_update_by_its_row(std::move(recorded))
                                       : std::move(recorded);
}

Trace cut_for_tensor_ranks(Trace trace) {
  if (trace.step.mesh[Axis::Tensor] == 1)
    return find_framework(trace.step.framework).vocabulary_loss
               ? RankTrace(trace, only_loss(trace)).run()
               : std::move(trace);
  const TensorCuts cuts = find_cuts(trace);
  const Trace shaped = with_cut_shapes(cuts, std::move(trace));
  return RankTrace(shaped, cuts).run();
}

}  // namespace

Trace cut_for_ranks(Trace trace) {
  trace = share_experts(cut_for_context(std::move(trace)));
  trace = with_counted_experts(cut_for_tensor_ranks(std::move(trace)));
  recount_float8_linears(trace);
  recount_scan_ops(trace);
  return trace;
}

Trace as_stated(Trace recorded, const StepOptions& step) {
  if (step.accumulate != MicroBatches()) recorded.step.accumulate = step.accumulate;
  if (!step.mesh.is_one() || step.shard) set_replicas(recorded, step);
  for (const StepField& field : step_fields()) {
    const std::string defect = field.defect(recorded.step);
    if (!defect.empty()) throw InputError(defect);
  }
  if (const std::string defect = micro_batches_defect(recorded); !defect.empty())
    throw InputError(defect);
  return with_cut_update(std::move(recorded));
}

Trace build_rank_trace(const Model& model, const StepOptions& options) {
  return build_stage_trace(cut_for_ranks(build_trace(model, options)));
}

Trace build_stage_trace(Trace cut) {
  Trace trace = cut_for_stage(std::move(cut));
  return is_compiled(find_framework(trace.step.framework)) ? compiled_trace(trace)
                                                           : std::move(trace);
}

}  // namespace tidemark
