// Example, four experts and two ranks:
//   alone   visits ─sort─► ─products of experts 0 to 3─► ─sort─► ─unpermute─►
//   rank 0  visits ─exchange─► ─sort─► ─products of 0 and 1─► ─sort─► ─exchange─► ─unpermute─►
// As many visits come as go if experts get equal shares; else the rank at hand is the busiest, to
// which more come. A rank with one expert sorts nothing. Or, with --ep-form all-gather,
//   rank 0  tokens ─gather─► of both ─permute─► visits of 0 and 1 ─products─► ─unpermute─►
//           of both ─reduce, scatter─► tokens
#include "simulator/parallel/expert_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/quoted.h"
#include "simulator/strategies/trace_edit.h"
#include "traces/engine_linear.h"
#include "traces/expert_ops.h"

namespace tidemark {
namespace {

template <typename... Args>
[[noreturn]] void refuse_experts(fmt::format_string<Args...> why, Args&&... args) {
  throw InputError("--mesh: ep: " + fmt::format(why, std::forward<Args>(args)...));
}

Mesh with_experts(Mesh mesh, std::int64_t ranks) {
  mesh.experts = ranks;
  return mesh;
}

[[noreturn]] void refuse_without_experts(const Trace& trace) {
  const Mesh alone = with_experts(trace.step.mesh, 1);
  if (!find_framework(trace.step.framework).grouped_experts)
    refuse_experts(
        "{} has no experts that ranks share; take --framework megatron and a model that has some "
        "(nearest: --mesh {})",
        trace.step.framework, to_text(alone));
  refuse_experts("{} has no experts (nearest: --mesh {})", quoted(trace.model), to_text(alone));
}

void check_sizes(const Trace& trace) {
  const Mesh& mesh = trace.step.mesh;
  const std::int64_t experts = experts_in(trace);
  if (experts == 0) refuse_without_experts(trace);
  if (experts % mesh.experts == 0) return;
  const std::int64_t most = std::gcd(experts, mesh.expert_ranks());
  refuse_experts("{} experts are not shared by {} ranks (nearest: --mesh {})", experts,
                 mesh.experts, to_text(with_experts(mesh, nearest_divisor(most, mesh.experts))));
}

void cut_weights(Trace& trace) {
  const std::vector<bool> is_cut = parameters_of_experts(trace);
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    if (!is_cut[t]) continue;
    std::vector<std::int64_t> dims(trace.tensors[t].shape.dims().begin(),
                                   trace.tensors[t].shape.dims().end());
    dims[0] /= trace.step.mesh.experts;
    trace.tensors[t].shape = Shape(dims);
  }
}

class ExchangedVisits {
 public:
  explicit ExchangedVisits(const Trace& from) : from_(from), edit_(from) {}

  Trace run() && {
    for (std::size_t i = 0; i < from_.ops.size(); ++i) write(static_cast<OpId>(i));
    return edit_.finish();
  }

 private:
  void write(OpId id) {
    const Op& op = from_[id];
    const std::optional<ExpertOp> kind = expert_op(from_, op);
    if (kind == ExpertOp::Unpermute) exchange(id, from_.inputs(op)[0], "combine");
    edit_.copy(id);
    if (kind == ExpertOp::Permute || kind == ExpertOp::Weigh)
      exchange(id, from_.outputs(op)[0], "dispatch");
  }

  // From here on, what comes stands for what went.
  void exchange(OpId beside, TensorId visits, std::string_view suffix) {
    const TensorId sent = edit_.map(visits);
    Tensor come = edit_[sent];
    come.name = edit_.name(fmt::format("{}.{}", come.name, suffix));
    come.storage = no_tensor;
    if (suffix == "combine") come.held_until = no_op;
    edit_.redirect(visits, edit_.emit_beside(beside, expert_row(ExpertOp::Exchange, come.shape),
                                             come.name, {sent}, come));
  }

