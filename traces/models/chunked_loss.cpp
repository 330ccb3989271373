// Both losses are opaque ops: their logits are workspace, made in the forward and in the backward.
#include "traces/models/chunked_loss.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/units.h"

namespace tidemark {
namespace {

constexpr std::string_view of_chunk = "checkpointed linear_cross_entropy";
constexpr std::string_view of_liger = "liger_kernel::fused_linear_cross_entropy";

constexpr std::int64_t fp32 = 4;

/// The sizes of a product of rows with the table.
struct Product {
  std::int64_t rows, vocabulary, width;
  std::int64_t element;   ///< bytes of a logit
  bool table_is_trained;  ///< so that it gets a gradient

  std::int64_t logits() const { return rows * vocabulary; }
  std::int64_t flops() const { return 2 * logits() * width; }
  std::int64_t gradients() const {
    return element * (rows * width + (table_is_trained ? vocabulary * width : 0));
  }
};

OpaquePass pass(std::int64_t workspace, std::int64_t flops, const Product& p, int kernels) {
  const std::int64_t operands = p.element * (p.rows + p.vocabulary) * p.width;
  return {.workspace = Bytes{workspace},
          .flops = flops,
          .moved = Bytes{operands + 2 * workspace},
          .kernels = kernels};
}

// def chunk_loss(x, table, labels): return cross_entropy((x @ table.T).float(), labels), under
// torch.utils.checkpoint. Forward: logits, in fp32 if they are not, and their log-softmax. Then
// again, and the gradients of log-softmax and logits in fp32 beside it; those of x and of the table
// come when only the logits' gradient is left.
OpaqueRow chunk_row(const Product& p, Operands saved) {
  const std::int64_t forward = p.logits() * (p.element == fp32 ? 2 * fp32 : p.element + 2 * fp32);
  const std::int64_t scores = 3 * fp32 * p.logits();
  const std::int64_t backward = std::max(p.element * p.logits(), scores - p.gradients());
  OpaqueRow row{.operation = std::string(of_chunk), .gradients = 0b11, .saved = saved};
  row.forward = pass(forward, p.flops(), p, 4);
  row.backward = pass(backward, p.flops() * (p.table_is_trained ? 3 : 2), p, 9);
  return row;
}

// ops/fused_linear_cross_entropy.py of Liger 0.6.4 and 0.8.5. As many rows at once as make the
// logits about as large as x: a power of two. Its kernel turns them into their gradient in place,
// and both products follow, chunk by chunk: that of the table's gradient is a tensor, and another
// one in fp32, before it is added. The logits of the next chunk come beside those of the last.
// Under autocast the table is cast, and autocast keeps the cast. What Liger makes in the forward,
// the gradients of x and of the table, stand at the begin of the backward here: nothing runs in
// between.
OpaqueRow liger_row(const Product& p, Operands saved, bool autocast) {
  const auto wanted = static_cast<std::uint64_t>(ceil_div(p.rows, ceil_div(p.vocabulary, p.width)));
  const std::int64_t chunk = std::min(p.rows, static_cast<std::int64_t>(std::bit_ceil(wanted)));
  const std::int64_t table = p.vocabulary * p.width;
  const std::int64_t logits = chunk * p.vocabulary * p.element;
  const std::int64_t of_table = table * (p.element == fp32 ? fp32 : p.element + fp32);
  const std::int64_t of_next_chunk = chunk < p.rows ? logits : 0;
  std::int64_t workspace = logits + fp32 * p.rows;
  workspace += std::max(p.table_is_trained ? of_table : 0, of_next_chunk);
  if (autocast) workspace += table * p.element;
  const auto chunks = static_cast<int>(std::min<std::int64_t>(ceil_div(p.rows, chunk), 2000));
  OpaqueRow row{.operation = std::string(of_liger), .gradients = 0b11, .saved = saved};
  row.forward = pass(workspace, p.flops(), p, 2 * chunks);
  row.backward = pass(workspace, p.flops() * (p.table_is_trained ? 2 : 1), p, 2 * chunks);
  return row;
}

struct Rows {
  TensorId x, labels;
};

// Up to transformers 4.47 all but the last token are scored; later the labels are shifted.
Rows scored_rows(TraceBuilder& b, TensorId x) {
  const std::int64_t batch = b.shape(x)[0], tokens = b.shape(x)[1], width = b.shape(x)[2];
  const Framework& framework = b.framework();
  const bool shifts = framework.shifts_logits && tokens > 1;
  const std::int64_t scored = shifts ? tokens - 1 : tokens;
  const std::int64_t given = framework.shifts_labels ? tokens + 1 : tokens;
  TensorId labels = b.input("labels", {batch, given}, DType::Int64, fill::Words{});
  if (shifts) x = b.copy("hidden.shift", x, {batch, scored, width});
  if (shifts || framework.shifts_labels)
    labels = b.copy("labels.shift", labels, {batch, scored}, LayoutTransform::Slice,
                    {{AttributeKey::Offset, 1}});
  return {b.view("hidden.rows", x, {batch * scored, width}),
          b.view("labels.rows", labels, {batch * scored})};
}

std::vector<TensorId> chunks_of(TraceBuilder& b, TensorId rows, std::int64_t chunks) {
  static constexpr std::array<std::string_view, TokenLoss::most_chunks> suffixes = {
      "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15"};
  const std::int64_t all = b.shape(rows)[0], each = ceil_div(all, chunks);
  std::vector<Shape> shapes;
  for (std::int64_t begin = 0; begin < all; begin += each)
    shapes.push_back({std::min(each, all - begin), b.shape(rows).back()});
  if (shapes.size() == 1) return {rows};
  return b.split("hidden.chunks", rows, shapes,
                 {suffixes.begin(), suffixes.begin() + shapes.size()});
}

}  // namespace

bool is_chunked_loss(const OpaqueRow& row) {
  return row.operation == of_chunk || row.operation == of_liger;
}

TensorId chunked_token_loss(TraceBuilder& b, TensorId x, TensorId table, TensorId bias) {
  const TokenLoss loss = b.step().loss.value_or(TokenLoss{TokenLoss::Kind::FusedLinear});
  const bool trained = b[table].trainable;
  const bool is_liger = loss.kind == TokenLoss::Kind::FusedLinear;
  const Rows rows = scored_rows(b, x);
  const bool autocast = b[table].dtype != b.compute_dtype();
  const TensorId read_table = is_liger ? table : b.to_compute(table);
  const std::int64_t element = size_of(b.compute_dtype());
  const OutputSpec scalar{"", {}, DType::Float32};
  const auto op = [&](const std::string& name, TensorId chunk, TensorId labels) {
    std::vector<TensorId> inputs = {chunk, read_table, labels};  // what a checkpoint keeps, uncast
    Operands saved = input_bit(0) | input_bit(1);
    if (!is_liger) saved |= input_bit(2);
    if (bias != no_tensor) inputs.push_back(is_liger ? bias : b.to_compute(bias));
    const Product p{b.shape(chunk)[0], b.shape(table)[0], b.shape(table)[1], element, trained};
    OpaqueRow row = is_liger ? liger_row(p, saved, autocast) : chunk_row(p, saved);
    if (bias != no_tensor) row.gradients |= 0b1000;
    row.math = b.compute_dtype();
    return b.opaque(name, inputs, std::span(&scalar, 1), std::move(row));
  };
  if (is_liger) return op("loss", rows.x, rows.labels);
  const std::vector<TensorId> chunks = chunks_of(b, rows.x, loss.chunks);
  std::vector<TensorId> losses;
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const std::int64_t count = b.shape(chunks[i])[0];
    const TensorId labels = chunks.size() == 1
                                ? rows.labels
                                : b.select(fmt::format("labels.chunk{}", i), rows.labels, {count},
                                           LayoutTransform::Slice, begin);
    losses.push_back(op(fmt::format("loss.chunk{}", i), chunks[i], labels));
    begin += count;
  }
  return losses.size() == 1 ? losses[0] : b.average("loss", losses);
}

}  // namespace tidemark
