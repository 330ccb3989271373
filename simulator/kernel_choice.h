// Which kernels PyTorch picks on a device, and what it does where the device lacks the unit.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/cost/device.h"
#include "traces/trace.h"

namespace tidemark {

/// "7.5" is 75; nothing where the device is no CUDA device.
std::optional<int> capability_of(const Device& device);

enum class FusedAttention : std::uint8_t { None, MemoryEfficient, Flash };

/// The fused kernel that scaled_dot_product_attention takes for attention without a bias.
FusedAttention fused_attention(const Device& device, Precision precision);

/// What multiplies matrices in this precision: the fp32 units where the device has no others.
MathUnit unit_used(const Device& device, Precision precision);

/// UsageError if the device has no units for what the step's linears multiply.
void require_codes(const Device& device, const StepOptions& step);

/// The step as PyTorch runs it on this device: attention that no fused kernel takes is composed.
/// UsageError where it refuses, or where the options ask for a kernel that there is not.
StepOptions as_run_on(const Device& device, StepOptions step);

/// What differs from what the options seem to say, one sentence each.
std::vector<std::string> kernel_notes(const Trace& trace, const Device& device);

}  // namespace tidemark