  const Trace& from_;
  TraceEdit edit_;
};

class GatheredTokens {
 public:
  explicit GatheredTokens(const Trace& from) : from_(from), edit_(from) {}

  Trace run() && {
    for (std::size_t i = 0; i < from_.ops.size(); ++i) write(static_cast<OpId>(i));
    return edit_.finish();
  }

 private:
  std::int64_t ranks() const { return from_.step.mesh.experts; }

  void write(OpId id) {
    const Op& op = from_[id];
    const std::optional<ExpertOp> kind = expert_op(from_, op);
    const auto inputs = from_.inputs(op);
    if (kind == ExpertOp::Permute) {
      const TensorId rows = gathered_in_buffer(id, inputs[0]);
      edit_.redirect(inputs[1], own_columns(id, inputs[1]));
      edit_.copy_with_input0(id, rows);
    } else if (kind == ExpertOp::PickShares) {
      edit_.copy_with_input0(id, own_columns(id, inputs[0]));
    } else {
      edit_.copy(id);
      if (kind == ExpertOp::Unpermute) scatter(id, from_.outputs(op)[0]);
    }
  }

  // Who is picked has no gradient.
  OpaqueRow row_for(ExpertOp op, TensorId x) const {
    OpaqueRow row = expert_row(op, edit_[x].shape);
    if (!is_floating(edit_[x].dtype)) row.gradients = 0;
    return row;
  }

  TensorId emit(OpId beside, ExpertOp op, std::string_view suffix, TensorId x, Tensor made) {
    made.name = edit_.name(fmt::format("{}.{}", made.name, suffix));
    made.held_until = no_op;
    return edit_.emit_beside(beside, row_for(op, x), made.name, {x}, made);
  }

  // Of the tokens of all ranks.
  Tensor of_all(TensorId rows) const {
    Tensor all = from_[rows];
    all.storage = no_tensor;
    all.shape = Shape({all.shape[0] * ranks(), all.shape[1]});
    return all;
  }

  TensorId gathered(OpId beside, TensorId rows) {
    return emit(beside, ExpertOp::GatherTokens, "gather", edit_.map(rows), of_all(rows));
  }

  // Tokens lie in memory that all layers use, and that stays (get_global_memory_buffer() of
  // core/parallel_state.py). Here what is gathered has memory of its own beside it, until it is
  // permuted: what is written over may not be read again.
  TensorId gathered_in_buffer(OpId beside, TensorId rows) {
    Tensor all = of_all(rows);
    if (buffer_ == no_tensor) {
      Tensor buffer = all;
      buffer.name = edit_.name("experts.gathered");
      buffer.category = Category::Workspace;
      buffer_ = edit_.external(buffer);
    }
    all.name = edit_.name(fmt::format("{}.gather", from_[rows].name));
    all.held_until = no_op;
    const TensorId x = edit_.map(rows);
    return edit_.emit_beside(beside, row_for(ExpertOp::GatherTokens, x), all.name, {x, buffer_},
                             all);
  }

  TensorId own_columns(OpId beside, TensorId of_experts) {
    const TensorId all = gathered(beside, of_experts);
    Tensor own = edit_[all];
    own.storage = no_tensor;
    own.shape = own.shape.with_back(own.shape.back() / ranks());
    return emit(beside, ExpertOp::OwnColumns, "own", all, own);
  }

  void scatter(OpId beside, TensorId tokens) {
    Tensor sum = from_[tokens];
    sum.storage = no_tensor;
    sum.shape = Shape({sum.shape[0] / ranks(), sum.shape[1]});
    edit_.redirect(tokens,
                   emit(beside, ExpertOp::ScatterTokens, "scatter", edit_.map(tokens), sum));
  }

