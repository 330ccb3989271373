// Collectives in front of each attention, and behind it; elsewhere operands mean what they meant.
#include "simulator/parallel/context_exchanges.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "simulator/strategies/trace_edit.h"
#include "traces/exchange_axis.h"

namespace tidemark {
namespace {

Shape resized(const Shape& shape, std::size_t dimension, std::int64_t size) {
  std::vector<std::int64_t> dims(shape.dims().begin(), shape.dims().end());
  dims[dimension] = size;
  return Shape(dims);
}

// Of all ranks, for the attention of this one; or what is there of a ring at once.
TensorId gathered(const Trace& from, OpId attention, TensorId own, TraceEdit& edit) {
  Tensor all = from[own];
  all.name = edit.name(all.name + ".gather");
  all.storage = no_tensor;
  all.held_until = no_op;
  const std::int64_t parts =
      passes_keys_around(from.step) ? parts_of_ring : from.step.mesh[Axis::Context];
  all.shape = resized(all.shape, 2, all.shape[2] * parts);
  return edit.emit_beside(attention, OpKind::AllGather, all.name, {edit.map(own)}, all);
}

class ExchangedHeads {
 public:
  explicit ExchangedHeads(const Trace& from)
      : from_(from), ranks_(from.step.mesh[Axis::Context]), edit_(from) {}

  Trace run() && {
    for (std::size_t i = 0; i < from_.ops.size(); ++i) {
      const auto id = static_cast<OpId>(i);
      from_[id].kind == OpKind::FlashAttention ? attention(id) : edit_.copy(id);
    }
    return edit_.finish();
  }

 private:
  // What two operands share is exchanged once.
  void attention(OpId id) {
    std::vector<std::pair<TensorId, TensorId>> own;  // old, and what stands for it elsewhere
    for (const TensorId x : from_.inputs(from_[id]).first(3)) {
      if (std::ranges::find(own, x, &std::pair<TensorId, TensorId>::first) != own.end()) continue;
      own.emplace_back(x, edit_.map(x));
      Tensor some = exchanged(x, "to_heads");
      some.shape = resized(resized(from_[x].shape, 1, from_[x].shape[1] / ranks_), 2,
                           from_[x].shape[2] * ranks_);
      some.held_until = no_op;
      edit_.redirect(x, exchange(id, own.back().second, some));
    }
    edit_.copy(id);
    for (const auto& [old, now] : own) edit_.redirect(old, now);
    const TensorId y = from_.outputs(from_[id])[0];
    Tensor back = exchanged(y, "to_tokens");
    back.shape = resized(resized(from_[y].shape, 1, from_[y].shape[1] * ranks_), 2,
                         from_[y].shape[2] / ranks_);
    edit_.redirect(y, exchange(id, edit_.map(y), back));
  }

  Tensor exchanged(TensorId old, std::string_view suffix) {
    Tensor tensor = from_[old];
    tensor.name = edit_.name(fmt::format("{}.{}", tensor.name, suffix));
    tensor.storage = no_tensor;
    return tensor;
  }

  TensorId exchange(OpId beside, TensorId sent, const Tensor& come) {
    return edit_.emit_beside(beside,
                             {.operation = std::string(head_exchange),
                              .gradients = 0b1,
                              .forward = {.kernels = 0},
                              .backward = {.kernels = 0}},
                             come.name, {sent}, come);
  }

  const Trace& from_;
  const std::int64_t ranks_;
  TraceEdit edit_;
};

}  // namespace

Trace with_gathered_keys(const Trace& from) {
  TraceEdit edit(from);
  for (std::size_t i = 0; i < from.ops.size(); ++i) {
    const auto id = static_cast<OpId>(i);
    if (from[id].kind != OpKind::FlashAttention) {
      edit.copy(id);
      continue;
    }
    const TensorId k = from.inputs(from[id])[1], v = from.inputs(from[id])[2];
    const TensorId own_k = edit.map(k), own_v = edit.map(v);
    const TensorId all_k = gathered(from, id, k, edit);
    const TensorId all_v = k == v ? all_k : gathered(from, id, v, edit);
    edit.redirect(k, all_k), edit.redirect(v, all_v);
    edit.copy(id);
    edit.redirect(k, own_k), edit.redirect(v, own_v);
  }
  return edit.finish();
}

Trace with_exchanged_heads(const Trace& from) { return ExchangedHeads(from).run(); }

}  // namespace tidemark
