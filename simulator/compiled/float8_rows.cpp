// Read in the code that Inductor writes for LLaMA's blocks (PyTorch 2.6, torchao 0.9): a kernel
// that looks for the largest number, fused with what makes the tensor if that is no library's, one
// of a thread block that makes the factor, one that casts. Codes that a product wants by columns
// are turned by a kernel of their own, from the tensor anew.
#include "simulator/compiled/float8_rows.h"

#include <algorithm>
#include <bit>

#include "traces/fp8_linear.h"

namespace tidemark {
namespace {

constexpr std::uint32_t of_x = 1, of_w = 2;
constexpr int per_scaled = 3;  // the largest of parts, the factor, and the codes

}  // namespace

OpaqueRow float8_codes_row(const Float8Product& p) {
  OpaqueRow row{.operation = "fused cast"};
  constexpr int looks_casts_turns = 3;
  row.forward.moved = Bytes{p.w * (looks_casts_turns * p.stored + 2)};
  row.forward.kernels = per_scaled + 1;
  return row;
}

OpaqueRow float8_product_row(const Float8Product& p) {
  OpaqueRow row{.operation = std::string(float8_linear_operation),
                .gradients = p.wanted,
                .math = DType::Float8};
  const bool wants_x = (p.wanted & of_x) != 0, wants_w = (p.wanted & of_w) != 0;
  const std::int64_t codes_of_x = p.codes_x ? p.x : 0;
  const std::int64_t dx = wants_x ? p.x * p.wide : 0, dw = wants_w ? p.w * p.wide : 0;
  const std::int64_t stored = wants_w ? p.w * p.stored : 0;
  const bool is_cast = wants_w && p.stored != p.wide;

  row.forward.flops = 2 * p.rows * p.w;
  row.forward.moved = Bytes{p.x + p.w + p.y * p.wide};
  row.forward.streamed = Bytes{codes_of_x * ((p.x_is_fused ? 1 : 2) * p.wide + 1) +
                               (p.keeps_codes_of_x ? p.x * (p.wide + 1) : 0)};
  row.forward.kernels = 1 + (p.codes_x ? per_scaled : 0) + (p.keeps_codes_of_x ? 1 : 0);
  row.forward.workspace = Bytes{p.x + p.w};
  row.forward.scratch = float8_product_scratch;

  row.backward.flops = 2 * p.rows * p.w * std::popcount(p.wanted);
  row.backward.moved = Bytes{(wants_x ? p.y + p.w + dx : 0) + (wants_w ? p.y + p.x + dw : 0)};
  std::int64_t streamed = p.y * p.wide;         // its largest
  if (wants_x) streamed += p.y * (p.wide + 1);  // codes
  if (wants_w) streamed += p.y * (p.wide + 1);  // turned codes
  const bool makes_x = wants_w && p.codes_x && !p.keeps_codes_of_x;
  if (makes_x) streamed += 2 * p.needs.count + p.x;
  if (is_cast) streamed += p.w * (p.wide + p.stored);
  row.backward.streamed = Bytes{streamed};
  row.backward.kernels = std::popcount(p.wanted) + 2 + (wants_x ? 1 : 0) + (wants_w ? 1 : 0) +
                         (makes_x ? per_scaled : 0) + (is_cast ? 1 : 0);
  const std::int64_t beside_dx = wants_x ? p.y : 0;
  const std::int64_t x_anew = p.keeps_codes_of_x ? 0 : p.x;
  const std::int64_t beside_dw = wants_w ? p.y + x_anew + dw - stored : 0;
  row.backward.workspace = Bytes{std::max({beside_dx, beside_dw, is_cast ? dw : 0})};
  row.backward.scratch = float8_product_scratch;
  return row;
}

}  // namespace tidemark
