// Each kind of op, call by call. Sources, of PyTorch 2.6: torch/_inductor/decomposition.py,
// torch/_decomp/decompositions.py, torch/_refs/nn/functional, and joint graphs that Inductor was
// given (scripts/capture_steps/compiled.py --draw).
#include <fmt/format.h>

#include <initializer_list>

#include "base/error.h"
#include "simulator/compiled/fx_builder.h"
#include "traces/fp8_linear.h"
#include "traces/pair_ops.h"
#include "traces/trace_builder.h"

namespace tidemark {
namespace {

class FxTracer : FxBuilder {
 public:
  FxTracer(const Trace& trace, const FxRegion& region) : FxBuilder(trace, region) {}

  FxGraph run() && {
    for (std::size_t i = index(region_.begin); i < index(region_.end); ++i) {
      begin(static_cast<OpId>(i));
      call();
    }
    for (const TensorId output : region_.outputs)
      graph_.returned.push_back(graph_.by_tensor[index(output)]);
    fold_casts();
    return std::move(graph_);
  }

 private:
  void call();
  void views();
  void embedding();
  void linear();
  struct Coded {
    FxId codes, factor;
  };
  Coded coded(FxId x);
  void float8_linear();
  void matmul();
  void convolution();
  void attention();
  void layer_norm();
  void rms_norm();
  void gelu();
  void composed_gelu();
  void silu();
  void relu();
  void softmax();
  void log_softmax();
  void loss();
  void dropout();
  void drop_path();
  void add_or_mul();
  void rope();
  void turn_pairs();
  void moved(std::string_view name, FxKind kind);
  void from_output(std::string_view name);
  void exchange();
};

void FxTracer::call() {
  switch (op().kind) {
    case OpKind::View:
    case OpKind::Select:
    case OpKind::Split:
      return views();
    case OpKind::Embedding:
      return embedding();
    case OpKind::Linear:
      return linear();
    case OpKind::MatMul:
      return matmul();
    case OpKind::Conv2d:
      return convolution();
    case OpKind::FlashAttention:
      return attention();
    case OpKind::LayerNorm:
      return layer_norm();
    case OpKind::RmsNorm:
      return rms_norm();
    case OpKind::Gelu:
      return gelu();
    case OpKind::GeluComposed:
      return composed_gelu();
    case OpKind::Silu:
      return silu();
    case OpKind::Tanh:
      return from_output("tanh");
    case OpKind::Sigmoid:
      return from_output("sigmoid");
    case OpKind::Relu:
      return relu();
    case OpKind::Softmax:
      return softmax();
    case OpKind::LogSoftmax:
      return log_softmax();
    case OpKind::NllLoss:
      return loss();
    case OpKind::Dropout:
      return dropout();
    case OpKind::DropPath:
      return drop_path();
    case OpKind::Add:
    case OpKind::Mul:
      return add_or_mul();
    case OpKind::Scale:
    case OpKind::Cast:
    case OpKind::Copy:
    case OpKind::RepeatHeads:
    case OpKind::MeanPool:
      return moved(to_string(op().kind), FxKind::Pointwise);
    case OpKind::Concat:
      return moved("cat", FxKind::Concat);
    case OpKind::Rope:
      if (attribute(trace_, op(), AttributeKey::Neighbours) != 0) break;
      return rope();
    case OpKind::Replicate:
    case OpKind::AllReduce:
    case OpKind::AllGather:
    case OpKind::ReduceScatter:
    case OpKind::Scatter:
      return exchange();
    case OpKind::MsLayerNorm:
    case OpKind::MsRmsNorm:
    case OpKind::ReGelu2:
    case OpKind::ReSilu2:
    case OpKind::Average:
    case OpKind::MaxPool:
    case OpKind::Receive:
    case OpKind::Send:
    case OpKind::VocabularyLoss:
      break;
    case OpKind::Opaque:
      if (is_float8_linear(trace_, op())) return float8_linear();
      if (turns_pairs(trace_, op())) return turn_pairs();
      if (opaque_row(trace_, op())->computes != Formula::Zeros) break;
      return make(0, full(0, output(0)));
  }
  const bool is_loss = op().outputs > 0 && trace_.outputs(op())[0] == trace_.loss;
  const std::string what = fmt::format(
      fmt::runtime(is_loss ? "this head of {2}, whose loss is '{0}' ({1})," : "'{0}' ({1}) of {2}"),
      op().name, operation_name(trace_, op()), trace_.model);
  throw UsageError(fmt::format(
      "--framework {}: what torch.compile makes of {} is not known here (capture the compiled "
      "step: tidemark capture --help; or plan the eager one: --framework {})",
      trace_.step.framework, what, default_framework));
}

void FxTracer::views() {
  const FxId x = input(0);
  for (int i = 0; i < op().outputs; ++i)
    make(i, view(with_attributes(fmt::format("view {}", i)), x, output(i).shape));
}

void FxTracer::moved(std::string_view name, FxKind kind) {
  std::vector<FxId> reads;
  for (int i = 0; i < op().inputs; ++i) reads.push_back(input(i));
  FxNode call{.kind = kind,
              .shape = output(0).shape,
              .dtype = output(0).dtype,
              .reads = std::move(reads),
              .suffix = name,
              .is_pad = is_padding(trace_, op())};
  make(0, op().kind == OpKind::Cast ? cast(input(0), output(0).dtype)
                                    : add(with_attributes(std::string(name)), std::move(call)));
}

void FxTracer::from_output(std::string_view name) {
  const FxId y = cast(pointwise(name, {cast(input(0), DType::Float32)}), output(0).dtype);
  make(0, y);
  if (wants(0)) read(y);
}

// A kernel of a library, which is not made again; its backward is another, which reads nothing.
void FxTracer::exchange() {
  make(0, kernel(to_string(op().kind), {input(0)}, output(0).shape, output(0).dtype));
}

// The rows of the gradient are added up by an index_put, which wants the indices in memory.
void FxTracer::embedding() {
  const FxId ids = input(0), table = input(1);
  make(0, kernel("embedding", {table, ids}, output(0).shape, output(0).dtype));
  if (wants(1)) read_by_kernel(ids);
}

// Rows times the transposed weight; gradients are products with both.
void FxTracer::linear() {
  const FxId x = input(0), weight = input(1);
  const std::int64_t in = (*this)[x].shape.back();
  const FxId rows = view("view", x, {numel((*this)[x].shape) / in, in});
  const FxId turned = view("permute", weight, {in, output(0).shape.back()});
  const Shape made = {(*this)[rows].shape[0], output(0).shape.back()};
  const FxId product = has_input(2)
                           ? kernel("addmm", {input(2), rows, turned}, made, output(0).dtype)
                           : kernel("mm", {rows, turned}, made, output(0).dtype);
  make(0, view("view", product, output(0).shape));
  graph_.calls[index(product)].tensor = operand(trace_, op(), 16);
  if (wants(0)) read_by_kernel(turned);
  if (wants(1)) read_by_kernel(rows);
}

// By the largest number, x · 448 / largest, clamped (float8_scaling_utils.py, float8_utils.py of
// torchao 0.9).
FxTracer::Coded FxTracer::coded(FxId x) {
  const FxId largest = pointwise("max", {pointwise("abs", {x})}, {}, (*this)[x].dtype, "largest");
  const FxId least = pointwise("clamp_min 1e-12", {cast(largest, DType::Float64)});
  const FxId factor =
      cast(pointwise("mul 448", {pointwise("reciprocal", {least})}), DType::Float32);
  const FxId scaled = pointwise("mul", {cast(x, DType::Float32), factor});
  const FxId clamped = pointwise("clamp_max", {pointwise("clamp_min", {scaled})});
  return {cast(clamped, DType::Float8), factor};
}

// The backward reads the weight's codes by columns, and casts x anew, of a view by (-1, in) that is
// not found again in that of an ordinary product.
void FxTracer::float8_linear() {
  const FxId x = input(0), weight = input(1);
  const std::int64_t in = (*this)[x].shape.back(), out = output(0).shape.back();
  const Coded of_weight = coded(weight), of_x = coded(x);
  const FxId turned = view("permute", of_weight.codes, {in, out});
  const Shape rows = {numel((*this)[x].shape) / in, in};
  const FxId factor_of_x = pointwise("reciprocal", {of_x.factor});
  const FxId factor_of_weight = pointwise("reciprocal", {of_weight.factor}, "weight_factor");
  const FxId product =
      kernel("_scaled_mm", {view("view", of_x.codes, rows), turned, factor_of_x, factor_of_weight},
             {rows[0], out}, output(0).dtype);
  make(0, view("view", product, output(0).shape));
  graph_.calls[index(product)].tensor = operand(trace_, op(), 16);
  const auto by_columns = [&](FxId codes, std::string_view suffix) {
    const Shape shape = (*this)[codes].shape, across = {shape[1], shape[0]};
    return view("permute", pointwise("clone", {view("permute", codes, across)}, suffix), shape);
  };
  if (wants(0)) {
    read_by_kernel(made_later([&] { return by_columns(of_weight.codes, "weight_codes"); }));
    read_by_kernel(factor_of_weight);
  }
  if (!wants(1)) return;
  const Coded anew = made_later([&] { return coded(view("view -1", x, rows)); });
  read_by_kernel(made_later([&] { return by_columns(anew.codes, "input_codes"); }));
  read_by_kernel(
      made_later([&] { return pointwise("reciprocal", {anew.factor}, "input_factor"); }));
}

// Batched products are of matrices in one row.
void FxTracer::matmul() {
  const FxId a = stacked(input(0)), b = stacked(input(1));
  const Shape& shape = output(0).shape;
  const FxId product = kernel("bmm", {a, b}, stacked(shape), output(0).dtype);
  make(0, view("view", product, shape));
  graph_.calls[index(product)].tensor = operand(trace_, op(), 16);
  if (wants(0)) read_by_kernel(as_autocast_reads(b));
  if (wants(1)) read_by_kernel(as_autocast_reads(a));
}

void FxTracer::convolution() {
  const FxId x = input(0), weight = input(1);
  std::vector<FxId> reads = {x, weight};
  if (has_input(2)) reads.push_back(input(2));
  make(0, kernel(with_attributes("convolution"), reads, output(0).shape, output(0).dtype));
  if (wants(0) || wants(1)) read_by_kernel(x), read_by_kernel(weight);
}

void FxTracer::attention() {
  std::vector<FxId> reads;
  for (int i = 0; i < op().inputs; ++i) reads.push_back(input(i));
  const FxId made = kernel(with_attributes("_scaled_dot_product_attention"), reads, {},
                           output(0).dtype, FxKind::KernelSet);
  for (int i = 0; i < op().outputs; ++i) {
    const FxId value = element(fmt::format("{}", i), made, output(i).shape, output(i).dtype);
    make(i, value);
    if (wants_any()) read_by_kernel(value);
  }
  if (wants_any())
    for (const FxId value : reads) read_by_kernel(value);
}

void FxTracer::layer_norm() {
  const FxId x = widened_input();
  const Shape shape = (*this)[x].shape;
  const FxId both = add("var_mean", {.kind = FxKind::Pair, .reads = {x}, .suffix = "var_mean"});
  const FxId variance = element("variance", both, shape.with_back(1), DType::Float32);
  const FxId mean = element("mean", both, shape.with_back(1), DType::Float32);
  const FxId rstd =
      pointwise("rsqrt", {pointwise(with_attributes("add"), {variance}, "add")}, "rstd");
  const FxId normalized = pointwise("mul", {pointwise("sub", {x, mean}), rstd}, "normalized");
  FxId y = normalized;
  if (has_input(1)) y = pointwise("mul", {y, input(1)});
  if (has_input(2)) y = pointwise("add", {y, input(2)});
  make(0, cast(y, output(0).dtype));
  if (wants(0) || wants(1)) read(normalized);
  if (wants(0)) read(later("div", rstd, DType::Float32)), read(input(1));
}

void FxTracer::rms_norm() {
  const FxId x = cast(input(0), DType::Float32);
  const FxId square = pointwise("pow", {x});
  const FxId rstd = pointwise(
      "rsqrt", {pointwise(with_attributes("add"), {reduced("mean", square)}, "add")}, "rstd");
  const FxId rounded = op().outputs > 2
                           ? cast(pointwise("mul", {x, rstd}, "normalized"), output(2).dtype)
                           : pointwise("mul", {x, rstd}, "normalized");
  const FxId y = pointwise("mul", {rounded, input(1)});
  make(0, cast(y, output(0).dtype));
  if (wants(1)) read(rounded);
  if (!wants(0)) return;
  read(x), read(rstd), read(input(1));
}

// x/2 · (1 + erf(x/√2)), or with the tanh of a polynomial.
void FxTracer::gelu() {
  const FxId x = widened_input();
  const bool is_tanh = attribute(trace_, op(), AttributeKey::TanhApprox) != 0;
  FxId bent{};
  if (is_tanh) {
    const FxId cube = pointwise("mul", {pointwise("mul", {x, x}), x});
    const FxId sum = pointwise("add", {x, pointwise("mul 0.04", {cube})});
    bent = pointwise("tanh", {pointwise("mul 0.8", {sum})});
  } else {
    bent = pointwise("erf", {pointwise("mul 0.7", {x})});
  }
  const FxId one_plus = pointwise("add 1", {bent});
  const FxId y = pointwise("mul", {pointwise("mul 0.5", {x}), one_plus});
  make(0, cast(y, output(0).dtype));
  if (wants(0)) read(one_plus), read(x);
}

void FxTracer::composed_gelu() {
  const FxId x = input(0);
  const FxId half = pointwise("mul 0.5", {x});
  const FxId cube = pointwise("pow 3", {x});
  const FxId sum = pointwise("add", {x, pointwise("mul 0.04", {cube})});
  const FxId bent = pointwise("tanh", {pointwise("mul 0.8", {sum})});
  const FxId one_plus = pointwise("add 1", {bent});
  make(0, cast(pointwise("mul", {half, one_plus}), output(0).dtype));
  if (wants(0)) read(half), read(bent), read(one_plus), read(x);
}

void FxTracer::silu() {
  const FxId x = widened_input();
  const FxId slope = pointwise("sigmoid", {x});
  make(0, cast(pointwise("mul", {x, slope}), output(0).dtype));
  if (wants(0)) read(x), read(slope);
}

// The backward asks where y is not positive, a byte per element.
void FxTracer::relu() {
  const FxId y = pointwise("relu", {input(0)});
  make(0, y);
  if (wants(0)) read(later("le", y, DType::Bool));
}

void FxTracer::softmax() {
  const FxId x = cast(input(0), DType::Float32);
  const FxId powers = pointwise("exp", {pointwise("sub", {x, reduced("amax", x)})});
  const FxId y = cast(pointwise("div", {powers, reduced("sum", powers)}), output(0).dtype);
  make(0, y);
  if (wants(0)) read(y);
}

void FxTracer::log_softmax() {
  FxId scores = base_of(graph_, input(0));
  while ((*this)[scores].suffix == casts) scores = base_of(graph_, (*this)[scores].reads[0]);
  graph_.returned.push_back(scores);  // beside the loss
  const FxId x = cast(input(0), DType::Float32);
  const FxId less = pointwise("sub", {x, reduced("amax", x, "amax")});
  const FxId sum = reduced("sum", pointwise("exp", {less}));
  const FxId y = pointwise("sub", {less, pointwise("log", {sum}, "log")});
  make(0, cast(y, output(0).dtype));
  if (wants(0)) read(later("exp", y, DType::Float32));
}

// Labels of −100 do not count.
void FxTracer::loss() {
  const FxId scores = input(0), labels = view("unsqueeze", input(1), [&] {
                                  return Shape{numel((*this)[input(1)].shape), 1};
                                }());
  const Shape rows = (*this)[labels].shape;
  const FxId counts = pointwise("ne", {labels}, rows, DType::Bool, "counts");
  const FxId places = pointwise("where", {counts, labels}, rows, DType::Int64, "places");
  const FxId picked = pointwise("gather", {scores, places}, rows, (*this)[scores].dtype, "picked");
  const FxId kept = pointwise("where 0", {counts, pointwise("neg", {picked})},
                              Shape((*this)[picked].shape), (*this)[picked].dtype);
  const FxId total = cast(pointwise("sum", {counts}, {}, DType::Int64), output(1).dtype);
  make(1, total);
  make(0, pointwise("div", {pointwise("sum", {kept}, {}, output(0).dtype), total}));
  if (wants(0)) read(counts), read_by_kernel(places), read(total);  // scattered to the places
}

void FxTracer::dropout() {
  const FxId x = input(0);
  const FxId mask = pointwise(with_attributes("gt"), {random((*this)[x].shape)},
                              Shape((*this)[x].shape), DType::Bool, "mask");
  make(1, mask);
  const FxId kept = pointwise("mul", {mask, x}, Shape((*this)[x].shape), (*this)[x].dtype);
  make(0, cast(pointwise(with_attributes("mul"), {kept}, "mul"), output(0).dtype));
  if (wants(0)) read(later(casts, mask, (*this)[x].dtype));
}

// A number per sample: floor(1 − p + random), of the dtype of x.
void FxTracer::drop_path() {
  const FxId x = input(0);
  const FxId drawn = cast(random(output(1).shape), (*this)[x].dtype);
  const FxId mask = pointwise("floor", {pointwise(with_attributes("add"), {drawn}, "add")}, "mask");
  make(1, mask);
  const FxId scaled = pointwise(with_attributes("div"), {x}, "div");
  make(0, pointwise("mul", {scaled, mask}));
  if (wants(0)) read(mask);
}

// Of two dtypes in the wider one. What is added in place is cast to the dtype of where it is added,
// and looked at through views, as functionalization writes it.
void FxTracer::add_or_mul() {
  const FxId a = input(0), b = input(1);
  const DType dtype = (*this)[a].dtype == (*this)[b].dtype ? (*this)[a].dtype : DType::Float32;
  const FxId y = pointwise(to_string(op().kind), {a, b}, output(0).shape, dtype);
  graph_.calls[index(y)].is_sum = op().kind == OpKind::Add;
  make(0, dtype == output(0).dtype ? y : view("view", cast(y, output(0).dtype), output(0).shape));
  if (op().kind != OpKind::Mul) return;
  if (wants(0)) read(b);
  if (wants(1)) read(a);
}

// x · cos + (−x₂, x₁) · sin
void FxTracer::rope() {
  const FxId x = input(0), cosine = input(1), sine = input(2);
  const Shape shape = (*this)[x].shape, half = shape.with_back(shape.back() / 2);
  const FxId second = pointwise("neg", {view("slice 1", x, half)});
  const FxId turned = kernel("cat", {second, view("slice 0", x, half)}, shape, (*this)[x].dtype,
                             FxKind::Concat, "turned");
  const DType dtype = output(0).dtype;
  const FxId first = pointwise("mul", {cast(x, dtype), cosine}, shape, dtype);
  const FxId other = pointwise("mul", {cast(turned, dtype), sine}, shape, dtype);
  make(0, pointwise("add", {first, other}));
  if (wants(0)) read(cosine), read(sine);
}

// Inductor calls ATen for complex numbers, which wants them in memory. The backward turns back.
void FxTracer::turn_pairs() {
  const FxId x = input(0), waves = input(1);
  make(0, kernel("mul", {x, waves}, output(0).shape, output(0).dtype));
  if (wants(0)) read_by_kernel(waves);
}

}  // namespace

Bytes size(const FxNode& call) {
  if (call.kind == FxKind::Pair || call.kind == FxKind::KernelSet) return {};
  return Bytes{numel(call.shape) * size_of(call.dtype)};
}

FxId base_of(const FxGraph& graph, FxId id) {
  while (graph[id].kind == FxKind::View) id = graph[id].reads[0];
  return id;
}

FxRegion whole_step(const Trace& trace) {
  return {OpId{0}, static_cast<OpId>(trace.ops.size()), {trace.loss}, true};
}

FxRegion region_of(const Trace& trace, const Block& block) {
  FxRegion region{block.begin, block.end, {}};
  std::vector<bool> is_made(trace.tensors.size());
  for (std::size_t i = index(block.begin); i < index(block.end); ++i)
    for (const TensorId output : trace.outputs(trace.ops[i])) is_made[index(output)] = true;
  for (std::size_t i = index(block.end); i < trace.ops.size(); ++i)
    for (const TensorId input : trace.inputs(trace.ops[i]))
      if (input != no_tensor && is_made[index(input)]) {
        region.outputs.push_back(input);
        is_made[index(input)] = false;
      }
  return region;
}

FxGraph fx_graph_of(const Trace& trace, const FxRegion& region) {
  return FxTracer(trace, region).run();
}

}  // namespace tidemark
