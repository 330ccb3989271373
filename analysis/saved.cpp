// Counts what the plan keeps of each operand, by op and by storage, and leaves out parameters.
#include "analysis/saved.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "simulator/graph/recovery.h"
#include "simulator/needs.h"

namespace tidemark {
namespace {

class Counting {
 public:
  Counting(const Trace& trace, const Plan& plan, const Needs& needs)
      : trace_(trace), plan_(plan), needs_(needs) {
    kept_by_other_.resize(trace.tensors.size());
    for (std::size_t i = 0; i < trace.ops.size(); ++i)
      if (!is_ms_norm(trace.ops[i].kind))
        for_each_operand(trace, trace.ops[i], needs_.saved[i], [&](TensorId storage, TensorId) {
          kept_by_other_[index(storage)] = true;
        });
  }

  static bool is_ms_norm(OpKind kind) {
    return kind == OpKind::MsLayerNorm || kind == OpKind::MsRmsNorm;
  }

  // Parameters, the copies that autocast makes of them, and what only variables of the model's code
  // keep are not saved activations.
  bool is_no_activation(TensorId storage) const {
    const Category category = trace_[storage].category;
    if (category == Category::Parameter || category == Category::Temporary) return true;
    const OpId producer = needs_.producer[index(storage)];
    if (producer == no_op || trace_[producer].kind != OpKind::Cast) return false;
    return trace_[trace_.inputs(trace_[producer])[0]].category == Category::Parameter;
  }

  // Of the part of a storage that has this shape: its codes, and the ranges of all.
  Bytes coded(TensorId storage, const Shape& shape) const {
    const Encoding& encoding = encoding_of(plan_, storage);
    return size_of_codes(encoding, shape) + size_of_ranges(encoding, trace_[storage].shape);
  }

  // Bytes kept for a tensor of this shape, `bytes` of it in full.
  Bytes kept(TensorId storage, Bytes bytes, const Shape& shape) const {
    switch (plan_.decisions[index(storage)].action) {
      case Action::Keep:
        return bytes;
      case Action::Quantize:
        return coded(storage, shape);
      case Action::Recompute:
      case Action::Reconstruct:
      case Action::Offload:
        break;
    }
    return {};
  }

  Bytes kept(TensorId storage) const {
    return kept(storage, size(trace_[storage]), trace_[storage].shape);
  }

  // Calls visit(kind, storage, bytes of the held tensor) for each (kind, tensor) once. Each
  // operation of opaque ops is a kind of its own.
  template <typename Visit>
  void per_op(std::size_t begin, std::size_t end, Visit visit) const {
    static_assert(op_rows.size() <= 64);
    std::vector<std::uint64_t> kinds_seen(trace_.tensors.size());  // by tensor: bit k is kind k
    std::set<std::pair<TensorId, std::string_view>> operations_seen;
    for (std::size_t i = begin; i < end; ++i) {
      const Op& op = trace_.ops[i];
      const std::uint64_t kind = std::uint64_t{1} << static_cast<unsigned>(op.kind);
      for_each_operand(trace_, op, needs_.saved[i], [&](TensorId storage, TensorId tensor) {
        if (is_no_activation(storage)) return;
        if (is_ms_norm(op.kind) && kept_by_other_[index(storage)]) return;
        std::uint64_t& seen = kinds_seen[index(tensor)];
        if (op.kind == OpKind::Opaque) {
          if (!operations_seen.emplace(tensor, operation_name(trace_, op)).second) return;
        } else if ((seen & kind) != 0) {
          return;
        }
        seen |= kind;
        visit(op.kind, storage, kept(storage, size(trace_[tensor]), trace_[tensor].shape));
      });
    }
  }

 private:
  const Trace& trace_;
  const Plan& plan_;
  const Needs& needs_;
  std::vector<bool> kept_by_other_;
};

}  // namespace

SavedBytes saved_bytes(const Trace& trace, const Plan& plan) {
  return saved_bytes(trace, plan, derive(trace, plan));
}

SavedBytes saved_bytes(const Trace& trace, const Plan& plan, const Derived& derived) {
  const auto& [needs, recovery] = derived;
  const Counting counting(trace, plan, needs);
  SavedBytes saved;
  counting.per_op(0, trace.ops.size(),
                  [&](OpKind, TensorId, Bytes bytes) { saved.per_op += bytes; });
  if (plan.quirks.codes_per_use) {
    saved.unique = saved.per_op;  // every op holds a copy of its own
    return saved;
  }
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    const auto storage = static_cast<TensorId>(t);
    if (trace[storage].storage != storage || recovery.uses[t] == 0) continue;
    const OpId producer = needs.producer[t];
    const bool made_again = needs.uses[t] == 0 && producer != no_op &&
                            recovery.reruns[index(producer)] && !recovery.reads_kept[t];
    if (!made_again && !counting.is_no_activation(storage)) saved.unique += counting.kept(storage);
  }
  return saved;
}

BlockUnits block_units(const Trace& trace, const Plan& plan) {
  return block_units(trace, plan, derive_needs(trace));
}

BlockUnits block_units(const Trace& trace, const Plan& plan, const Needs& needs) {
  BlockUnits result;
  if (trace.blocks.empty()) return result;
  const Block& block = trace.blocks[trace.blocks.size() / 2];
  result.block = block.name;
  result.unit = {2 * numel(trace[block.input].shape)};
  const Counting counting(trace, plan, needs);
  std::array<KindUnits, op_rows.size()> by_kind{};
  std::vector<bool> seen(trace.tensors.size());
  const double unit = static_cast<double>(result.unit.count);
  counting.per_op(index(block.begin), index(block.end),
                  [&](OpKind kind, TensorId storage, Bytes bytes) {
                    // Rotary tables and masks are given, not made by the block.
                    if (trace[storage].category == Category::Input) return;
                    KindUnits& row = by_kind[static_cast<std::size_t>(kind)];
                    row.per_op += static_cast<double>(bytes.count);  // exact; divided once, below
                    if (seen[index(storage)]) return;
                    seen[index(storage)] = true;
                    row.unique += static_cast<double>(counting.kept(storage).count);
                  });
  for (std::size_t k = 0; k < by_kind.size(); ++k) {
    if (by_kind[k].per_op == 0) continue;
    by_kind[k].kind = static_cast<OpKind>(k);
    result.kinds.push_back(by_kind[k]);
    result.per_op += by_kind[k].per_op;
    result.unique += by_kind[k].unique;
  }
  for (KindUnits& row : result.kinds) row.per_op /= unit, row.unique /= unit;
  result.per_op /= unit, result.unique /= unit;
  return result;
}

std::vector<SavedGroup> saved_groups(const Trace& trace, const Needs& needs) {
  const Plan plan = keep_everything(trace);
  const Counting counting(trace, plan, needs);
  std::vector<SavedGroup> groups;
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const Op& op = trace.ops[i];
    for (Operands bits = needs.saved[i]; bits != 0; bits &= bits - 1) {
      const int bit = __builtin_ctz(bits);
      const Tensor& tensor = trace[operand(trace, op, bit)];
      if (counting.is_no_activation(tensor.storage)) continue;
      SavedGroup group{std::string(operation_name(trace, op)),
                       bit,
                       tensor.shape,
                       tensor.dtype,
                       size(trace[tensor.storage]),
                       1};
      const auto same = std::ranges::find_if(groups, [&](SavedGroup other) {
        other.count = 1;
        return other == group;
      });
      if (same == groups.end()) {
        groups.push_back(group);
      } else {
        ++same->count;
      }
    }
  }
  return groups;
}

}  // namespace tidemark
