// Linears that multiply in eight bits: Transformer Engine's, and those of torchao 0.9 and 0.18,
// eagerly (float8/float8_linear.py, float8_scaling_utils.py, float8_ops.py): each operand of each
// product is cast when it is needed, with the one factor that its largest number gives.
#include "traces/fp8_linear.h"

#include <fmt/format.h>

#include <algorithm>

#include "traces/engine_linear.h"
#include "traces/trace_builder.h"

namespace tidemark {
namespace {

constexpr std::int64_t unit = 16;  // of every side of a product: torch._scaled_mm asks for it

/// Elements and bytes of one linear, and which tensors are there one after the other.
struct Sizes {
  std::int64_t x, w, y;       // elements; as codes, bytes
  std::int64_t wide, stored;  // bytes per element of x and y; of the weight

  /// Of a cast: |t|; then t · factor in fp32, that clamped, and the codes.
  static std::int64_t casting(std::int64_t elements, std::int64_t size) {
    constexpr std::int64_t two_in_fp32_and_codes = 4 + 4 + 1;
    return elements * std::max(size, two_in_fp32_and_codes);
  }
};

/// What a pass has at once at most, and at most beside a product, which has scratch.
struct Peak {
  std::int64_t tensors = 0, with_scratch = 0;

  void see(std::int64_t bytes) { tensors = std::max(tensors, bytes); }
  void see_product(std::int64_t bytes) {
    see(bytes);
    with_scratch = std::max(with_scratch, bytes + float8_product_scratch.count);
  }
  void put_into(OpaquePass& pass, std::int64_t results) const {
    pass.workspace = Bytes{std::max<std::int64_t>(0, tensors - results)};
    pass.scratch = Bytes{std::max<std::int64_t>(0, with_scratch - results - pass.workspace.count)};
  }
};

Peak peak_of_forward(const Sizes& s, bool keeps_weight) {
  Peak peak;
  if (keeps_weight) {  // the weight is cast by the module, before x
    peak.see(Sizes::casting(s.w, s.stored));
    peak.see(s.w + Sizes::casting(s.x, s.wide));
  } else {
    peak.see(Sizes::casting(s.x, s.wide));
    peak.see(s.x + Sizes::casting(s.w, s.stored));
  }
  peak.see_product(s.w + s.x + s.y * s.wide);
  return peak;
}

// Codes of dy are made for each product, and variables name all codes until both are done. Where
// rows and columns do not lie as cuBLASLt reads them, codes are copied: the weight's for dx, both
// operands' for dW.
Peak peak_of_backward(const Sizes& s, bool keeps_weight) {
  Peak peak;
  const std::int64_t dx = s.x * s.wide, dw = s.w * s.wide;
  std::int64_t codes = 0;
  peak.see(Sizes::casting(s.y, s.wide));
  codes += s.y;
  if (!keeps_weight) {
    peak.see(codes + Sizes::casting(s.w, s.stored));
    codes += s.w;
  }
  peak.see_product(codes + s.w + dx);
  peak.see(codes + dx + Sizes::casting(s.y, s.wide));
  codes += s.y;
  peak.see(codes + dx + Sizes::casting(s.x, s.wide));
  codes += s.x;
  peak.see_product(codes + dx + s.y + s.x + dw);
  if (s.stored != s.wide) peak.see(dx + dw + s.w * s.stored);  // autograd casts dW
  return peak;
}

/// The kernels of casts: |t|, its largest, the number to fp64 and back with three kernels between;
/// then t to fp32, times the factor, clamped, and to codes.
struct Casts {
  std::int64_t moved = 0;
  int kernels = 0;

