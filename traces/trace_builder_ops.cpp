// The builder's operators between matrix products: norms, activations, elementwise work, data
// movement and the loss.
#include <algorithm>

#include "traces/trace_builder.h"

namespace tidemark {
namespace {

// As in NumPy; where the ranks differ, the first operand's shape is the result's.
Shape broadcast(const Shape& a, const Shape& b) {
  if (a.rank() != b.rank()) return a;
  std::array<std::int64_t, Shape::max_rank> dims{};
  for (std::size_t i = 0; i < a.rank(); ++i) dims[i] = std::max(a[i], b[i]);
  return Shape(std::span<const std::int64_t>(dims).first(a.rank()));
}

// What an op does without saying so needs no attribute.
std::vector<Attribute> said(LayoutTransform layout_transform) {
  if (layout_transform == LayoutTransform::Reshape || layout_transform == LayoutTransform::Slice)
    return {};
  return {{AttributeKey::LayoutTransform, static_cast<double>(layout_transform)}};
}

}  // namespace

TensorId TraceBuilder::layer_norm(const std::string& name, TensorId x, double epsilon, bool bias) {
  const std::int64_t width = shape(x).back();
  const TensorId gamma = parameter(name + ".weight", {width});
  const TensorId beta = bias ? parameter(name + ".bias", {width}) : no_tensor;
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
  return emit(OpKind::LayerNorm, name, std::span(inputs).first(bias ? 3 : 2),
              std::span(outputs).first(framework_.keeps_statistics ? 3 : 1),
              std::span(&attribute, 1));
}

TensorId TraceBuilder::rms_norm(const std::string& name, TensorId x, double epsilon, RmsGain gain) {
  const Shape row = {shape(x).back()};
  TensorId gamma = parameter(name + ".weight", row);
  const bool widens = gain == RmsGain::OnePlus || gain == RmsGain::WideWeight;
  if (widens) gamma = cast(name + ".weight.float", gamma, DType::Float32);
  if (gain == RmsGain::OnePlus) gamma = copy(name + ".gain", gamma, row);
  const DType stream = trace_[x].dtype;
  // Transformer Engine's kernel, where its workspaces are, reads 16 bits and keeps them as they are
  // (layernorm_linear.py).
  const bool upcasts = !framework_.transformer_engine;
  const TensorId read =
      upcasts && stream != DType::Float32 ? cast(name + ".upcast", x, DType::Float32) : x;
  if (gain == RmsGain::KeepsInput && read != x) last_op().also_keeps |= input_bit(0);
  const DType written = framework_.norm_writes_fp32 ? stream : compute_;
  const bool rounds_last = (gain == RmsGain::Fp32 || widens) && written != DType::Float32;
  const std::array inputs = {read, gamma};
  const std::array outputs = {
      OutputSpec{"", shape(x), rounds_last ? DType::Float32 : written},
      OutputSpec{"rstd", shape(x).with_back(1), DType::Float32},
      OutputSpec{"normalized", shape(x), rounds_last ? DType::Float32 : stream}};
  const std::size_t kept = !framework_.keeps_statistics ? 1 : framework_.composed_rms_norm ? 3 : 2;
  const Attribute attribute{AttributeKey::Epsilon, epsilon};
  const TensorId y =
      emit(OpKind::RmsNorm, name, inputs, std::span(outputs).first(kept), std::span(&attribute, 1));
  return cast(name + ".round", y, written);
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
  return fused_gelu(name, x, tanh_form);
}

TensorId TraceBuilder::fused_gelu(const std::string& name, TensorId x, bool tanh_form) {
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

TensorId TraceBuilder::quick_gelu(const std::string& name, TensorId x) {
  return mul(name, x, sigmoid(name + ".sigmoid", scale(name + ".scale", x, 1.702)));
}

TensorId TraceBuilder::tanh(const std::string& name, TensorId x) {
  return emit(OpKind::Tanh, name, {x}, {{"", shape(x), trace_[x].dtype}});
}

TensorId TraceBuilder::sigmoid(const std::string& name, TensorId x) {
  return emit(OpKind::Sigmoid, name, {x}, {{"", shape(x), trace_[x].dtype}});
}

TensorId TraceBuilder::relu(const std::string& name, TensorId x) {
  return emit(OpKind::Relu, name, {x}, {{"", shape(x), trace_[x].dtype}});
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

TensorId TraceBuilder::add_in_place(const std::string& name, TensorId a, TensorId b) {
  return emit(OpKind::Add, name, {a, b}, {{"", shape(a), trace_[a].dtype, a}});
}

TensorId TraceBuilder::residual(const std::string& name, TensorId shortcut, TensorId branch) {
  const TensorId y = add(name, shortcut, branch);
  last_op().residual = true;
  return y;
}

TensorId TraceBuilder::mul(const std::string& name, TensorId a, TensorId b) {
  return emit(OpKind::Mul, name, {a, b}, {{"", broadcast(shape(a), shape(b)), promoted(a, b)}});
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

TensorId TraceBuilder::capped(const std::string& name, TensorId x, double cap) {
  return scale(name + ".up", tanh(name + ".tanh", scale(name + ".down", x, 1 / cap)), cap);
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

TensorId TraceBuilder::rope(const std::string& name, TensorId x, TensorId cosine, TensorId sine,
                            bool neighbours) {
  const std::array inputs = {x, cosine, sine};
  const OutputSpec turned{"", shape(x), promoted(x, cosine)};
  const Attribute attribute{AttributeKey::Neighbours, 1};
  return emit(OpKind::Rope, name, inputs, std::span(&turned, 1),
              std::span(&attribute, neighbours ? 1 : 0));
}

TensorId TraceBuilder::cast(const std::string& name, TensorId x, DType dtype) {
  if (trace_[x].dtype == dtype) return x;
  return emit(OpKind::Cast, name, {x}, {{"", shape(x), dtype}});
}

TensorId TraceBuilder::emit_view(OpKind kind, const std::string& name, TensorId x,
                                 const Shape& shape, std::span<const Attribute> attributes) {
  const OutputSpec result{"", shape, trace_[x].dtype};
  const TensorId y = emit(kind, name, std::span(&x, 1), std::span(&result, 1), attributes);
  trace_.tensors[index(y)].storage = trace_[x].storage;
  trace_.tensors[index(y)].category = trace_[x].category;
  return y;
}

TensorId TraceBuilder::view(const std::string& name, TensorId x, const Shape& shape,
                            LayoutTransform layout_transform) {
  return emit_view(OpKind::View, name, x, shape, said(layout_transform));
}

TensorId TraceBuilder::select(const std::string& name, TensorId x, const Shape& shape,
                              LayoutTransform layout_transform, std::int64_t offset) {
  std::vector<Attribute> attributes = said(layout_transform);
  if (offset != 0) attributes.push_back({AttributeKey::Offset, static_cast<double>(offset)});
  return emit_view(OpKind::Select, name, x, shape, attributes);
}

std::vector<TensorId> TraceBuilder::split(const std::string& name, TensorId x,
                                          const std::vector<Shape>& shapes,
                                          const std::vector<std::string_view>& suffixes,
                                          LayoutTransform layout_transform) {
  std::vector<OutputSpec> outputs;
  for (std::size_t i = 0; i < shapes.size(); ++i)
    outputs.push_back({suffixes[i], shapes[i], trace_[x].dtype});
  const auto first =
      index(emit(OpKind::Split, name, std::span(&x, 1), outputs, said(layout_transform)));
  std::vector<TensorId> ids;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    trace_.tensors[first + i].storage = trace_[x].storage;
    trace_.tensors[first + i].category = trace_[x].category;
    ids.push_back(static_cast<TensorId>(first + i));
  }
  return ids;
}

TensorId TraceBuilder::copy(const std::string& name, TensorId x, const Shape& shape,
                            LayoutTransform layout_transform,
                            std::initializer_list<Attribute> attributes) {
  const OutputSpec result{"", shape, trace_[x].dtype};
  std::vector<Attribute> all = said(layout_transform);
  all.insert(all.end(), attributes);
  return emit(OpKind::Copy, name, std::span(&x, 1), std::span(&result, 1), all);
}

TensorId TraceBuilder::concat(const std::string& name, std::span<const TensorId> pieces,
                              const Shape& shape) {
  DType dtype = trace_[pieces[0]].dtype;
  for (const TensorId piece : pieces)
    if (size_of(trace_[piece].dtype) > size_of(dtype)) dtype = trace_[piece].dtype;
  const OutputSpec result{"", shape, dtype};
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

TensorId TraceBuilder::mean(const std::string& name, TensorId x) {
  const TensorId column = view(name + ".elements", x, {1, numel(shape(x)), 1});
  return view(name, mean_pool(name + ".mean", column, {1, 1}), {});
}

TensorId TraceBuilder::average(const std::string& name, std::span<const TensorId> inputs) {
  const OutputSpec result{"", shape(inputs[0]), trace_[inputs[0]].dtype};
  return emit(OpKind::Average, name, inputs, std::span(&result, 1));
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

}  // namespace tidemark
