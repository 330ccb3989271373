// What an op of kind Opaque says about itself. Other kinds have a row in the table of op_kind.h; an
// operation of which no rule is known brings its own, so that it can be planned all the same.
#pragma once

#include <optional>
#include <string>

#include "traces/op_kind.h"
#include "traces/tensor.h"

namespace tidemark {

/// What an op computes (formula.h); 0 = nobody knows.
enum class Formula : std::uint8_t;

/// Into Trace::opaque_rows.
enum class OpaqueId : std::uint32_t {};
constexpr std::size_t index(OpaqueId id) { return static_cast<std::size_t>(id); }
inline constexpr OpaqueId no_opaque{0xffffffff};

/// What its forward, or its backward, takes. What is not known is not zero: without either figure
/// a pass counts as one walk over its operands.
struct OpaquePass {
  Bytes workspace = {};  ///< tensors that are there only while it runs
  Bytes scratch = {};    ///< what its kernels take beside: in what the allocator reports, only
  std::optional<std::int64_t> flops = {};
  std::optional<Bytes> moved = {};  ///< read and written in device memory
  Bytes streamed = {};              ///< beside that, by kernels before or after: their time adds up
  int kernels = 1;                  ///< that it launches; 0: nothing runs on the device

  bool is_known() const { return flops || moved || kernels == 0; }
  bool operator==(const OpaquePass&) const = default;
};

struct OpaqueRow {
  std::string operation;           ///< what the framework calls it: "aten::grid_sampler_2d"
  std::uint32_t gradients = 0;     ///< bit i: input i gets one
  std::uint32_t handed_on = 0;     ///< bit i: this gradient is that of output 0, in its memory
  std::uint32_t written_over = 0;  ///< bit i: this gradient is written over input i, a saved value
  Operands saved = 0;              ///< what its backward reads
  Operands quantized = 0;          ///< of these, what may be kept in eight bits
  bool runs_once = false;          ///< has effects, or draws random numbers that no key repeats
  std::optional<DType> math = {};  ///< of its FLOPs; otherwise that of its first floating operand
  Formula computes{};              ///< in a replay
  OpaquePass forward = {}, backward = {};

  bool operator==(const OpaqueRow&) const = default;
};

/// More are a mistake, and a sum of such counts stays a number.
inline constexpr int most_opaque_kernels = 1'000'000;
/// Of all opaque ops together, and of scratch as much.
inline constexpr Bytes most_opaque_workspace{std::int64_t{1} << 58};

/// How the optimizer's step ran, where it was recorded. Its state is among the trace's tensors.
struct RecordedUpdate {
  std::string optimizer;  ///< what the framework calls it: "RMSprop"
  OpaquePass pass = {};   ///< of all parameters in one

  bool operator==(const RecordedUpdate&) const = default;
};

}  // namespace tidemark