  const Trace& from_;
  TraceEdit edit_;
  TensorId buffer_ = no_tensor;  ///< of the new trace
};

// What experts answer is of all tokens.
void answer_all_tokens(Trace& trace) {
  for (const Op& op : trace.ops) {
    if (expert_op(trace, op) != ExpertOp::Unpermute) continue;
    Shape& shape = trace.tensors[index(trace.outputs(op)[0])].shape;
    shape = Shape({shape[0] * trace.step.mesh.experts, shape[1]});
  }
}

// By tensor: rows are visits that came from other ranks, up to where they go back.
std::vector<bool> visits_that_came(const Trace& trace) {
  std::vector<bool> came(trace.tensors.size());
  for (const Op& op : trace.ops) {
    const auto is_one = [&](TensorId input) { return came[index(input)]; };
    const bool reads = std::ranges::any_of(trace.inputs(op), is_one);
    const bool exchanges = expert_op(trace, op) == ExpertOp::Exchange;
    if (reads == exchanges) continue;
    for (const TensorId output : trace.outputs(op)) came[index(output)] = true;
  }
  return came;
}

// Of all ranks that share experts, so many in all: what visits them. Layers are alike.
struct SharedRouting {
  Routing all;
  std::int64_t visits = 0;  ///< of the tokens of the trace, …
  std::int64_t parts = 1;   ///< … which so many tensor-parallel ranks will share
};

SharedRouting routing_of(const Trace& trace, std::int64_t experts) {
  const auto permutes = [&](const Op& op) { return expert_op(trace, op) == ExpertOp::Permute; };
  const Op& op = *std::ranges::find_if(trace.ops, permutes);
  const std::int64_t tokens = trace[trace.inputs(op)[0]].shape[0];
  const std::int64_t visits = trace[trace.outputs(op)[0]].shape[0];
  const Mesh& mesh = trace.step.mesh;
  const std::int64_t parts = mesh[Axis::Tensor] / mesh.ranks_of_expert();
  return {{tokens * mesh.experts / parts, visits / tokens, experts}, visits, parts};
}

Trace with_busiest_rank(Trace trace, const ExpertLoad& load, std::int64_t experts) {
  const std::vector<bool> came = visits_that_came(trace);
  const auto [all, visits, parts] = routing_of(trace, experts);
  const std::int64_t most = busiest_visits(load, all, trace.step.mesh.experts) * parts;
  for (std::size_t t = 0; t < came.size(); ++t) {
    if (!came[t]) continue;
    const auto old = trace.tensors[t].shape.dims();
    std::vector<std::int64_t> dims(old.begin(), old.end());
    const auto rows = std::ranges::find(dims, visits);  // a transposed copy has them last
    if (rows == dims.end()) continue;
    *rows = most;
    trace.tensors[t].shape = Shape(dims);
  }
  return trace;
}

Trace without_sorts(const Trace& trace) {
  TraceEdit edit(trace);
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const Op& op = trace.ops[i];
    if (expert_op(trace, op) == ExpertOp::Sort)
      edit.redirect(trace.outputs(op)[0], edit.map(trace.inputs(op)[0]));
    else
      edit.copy(static_cast<OpId>(i));
  }
  return edit.finish();
}

}  // namespace

Trace share_experts(Trace trace) {
  if (trace.step.mesh.experts == 1) return trace;
  check_sizes(trace);
  const std::int64_t experts = experts_in(trace);
  cut_weights(trace);
  if (trace.step.expert_form == ExpertForm::AllGather) {
    answer_all_tokens(trace);
    return GatheredTokens(trace).run();
  }
  const Trace shared = ExchangedVisits(trace).run();
  const std::optional<ExpertLoad> load = trace.step.expert_load;
  return load ? with_busiest_rank(shared, *load, experts) : shared;
}

Trace with_counted_experts(Trace trace) {
  if (trace.step.mesh.experts > 1 && experts_in(trace) == 1) trace = without_sorts(trace);
  recount_expert_ops(trace);
  recount_engine_products(trace);
  return trace;
}

}  // namespace tidemark