  void add(std::int64_t elements, std::int64_t size, int times = 1) {
    constexpr std::int64_t of_fp32 = 8 + 8 + 5;
    const bool widens = size != size_of(DType::Float32);
    moved += times * elements * (3 * size + of_fp32 + (widens ? size + 4 : 0));
    kernels += times * (widens ? 11 : 10);
  }
  void add_copy(std::int64_t bytes) { moved += 2 * bytes, ++kernels; }
};

OpaqueRow row_of_linear(const Sizes& s, std::int64_t rows, bool keeps_weight, bool trains) {
  OpaqueRow row{.operation = std::string(float8_linear_operation),
                .gradients = 0b11,
                .saved = input_bit(0),
                .math = DType::Float8};
  row.saved |= keeps_weight ? output_bit(1) | output_bit(2) : input_bit(1);
  constexpr int per_product = 3;  // the reciprocals of both factors, and itself
  Casts forward, backward;
  forward.add(s.w, s.stored), forward.add(s.x, s.wide);
  backward.add(s.y, s.wide, 2), backward.add(s.x, s.wide);
  if (!keeps_weight) backward.add(s.w, s.stored);
  for (const std::int64_t copied : {s.w, s.y, s.x}) backward.add_copy(copied);
  if (s.stored != s.wide) backward.add_copy(s.w * (s.stored + s.wide) / 2);
  row.forward.flops = 2 * rows * s.w, row.backward.flops = 4 * rows * s.w;
  row.forward.moved = Bytes{s.x + s.w + s.y * s.wide};
  row.backward.moved = Bytes{2 * s.y + s.w + s.x + (s.x + s.w) * s.wide};
  row.forward.streamed = Bytes{forward.moved}, row.backward.streamed = Bytes{backward.moved};
  row.forward.kernels = forward.kernels + per_product;
  row.backward.kernels = backward.kernels + 2 * per_product;
  peak_of_forward(s, keeps_weight).put_into(row.forward, s.y * s.wide + (keeps_weight ? s.w : 0));
  // The weight's gradient is made even where it is frozen.
  peak_of_backward(s, keeps_weight)
      .put_into(row.backward, s.x * s.wide + (trains ? s.w * s.stored : 0));
  return row;
}

// torch._scaled_mm's own condition.
void require_units(std::int64_t rows, std::string_view name) {
  if (rows % unit != 0)
    throw UsageError(
        fmt::format("--linears: eight-bit products take rows in multiples of {}, but {} has {} "
                    "(another --batch "
                    "or size makes it one)",
                    unit, name, rows));
}

// Elements and bytes of a linear of a trace.
Sizes sizes_of(const Tensor& x, const Tensor& weight, const Tensor& y) {
  return {.x = numel(x.shape),
          .w = numel(weight.shape),
          .y = numel(y.shape),
          .wide = size_of(y.dtype),
          .stored = size_of(weight.dtype)};
}

}  // namespace

void recount_float8_linears(Trace& trace) {
  for (const Op& op : trace.ops) {
    if (!is_float8_linear(trace, op)) continue;
    const Tensor &x = trace[trace.inputs(op)[0]], &weight = trace[trace.inputs(op)[1]];
    const std::int64_t rows = numel(x.shape) / x.shape.back();
    require_units(rows, op.name);
    trace.opaque_rows[index(op.opaque)] = row_of_linear(
        sizes_of(x, weight, trace[trace.outputs(op)[0]]), rows, op.outputs > 1, weight.trainable);
  }
}

bool is_float8_linear(const Trace& trace, const Op& op) {
  const OpaqueRow* row = opaque_row(trace, op);
  return row && row->operation == float8_linear_operation;
}

bool TraceBuilder::is_at_wide_end() const {
  const CodedLinears& linears = *step().linears;
  if (linears.first + linears.last == 0 || block_ < 0) return false;
  if (depth_ == 0)
    throw UsageError(fmt::format(
        "--linears: which blocks of {} are first and last is not known (leave first and last out)",
        trace_.model));
  if (linears.first + linears.last >= depth_)
    throw UsageError(fmt::format("--linears {}: the model has {} blocks, of which none is left",
                                 to_text(linears), depth_));
  return block_ < linears.first || block_ >= depth_ - linears.last;
}

// What predicts further tokens leaves out four bits, and counts as neither first nor last
// (multi_token_prediction.py).
bool TraceBuilder::multiplies_codes() const {
  if (!step().linears) return false;
  if (further_token_.empty()) return !is_at_wide_end();
  return !is_further_plain_ && step().linears->math != LinearMath::NvFp4;
}

bool TraceBuilder::multiplies_codes(std::int64_t in, std::int64_t out, ParameterRole role) const {
  return role == ParameterRole::Base && multiplies_codes(in, out);
}

bool TraceBuilder::multiplies_codes(std::int64_t in, std::int64_t out) const {
  if (!multiplies_codes()) return false;
  const std::int64_t group = engine_codes(step().linears->math).group;
  return in % group == 0 && out % group == 0;
}

void TraceBuilder::refuse_codes(std::string_view linears) const {
  if (step().linears)
    throw UsageError(fmt::format("--linears: not known of {} (leave it out)", linears));
}

TensorId TraceBuilder::engine_product(const std::string& name, TensorId x, TensorId weight) {
  const Shape stored = shape(weight);
  const bool is_of_experts = stored.rank() == 3;
  const std::int64_t rows = numel(shape(x)) / shape(x).back(),
                     unit = rows_of_codes(step().linears->math);
  if (rows % unit != 0 && !is_of_experts)  // whose rows are filled up (moe_router_padding)
    throw UsageError(fmt::format(
        "--linears {}: products take rows in multiples of {}, but {} has {} (another --batch or "
        "size makes it one)",
        to_string(step().linears->math), unit, name, rows));
  const EngineCodes& math = engine_codes(step().linears->math);
  const TensorId codes = input(
      trace_[weight].name + ".codes",
      stored.with_back(copies_of_codes(step()) * coded_bytes(math, stored.back())), math.dtype);
  trace_.tensors[index(codes)].category = Category::Workspace;
  const TensorId read = to_compute(x);
  const Shape result = shape(x).with_back(is_of_experts ? stored.back() : stored[0]);
  const Shape of_x = shape(x).with_back(coded_bytes(math, shape(x).back()));
  const std::array outputs = {OutputSpec{"", result, compute_},
                              OutputSpec{"codes", of_x, math.dtype}};
  return opaque(
      name, std::array{read, weight, codes}, outputs,
      engine_product_row(
          step(), {.x = shape(x), .weight = stored, .y = result, .wide = size_of(compute_)}));
}

TensorId TraceBuilder::coded_linear(const std::string& name, TensorId x, TensorId weight,
                                    TensorId bias) {
  if (framework_.transformer_engine) {
    const TensorId y = engine_product(name, x, weight);
    return bias == no_tensor ? y : add(name + ".add", y, bias);
  }
  if (trace_.family == "gpt2")
    refuse_codes("GPT-2's projections, Conv1D modules that torchao does not convert");
  const Sizes sizes{.x = numel(shape(x)),
                    .w = numel(shape(weight)),
                    .y = numel(shape(x)) / shape(x).back() * shape(weight)[0],
                    .wide = size_of(compute_),
                    .stored = size_of(base_)};
  const std::int64_t rows = sizes.x / shape(x).back();
  require_units(rows, name);
  const bool keeps_weight = framework_.fp8_weight == Fp8Weight::Kept;
  begin_function();
  const TensorId read = to_compute(x);
  if (read != x) local(x);  // the argument of a call that has not returned
  const std::array inputs = {read, weight};
  const std::array outputs = {
      OutputSpec{"", shape(x).with_back(shape(weight)[0]), compute_},
      OutputSpec{"codes", shape(weight), DType::Float8},
      OutputSpec{"factor", Shape{}, DType::Float32},
  };
  TensorId y = opaque(name, inputs, std::span(outputs).first(keeps_weight ? 3 : 1),
                      row_of_linear(sizes, rows, keeps_weight, trace_[weight].trainable));
  if (bias != no_tensor) y = add(name + ".add", y, cast(cast_name(bias), bias, compute_));
  end_function();
  return y;
}

}  // namespace tidemark
