// Each kind of op, call by call. Sources, of PyTorch 2.6: torch/_inductor/decomposition.py,
// torch/_decomp/decompositions.py, torch/_refs/nn/functional, and joint graphs that Inductor was
// given (scripts/capture_steps/compiled.py --draw).
#include "simulator/compiled/fx_graph.h"

#include <fmt/format.h>

#include <initializer_list>
#include <map>

#include "base/error.h"
#include "traces/trace_builder.h"

namespace tidemark {
namespace {

constexpr std::string_view casts = "convert_element_type";

class FxTracer {
 public:
  explicit FxTracer(const Trace& trace) : trace_(trace), has_gradient_(requires_gradient(trace)) {
    graph_.by_tensor.assign(trace.tensors.size(), no_fx);
  }

  FxGraph run() && {
    for (std::size_t i = 0; i < trace_.ops.size(); ++i) {
      op_ = static_cast<OpId>(i);
      wanted_ = inputs_with_gradient(trace_, op(), has_gradient_);
      call();
    }
    fold_casts();
    return std::move(graph_);
  }

 private:
  const Op& op() const { return trace_[op_]; }
  bool wants(int input) const { return (wanted_ >> input & 1) != 0; }
  bool has_input(int i) const { return i < op().inputs && operand(trace_, op(), i) != no_tensor; }
  const Tensor& output(int i) const { return trace_[operand(trace_, op(), 16 + i)]; }
  const FxNode& operator[](FxId id) const { return graph_[id]; }

  FxId input(int i) {
    const TensorId tensor = operand(trace_, op(), i);
    FxId& value = graph_.by_tensor[index(tensor)];
    if (value == no_fx) value = external(tensor);
    return value;
  }

  FxId external(TensorId id) {
    const Tensor& tensor = trace_[id];
    if (tensor.storage != id) {
      FxId& whole = graph_.by_tensor[index(tensor.storage)];
      if (whole == no_fx) whole = external(tensor.storage);
    }
    const FxNode call{
        .kind = FxKind::Input, .shape = tensor.shape, .dtype = tensor.dtype, .tensor = id};
    if (const InputFill* fill = fill_of(trace_, tensor))
      if (const FxId made = made_here(*fill, tensor); made != no_fx) {
        graph_.calls[index(made)].tensor = id;
        return made;
      }
    graph_.calls.push_back(call);
    return last();
  }

  // What eager code makes once, or beside the step, is a part of the graph: constants, masks (which
  // cost nothing to make again) and rotary tables, of which the angles are a product.
  FxId made_here(const InputFill& fill, const Tensor& tensor) {
    if (const auto* constant = std::get_if<fill::Constant>(&fill))
      return full(constant->value, tensor);
    if (std::holds_alternative<fill::CausalMask>(fill) ||
        std::holds_alternative<fill::PaddingMask>(fill))
      return pointwise(fmt::format("mask {}", tensor.name), {}, tensor.shape, tensor.dtype, "mask");
    const auto* table = std::get_if<fill::RotaryTable>(&fill);
    if (!table) return no_fx;
    const Shape half = tensor.shape.with_back(tensor.shape.back() / 2);
    const FxId angles = kernel(fmt::format("bmm {} {}", table->rotary.theta, table->rotary.factor),
                               {}, half, DType::Float32, FxKind::Kernel, "angles");
    const FxId both = pointwise("repeat", {angles}, tensor.shape, DType::Float32);
    return cast(pointwise(fmt::format("wave {}", static_cast<int>(table->wave)), {both}, "wave"),
                tensor.dtype);
  }

  FxId full(double value, const Tensor& like) {
    return pointwise(fmt::format("full {}", value), {}, like.shape, like.dtype, "full");
  }

  FxId last() const { return static_cast<FxId>(graph_.calls.size() - 1); }

