// What mamba_ssm's kernels allocate, move and multiply (state-spaces/mamba, ops/triton:
// ssd_combined.py, ssd_chunk_state.py, ssd_state_passing.py, ssd_bmm.py, ssd_chunk_scan.py,
// layernorm_gated.py). Tensors below a thousandth of x are left out.
//
//   z, x, B, C, dt ─conv, SiLU─► x, B, C ─by chunks: states, C·Bᵀ─► ─scan─► + D·x ─· silu(z)─►
//
// The forward keeps what it read and the result before the gate; the backward makes the rest again.
#include "traces/scan_ops.h"

#include <algorithm>
#include <utility>

namespace tidemark {
namespace {

constexpr std::int64_t wide = size_of(DType::Float32);
/// Of an H100: over so many the sums over a group's heads are split, and those of a norm's weight.
constexpr std::int64_t processors = 132;
/// The smallest blocks of rows and of a state's elements that are summed by one thread block.
constexpr std::int64_t block_rows = 32, block_of_state = 64;

/// Bytes of what there is one of each.
struct ScanBytes {
  explicit ScanBytes(const ScanSizes& s)
      : x(s.batch * s.tokens * s.inner() * size_of(s.dtype)),
        b(s.batch * s.tokens * s.groups * s.state * size_of(s.dtype)),
        dt(s.batch * s.tokens * s.heads * size_of(s.dtype)),
        conv(s.batch * s.tokens * s.channels() * size_of(s.dtype)),
        steps(chunks(s) * s.chunk * s.heads * wide),
        states(chunks(s) * s.inner() * s.state * wide),
        narrow_states(chunks(s) * s.inner() * s.state * size_of(s.dtype)),
        last_states(s.batch * s.inner() * s.state * wide),
        products(chunks(s) * s.groups * s.chunk * s.chunk * wide),
        wide_b(s.batch * s.tokens * s.groups * s.state * wide),
        state_sums(chunks(s) * s.heads * ceil_div(s.head_width * s.state, block_of_state) * wide),
        row_blocks(ceil_div(s.chunk, block_rows)),
        splits(splits_of(s)) {}

  /// Of all sequences.
  static std::int64_t chunks(const ScanSizes& s) { return s.batch * ceil_div(s.tokens, s.chunk); }

  // A thread block adds up over as many heads of a group as keep the processors busy.
  static std::int64_t splits_of(const ScanSizes& s) {
    const std::int64_t heads = s.heads / s.groups;
    const std::int64_t each = std::min(ceil_div(chunks(s) * s.heads, processors), heads);
    return ceil_div(heads, std::max<std::int64_t>(each, 1));
  }

  std::int64_t x, b, dt, conv;  ///< b: as large as C
  std::int64_t steps;           ///< dt as softplus leaves it, in whole chunks; so are its sums
  std::int64_t states, narrow_states, last_states;  ///< in front of each chunk, in fp32 and rounded
  std::int64_t products;                            ///< C·Bᵀ of each chunk
  std::int64_t wide_b, state_sums;
  std::int64_t row_blocks, splits;
};

// Each product once, and of those below the diagonal as much as is computed.
struct ScanFlops {
  explicit ScanFlops(const ScanSizes& s)
      : conv(2 * s.batch * s.tokens * s.channels() * s.kernel),
        states(2 * ScanBytes::chunks(s) * s.chunk * s.inner() * s.state),
        groups(2 * ScanBytes::chunks(s) * s.chunk * s.chunk * s.groups * s.state),
        triangle(ScanBytes::chunks(s) * s.chunk * (s.chunk + 1) * s.inner()) {}

  std::int64_t forward() const { return conv + groups + 2 * states + triangle; }
  // The states and products again; gradients of states, x (twice), B and C; of C·Bᵀ twice; of sums.
  std::int64_t backward() const { return 3 * conv + 3 * groups + 5 * states + 3 * triangle; }

  std::int64_t conv, states, groups, triangle;
};

// What the product and the norm in front of it add, where one call has them.
struct TailBytes {
  TailBytes(const ScanSizes& s, const ScanBytes& of)
      : result(s.batch * s.tokens * s.out * size_of(s.dtype)),
        weight(s.inner() * s.out * size_of(s.dtype)),
        roots(s.batch * s.tokens * s.groups * wide),
        product(of.x + weight + result),
        flops(2 * s.batch * s.tokens * s.inner() * s.out) {}

