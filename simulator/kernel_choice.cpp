// PyTorch's rules by compute capability for attention and autocast, and notes about them.
#include "simulator/kernel_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "simulator/cost/row_alignment.h"

namespace tidemark {
namespace {

// aten/src/ATen/native/transformers/cuda/sdp_utils.cpp: flash takes 16 bits without a mask from
// sm80 on; the memory-efficient kernel fp16 and fp32 from sm50 on, bf16 from sm80 on; what neither
// takes is composed of matrix products and a softmax.
constexpr int flash_from = 80, memory_efficient_from = 50, bf16_from = 80;

bool is_bf16(Precision precision) {
  return precision == Precision::Bf16 || precision == Precision::AmpBf16;
}

bool is_16_bit(Precision precision) {
  return is_bf16(precision) || precision == Precision::AmpFp16;
}

MathUnit unit_named(Precision precision) {
  switch (precision) {
    case Precision::Fp32:
      return MathUnit::Fp32;
    case Precision::Tf32:
      return MathUnit::Tf32;
    case Precision::AmpFp16:
      return MathUnit::Fp16;
    case Precision::AmpBf16:
    case Precision::Bf16:
      return MathUnit::Bf16;
  }
  return MathUnit::Fp32;
}

std::string described(const Device& device) {
  return fmt::format("{} (compute capability {})", device.title, device.compute_capability);
}

// Until 2.3 autocast asked is_bf16_supported() for units of the device's own; since 2.4 emulated
// ones count (torch/amp/autocast_mode.py, torch/cuda/__init__.py).
void require_autocast(const Device& device, const StepOptions& step) {
  const std::optional<int> capability = capability_of(device);
  if (precision_of(step) != Precision::AmpBf16 || capability.value_or(bf16_from) >= bf16_from ||
      find_framework(step.framework).autocast_emulates_bf16)
    return;
  throw UsageError(fmt::format(
      "{} refuses amp-bf16 on {}, which has no bf16 units (use amp-fp16, or --framework "
      "transformers-4.57, which emulates them)",
      step.framework, described(device)));
}

// Transformer Engine's recipes need a compute capability, too, before which there are no kernels
// (check_mxfp8_support() and its like of pytorch/quantization.py).
int least_capability(LinearMath math) {
  switch (math) {
    case LinearMath::Fp8:
      return 0;
    case LinearMath::Fp8Blockwise:
      return 90;
    case LinearMath::MxFp8:
    case LinearMath::NvFp4:
      break;
  }
  return 100;
}

bool multiplies(const Device& device, LinearMath math) {
  const bool has_units = math == LinearMath::NvFp4 ? device.fp4_flops_per_second.has_value()
                                                   : device.fp8_flops_per_second.has_value();
  const int least = least_capability(math);
  return has_units && capability_of(device).value_or(least) >= least;
}

// A kernel that is asked for by name and that PyTorch would not run.
void require_kernel(const Device& device, const StepOptions& step) {
  const Precision precision = precision_of(step);
  const FusedAttention best = fused_attention(device, precision);
  const bool asks_flash = step.attention == Attention::Flash;
  const bool asks_efficient = step.attention == Attention::MemoryEfficient;
  if (!capability_of(device) || (!asks_flash && !asks_efficient)) return;
  if (best == FusedAttention::Flash || (asks_efficient && best != FusedAttention::None)) return;
  throw UsageError(fmt::format(
      "--attention {}: this kernel does not take {} on {} (use {})",
      asks_flash ? "flash" : "mem-efficient", to_string(precision), described(device),
      best == FusedAttention::None ? "amp-fp16, or --attention sdpa" : "--attention sdpa"));
}

const Op* fused_op(const Trace& trace) {
  const auto op = std::ranges::find(trace.ops, OpKind::FlashAttention, &Op::kind);
  return op == trace.ops.end() ? nullptr : &*op;
}

std::string unit_note(const Device& device, Precision precision) {
  if (unit_used(device, precision) == unit_named(precision)) return "";
  if (precision == Precision::Tf32)
    return fmt::format("{} has no TF32 units: tf32 changes nothing, products run in fp32",
                       described(device));
  const char* const name = is_bf16(precision) ? "bf16" : "fp16";
  return fmt::format(
      "{} has no {} units: values are {}, but PyTorch emulates the products at fp32's rate",
      described(device), name, name);
}

bool passes_on(OpKind kind) {
  return kind == OpKind::View || kind == OpKind::Copy || kind == OpKind::RepeatHeads ||
         kind == OpKind::Cast;
}

// PyTorch's own composition multiplies queries and keys by the root of the factor; a model's code
// multiplies one of them, or the scores.
bool is_composed(const Trace& trace) {
  std::vector<const Op*> makers(trace.tensors.size());
  for (const Op& op : trace.ops)
    for (const TensorId output : trace.outputs(op)) makers[index(output)] = &op;
  const auto factor_of = [&](TensorId tensor) {
    const Op* op = makers[index(tensor)];
    while (op && passes_on(op->kind)) op = makers[index(trace.inputs(*op)[0])];
    return op && op->kind == OpKind::Scale ? attribute(trace, *op, AttributeKey::Factor) : 0;
  };
  return std::ranges::any_of(trace.ops, [&](const Op& op) {
    if (op.kind != OpKind::MatMul) return false;
    const double factor = factor_of(trace.inputs(op)[0]);
    return factor != 0 && factor == factor_of(trace.inputs(op)[1]);
  });
}

std::string attention_note(const Trace& trace, const Device& device) {
  if (!find_framework(trace.step.framework).picks_fused_attention) return "";
  const Precision precision = precision_of(trace.step);
  const Op* op = fused_op(trace);
  const bool has_none = fused_attention(device, precision) == FusedAttention::None;
  if (is_composed(trace))
    return fmt::format(
        "PyTorch has no fused kernel for {} attention in {} on {}{}: {} scores lie in memory, in "
        "fp32",
        op ? "some blocks'" : "this", to_string(precision), described(device),
        has_none ? "" : " (grouped heads, a mask or the width of a head)", op ? "their" : "its");
  if (op && has_none)
    return fmt::format(
        "this trace has fused attention, but PyTorch has no such kernel for {} on {}",
        to_string(precision), described(device));
  if (!op || attribute(trace, *op, AttributeKey::MemoryEfficient) == 0 ||
      find_framework(trace.step.framework).transformer_engine)
    return "";
  const auto width = [&](std::size_t input) {
    return trace[trace.inputs(*op)[input]].shape.back();
  };
  const std::string why =
      op->inputs > 3 ? "a mask or bias is added to the scores"
      : width(0) != width(2)
          ? fmt::format("flash takes values as wide as queries, not {} and {}", width(2), width(0))
      : is_16_bit(precision) ? fmt::format("{} is too old for flash", described(device))
                             : fmt::format("flash takes 16 bits, not {}", to_string(precision));
  return fmt::format(
      "PyTorch takes the memory-efficient attention kernel here ({}); its time is counted as "
      "flash's",
      why);
}

// The linear with the most multiplications among those whose rows begin in the middle of 16 bytes.
const Op* largest_unaligned(const Trace& trace) {
  const Op* largest = nullptr;
  std::int64_t most = 0;
  for (const Op& op : trace.ops) {
    if (op.kind != OpKind::Linear || row_alignment(trace, op) == aligned_rows) continue;
    const Tensor& x = trace[trace.inputs(op)[0]];
    const std::int64_t size = numel(x.shape) * trace[trace.inputs(op)[1]].shape[0];
    if (size_of(x.dtype) == 2 && size > most) largest = &op, most = size;
  }
  return largest;
}

// Multiples of 128 bytes: NVIDIA, Matrix Multiplication Background User's Guide, of the A100.
std::string rows_note(const Trace& trace, const Device& device) {
  const Op* op = largest_unaligned(trace);
  if (!op) return "";
  const std::optional<double> share =
      row_alignment(trace, *op) > 1 ? device.even_rows_gemm_share : device.odd_rows_gemm_share;
  if (!share) return "";
  const Shape& weight = trace[trace.inputs(*op)[1]].shape;
  const std::int64_t rows = weight[0] % aligned_rows != 0 ? weight[0] : weight.back();
  constexpr std::int64_t good = 64;
  return fmt::format(
      "'{}' has rows of {} elements, which begin in the middle of 16 bytes: its products reach "
      "{:.2} "
      "of the rate of others ({} elements would reach all of it)",
      op->name, rows, *share, round_up(rows, good));
}

}  // namespace

std::optional<int> capability_of(const Device& device) {
  const std::string& text = device.compute_capability;
  int major = 0, minor = 0;
  const char* const end = text.data() + text.size();
  const auto [dot, bad_major] = std::from_chars(text.data(), end, major);
  if (bad_major != std::errc() || dot == end || *dot != '.') return std::nullopt;
  const auto [last, bad_minor] = std::from_chars(dot + 1, end, minor);
  if (bad_minor != std::errc() || last != end || minor > 9) return std::nullopt;
  return 10 * major + minor;
}

FusedAttention fused_attention(const Device& device, Precision precision) {
  const std::optional<int> capability = capability_of(device);
  if (!capability) return FusedAttention::Flash;  // no CUDA device: its own kernels
  if (*capability >= flash_from && is_16_bit(precision)) return FusedAttention::Flash;
  if (*capability < memory_efficient_from || (is_bf16(precision) && *capability < bf16_from))
    return FusedAttention::None;
  return FusedAttention::MemoryEfficient;
}

MathUnit unit_used(const Device& device, Precision precision) {
  const MathUnit named = unit_named(precision);
  return device.flops_per_second[static_cast<std::size_t>(named)] > 0 ? named : MathUnit::Fp32;
}

void require_codes(const Device& device, const StepOptions& step) {
  if (!step.linears || multiplies(device, step.linears->math)) return;
  std::string having;
  for (const Device& known : known_devices())
    if (multiplies(known, step.linears->math)) having += (having.empty() ? "" : ", ") + known.name;
  throw UsageError(fmt::format("--linears {}: {} has no units for such products (use --device {})",
                               to_string(step.linears->math), described(device), having));
}

StepOptions as_run_on(const Device& device, StepOptions step) {
  require_autocast(device, step);
  require_codes(device, step);
  if (!find_framework(step.framework).picks_fused_attention) return step;
  constexpr int meant = 80;  // where nothing is said
  if (const std::optional<int> capability = capability_of(device);
      !step.capability && capability.value_or(meant) != meant)
    step.capability = *capability;
  require_kernel(device, step);
  return step;
}

std::vector<std::string> kernel_notes(const Trace& trace, const Device& device) {
  std::vector<std::string> notes;
  if (!capability_of(device)) return notes;
  for (std::string note : {unit_note(device, precision_of(trace.step)),
                           attention_note(trace, device), rows_note(trace, device)})
    if (!note.empty()) notes.push_back(std::move(note));
  return notes;
}

}  // namespace tidemark
