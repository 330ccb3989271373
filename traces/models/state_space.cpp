// Mamba-2's layer op by op. transformers (modeling_nemotron_h.py) calls one function of mamba_ssm
// for all that follows the first product; Megatron-LM (core/ssm/mamba_mixer.py) has a norm and a
// last product of its own, and copies between its order of tokens and mamba_ssm's, which are one
// where there is one sequence. All parameters have the model's dtype: Float16Module casts A and D,
// too.
#include "traces/models/state_space.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "traces/scan_ops.h"

namespace tidemark {
namespace {

struct StateSpace {
  TraceBuilder& b;
  const std::string& name;
  const StateSpaceConfig& config;

  ScanSizes sizes(TensorId x) const {
    return {.batch = b.shape(x)[0],
            .tokens = b.shape(x)[1],
            .heads = config.heads,
            .head_width = config.head_width,
            .groups = config.groups,
            .state = config.state,
            .kernel = config.kernel,
            .chunk = config.chunk,
            .dtype = b.compute_dtype()};
  }

  // −exp of what is stored, in fp32.
  TensorId decay() const {
    const std::string logarithm = name + ".A_log";
    const Shape of_heads = {config.heads};
    TensorId x = b.cast(logarithm + ".float", b.parameter(logarithm, of_heads), DType::Float32);
    const OutputSpec made{"", of_heads, DType::Float32};
    x = b.opaque(name + ".A_exp", std::array{x}, std::span(&made, 1),
                 decay_row(ScanOp::Exponential, config.heads));
    return b.opaque(name + ".A", std::array{x}, std::span(&made, 1),
                    decay_row(ScanOp::Negative, config.heads));
  }

  /// What either function reads behind z, x, B, C and dt.
  std::array<TensorId, 5> parameters(const ScanSizes& s) const {
    const TensorId filter = b.parameter(name + ".conv1d.weight", {s.channels(), 1, s.kernel});
    const TensorId bias = b.parameter(name + ".conv1d.bias", {s.channels()});
    const TensorId dt_bias = b.parameter(name + ".dt_bias", {s.heads});
    const TensorId rates = b.local(decay());
    return {filter, bias, dt_bias, rates, b.parameter(name + ".D", {s.heads})};
  }

  OutputSpec last_states(const ScanSizes& s) const {
    return {"states", {s.batch, s.heads, s.head_width, s.state}, DType::Float32};
  }

  Attribute chunk() const { return {AttributeKey::Window, static_cast<double>(config.chunk)}; }

  TensorId in_one_call(TensorId packed, std::int64_t width) const {
    ScanSizes s = sizes(packed);
    s.out = width;
    const auto [filter, bias, dt_bias, rates, skip] = parameters(s);
    const TensorId gain = b.parameter(name + ".norm.weight", {s.inner()});
    const TensorId weight = b.parameter(name + ".out_proj.weight", {width, s.inner()});
    s.trains_product = b[weight].trainable;
    const Shape rows = {s.batch, s.tokens, width};
    const std::array outputs = {
        OutputSpec{"", rows, s.dtype}, OutputSpec{"scanned", rows.with_back(s.inner()), s.dtype},
        last_states(s), OutputSpec{"rstd", rows.with_back(s.groups), DType::Float32}};
    const Attribute of_chunks = chunk();
    const TensorId y =
        b.opaque(name + ".out_proj",
                 std::array{packed, filter, bias, dt_bias, rates, skip, gain, b.to_compute(weight)},
                 outputs, scan_row(s), std::span(&of_chunks, 1));
    b.local(TensorId{static_cast<std::uint32_t>(index(y) + 2)});
    return b.local(y);
  }

  TensorId reordered(const std::string& suffix, TensorId x) const {
    return b.shape(x)[0] == 1 ? x : b.copy(name + suffix, x, b.shape(x));
  }

  TensorId in_parts(TensorId packed, std::int64_t width) const {
    packed = reordered(".samples", packed);
    const ScanSizes s = sizes(packed);
    auto read = parameters(s);
    read[2] = b.cast(name + ".dt_bias.float", read[2], DType::Float32);
    const Shape rows = {s.batch, s.tokens, s.inner()};
    const std::array outputs = {OutputSpec{"", rows, s.dtype}, OutputSpec{"scanned", rows, s.dtype},
                                last_states(s)};
    const Attribute of_chunks = chunk();
    TensorId y =
        b.opaque(name + ".scan", std::array{packed, read[0], read[1], read[2], read[3], read[4]},
                 outputs, scan_row(s), std::span(&of_chunks, 1));
    y = reordered(".tokens", y);
    const TensorId gain = b.parameter(name + ".norm.weight", {s.inner()});
    const std::array normed = {OutputSpec{"", rows, s.dtype},
                               OutputSpec{"rstd", rows.with_back(s.groups), DType::Float32}};
    y = b.opaque(name + ".norm", std::array{y, gain}, normed, group_norm_row(b[y], s.groups));
    return b.linear(name + ".out_proj", y, width, false);
  }

  TensorId operator()(TensorId x) const {
    b.local(x);
    const std::int64_t width = b.shape(x)[2];
    const TensorId packed = b.local(b.linear(name + ".in_proj", x, sizes(x).packed(), false));
    return b.framework().megatron ? in_parts(packed, width) : in_one_call(packed, width);
  }
};

// Where the last product runs inside of the scan's function.
void require_known(const TraceBuilder& b) {
  if (b.step().padded)
    throw UsageError(
        "padded: state-space layers scan batches with padding in another way, which is not "
        "modelled "
        "(leave --padded out)");
  if (b.framework().megatron) return;
  const std::vector<std::string>& targets = b.step().tuning.targets;
  if (has_adapters(b.step().tuning) && std::ranges::find(targets, "out_proj") != targets.end())
    throw UsageError(
        "tuning: state-space layers multiply by out_proj inside of their scan, where no adapter is "
        "beside it (take lora:targets=in_proj)");
  if (b.step().base)
    throw UsageError(
        "base: state-space layers multiply by out_proj inside of their scan, which does not read "
        "it "
        "in few bits (leave --base out)");
  b.refuse_codes("state-space layers, which multiply inside of their scan");
}

}  // namespace

TensorId state_space(TraceBuilder& b, const std::string& name, TensorId x,
                     const StateSpaceConfig& config) {
  require_known(b);
  b.begin_function();
  const TensorId y = StateSpace{b, name, config}(x);
  b.end_function();
  return y;
}

}  // namespace tidemark