  // What the same call has made before is not made again (fx_graph_cse), unless it is random.
  FxId add(std::string_view name, FxNode call) {
    call.op = op_;
    std::string key = fmt::format("{} {} {}", name, to_text(call.shape), to_string(call.dtype));
    for (const FxId read : call.reads) key += fmt::format(" {}", index(read));
    if (!call.is_random) {
      const auto [place, is_new] = known_.emplace(std::move(key), no_fx);
      if (!is_new) return place->second;
      place->second = static_cast<FxId>(graph_.calls.size());
    }
    graph_.calls.push_back(std::move(call));
    return last();
  }

  FxId pointwise(std::string_view name, std::initializer_list<FxId> reads, const Shape& shape,
                 DType dtype, std::string_view suffix = {}) {
    return add(name, {.kind = FxKind::Pointwise,
                      .shape = shape,
                      .dtype = dtype,
                      .reads = reads,
                      .suffix = suffix.empty() ? name : suffix});
  }
  /// Of the first operand's shape and dtype.
  FxId pointwise(std::string_view name, std::initializer_list<FxId> reads,
                 std::string_view suffix = {}) {
    const FxNode& first = (*this)[*reads.begin()];
    return pointwise(name, reads, Shape(first.shape), first.dtype, suffix);
  }
  FxId cast(FxId x, DType dtype) {
    if ((*this)[x].dtype == dtype) return x;
    return pointwise(casts, {x}, Shape((*this)[x].shape), dtype);
  }
  FxId cast(FxId x, FxId as) { return cast(x, (*this)[as].dtype); }
  /// One number per row of x.
  FxId reduced(std::string_view name, FxId x, std::string_view suffix = {}) {
    return pointwise(name, {x}, (*this)[x].shape.with_back(1), (*this)[x].dtype, suffix);
  }
  FxId view(std::string_view name, FxId x, const Shape& shape) {
    return add(name, {.kind = FxKind::View,
                      .shape = shape,
                      .dtype = (*this)[x].dtype,
                      .reads = {x},
                      .suffix = "view"});
  }
  FxId kernel(std::string_view name, std::vector<FxId> reads, const Shape& shape, DType dtype,
              FxKind kind = FxKind::Kernel, std::string_view suffix = {}) {
    return add(name, {.kind = kind,
                      .shape = shape,
                      .dtype = dtype,
                      .reads = std::move(reads),
                      .suffix = suffix});
  }
  FxId element(std::string_view name, FxId of, const Shape& shape, DType dtype) {
    return add(name, {.kind = FxKind::Element,
                      .shape = shape,
                      .dtype = dtype,
                      .reads = {of},
                      .suffix = name == "mean" ? name : std::string_view()});
  }
  FxId random(const Shape& shape) {
    return add(
        "inductor_random",
        {.kind = FxKind::Kernel, .shape = shape, .suffix = "inductor_random", .is_random = true});
  }
  static Shape stacked(const Shape& s) {
    const std::int64_t rows = s[s.rank() - 2], matrix = rows * s.back();
    return {numel(s) / matrix, rows, s.back()};
  }
  FxId stacked(FxId x) { return view("view", x, stacked((*this)[x].shape)); }
  /// In the backward, of forward values alone.
  FxId later(std::string_view name, FxId x, DType dtype) {
    const std::size_t known = graph_.calls.size();
    const FxId made = pointwise(name, {x}, Shape((*this)[x].shape), dtype);
    if (index(made) == known) graph_.calls.back().in_backward = true;
    return made;
  }

  // A cast of a cast is one of what that read, if nobody else reads it: so values that were rounded
  // for a call in 16 bits, and then widened inside of it, are not (pointless_convert of
  // torch/_inductor/fx_passes/joint_graph.py).
  void fold_casts() {
    std::vector<std::size_t> readers(graph_.calls.size());
    for (const FxNode& call : graph_.calls)
      for (const FxId read : call.reads) ++readers[index(read)];
    for (const BackwardRead& read : graph_.backward) ++readers[index(read.value)];
    for (const FxId value : cast_again_) ++readers[index(value)];
    for (FxNode& call : graph_.calls) {
      if (call.suffix != casts || call.in_backward || !is_floating(call.dtype)) continue;
      FxNode& inner = graph_.calls[index(call.reads[0])];
      if (inner.suffix != casts || readers[index(call.reads[0])] > 1 ||
          !is_floating((*this)[inner.reads[0]].dtype))
        continue;
      inner.dtype = call.dtype;
      inner.tensor = no_tensor;
      call.kind = FxKind::View;
    }
  }

