// Adapters as peft 0.21 runs them: LoRA and DoRA beside linears, and modules trained as copies.
#include <fmt/format.h>

#include <algorithm>

#include "traces/linear_names.h"
#include "traces/trace_builder.h"

namespace tidemark {
namespace {

std::string_view head_of(std::string_view name) {
  return name.substr(0, std::min(name.rfind('.'), name.size()));
}

std::string_view last_part(std::string_view name) { return name.substr(name.rfind('.') + 1); }

/// A kernel over the elements of `y`.
OpaqueRow elementwise(std::string_view operation, const TraceBuilder& b, TensorId y) {
  OpaqueRow row{.operation = std::string(operation), .gradients = 0b01};
  row.forward.moved = row.backward.moved = Bytes{2 * size(b[y]).count};
  return row;
}

// a − b, of which b has no gradient.
TensorId subtracted(TraceBuilder& b, const std::string& name, TensorId a, TensorId less) {
  OpaqueRow row = elementwise("aten::sub", b, a);
  row.computes = Formula::Subtract;
  const bool widens = less != no_tensor && size_of(b[less].dtype) > size_of(b[a].dtype);
  const OutputSpec result{"", b.shape(a), widens ? b[less].dtype : b[a].dtype};
  if (!widens) row.handed_on = 0b01;
  const std::array inputs = {a, less};
  return b.opaque(name, std::span(inputs).first(less == no_tensor ? 1 : 2), std::span(&result, 1),
                  std::move(row));
}

}  // namespace

bool has_adapters(const Tuning& tuning) {
  return tuning.kind == Tuning::Kind::Lora || tuning.kind == Tuning::Kind::LoraFa;
}

std::string name_of_original(std::string_view parameter) {
  return fmt::format("{}.original.{}", head_of(parameter), last_part(parameter));
}

bool is_adapter(std::string_view op_name) { return op_name.ends_with(".lora_a"); }

bool TraceBuilder::is_lora_target(std::string_view leaf) const {
  if (!has_adapters(step().tuning)) return false;
  return std::ranges::any_of(step().tuning.targets, [&](const std::string& target) {
    const std::vector<std::string_view> named = linears_named(target, trace_.family);
    return named.front() == "all" || std::ranges::find(named, leaf) != named.end();
  });
}

// utils/other.py of peft: ModulesToSaveWrapper. New heads are among its modules for all of its
// tasks that have one.
bool TraceBuilder::is_copied(std::string_view parameter, ParameterRole role) const {
  const Tuning& tuning = step().tuning;
  if (!has_adapters(tuning)) return false;
  if (role == ParameterRole::Head && framework_.keeps_originals) return true;
  return std::ranges::any_of(tuning.whole, [&](const std::string& module) {
    const std::vector<std::string_view> named = linears_named(module, trace_.family);
    return std::ranges::find(named, last_part(head_of(parameter))) != named.end();
  });
}

TensorId TraceBuilder::tied(const std::string& name, TensorId table) {
  const std::string weight = name + ".weight";
  if (is_copied(weight, ParameterRole::Base))
    return parameter_of(weight, shape(table), trace_[table].dtype, ParameterRole::Head);
  const auto found = std::ranges::find(copied_, table, &Copied::copy);
  return found == copied_.end() ? table : found->original;
}

TensorId TraceBuilder::adapted(const std::string& name, std::string_view leaf, TensorId x,
                               TensorId y, Adapter& adapter) {
  if (in_reference_ || !is_lora_target(leaf)) return y;
  const Tuning& tuning = step().tuning;
  if (adapter.a == no_tensor) {
    const auto role =
        tuning.kind == Tuning::Kind::Lora ? ParameterRole::Adapter : ParameterRole::FrozenAdapter;
    const DType dtype = framework_.adapters_fp32 && !tuning.base_dtype ? DType::Float32 : base_;
    const std::int64_t out = shape(y).back();
    adapter.a = parameter_of(name + ".lora_a.weight", {tuning.rank, shape(x).back()}, dtype, role);
    adapter.b =
        parameter_of(name + ".lora_b.weight", {out, tuning.rank}, dtype, ParameterRole::Adapter);
    if (tuning.magnitudes)
      adapter.magnitude =
          parameter_of(name + ".lora_magnitude.weight", {out}, dtype, ParameterRole::Adapter);
  }
  if (tuning.magnitudes && adapter.weight != no_tensor) return add_dora(name, x, y, adapter);
  return add_lora(name, x, y, adapter);
}

// y + B(A(x)), as in tuners/lora/layer.py of peft: x in the adapter's dtype is a tensor of each
// adapted linear, and the sum, in the wider dtype, is cast back. Under autocast each projection
// casts for itself. A call's argument lives until it returns: x until the sum is made, what is left
// of it by dropout until A has read it.
TensorId TraceBuilder::add_lora(const std::string& name, TensorId x, TensorId y,
                                const Adapter& adapter) {
  const TensorId a = adapter.a, b = adapter.b;
  const DType dtype = trace_[a].dtype;
  begin_function();
  const TensorId read = framework_.autocast_casts ? cast(name + ".lora_cast", local(x), dtype) : x;
  const TensorId left = dropout(name + ".lora_drop", local(read), adapter_dropout());
  const TensorId low = linear_with(name + ".lora_a", left, a);
  const TensorId high = linear_with(name + ".lora_b", low, b);
  const TensorId scaled = scale(name + ".lora_scale", high, 1.0);
  // tuners/lora/bnb.py: a copy of y, and the sum in its dtype.
  if (step().base && has_own_linears(*step().base)) {
    if (*step().base != BaseWeights::Int8) y = copy(name + ".lora_clone", y, shape(y));
    const TensorId rounded =
        autocast_ ? scaled : cast(name + ".lora_cast_back", scaled, trace_[y].dtype);
    const TensorId sum = add(name + ".lora_add", y, rounded);
    end_function();
    return sum;
  }
  const TensorId sum = add(name + ".lora_add", y, scaled);
  end_function();
  return cast(name + ".lora_result", sum, trace_[y].dtype);
}

// y + (m/‖W + BA‖ − 1)·(y without its bias) + m/‖W + BA‖·B(A(x)), as tuners/lora/dora.py writes it.
// Where adapters drop some of x, W's product is made a second time, of what is left.
TensorId TraceBuilder::add_dora(const std::string& name, TensorId x, TensorId y,
                                const Adapter& adapter) {
  const DType dtype = trace_[adapter.a].dtype;
  const TensorId read = framework_.autocast_casts ? cast(name + ".lora_cast", x, dtype) : x;
  const TensorId kept = dropout(name + ".lora_drop", read, adapter_dropout());
  begin_function();
  const TensorId norm = dora_norm(name, read, adapter);
  OpaqueRow quotient = elementwise("aten::div", *this, norm);
  quotient.saved = input_bit(1);
  quotient.computes = Formula::Divide;
  const OutputSpec per_output{"", shape(norm), trace_[norm].dtype};
  const TensorId factor = local(opaque(name + ".dora_factor", std::array{adapter.magnitude, norm},
                                       std::span(&per_output, 1), std::move(quotient)));
  const TensorId low = linear_with(name + ".lora_a", kept, adapter.a);
  const TensorId high = local(linear_with(name + ".lora_b", low, adapter.b));
  TensorId base = y;
  if (kept != read) {
    const DType product = autocast_ ? compute_ : trace_[kept].dtype;
    const TensorId of_base = cast(name + ".dora_weight", adapter.weight, product);
    base = linear_with(name + ".dora_base", kept, of_base);
  } else if (adapter.bias != no_tensor) {
    base = subtracted(*this, name + ".dora_unbiased", y, adapter.bias);
  }
  const TensorId beyond = subtracted(*this, name + ".dora_beyond", factor, no_tensor);
  const TensorId of_base = mul(name + ".dora_base_change", local(base), beyond);
  const TensorId of_adapter =
      scale(name + ".lora_scale", mul(name + ".dora_change", high, factor), 1.0);
  const TensorId change = add(name + ".dora_add", of_base, of_adapter);
  end_function();
  const TensorId sum = add(name + ".lora_add", y, change);
  return cast(name + ".lora_result", sum, trace_[y].dtype);
}

// The norm of each row of W + BA, without a gradient. BA is made by running the adapter on an
// identity matrix, which its graph holds, as does W in x's dtype, until the function returns.
TensorId TraceBuilder::dora_norm(const std::string& name, TensorId read, const Adapter& adapter) {
  const std::int64_t in = shape(adapter.weight)[1], out = shape(adapter.weight)[0];
  const std::int64_t rank = shape(adapter.a)[0];
  const DType dtype = trace_[read].dtype, product = autocast_ ? compute_ : dtype;
  const TensorId weight = local(cast(name + ".dora_norm.weight", adapter.weight, dtype));
  const std::int64_t delta = size_of(dtype) * in * out;
  // The product times alpha/r, and its sum with W; before, under autocast, what is not cast yet.
  std::int64_t workspace = 2 * delta;
  if (product != dtype)
    workspace = std::max(workspace, size_of(dtype) * in * in + size_of(product) * in * out - delta);
  OpaqueRow row{
      .operation = "peft::dora_weight_norm", .math = product, .computes = Formula::DoraNorm};
  row.forward = {.workspace = Bytes{workspace},
                 .flops = 2 * in * rank * (in + out),
                 .moved = Bytes{size_of(product) * in * in + 6 * delta},
                 .kernels = 7};
  row.backward.kernels = 0;
  const std::array outputs = {OutputSpec{"", {out}, dtype}, OutputSpec{"eye", {in, in}, product},
                              OutputSpec{"low", {in, rank}, product},
                              OutputSpec{"delta", {out, in}, dtype}};
  const TensorId norm = opaque(name + ".dora_norm", std::array{weight, adapter.a, adapter.b},
                               outputs, std::move(row));
  for (const TensorId held : trace_.outputs(last_op()).subspan(1)) local(held);
  return norm;
}

}  // namespace tidemark
