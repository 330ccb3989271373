// Pairs as TRL 1.16's DPOTrainer scores them (trainer/dpo_trainer.py, kernels/chunked_logprob.py):
//   model ─ rows of scored tokens ─ log-probabilities ─┐
//   reference, without gradients ─ … ──────────────────┴─ −log σ(β·(Δ chosen − Δ rejected)), its
//   mean
// The reference runs when the model has run, beside all that the model's backward needs.
#include "traces/models/preference_loss.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "traces/models/language_model.h"

namespace tidemark {
namespace {

constexpr std::string_view of_words = "trl::ChunkedLogProbFunction";

/// Of a tile of logits; it has this width whatever the vocabulary is.
constexpr std::int64_t tile_rows = 4096, tile_width = 32768;

/// The sizes of a product of scored rows with the table.
struct Scores {
  std::int64_t rows, vocabulary, width;
  std::int64_t element;    ///< bytes of a logit
  std::int64_t of_hidden;  ///< … of an element of the rows
  std::int64_t of_table;
  bool table_is_trained;

  std::int64_t tile() const { return std::min(rows, tile_rows) * tile_width * element; }
  // Autocast's, which the function makes by itself: of the rows and of the table's part.
  std::int64_t casts() const {
    const std::int64_t x = of_hidden == element ? 0 : std::min(rows, tile_rows);
    const std::int64_t w = of_table == element ? 0 : std::min(vocabulary, tile_width);
    return (x + w) * width * element;
  }
  std::int64_t logits() const { return rows * vocabulary; }
  int tiles() const {
    const std::int64_t count = ceil_div(rows, tile_rows) * ceil_div(vocabulary, tile_width);
    return static_cast<int>(std::min<std::int64_t>(count, most_opaque_kernels / 4));
  }
};

// A tile of logits, and seven numbers per row that are updated tile by tile.
OpaquePass forward_pass(const Scores& s) {
  constexpr std::int64_t statistics = 7;
  const std::int64_t operands = (s.rows * s.of_hidden + s.vocabulary * s.of_table) * s.width;
  return {.workspace = Bytes{s.tile() + s.casts() + statistics * size_of(DType::Float32) * s.rows},
          .flops = 2 * s.logits() * s.width,
          .moved = Bytes{operands + 2 * s.element * s.logits()},
          .kernels = 2 * s.tiles()};
}

// Tiles are made again and become their gradient in place. Both gradients are added up in fp32, of
// fp32 copies of both operands (PyTorch before 2.8 has no other way), and rounded at the end.
OpaquePass backward_pass(const Scores& s) {
  constexpr std::int64_t fp32 = size_of(DType::Float32);
  const std::int64_t of_rows = s.rows * s.width;
  const std::int64_t of_table = s.table_is_trained ? s.vocabulary * s.width : 0;
  const std::int64_t sums =
      fp32 * ((s.of_hidden == fp32 ? 0 : of_rows) + (s.of_table == fp32 ? 0 : of_table));
  const std::int64_t rounded = (s.of_hidden == fp32 ? 0 : s.of_hidden * of_rows) +
                               (s.of_table == fp32 ? 0 : s.of_table * of_table);
  const std::int64_t rows = std::min(s.rows, tile_rows);
  const std::int64_t columns = std::min(s.vocabulary, tile_width);
  const std::int64_t other = s.table_is_trained ? std::max(columns, rows) : columns;
  const std::int64_t copies = s.element == fp32 ? 0 : fp32 * (rows * columns + other * s.width);
  const std::int64_t held = sums + s.tile() + s.casts();
  const int products = s.table_is_trained ? 3 : 2;
  return {.workspace = Bytes{std::max(held + copies - rounded, held)},
          .flops = 2 * products * s.logits() * s.width,
          .moved = Bytes{(2 + 2 * products) * s.element * s.logits() + 2 * copies * s.tiles() +
                         2 * fp32 * (of_rows + of_table)},
          .kernels = (1 + products + (copies > 0 ? 2 * (products - 1) : 0)) * s.tiles()};
}

// x[:, :-1][mask]: PyTorch finds where the mask is set, as two numbers per row, in each direction
// (three kernels); then it looks up, or sorts, and adds to zeros.
TensorId scored_rows(TraceBuilder& b, TensorId x, TensorId mask) {
  const Shape s = b.shape(x);
  const TensorId before = b.select("hidden.before", x, {s[0], s[1] - 1, s[2]});
  const std::int64_t rows = s[0] * (s[1] - 1);
  OpaqueRow row{.operation = "aten::index", .gradients = 0b01, .saved = input_bit(1)};
  row.forward.workspace = row.backward.workspace = Bytes{2 * size_of(DType::Int64) * rows};
  row.forward.moved = row.backward.moved = Bytes{2 * rows * s[2] * size_of(b[x].dtype)};
  row.forward.kernels = 4, row.backward.kernels = 6;
  const OutputSpec result{"", {rows, s[2]}, b[x].dtype};
  return b.opaque("hidden.scored", std::array{before, mask}, std::span(&result, 1), std::move(row));
}

// Keeps rows, table and labels, and each row's log-sum-exp and entropy.
OpaqueRow row_of_words(const TraceBuilder& b, TensorId rows, TensorId table) {
  const Scores sizes{.rows = b.shape(rows)[0],
                     .vocabulary = b.shape(table)[0],
                     .width = b.shape(rows)[1],
                     .element = size_of(b.compute_dtype()),
                     .of_hidden = size_of(b[rows].dtype),
                     .of_table = size_of(b[table].dtype),
                     .table_is_trained = b[table].trainable};
  return {.operation = std::string(of_words),
          .gradients = 0b0011,
          .saved = input_bit(0) | input_bit(1) | input_bit(2) | output_bit(1) | output_bit(2),
          .math = b.compute_dtype(),
          .forward = forward_pass(sizes),
          .backward = backward_pass(sizes)};
}

// [sequences · (tokens − 1)]. What the blocks made has a name until then.
TensorId log_probabilities(TraceBuilder& b, const HiddenWords& hidden, const DecoderHead& head,
                           TensorId mask) {
  const Shape s = b.shape(hidden.x);
  const TensorId labels = b.input("labels", {s[0], s[1] - 1}, DType::Int64, fill::Words{});
  b.begin_function();
  const TensorId rows = scored_rows(b, b.local(hidden.x), mask);
  const Shape per_row = {b.shape(rows)[0]};
  const TensorId wanted = b.copy("labels.scored", labels, per_row);
  const TensorId table = vocabulary_table(b, "lm_head", rows,
                                          head.is_tied ? hidden.table : no_tensor, head.vocabulary);
  std::vector<TensorId> inputs = {rows, table, wanted};
  if (head.bias) inputs.push_back(b.parameter("lm_head.bias", {head.vocabulary}));
  OpaqueRow row = row_of_words(b, rows, table);
  if (head.bias) row.gradients |= 0b1000;
  const std::array outputs = {OutputSpec{"", per_row, DType::Float32},
                              OutputSpec{"lse", per_row, DType::Float32},
                              OutputSpec{"entropy", per_row, DType::Float32}};
  const TensorId scores = b.opaque("log_probabilities", inputs, outputs, std::move(row));
  b.end_function();
  return scores;
}

// Sums per sequence, differences per pair, and the mean of what a sigmoid makes of these.
TensorId loss_of_pairs(TraceBuilder& b, TensorId mine, TensorId reference, TensorId mask) {
  OpaqueRow row{
      .operation = "trl::dpo_loss", .gradients = 0b001, .saved = input_bit(2) | output_bit(1)};
  row.forward.moved = row.backward.moved = Bytes{4 * size(b[mine]).count};
  row.forward.kernels = 13;  // of both: zeros, scatter, sum; three differences, · β, log σ, −, mean
  row.backward.kernels = 8;  // of these four and of a difference; halves joined, spread, picked
  const std::array outputs = {OutputSpec{"", {}, DType::Float32},
                              OutputSpec{"margins", {b.step().batch}, DType::Float32}};
  return b.opaque("loss", std::array{mine, reference, mask}, outputs, std::move(row));
}

void require_known_reference(const StepOptions& step) {
  const Tuning::Kind kind = step.tuning.kind;
  if (prompt_tokens(step.tuning) + prefix_tokens(step.tuning) > 0 || !step.tuning.whole.empty())
    throw UsageError(
        "--loss: what the reference is beside learned tokens and copied modules is not known (take "
        "--tuning full, or lora:r=8 without save=)");
  if (step.linears)
    throw UsageError(
        "--loss: what a reference multiplies in beside linears in eight bits is not known (leave "
        "--linears out)");
  if (step.base && kind != Tuning::Kind::Full && !step.tuning.base_dtype)
    throw UsageError(
        "--loss: on a base in few bits TRL makes adapters 16 bits wide (add dtype=base to "
        "--tuning)");
}

}  // namespace

bool is_preference_loss(const OpaqueRow& row) { return row.operation == of_words; }

TensorId preference_loss(TraceBuilder& b, const std::function<HiddenWords()>& model,
                         const DecoderHead& head) {
  require_known_reference(b.step());
  const HiddenWords hidden = model();
  const Shape s = b.shape(hidden.x);
  if (s[1] < 2) throw UsageError("--loss: a pair needs a sequence of 2 tokens or more");
  const TensorId mask = b.input("label_mask", {s[0], s[1] - 1}, DType::Bool);
  const TensorId mine = log_probabilities(b, hidden, head, mask);
  if (b.step().loss->precomputed)
    return loss_of_pairs(b, mine, b.input("reference_log_probabilities", {s[0]}, DType::Float32),
                         mask);
  b.begin_reference();
  const TensorId reference = log_probabilities(b, model(), head, mask);
  b.end_reference();
  return loss_of_pairs(b, mine, reference, mask);
}

}  // namespace tidemark
