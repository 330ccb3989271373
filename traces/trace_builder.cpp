// Appends each op with the casts, copies and kept tensors that the step's framework adds.
#include "traces/trace_builder.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <utility>

#include "traces/linear_names.h"

namespace tidemark {
namespace {

DType base_dtype_of(Precision precision) {
  return precision == Precision::Bf16 ? DType::BFloat16 : DType::Float32;
}

void require_positive_batch(const StepOptions& options) {
  if (options.batch < 1)
    throw UsageError(fmt::format("batch {} is not positive (use 1 or more)", options.batch));
}

}  // namespace

DType compute_dtype_of(Precision precision) {
  switch (precision) {
    case Precision::AmpFp16:
      return DType::Float16;
    case Precision::AmpBf16:
    case Precision::Bf16:
      return DType::BFloat16;
    case Precision::Fp32:
    case Precision::Tf32:
      break;
  }
  return DType::Float32;
}

bool matches_glob(std::string_view text, std::string_view glob) {
  return ::fnmatch(std::string(glob).c_str(), std::string(text).c_str(), 0) == 0;
}

TraceBuilder::TraceBuilder(std::string model, std::string family, const StepOptions& options)
    : framework_(find_framework(options.framework)),
      autocast_(is_amp(precision_of(options))),
      base_(base_dtype_of(precision_of(options))),
      compute_(compute_dtype_of(precision_of(options))) {
  require_positive_batch(options);
  trace_.model = std::move(model);
  trace_.family = std::move(family);
  trace_.step = options;
  trace_.step.precision = precision_of(options);
}

Shape TraceBuilder::rows(TensorId x) const {
  const Shape s = shape(x);
  return Shape(s.dims().first(s.rank() - 1));
}

// TRL turns dropout off where pairs are compared (disable_dropout, true unless it is told).
double TraceBuilder::dropout_probability(double of_config) const {
  return step().dropout.value_or(scores_pairs(step()) ? 0 : of_config);
}

double TraceBuilder::drop_path_probability(double of_config) const {
  return step().drop_path.value_or(of_config);
}

bool TraceBuilder::is_trainable(std::string_view name, ParameterRole role) const {
  const Tuning& tuning = step().tuning;
  if (role == ParameterRole::Fixed) return false;
  switch (tuning.kind) {
    case Tuning::Kind::Full:
      return true;
    case Tuning::Kind::Lora:
    case Tuning::Kind::LoraFa:
    case Tuning::Kind::Prompt:
    case Tuning::Kind::Prefix:
      return role == ParameterRole::Adapter || role == ParameterRole::Head;
    case Tuning::Kind::Frozen:
      return std::ranges::none_of(
          tuning.targets, [&](const std::string& glob) { return matches_glob(name, glob); });
  }
  return true;
}

namespace {

bool is_random(const InputFill* fill) {
  return !fill || std::holds_alternative<fill::Words>(*fill) ||
         std::holds_alternative<fill::Pixels>(*fill) ||
         std::holds_alternative<fill::ImageClasses>(*fill);
}

}  // namespace

TensorId TraceBuilder::add_external(Tensor tensor) {
  numel(tensor.shape);  // refuses what cannot be counted
  tensor.storage = static_cast<TensorId>(trace_.tensors.size());
  // What means something needs no random numbers: with and without a mask, those of the parameters
  // are the same.
  if (is_random(fill_of(trace_, tensor))) tensor.rng_key = ++random_tensors_;
  trace_.tensors.push_back(tensor);
  return trace_.tensors.back().storage;
}

TensorId TraceBuilder::input(std::string_view name, const Shape& shape, DType dtype,
                             const std::optional<InputFill>& fill) {
  if (const auto given = given_to_reference(name)) return *given;
  const auto id = static_cast<FillId>(trace_.fills.size());
  if (fill) trace_.fills.push_back(*fill);
  return add_external({.name = trace_.names.add(further_token_ + std::string(name)),
                       .shape = shape,
                       .dtype = dtype,
                       .category = Category::Input,
                       .fill = fill ? id : no_fill});
}

TensorId TraceBuilder::parameter(std::string_view name, const Shape& shape, ParameterRole role) {
  if (!is_copied(name, role)) return parameter_of(name, shape, base_, role);
  const TensorId original = parameter_of(name_of_original(name), shape, base_, ParameterRole::Base);
  const TensorId copy = parameter_of(name, shape, base_, ParameterRole::Head);
  copied_.push_back({original, copy});
  return copy;
}

TensorId TraceBuilder::parameter_of(std::string_view name, const Shape& shape, DType dtype,
                                    ParameterRole role) {
  if (in_reference_) return reference_parameter(name, shape, dtype);
  if (!further_token_.empty())
    if (const std::optional<TensorId> known = tensor_called(name)) return *known;
  const bool trainable = is_trainable(name, role);
  return add_external({.name = trace_.names.add(name),
                       .shape = shape,
                       .dtype = dtype,
                       .category = Category::Parameter,
                       .trainable = trainable});
}

void TraceBuilder::begin_block(std::string_view name, TensorId input, int stack, int segment) {
  if (in_reference_) return;
  CHECK(block_ < 0);
  block_ = static_cast<std::int32_t>(trace_.blocks.size());
  const auto begin = static_cast<OpId>(trace_.ops.size());
  trace_.blocks.push_back({.name = trace_.names.add(name_in_model(std::string(name))),
                           .begin = begin,
                           .end = begin,
                           .input = input,
                           .stack = stack,
                           .segment = segment,
                           .is_further = !further_token_.empty()});
}

void TraceBuilder::end_block() {
  if (in_reference_) return;
  CHECK(block_ >= 0);
  trace_.blocks.back().end = static_cast<OpId>(trace_.ops.size());
  block_ = -1;
  part_ = Part::None;
  hold_until_here(std::exchange(of_stack_, std::exchange(of_next_, {})));
}

// What a block was called with has a name outside of it.
TensorId TraceBuilder::local(TensorId x) {
  const bool is_given =
      block_ >= 0 && (trace_.blocks.back().begin == static_cast<OpId>(trace_.ops.size()) ||
                      trace_[x].storage < trace_.outputs(trace_[trace_.blocks.back().begin])[0]);
  if (framework_.holds_locals && !first_local_.empty() && !is_given) locals_.push_back(x);
  return x;
}

TensorId TraceBuilder::next_local(TensorId before, TensorId x) {
  const auto named = std::ranges::find(locals_, before);
  if (named == locals_.end()) return local(x);
  hold_until_here(std::array{before});
  *named = x;
  return x;
}

TensorId TraceBuilder::local_of_caller(TensorId x) {
  if (!framework_.holds_locals || first_local_.size() < 2) return x;
  const auto own = locals_.begin() + static_cast<std::ptrdiff_t>(first_local_.back()++);
  locals_.insert(own, x);
  return x;
}

TensorId TraceBuilder::local_of_stack(TensorId x) {
  if (framework_.holds_locals && block_ >= 0) of_next_.push_back(x);
  return x;
}

void TraceBuilder::hold_until_here(std::span<const TensorId> tensors) {
  const auto last = static_cast<OpId>(trace_.ops.size() - 1);
  for (const TensorId x : tensors) trace_.tensors[index(trace_[x].storage)].held_until = last;
}

void TraceBuilder::end_function() {
  hold_until_here(std::span(locals_).subspan(first_local_.back()));
  locals_.resize(first_local_.back());
  first_local_.pop_back();
  if (block_ < 0) hold_until_here(std::exchange(of_stack_, {}));  // the stack's own
  if (first_local_.empty()) hold_until_here(std::exchange(cached_, {}));
}

TensorId TraceBuilder::emit(OpKind kind, const std::string& name, std::span<const TensorId> inputs,
                            std::span<const OutputSpec> outputs,
                            std::span<const Attribute> attributes) {
  Op op{
      .name = trace_.names.add(name_in_model(name)), .kind = kind, .part = part_, .block = block_};
  op.inputs = static_cast<std::uint16_t>(inputs.size());
  op.outputs = static_cast<std::uint16_t>(outputs.size());
  op.attributes = static_cast<std::uint16_t>(attributes.size());
  op.first_operand = static_cast<std::uint32_t>(trace_.operands.size());
  op.first_attribute = static_cast<std::uint32_t>(trace_.attributes.size());
  if (row_of(kind).is_random) op.rng_key = trace_.ops.size() + 1;
  trace_.operands.insert(trace_.operands.end(), inputs.begin(), inputs.end());
  const auto first = static_cast<TensorId>(trace_.tensors.size());
  for (const OutputSpec& output : outputs) {
    const auto id = static_cast<TensorId>(trace_.tensors.size());
    numel(output.shape);
    trace_.tensors.push_back(
        {.name = output.suffix.empty()
                     ? op.name
                     : trace_.names.add(name_in_model(name) + "." + std::string(output.suffix)),
         .shape = output.shape,
         .dtype = output.dtype,
         .storage = output.over == no_tensor ? id : trace_[output.over].storage});
    trace_.operands.push_back(id);
  }
  trace_.attributes.insert(trace_.attributes.end(), attributes.begin(), attributes.end());
  trace_.ops.push_back(op);
  return first;
}

// "norm1.cast", then "norm1.cast2": each reader casts for itself.
std::string TraceBuilder::cast_name(TensorId x) {
  if (casts_.size() <= index(x)) casts_.resize(trace_.tensors.size());
  const int casts = ++casts_[index(x)];
  return trace_[x].name + (casts == 1 ? ".cast" : ".cast" + std::to_string(casts));
}

// Autocast reads 16-bit operands: trained weights are cast once per step; activations, frozen
// weights and views of any at each use (cached_cast() of aten/src/ATen/autocast_mode.cpp caches
// leaves that require a gradient). Falcon's blocks multiply by views: FalconLinear takes weight.T.
TensorId TraceBuilder::to_compute(TensorId x) {
  const Tensor& tensor = trace_[x];
  if (!framework_.autocast_casts || tensor.dtype == compute_ || !is_floating(tensor.dtype))
    return x;
  const bool is_leaf = trace_.family != "falcon" || block_ < 0;
  if (!is_leaf || (!tensor.trainable && !is_of_second_model(x)))
    return cast(cast_name(x), x, compute_);
  if (weight_casts_.size() <= index(x)) weight_casts_.resize(trace_.tensors.size(), no_tensor);
  if (weight_casts_[index(x)] == no_tensor) {
    const TensorId copy = cast(tensor.name + ".cast", x, compute_);
    weight_casts_[index(x)] = copy;
  }
  return weight_casts_[index(x)];
}

TensorId TraceBuilder::linear(const std::string& name, TensorId x, std::int64_t out, bool bias,
                              ParameterRole role) {
  const std::int64_t in = shape(x).back();
  Adapter adapter;
  TensorId y = no_tensor;
  if (step().base && role == ParameterRole::Base) {
    y = stored_linear(name, x, out, bias);
  } else {
    adapter.weight = parameter(name + ".weight", {out, in}, role);
    if (bias) adapter.bias = parameter(name + ".bias", {out}, role);
    y = multiplies_codes(in, out, role) ? coded_linear(name, x, adapter.weight, adapter.bias)
                                        : linear_with(name, x, adapter.weight, adapter.bias);
  }
  return adapted(name, leaf_of(name), x, y, adapter);
}

TensorId TraceBuilder::linear_with(const std::string& name, TensorId x, TensorId weight,
                                   TensorId bias) {
  const Shape result = shape(x).with_back(shape(weight)[0]);
  const DType stated = trace_[weight].dtype;
  if (!autocast_ && stated != base_)  // an adapter's, which reads its own dtype
    return bias == no_tensor
               ? emit(OpKind::Linear, name, {x, weight}, {{"", result, stated}})
               : emit(OpKind::Linear, name, {x, weight, bias}, {{"", result, stated}});
  begin_function();
  const TensorId x16 = to_compute(x);
  if (x16 != x) local(x);  // the argument of a call that has not returned
  const TensorId w16 = to_compute(weight);
  const TensorId y =
      bias == no_tensor
          ? emit(OpKind::Linear, name, {x16, w16}, {{"", result, compute_}})
          : emit(OpKind::Linear, name, {x16, w16, to_compute(bias)}, {{"", result, compute_}});
  end_function();
  return y;
}

TensorId TraceBuilder::matmul(const std::string& name, TensorId a, TensorId b) {
  const Shape result = shape(a).with_back(shape(b).back());
  const TensorId a16 = to_compute(a);
  const TensorId b16 = to_compute(b);
  return emit(OpKind::MatMul, name, {a16, b16}, {{"", result, compute_}});
}

TensorId TraceBuilder::product(const std::string& name, TensorId a, TensorId b) {
  const Shape result = shape(a).with_back(shape(b).back());
  return emit(OpKind::MatMul, name, {a, b}, {{"", result, trace_[a].dtype}});
}

TensorId TraceBuilder::conv2d(const std::string& name, TensorId x, const Shape& output,
                              std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                              std::int64_t groups, bool bias) {
  const std::int64_t in = shape(x)[1], out = output[1];
  const TensorId weight = parameter(name + ".weight", {out, in / groups, kernel, kernel});
  const TensorId b = bias ? parameter(name + ".bias", {out}) : no_tensor;
  std::vector<TensorId> inputs = {to_compute(x), to_compute(weight)};
  if (bias) inputs.push_back(to_compute(b));
  const OutputSpec result{"", output, compute_};
  const std::array attributes = {Attribute{AttributeKey::Stride, static_cast<double>(stride)},
                                 Attribute{AttributeKey::Padding, static_cast<double>(padding)},
                                 Attribute{AttributeKey::Groups, static_cast<double>(groups)}};
  const TensorId y = emit(OpKind::Conv2d, name, inputs, std::span(&result, 1), attributes);
  // The node holds both operands, also the one whose partner needs no gradient.
  if (framework_.keeps_statistics) last_op().also_keeps |= input_bit(0) | input_bit(1);
  return y;
}

TensorId TraceBuilder::flash_attention(const std::string& name, TensorId q, TensorId k, TensorId v,
                                       bool causal, TensorId bias, std::int64_t window,
                                       const FusedKernel& kernel) {
  const Shape result = shape(q).with_back(shape(v).back());
  std::vector<TensorId> inputs = {to_compute(q), to_compute(k), to_compute(v)};
  if (bias != no_tensor) inputs.push_back(to_compute(bias));
  // kAlignLSE of mem_eff_attention/kernel_forward.h
  constexpr std::int64_t unit = 32;
  Shape sums = rows(q);
  if (kernel.memory_efficient) sums = sums.with_back(round_up(sums.back(), unit));
  const std::array outputs = {OutputSpec{"", result, compute_},
                              OutputSpec{"lse", sums, DType::Float32}};
  std::vector<Attribute> attributes;
  if (causal) attributes.push_back({AttributeKey::Causal, 1});
  if (window > 0) attributes.push_back({AttributeKey::Window, static_cast<double>(window)});
  if (kernel.factor != 1) attributes.push_back({AttributeKey::Factor, kernel.factor});
  if (kernel.memory_efficient) attributes.push_back({AttributeKey::MemoryEfficient, 1});
  return emit(OpKind::FlashAttention, name, inputs,
              std::span(outputs).first(framework_.keeps_statistics ? 2 : 1), attributes);
}

TensorId TraceBuilder::opaque(const std::string& name, std::span<const TensorId> inputs,
                              std::span<const OutputSpec> outputs, OpaqueRow row,
                              std::span<const Attribute> attributes) {
  const TensorId first = emit(OpKind::Opaque, name, inputs, outputs, attributes);
  last_op().opaque = static_cast<OpaqueId>(trace_.opaque_rows.size());
  trace_.opaque_rows.push_back(std::move(row));
  return first;
}

Trace TraceBuilder::finish(TensorId loss) {
  CHECK(block_ < 0);
  trace_.loss = loss;
  end_autocast();
  constexpr std::int64_t limit = std::int64_t{1} << 58;
  std::int64_t total = 0;
  for (const Tensor& tensor : trace_.tensors) {
    total += size(tensor).count;
    if (total > limit)
      throw InputError(fmt::format(
          "{}: the tensors of one step sum to more than 2^58 bytes at '{}'; use a smaller batch, "
          "sequence or model",
          trace_.model, tensor.name));
  }
  return std::move(trace_);
}

}  // namespace tidemark
