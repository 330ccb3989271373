// Sources, of PyTorch 2.6: torch/_inductor/fx_passes, torch/_functorch.
#include "simulator/compiled/fx_builder.h"

#include <fmt/format.h>

#include "traces/trace_builder.h"

namespace tidemark {

FxId FxBuilder::input(int i) {
  const TensorId tensor = operand(trace_, op(), i);
  FxId& value = graph_.by_tensor[index(tensor)];
  if (value == no_fx) value = external(tensor);
  return value;
}

FxId FxBuilder::external(TensorId id) {
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

// What eager code makes once, or beside the step, is a part of the graph: constants, and of a whole
// model's masks (which cost nothing to make again) and rotary tables, of which the angles are a
// product.
FxId FxBuilder::made_here(const InputFill& fill, const Tensor& tensor) {
  if (const auto* constant = std::get_if<fill::Constant>(&fill))
    return full(constant->value, tensor);
  if (!region_.makes_masks) return no_fx;
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

// What the same call has made before is not made again (fx_graph_cse), unless it is random. A call
// of the forward stands before all of the backward.
FxId FxBuilder::add(std::string_view name, FxNode call) {
  call.op = op_;
  call.in_backward = is_later_;
  std::string key = fmt::format("{} {} {}", name, to_text(call.shape), to_string(call.dtype));
  for (const FxId read : call.reads) key += fmt::format(" {}", index(read));
  if (!call.is_random) {
    const auto [place, is_new] = known_.emplace(std::move(key), no_fx);
    if (!is_new) {
      FxNode& made = graph_.calls[index(place->second)];
      made.in_backward = made.in_backward && is_later_;
      return place->second;
    }
    place->second = static_cast<FxId>(graph_.calls.size());
  }
  graph_.calls.push_back(std::move(call));
  return last();
}

// A cast of a cast is one of what that read, if nobody else reads it: so values that were rounded
// for a call in 16 bits, and then widened inside of it, are not (pointless_convert of
// torch/_inductor/fx_passes/joint_graph.py).
void FxBuilder::fold_casts() {
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
FxId FxBuilder::widened_input() {
  if (wants(0)) cast_again_.push_back(input(0));
  return cast(input(0), DType::Float32);
}

// AOTAutograd traces the backward where the model is called, so that under autocast its products
// are in 16 bits even where those of the forward, inside of an attention, are not.
FxId FxBuilder::as_autocast_reads(FxId x) {
  const Precision precision = trace_.step.precision.value_or(Precision::Fp32);
  const DType dtype = compute_dtype_of(precision);
  if (!is_amp(precision) || (*this)[x].dtype == dtype) return x;
  return later(casts, view("permute", x, Shape((*this)[x].shape)), dtype);
}

void FxBuilder::make(int i, FxId value) {
  const TensorId tensor = operand(trace_, op(), 16 + i);
  graph_.by_tensor[index(tensor)] = value;
  TensorId& known = graph_.calls[index(value)].tensor;
  if (known == no_tensor) known = tensor;
}

std::string FxBuilder::with_attributes(std::string name) const {
  for (const Attribute& attribute : trace_.attributes_of(op()))
    name += fmt::format(" {}={}", static_cast<int>(attribute.key), attribute.value);
  return name;
}

}  // namespace tidemark