  std::int64_t result, weight, roots, product, flops;
};

// In front of the scan: conv, sums of steps, states, those passed on, C·Bᵀ.
std::int64_t moved_before(const ScanBytes& n) {
  return 2 * n.conv + n.dt + 2 * n.steps + (n.b + n.x + 2 * n.steps + n.states) +
         (2 * n.b + n.products);
}

std::int64_t moved_forward(const ScanBytes& n, bool is_gated) {
  const std::int64_t scan = n.products + n.x + 2 * n.steps + n.b + n.narrow_states;
  return moved_before(n) + n.states + n.narrow_states + n.last_states + scan +
         (is_gated ? 3 : 1) * n.x;
}

std::int64_t moved_backward(const ScanBytes& n, bool is_gated) {
  const std::int64_t split_b = n.splits * n.wide_b, split_products = n.splits * n.products;
  const std::int64_t again = moved_before(n) + 2 * n.dt + 2 * n.states + n.last_states;
  const std::int64_t gate = is_gated ? 6 * n.x : 0;
  const std::int64_t of_states =
      n.x + n.b + n.steps + n.states + 2 * n.states + 2 * n.narrow_states + 2 * n.state_sums;
  const std::int64_t of_x = 3 * n.x + n.products + n.b + n.narrow_states + 3 * n.steps;
  const std::int64_t of_b = n.x + 3 * n.steps + n.narrow_states + n.b + 2 * split_b + n.wide_b;
  const std::int64_t of_c = n.x + 2 * n.steps + n.narrow_states + n.b + 2 * split_b + n.wide_b;
  const std::int64_t of_products = 2 * n.x + 2 * n.steps + 2 * split_products + n.products;
  const std::int64_t joined = 2 * (2 * n.b + n.products + n.wide_b);
  const std::int64_t sums = 12 * n.steps + 2 * n.x + 3 * n.steps + n.products +
                            2 * n.row_blocks * n.steps + 2 * n.steps + 2 * n.dt;
  return again + gate + of_states + of_x + of_b + of_c + of_products + joined + sums + 3 * n.conv;
}

// Which of the moments needs most; what the op writes is there beside it.
OpaquePass forward_of(const ScanSizes& s, const ScanBytes& n) {
  const bool is_gated = s.out == 0;
  const TailBytes tail(s, n);
  const std::int64_t held = n.conv + 2 * n.steps + n.narrow_states;
  const std::int64_t unwritten = is_gated ? 2 * n.x : n.x + tail.result + tail.roots;
  const std::int64_t passing = held + n.states - unwritten;
  const std::int64_t scanning = held + n.products - (is_gated ? 0 : tail.result + tail.roots);
  const std::int64_t multiplying = is_gated ? 0 : held + n.x;
  OpaquePass pass{.workspace = Bytes{std::max({passing, scanning, multiplying})},
                  .flops = ScanFlops(s).forward(),
                  .kernels = 6};
  if (is_gated) {
    pass.moved = Bytes{moved_forward(n, true)};
    return pass;
  }
  pass.flops = *pass.flops + tail.flops;
  pass.moved = Bytes{tail.product};
  pass.streamed = Bytes{moved_forward(n, false) + 3 * n.x + tail.roots};  // and the norm
  pass.kernels += 2;
  return pass;
}

// autograd hands zeros to a backward for the last states, which nobody read.
OpaquePass backward_of(const ScanSizes& s, const ScanBytes& n) {
  const bool is_gated = s.out == 0, rounds = size_of(s.dtype) < wide;
  const TailBytes tail(s, n);
  const std::int64_t outside = is_gated ? 0 : 3 * n.x + n.last_states;
  const std::int64_t held = outside + 2 * n.conv + n.dt + 2 * n.steps + n.products + n.last_states;
  const std::int64_t gradient = is_gated ? n.x : 0;  // of what the gate read
  const std::int64_t states = 2 * n.narrow_states + gradient;
  const std::int64_t passing = 2 * n.states + (rounds ? 2 : 1) * n.narrow_states + n.state_sums;
  const std::int64_t of_c = states + 3 * n.steps + n.wide_b + (n.splits + 1) * n.wide_b;
  const std::int64_t of_products =
      states + 3 * n.steps + 2 * n.wide_b + (n.splits + 1) * n.products;
  const std::int64_t of_sums =
      states + 5 * n.steps + 2 * n.wide_b + n.products + n.row_blocks * n.steps;
  OpaquePass pass{
      .workspace = Bytes{held + std::max({passing + gradient, of_c, of_products, of_sums})},
      .flops = ScanFlops(s).backward(),
      .kernels = is_gated ? 46 : 50};
  if (is_gated) {
    pass.moved = Bytes{moved_backward(n, true)};
    return pass;
  }
  if (s.trains_product)  // the gradient of its weight is made last
    pass.workspace = std::max(pass.workspace - Bytes{tail.weight}, Bytes{outside + 2 * n.conv});
  pass.flops = *pass.flops + 2 * tail.flops;
  pass.moved = Bytes{2 * tail.product};
  pass.streamed = Bytes{moved_backward(n, false) + 6 * n.x + tail.roots + n.last_states};
  return pass;
}

ScanSizes sizes_of(const Trace& trace, const Op& op) {
  const auto inputs = trace.inputs(op), outputs = trace.outputs(op);
  const Shape &x = trace[inputs[0]].shape, &filter = trace[inputs[1]].shape;
  const Shape& states = trace[outputs[2]].shape;
  ScanSizes sizes{.batch = x[0],
                  .tokens = x[1],
                  .heads = states[1],
                  .head_width = states[2],
                  .state = states[3],
                  .kernel = filter.back(),
                  .chunk = static_cast<std::int64_t>(attribute(trace, op, AttributeKey::Window)),
                  .dtype = trace[inputs[0]].dtype};
  sizes.groups = (filter[0] - sizes.inner()) / 2 / sizes.state;
  return sizes;
}

std::string name_of(ScanOp op) { return std::string(scan_ops[static_cast<std::size_t>(op)].name); }

}  // namespace

std::optional<ScanOp> scan_op(const Trace& trace, const Op& op) {
  const OpaqueRow* const row = opaque_row(trace, op);
  if (!row) return {};
  const auto found = std::ranges::find(scan_ops, row->operation, &Named<ScanOp>::name);
  return found == scan_ops.end() ? std::optional<ScanOp>() : found->value;
}

OpaqueRow scan_row(const ScanSizes& sizes) {
  const ScanBytes bytes(sizes);
  const bool is_gated = sizes.out == 0;
  OpaqueRow row{.operation = name_of(is_gated ? ScanOp::Scan : ScanOp::ScanAndProduct),
                .gradients = is_gated ? 0b0011'1111U : 0b1111'1111U,
                .saved = output_bit(1),
                .math = sizes.dtype,
                .forward = forward_of(sizes, bytes),
                .backward = backward_of(sizes, bytes)};
  for (int i = 0; i < (is_gated ? 6 : 8); ++i) row.saved |= input_bit(i);
  if (!is_gated) row.saved |= output_bit(3);
  return row;
}

// The weight's gradient is summed by rows in fp32: over as many as keep the processors busy, four
// warps of 256 elements each (layernorm_gated.py).
OpaqueRow group_norm_row(const Tensor& x, std::int64_t groups) {
  constexpr std::int64_t of_warp = 256, warps_each = 4, most_warps = 8;
  const std::int64_t width = x.shape.back(), bytes = size(x).count;
  std::int64_t block = 1;
  while (block < width / groups) block *= 2;
  const std::int64_t warps = std::clamp<std::int64_t>(block / of_warp, 1, most_warps);
  const std::int64_t rows = ceil_div(processors * ceil_div(warps_each, warps), groups);
  return {.operation = name_of(ScanOp::GroupNorm),
          .gradients = 0b11,
          .saved = input_bit(0) | input_bit(1) | output_bit(1),
          .quantized = input_bit(0),
          .forward = {.moved = Bytes{2 * bytes}},
          .backward = {.workspace = Bytes{rows * width * wide},
                       .moved = Bytes{3 * bytes + 2 * rows * width * wide},
                       .kernels = 3}};
}

OpaqueRow decay_row(ScanOp op, std::int64_t heads) {
  const bool is_kept = op == ScanOp::Exponential;
  return {.operation = name_of(op),
          .gradients = 0b1,
          .saved = is_kept ? output_bit(0) : Operands{0},
          .forward = {.moved = Bytes{2 * heads * wide}},
          .backward = {.moved = Bytes{(is_kept ? 3 : 2) * heads * wide}}};
}

void recount_scan_ops(Trace& trace) {
  for (const Op& op : trace.ops) {
    const std::optional<ScanOp> kind = scan_op(trace, op);
    if (!kind) continue;
    const Tensor& x = trace[trace.inputs(op)[0]];
    OpaqueRow& row = trace.opaque_rows[index(op.opaque)];
    if (kind == ScanOp::Exponential || kind == ScanOp::Negative)
      row = decay_row(*kind, numel(x.shape));
    if (kind == ScanOp::Scan) row = scan_row(sizes_of(trace, op));
    if (kind == ScanOp::GroupNorm)
      row = group_norm_row(x, trace[trace.outputs(op)[1]].shape.back());
  }
}

}  // namespace tidemark
