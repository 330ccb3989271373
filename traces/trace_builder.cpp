#include "traces/trace_builder.h"

#include <fmt/format.h>

#include <algorithm>

namespace tidemark {
namespace {

std::string_view leaf_of(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

// As in NumPy; where the ranks differ, the first operand's shape is the result's.
Shape broadcast(const Shape& a, const Shape& b) {
  if (a.rank() != b.rank()) return a;
  std::array<std::int64_t, Shape::max_rank> dims{};
  for (std::size_t i = 0; i < a.rank(); ++i) dims[i] = std::max(a[i], b[i]);
  return Shape(std::span<const std::int64_t>(dims).first(a.rank()));
}

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

bool is_adapter(std::string_view op_name) { return op_name.ends_with(".lora_a"); }

bool matches_glob(std::string_view text, std::string_view glob) {
  // Greedy with one backtrack point: linear for one star, and never exponential.
  std::size_t t = 0, g = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (g < glob.size() && glob[g] == '*') {
      star = g++, resume = t;
    } else if (g < glob.size() && glob[g] == text[t]) {
      ++g, ++t;
    } else if (star != std::string_view::npos) {
      g = star + 1, t = ++resume;
    } else {
      return false;
    }
  }
  return glob.find_first_not_of('*', g) == std::string_view::npos;
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

double TraceBuilder::dropout_probability(double of_config) const {
  return step().dropout.value_or(of_config);
}

bool TraceBuilder::is_lora_target(std::string_view leaf) const {
  const Tuning& tuning = step().tuning;
  if (tuning.kind != Tuning::Kind::Lora && tuning.kind != Tuning::Kind::LoraFa) return false;
  return std::ranges::any_of(
      tuning.targets, [&](const std::string& target) { return target == "all" || target == leaf; });
}

bool TraceBuilder::is_trainable(std::string_view name, ParameterRole role) const {
  const Tuning& tuning = step().tuning;
  switch (tuning.kind) {
    case Tuning::Kind::Full:
      return true;
    case Tuning::Kind::Lora:
    case Tuning::Kind::LoraFa:
      return role == ParameterRole::Adapter || role == ParameterRole::Head;
    case Tuning::Kind::Frozen:
      return std::ranges::none_of(
          tuning.targets, [&](const std::string& glob) { return matches_glob(name, glob); });
  }
  return true;
}

TensorId TraceBuilder::input(std::string name, const Shape& shape, DType dtype) {
  const auto id = static_cast<TensorId>(trace_.tensors.size());
  numel(shape);  // refuses what cannot be counted
  trace_.tensors.push_back({.name = std::move(name),
                            .shape = shape,
                            .dtype = dtype,
                            .category = Category::Input,
                            .storage = id});
  return id;
}

TensorId TraceBuilder::parameter(std::string name, const Shape& shape, ParameterRole role) {
  const auto id = static_cast<TensorId>(trace_.tensors.size());
  numel(shape);
  const bool trainable = is_trainable(name, role);
  trace_.tensors.push_back({.name = std::move(name),
                            .shape = shape,
                            .dtype = base_,
                            .category = Category::Parameter,
                            .trainable = trainable,
                            .storage = id});
  return id;
}

void TraceBuilder::begin_block(std::string name, TensorId input, int stack) {
  CHECK(block_ < 0);
  block_ = static_cast<std::int32_t>(trace_.blocks.size());
  const auto begin = static_cast<OpId>(trace_.ops.size());
  trace_.blocks.push_back({std::move(name), begin, begin, input, stack});
}

void TraceBuilder::end_block() {
  CHECK(block_ >= 0);
  trace_.blocks.back().end = static_cast<OpId>(trace_.ops.size());
  block_ = -1;
  part_ = Part::None;
}

TensorId TraceBuilder::local(TensorId x) {
  if (framework_.holds_locals && !first_local_.empty()) locals_.push_back(x);
  return x;
}

void TraceBuilder::end_function() {
  const auto returns_after = static_cast<OpId>(trace_.ops.size() - 1);
  for (std::size_t i = first_local_.back(); i < locals_.size(); ++i)
    trace_.tensors[index(trace_[locals_[i]].storage)].held_until = returns_after;
  locals_.resize(first_local_.back());
  first_local_.pop_back();
}

TensorId TraceBuilder::emit(OpKind kind, const std::string& name, std::span<const TensorId> inputs,
                            std::span<const OutputSpec> outputs,
                            std::span<const Attribute> attributes) {
  Op op{.name = name, .kind = kind, .part = part_, .block = block_};
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
    std::string tensor_name = name;
    if (!output.suffix.empty()) tensor_name.append(".").append(output.suffix);
    trace_.tensors.push_back({.name = std::move(tensor_name),
                              .shape = output.shape,
                              .dtype = output.dtype,
                              .storage = id});
    trace_.operands.push_back(id);
  }
  trace_.attributes.insert(trace_.attributes.end(), attributes.begin(), attributes.end());
  trace_.ops.push_back(std::move(op));
  return first;
}

// "norm1.cast", then "norm1.cast2": each reader casts for itself.
std::string TraceBuilder::cast_name(TensorId x) {
  if (casts_.size() <= index(x)) casts_.resize(trace_.tensors.size());
  const int casts = ++casts_[index(x)];
  return trace_[x].name + (casts == 1 ? ".cast" : ".cast" + std::to_string(casts));
}

// Autocast reads 16-bit operands: activations are cast at each use, weights once per step.
TensorId TraceBuilder::to_compute(TensorId x) {
  const Tensor& tensor = trace_[x];
  if (!framework_.autocast_casts || tensor.dtype == compute_ || !is_floating(tensor.dtype))
    return x;
  if (tensor.category != Category::Parameter) return cast(cast_name(x), x, compute_);
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
  const TensorId weight = parameter(name + ".weight", {out, in}, role);
  const TensorId b = bias ? parameter(name + ".bias", {out}, role) : no_tensor;
  const TensorId y = linear_with(name, x, weight, b);
  return is_lora_target(leaf_of(name)) ? add_lora(name, x, y, out) : y;
}

TensorId TraceBuilder::linear_with(const std::string& name, TensorId x, TensorId weight,
                                   TensorId bias) {
  const Shape result = shape(x).with_back(shape(weight)[0]);
  const TensorId x16 = to_compute(x);
  const TensorId w16 = to_compute(weight);
  if (bias == no_tensor) return emit(OpKind::Linear, name, {x16, w16}, {{"", result, compute_}});
  const TensorId b16 = to_compute(bias);
  return emit(OpKind::Linear, name, {x16, w16, b16}, {{"", result, compute_}});
}

// y + B(A(x)); each projection casts x for itself, as separate modules do under autocast.
TensorId TraceBuilder::add_lora(const std::string& name, TensorId x, TensorId y, std::int64_t out) {
  const Tuning& tuning = step().tuning;
  const auto a_role =
      tuning.kind == Tuning::Kind::Lora ? ParameterRole::Adapter : ParameterRole::FrozenAdapter;
  const TensorId a = parameter(name + ".lora_a.weight", {tuning.rank, shape(x).back()}, a_role);
  const TensorId b = parameter(name + ".lora_b.weight", {out, tuning.rank}, ParameterRole::Adapter);
  const TensorId low = linear_with(name + ".lora_a", x, a);
  const TensorId high = linear_with(name + ".lora_b", low, b);
  const TensorId scaled = scale(name + ".lora_scale", high, 1.0);
  return add(name + ".lora_add", y, scaled);
}

TensorId TraceBuilder::matmul(const std::string& name, TensorId a, TensorId b) {
  const Shape result = shape(a).with_back(shape(b).back());
  const TensorId a16 = to_compute(a);
  const TensorId b16 = to_compute(b);
  return emit(OpKind::MatMul, name, {a16, b16}, {{"", result, compute_}});
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
  return emit(OpKind::Conv2d, name, inputs, std::span(&result, 1), attributes);
}

TensorId TraceBuilder::flash_attention(const std::string& name, TensorId q, TensorId k, TensorId v,
                                       bool causal, TensorId bias, std::int64_t window) {
  const Shape result = shape(q).with_back(shape(v).back());
  std::vector<TensorId> inputs = {to_compute(q), to_compute(k), to_compute(v)};
  if (bias != no_tensor) inputs.push_back(to_compute(bias));
  const std::array outputs = {OutputSpec{"", result, compute_},
                              OutputSpec{"lse", rows(q), DType::Float32}};
  std::vector<Attribute> attributes;
  if (causal) attributes.push_back({AttributeKey::Causal, 1});
  if (window > 0) attributes.push_back({AttributeKey::Window, static_cast<double>(window)});
  return emit(OpKind::FlashAttention, name, inputs,
              std::span(outputs).first(framework_.keeps_statistics ? 2 : 1), attributes);
}

TensorId TraceBuilder::layer_norm(const std::string& name, TensorId x, double epsilon) {
  const std::int64_t width = shape(x).back();
  const TensorId gamma = parameter(name + ".weight", {width});
  const TensorId beta = parameter(name + ".bias", {width});
  const bool upcast = (autocast_ && framework_.norm_writes_fp32) || framework_.norm_reads_fp32;
  const TensorId read =
      upcast && trace_[x].dtype != DType::Float32 ? cast(name + ".upcast", x, DType::Float32) : x;
  DType written = trace_[read].dtype;
  if (!framework_.norm_writes_fp32) written = compute_;
  const Shape row = shape(x).with_back(1);
  const std::array inputs = {read, gamma, beta};
  const std::array outputs = {OutputSpec{"", shape(x), written},
                              OutputSpec{"mean", row, DType::Float32},
                              OutputSpec{"rstd", row, DType::Float32}};
  const Attribute attribute{AttributeKey::Epsilon, epsilon};
  return emit(OpKind::LayerNorm, name, inputs,
              std::span(outputs).first(framework_.keeps_statistics ? 3 : 1),
              std::span(&attribute, 1));
}

TensorId TraceBuilder::rms_norm(const std::string& name, TensorId x, double epsilon) {
  const TensorId gamma = parameter(name + ".weight", {shape(x).back()});
  const DType stream = trace_[x].dtype;
  const TensorId read = stream != DType::Float32 ? cast(name + ".upcast", x, DType::Float32) : x;
  const DType written = framework_.norm_writes_fp32 ? stream : compute_;
  const std::array inputs = {read, gamma};
  const std::array outputs = {OutputSpec{"", shape(x), written},
                              OutputSpec{"rstd", shape(x).with_back(1), DType::Float32},
                              OutputSpec{"normalized", shape(x), stream}};
  const std::size_t kept = !framework_.keeps_statistics ? 1 : framework_.composed_rms_norm ? 3 : 2;
  const Attribute attribute{AttributeKey::Epsilon, epsilon};
  return emit(OpKind::RmsNorm, name, inputs, std::span(outputs).first(kept),
              std::span(&attribute, 1));
}

TensorId TraceBuilder::gelu(const std::string& name, TensorId x, bool tanh_form) {
  if (tanh_form && framework_.composed_gelu_tanh) {
    // pow() is on autocast's fp32 list, and all but x/2 follows from it.
    const Shape s = shape(x);
    const DType stated = trace_[x].dtype;
    const TensorId cubed = autocast_ ? cast(name + ".upcast", x, DType::Float32) : x;
    const DType dtype = trace_[cubed].dtype;
    return emit(OpKind::GeluComposed, name, {cubed},
                {{"", s, dtype}, {"tanh", s, dtype}, {"half", s, stated}, {"one_plus", s, dtype}},
                {{AttributeKey::TanhApprox, 1}});
  }
  const bool upcast = autocast_ && framework_.gelu_is_fp32 && trace_[x].dtype != DType::Float32;
  const TensorId read = upcast ? cast(name + ".upcast", x, DType::Float32) : x;
  const OutputSpec result{"", shape(x), trace_[read].dtype};
  const Attribute attribute{AttributeKey::TanhApprox, 1};
  return emit(OpKind::Gelu, name, std::span(&read, 1), std::span(&result, 1),
              std::span(&attribute, tanh_form ? 1 : 0));
}

TensorId TraceBuilder::silu(const std::string& name, TensorId x) {
  return emit(OpKind::Silu, name, {x}, {{"", shape(x), trace_[x].dtype}});
}

TensorId TraceBuilder::tanh(const std::string& name, TensorId x) {
  return emit(OpKind::Tanh, name, {x}, {{"", shape(x), trace_[x].dtype}});
}

TensorId TraceBuilder::softmax(const std::string& name, TensorId x, bool in_fp32) {
  const bool fp32 = in_fp32 || (autocast_ && framework_.autocast_casts);
  const TensorId y =
      emit(OpKind::Softmax, name, {x}, {{"", shape(x), fp32 ? DType::Float32 : trace_[x].dtype}});
  if (framework_.softmax_keeps_input) last_op().also_keeps |= input_bit(0);
  return y;
}

DType TraceBuilder::promoted(TensorId a, TensorId b) const {
  const DType da = trace_[a].dtype, db = trace_[b].dtype;
  return da == db ? da : DType::Float32;
}

TensorId TraceBuilder::add(const std::string& name, TensorId a, TensorId b) {
  return emit(OpKind::Add, name, {a, b}, {{"", broadcast(shape(a), shape(b)), promoted(a, b)}});
}

TensorId TraceBuilder::residual(const std::string& name, TensorId shortcut, TensorId branch) {
  const TensorId y = add(name, shortcut, branch);
  last_op().residual = true;
  return y;
}

TensorId TraceBuilder::mul(const std::string& name, TensorId a, TensorId b) {
  return emit(OpKind::Mul, name, {a, b}, {{"", shape(a), promoted(a, b)}});
}

TensorId TraceBuilder::scale(const std::string& name, TensorId x, double factor) {
  const OutputSpec outputs[] = {{"", shape(x), trace_[x].dtype}, {"factor", {}, DType::Float64}};
  const Attribute attribute{AttributeKey::Factor, factor};
  const TensorId y =
      emit(OpKind::Scale, name, std::span(&x, 1),
           std::span(outputs).first(framework_.keeps_statistics ? 2 : 1), std::span(&attribute, 1));
  // The node keeps the factor as a zero-dimensional double.
  if (framework_.keeps_statistics) last_op().also_keeps |= output_bit(1);
  return y;
}

TensorId TraceBuilder::dropout(const std::string& name, TensorId x, double probability) {
  if (probability == 0) return x;
  return emit(OpKind::Dropout, name, {x},
              {{"", shape(x), trace_[x].dtype}, {"mask", shape(x), DType::Bool}},
              {{AttributeKey::Probability, probability}});
}

TensorId TraceBuilder::drop_path(const std::string& name, TensorId x, double probability) {
  if (probability == 0) return x;
  const Shape per_sample = {step().batch, 1, 1};
  return emit(OpKind::DropPath, name, {x},
              {{"", shape(x), trace_[x].dtype}, {"mask", per_sample, trace_[x].dtype}},
              {{AttributeKey::Probability, probability}});
}

TensorId TraceBuilder::rope(const std::string& name, TensorId x, TensorId cosine, TensorId sine) {
  return emit(OpKind::Rope, name, {x, cosine, sine}, {{"", shape(x), promoted(x, cosine)}});
}

TensorId TraceBuilder::cast(const std::string& name, TensorId x, DType dtype) {
  if (trace_[x].dtype == dtype) return x;
  return emit(OpKind::Cast, name, {x}, {{"", shape(x), dtype}});
}

TensorId TraceBuilder::emit_view(OpKind kind, const std::string& name, TensorId x,
                                 const Shape& shape) {
  const TensorId y = emit(kind, name, {x}, {{"", shape, trace_[x].dtype}});
  trace_.tensors[index(y)].storage = trace_[x].storage;
  trace_.tensors[index(y)].category = trace_[x].category;
  return y;
}

TensorId TraceBuilder::view(const std::string& name, TensorId x, const Shape& shape) {
  return emit_view(OpKind::View, name, x, shape);
}

TensorId TraceBuilder::select(const std::string& name, TensorId x, const Shape& shape) {
  return emit_view(OpKind::Select, name, x, shape);
}

std::vector<TensorId> TraceBuilder::split(const std::string& name, TensorId x,
                                          const std::vector<Shape>& shapes,
                                          const std::vector<std::string_view>& suffixes) {
  std::vector<OutputSpec> outputs;
  for (std::size_t i = 0; i < shapes.size(); ++i)
    outputs.push_back({suffixes[i], shapes[i], trace_[x].dtype});
  const auto first = index(emit(OpKind::Split, name, std::span(&x, 1), outputs));
  std::vector<TensorId> ids;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    trace_.tensors[first + i].storage = trace_[x].storage;
    ids.push_back(static_cast<TensorId>(first + i));
  }
  return ids;
}

TensorId TraceBuilder::copy(const std::string& name, TensorId x, const Shape& shape,
                            std::initializer_list<Attribute> attributes) {
  const OutputSpec result{"", shape, trace_[x].dtype};
  return emit(OpKind::Copy, name, std::span(&x, 1), std::span(&result, 1),
              std::span(attributes.begin(), attributes.size()));
}

TensorId TraceBuilder::concat(const std::string& name, std::span<const TensorId> pieces,
                              const Shape& shape) {
  const OutputSpec result{"", shape, trace_[pieces[0]].dtype};
  return emit(OpKind::Concat, name, pieces, std::span(&result, 1));
}

TensorId TraceBuilder::repeat_heads(const std::string& name, TensorId x, const Shape& shape) {
  return emit(OpKind::RepeatHeads, name, {x}, {{"", shape, trace_[x].dtype}});
}

TensorId TraceBuilder::embedding(const std::string& name, TensorId ids, TensorId table) {
  const Shape of_ids = shape(ids);
  std::vector<std::int64_t> dims(of_ids.dims().begin(), of_ids.dims().end());
  dims.push_back(shape(table).back());
  return emit(OpKind::Embedding, name, {ids, table}, {{"", Shape(dims), trace_[table].dtype}});
}

TensorId TraceBuilder::mean_pool(const std::string& name, TensorId x, const Shape& shape) {
  return emit(OpKind::MeanPool, name, {x}, {{"", shape, trace_[x].dtype}});
}

TensorId TraceBuilder::max_pool(const std::string& name, TensorId x, const Shape& shape,
                                std::int64_t kernel, std::int64_t stride) {
  const TensorId y = emit(OpKind::MaxPool, name, {x},
                          {{"", shape, trace_[x].dtype}, {"indices", shape, DType::Int64}},
                          {{AttributeKey::Window, static_cast<double>(kernel)},
                           {AttributeKey::Stride, static_cast<double>(stride)}});
  // The node keeps its input too, though only the indices decide where a gradient goes.
  if (framework_.keeps_statistics) last_op().also_keeps |= input_bit(0);
  return y;
}

TensorId TraceBuilder::cross_entropy(const std::string& name, TensorId logits, TensorId targets) {
  // Autocast has nll_loss on its fp32 list; cross_entropy() itself asks log_softmax() for the
  // dtype of the logits.
  const bool first = autocast_ && framework_.log_softmax_is_fp32;
  const TensorId x = first ? cast(name + ".upcast", logits, DType::Float32) : logits;
  TensorId log_p =
      emit(OpKind::LogSoftmax, name + ".log_softmax", {x}, {{"", shape(x), trace_[x].dtype}});
  if (autocast_) log_p = cast(name + ".log_softmax.upcast", log_p, DType::Float32);
  const DType dtype = trace_[log_p].dtype;
  const OutputSpec outputs[] = {{"", {}, dtype}, {"total_weight", {}, dtype}};
  const std::array inputs = {log_p, targets};
  return emit(OpKind::NllLoss, name, inputs,
              std::span(outputs).first(framework_.keeps_statistics ? 2 : 1));
}

Trace TraceBuilder::finish(TensorId loss) {
  CHECK(block_ < 0);
  trace_.loss = loss;
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

void require_known_targets(const Trace& trace) {
  const Tuning& tuning = trace.step.tuning;
  const bool freezes = tuning.kind == Tuning::Kind::Frozen;
  for (const std::string& target : tuning.targets) {
    const std::string adapter = target + ".lora_a.weight";
    const auto matches = [&](const Tensor& tensor) {
      if (tensor.category != Category::Parameter) return false;
      if (freezes) return matches_glob(tensor.name, target);
      return tensor.name == adapter || tensor.name.ends_with("." + adapter);
    };
    if (target == "all" || std::ranges::any_of(trace.tensors, matches)) continue;
    if (freezes)
      throw UsageError(
          fmt::format("tuning: no parameter of {} is called '{}' (tidemark trace lists them)",
                      trace.model, target.substr(0, 64)));
    std::vector<std::string_view> leaves;
    for (const Op& op : trace.ops)
      if (op.kind == OpKind::Linear && std::ranges::find(leaves, leaf_of(op.name)) == leaves.end())
        leaves.push_back(leaf_of(op.name));
    throw UsageError(unknown_name("linear", target, leaves));
  }
}

}  // namespace tidemark
