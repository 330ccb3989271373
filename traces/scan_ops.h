// What a state-space layer (Mamba-2, arXiv 2405.21060) is made of beside its products: opaque ops
// whose rows follow from their shapes, so that transforms may cut these.
#pragma once

#include <optional>

#include "traces/trace.h"

namespace tidemark {

enum class ScanOp : std::uint8_t {
  Exponential,  ///< of each head's logarithm of decay
  Negative,     ///< of that: A
  /// Convolution and SiLU of x, B and C, the scan, D · x, and the gate: z, x, B, C and dt beside
  /// each other, convolution, bias, bias of dt, A, D → result, result before the gate, last states
  Scan,
  /// … gated and normalized by groups, and multiplied, in one call: … A, D, weight of the norm,
  /// weight of the product → result, result of the scan, last states, 1/rms
  ScanAndProduct,
  GroupNorm,  ///< x, weight → each group of columns of its own rms, 1/rms
};

inline constexpr std::array scan_ops = {
    Named{ScanOp::Exponential, std::string_view("aten::exp")},
    Named{ScanOp::Negative, std::string_view("aten::neg")},
    Named{ScanOp::Scan, std::string_view("mamba_ssm::split_conv1d_scan")},
    Named{ScanOp::ScanAndProduct, std::string_view("mamba_ssm::split_conv1d_scan_linear")},
    Named{ScanOp::GroupNorm, std::string_view("mamba_ssm::rms_norm_by_groups")}};
static_assert(is_in_order(scan_ops));

/// Nothing if the op is none of these.
std::optional<ScanOp> scan_op(const Trace& trace, const Op& op);

struct ScanSizes {
  std::int64_t batch = 1, tokens = 1;
  std::int64_t heads = 1, head_width = 64;  ///< of x, z and the result
  std::int64_t groups = 1, state = 128;     ///< of B and C
  std::int64_t kernel = 4;                  ///< tokens that the convolution reads
  std::int64_t chunk = 128;                 ///< tokens that a product serves at once
  std::int64_t out = 0;                     ///< width behind the product; 0: there is none
  bool trains_product = true;               ///< its weight has a gradient
  DType dtype = DType::BFloat16;

  std::int64_t inner() const { return heads * head_width; }
  std::int64_t channels() const { return inner() + 2 * groups * state; }  ///< of x, B and C
  std::int64_t packed() const { return inner() + channels() + heads; }    ///< z, x, B, C and dt
};

/// Of Scan, or of ScanAndProduct where there is a product.
OpaqueRow scan_row(const ScanSizes& sizes);
/// Of x in so many groups of columns.
OpaqueRow group_norm_row(const Tensor& x, std::int64_t groups);
/// Of the two that make A, of so many heads.
OpaqueRow decay_row(ScanOp op, std::int64_t heads);

/// The rows of all of these, of the shapes that they have now; nobody cuts what ends in a
/// product.
void recount_scan_ops(Trace& trace);

}  // namespace tidemark