  // Of an op that widens its input, whose backward does so by itself: the same call, but Inductor
  // looks at casts of casts before it finds that.
  FxId widened_input() {
    if (wants(0)) cast_again_.push_back(input(0));
    return cast(input(0), DType::Float32);
  }

  // AOTAutograd traces the backward where the model is called, so that under autocast its products
  // are in 16 bits even where those of the forward, inside of an attention, are not.
  FxId as_autocast_reads(FxId x) {
    const Precision precision = trace_.step.precision.value_or(Precision::Fp32);
    const DType dtype = compute_dtype_of(precision);
    if (!is_amp(precision) || (*this)[x].dtype == dtype) return x;
    return later(casts, view("permute", x, Shape((*this)[x].shape)), dtype);
  }

  void read(FxId value) { graph_.backward.push_back({value, op_, false}); }
  void read_by_kernel(FxId value) { graph_.backward.push_back({value, op_, true}); }

  void make(int i, FxId value) {
    const TensorId tensor = operand(trace_, op(), 16 + i);
    graph_.by_tensor[index(tensor)] = value;
    TensorId& known = graph_.calls[index(value)].tensor;
    if (known == no_tensor) known = tensor;
  }

  std::string with_attributes(std::string name) const {
    for (const Attribute& attribute : trace_.attributes_of(op()))
      name += fmt::format(" {}={}", static_cast<int>(attribute.key), attribute.value);
    return name;
  }

  void call();
  void views();
  void embedding();
  void linear();
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
  void moved(std::string_view name, FxKind kind);
  void from_output(std::string_view name);

  const Trace& trace_;
  std::vector<std::uint8_t> has_gradient_;
  OpId op_{};
  std::uint32_t wanted_ = 0;
  FxGraph graph_;
  std::vector<FxId> cast_again_;
  std::map<std::string, FxId> known_;
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
      return rope();
    case OpKind::MsLayerNorm:
    case OpKind::MsRmsNorm:
    case OpKind::ReGelu2:
    case OpKind::ReSilu2:
    case OpKind::Average:
    case OpKind::MaxPool:
    case OpKind::Replicate:
    case OpKind::AllReduce:
    case OpKind::AllGather:
    case OpKind::ReduceScatter:
    case OpKind::Scatter:
    case OpKind::Receive:
    case OpKind::Send:
    case OpKind::VocabularyLoss:
      break;
    case OpKind::Opaque:
      if (opaque_row(trace_, op())->computes != Formula::Zeros) break;
      return make(0, full(0, output(0)));
  }
  throw UsageError(fmt::format(
      "--framework {}: what torch.compile makes of {}, {}, is not known here (capture "
      "the compiled step: tidemark capture --help; or plan the eager one: --framework {})",
      trace_.step.framework, op().name, operation_name(trace_, op()), default_framework));
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
              .suffix = name};
  make(0, op().kind == OpKind::Cast ? cast(input(0), output(0).dtype)
                                    : add(with_attributes(std::string(name)), std::move(call)));
}

void FxTracer::from_output(std::string_view name) {
  const FxId y = cast(pointwise(name, {cast(input(0), DType::Float32)}), output(0).dtype);
  make(0, y);
  if (wants(0)) read(y);
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
    if (wanted_ != 0) read_by_kernel(value);
  }
  if (wanted_ != 0)
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

}  // namespace

Bytes size(const FxNode& call) {
  if (call.kind == FxKind::Pair || call.kind == FxKind::KernelSet) return {};
  return Bytes{numel(call.shape) * size_of(call.dtype)};
}

FxId base_of(const FxGraph& graph, FxId id) {
  while (graph[id].kind == FxKind::View) id = graph[id].reads[0];
  return id;
}

FxGraph fx_graph_of(const Trace& trace) { return FxTracer(trace).run(); }

}  // namespace tidemark
