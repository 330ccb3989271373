// What a GPU can do, in numbers, each with the place it was found. Devices are data: one JSON file
// each in simulator/devices/, embedded in the program; a user may bring more.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "simulator/parallel/interconnect.h"

namespace tidemark {

/// What multiplies matrices: the CUDA cores in fp32, or the tensor cores, accumulating in fp32.
enum class MathUnit : std::uint8_t { Fp32, Tf32, Fp16, Bf16 };
inline constexpr std::array<std::string_view, 4> math_unit_names{"fp32", "tf32", "fp16", "bf16"};

/// How a figure is known. Derived: computed from other figures or taken over from a sister device,
/// as its source says. Assumed: no source was found, its source says why this value.
enum class FigureKind : std::uint8_t { Datasheet, Measured, Derived, Assumed };
inline constexpr std::array<std::string_view, 4> figure_kind_names{"datasheet", "measured",
                                                                   "derived", "assumed"};

struct FigureSource {
  FigureKind kind = FigureKind::Assumed;
  std::string text;

  bool operator==(const FigureSource&) const = default;
};

/// Measured nanoseconds of one kind of kernel, by work: the nanoseconds that the device's figures
/// alone promise, or of a collective the bytes of its message. Work rises.
struct CurvePoint {
  double work = 0, time = 0;

  bool operator==(const CurvePoint&) const = default;
};
using Curve = std::vector<CurvePoint>;

/// Between the points along straight lines of the logarithms; beyond them at the rate of the
/// nearest. The curve must not be empty.
double time_on(const Curve& curve, double work);

struct Device {
  std::string name;                // "a100-80gb"
  std::string title;               // "NVIDIA A100 SXM4 80 GB"
  std::string compute_capability;  // "8.0"

  Bytes capacity;                // all that the driver reports, before any context
  std::optional<Bytes> context;  // what a process holds before its first tensor, where known
  Bytes l2_cache;
  int sm_count = 0;
  double clock_hz = 0;  // boost, the clock that the rates are stated at

  double bytes_per_second = 0;            // of the device memory, nominal
  double memory_efficiency = 0;           // the fraction of it that large streaming kernels reach
  double host_link_bytes_per_second = 0;  // one direction, reached by large pinned copies

  // Per MathUnit, dense; 0 where the device has no such unit. An efficiency is the fraction that
  // large matrix products reach: above one on devices that boost beyond their stated clock.
  std::array<double, math_unit_names.size()> flops_per_second{};
  std::array<double, math_unit_names.size()> gemm_efficiency{};

  // The fraction of the 16-bit rate that products reach whose rows begin at multiples of two or
  // four elements, and at any: kernels that load 16 bytes at once are not for them. Unset: all of
  // it.
  std::optional<double> even_rows_gemm_share, odd_rows_gemm_share;

  // Of products of eight-bit and of four-bit floats that add up in fp32, dense; unset where there
  // is no such unit.
  std::optional<double> fp8_flops_per_second;
  std::optional<double> fp8_gemm_efficiency;
  std::optional<double> fp4_flops_per_second;
  std::optional<double> fp4_gemm_efficiency;

  // The fraction of the 16-bit rate that fused attention of 16-bit operands reaches, forward and
  // backward together, half of the multiplications counted when causal. Unset: that of products.
  std::optional<double> attention_efficiency;

  Nanoseconds kernel_gap{};   // added to each kernel of one stream, the host being ahead
  Nanoseconds host_launch{};  // host time of an eager framework for one op

  // What one kernel holds of the device while it runs alone, where kernels are too small to fill
  // it: on a CPU, one core of several. Unset: all that its blocks can hold.
  std::optional<double> product_share;  // of the arithmetic units
  std::optional<double> stream_share;   // of the memory bandwidth

  // Calibration, instead of the rates above: by "backward linear float32". May be empty.
  std::map<std::string, Curve, std::less<>> curves;

  std::map<std::string, FigureSource, std::less<>> sources;  // by the figure's key in the file

  // Of the cluster that was named with it; not in its file (interconnect_of() knows usual ones).
  std::optional<Interconnect> interconnect = {};

  bool operator==(const Device&) const = default;
};

/// What large matrix products reach on `unit`, or on the CUDA cores if the device has no such unit.
double gemm_flops_per_second(const Device& device, MathUnit unit);

/// What fused attention reaches with operands of `unit`.
double attention_flops_per_second(const Device& device, MathUnit unit);

/// What large streaming kernels reach.
double stream_bytes_per_second(const Device& device);

/// One line of `tidemark devices NAME`.
struct Figure {
  std::string key;   // "fp16_flops_per_second", as in the file
  double number;     // 3.12e14
  std::string unit;  // of the number: "FLOP/s", "B", "ns", or "" for a fraction or a count
  std::string text;  // "312 TFLOP/s"
  FigureSource source;
};

/// In file order.
std::vector<Figure> figures(const Device& device);

/// The embedded devices, by name.
const std::vector<Device>& known_devices();

/// A known device (in any case of letters), or one read from a path that ends in ".json",
/// ".json.zst" or has a '/'. An unknown name is a UsageError that lists the known ones.
Device find_device(const std::string& name_or_path);

/// Reads a device file; `file` is its name for messages. Throws InputError.
Device read_device(std::string_view json, std::string_view file);

/// The text of a device file, the same to the byte for equal devices.
std::string write_device(const Device& device);

}  // namespace tidemark
