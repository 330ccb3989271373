// A trace is the algorithm: the forward computation of one training step, op by op, with every
// tensor that it makes. The backward is derived from it; nothing here says where memory lives.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "traces/fill.h"
#include "traces/op_kind.h"
#include "traces/opaque.h"
#include "traces/recorded_calls.h"
#include "traces/step_options.h"
#include "traces/tensor.h"

namespace tidemark {

enum class AttributeKey : std::uint8_t {
  Heads,     ///< attention heads
  KeyHeads,  ///< heads of keys and values, if fewer
  Causal,    ///< 1 = a token sees only itself and those before it
  Window,    ///< tokens per side of an attention window, or the sliding window in tokens
  Shift,     ///< cyclic shift in tokens
  Stride,    ///< of a convolution or pooling
  Padding,
  Groups,           ///< of a convolution
  Probability,      ///< of dropping
  Factor,           ///< of Scale; of fused attention's scores, where it is not 1/√d
  Epsilon,          ///< of a norm
  TanhApprox,       ///< 1 = tanh form of GELU
  LayoutTransform,  ///< of ops that only move elements: a LayoutTransform, written by name
  Offset,           ///< first index of a slice
  MemoryEfficient,  ///< 1 = fused attention in the kernel that xFormers brought
  Axis,             ///< that a formula looks up or sums along, counted from the first
  Neighbours,       ///< 1 = a rotation turns elements beside each other, not half a row apart
};

inline constexpr std::array attribute_keys = {
    Named{AttributeKey::Heads, std::string_view("heads")},
    Named{AttributeKey::KeyHeads, std::string_view("key_heads")},
    Named{AttributeKey::Causal, std::string_view("causal")},
    Named{AttributeKey::Window, std::string_view("window")},
    Named{AttributeKey::Shift, std::string_view("shift")},
    Named{AttributeKey::Stride, std::string_view("stride")},
    Named{AttributeKey::Padding, std::string_view("padding")},
    Named{AttributeKey::Groups, std::string_view("groups")},
    Named{AttributeKey::Probability, std::string_view("probability")},
    Named{AttributeKey::Factor, std::string_view("factor")},
    Named{AttributeKey::Epsilon, std::string_view("epsilon")},
    Named{AttributeKey::TanhApprox, std::string_view("tanh_approx")},
    Named{AttributeKey::LayoutTransform, std::string_view("layout_transform")},
    Named{AttributeKey::Offset, std::string_view("offset")},
    Named{AttributeKey::MemoryEfficient, std::string_view("memory_efficient")},
    Named{AttributeKey::Axis, std::string_view("axis")},
    Named{AttributeKey::Neighbours, std::string_view("neighbours")}};
static_assert(is_in_order(attribute_keys));

/// What becomes of the axes where elements only move. Without one: the row-major order stays, or
/// where there are fewer elements, one axis is cut from Offset on.
enum class LayoutTransform : std::uint8_t {
  Reshape,
  Slice,          ///< along the one axis that shrinks, from Offset on
  SplitHeads,     ///< [b, t, (h d)] → [b, h, t, d]; of wider rows, from column Offset on
  MergeHeads,     ///< [b, h, t, d] → [b, t, (h d)]
  ChannelsFirst,  ///< […, t, c] → […, c, (t, in any shape)]; swaps the last two axes
  ChannelsLast,   ///< […, c, (t, in any shape)] → […, t, c]
  CutWindows,  ///< [b, (y x), c] → [(b windows), (tokens of a window), c], rolled by Shift before
  JoinWindows,   ///< the inverse
  Roll,          ///< [b, (y x), c]: (y, x) is read from (y + Shift, x + Shift), cyclic
  Unroll,        ///< the inverse
  PatchMerging,  ///< [b, (y x), c] → [b, y, x, c]: every second row and column, from
                 ///< (Offset mod 2, Offset / 2) on
  ToRows,        ///< [b, h, (y x), d] → [y, (b h x), d]
  ToColumns,     ///< [b, h, (y x), d] → [x, (b h y), d]
  FromRows,      ///< [y, (b h x), k] → [b, h, y, x, k…]
  FromColumns,   ///< [x, (b h y), k] → [b, h, y, x, k…]
};

inline constexpr std::array layout_transforms = {
    Named{LayoutTransform::Reshape, std::string_view("reshape")},
    Named{LayoutTransform::Slice, std::string_view("slice")},
    Named{LayoutTransform::SplitHeads, std::string_view("split_heads")},
    Named{LayoutTransform::MergeHeads, std::string_view("merge_heads")},
    Named{LayoutTransform::ChannelsFirst, std::string_view("channels_first")},
    Named{LayoutTransform::ChannelsLast, std::string_view("channels_last")},
    Named{LayoutTransform::CutWindows, std::string_view("cut_windows")},
    Named{LayoutTransform::JoinWindows, std::string_view("join_windows")},
    Named{LayoutTransform::Roll, std::string_view("roll")},
    Named{LayoutTransform::Unroll, std::string_view("unroll")},
    Named{LayoutTransform::PatchMerging, std::string_view("patch_merging")},
    Named{LayoutTransform::ToRows, std::string_view("to_rows")},
    Named{LayoutTransform::ToColumns, std::string_view("to_columns")},
    Named{LayoutTransform::FromRows, std::string_view("from_rows")},
    Named{LayoutTransform::FromColumns, std::string_view("from_columns")}};
static_assert(is_in_order(layout_transforms));

struct Attribute {
  AttributeKey key;
  double value = 0;
  bool operator==(const Attribute&) const = default;
};

/// The half of a block that an op belongs to. A reversible coupling computes Y1 = X1 + F(X2),
/// Y2 = X2 + G(Y1).
enum class Part : std::uint8_t { None, F, G };

inline constexpr std::array part_names = {Named{Part::None, std::string_view("none")},
                                          Named{Part::F, std::string_view("f")},
                                          Named{Part::G, std::string_view("g")}};
static_assert(is_in_order(part_names));

/// Into Trace::lines. Two bytes: they fit where an op would be padded.
enum class LineId : std::uint16_t {};
constexpr std::size_t index(LineId id) { return static_cast<std::size_t>(id); }
inline constexpr LineId no_line{0xffff};

/// Operands and attributes live in pools of the trace: an op is small, and a trace of a million
/// ops is four flat arrays.
struct Op {
  Name name;  ///< module path, "blocks.3.attn.qkv"
  OpKind kind{};
  Part part = Part::None;
  bool residual = false;  ///< the add that closes a residual branch: shortcut + branch
  std::uint16_t inputs = 0;
  std::uint16_t outputs = 0;
  std::uint16_t attributes = 0;
  LineId line = no_line;  ///< of the model's code, where the op was called
  std::int32_t block = -1;
  std::uint32_t first_operand = 0;  ///< inputs, then outputs
  std::uint32_t first_attribute = 0;
  Operands also_keeps = 0;      ///< what the framework's node holds beyond what the gradient needs
  OpaqueId opaque = no_opaque;  ///< the row of an opaque op
  std::uint64_t rng_key = 0;    ///< random ops: (seed, op) → the same numbers whenever it runs

  bool operator==(const Op&) const = default;
};

/// A transformer block: ops [begin, end), fed by `input`. Blocks of one `stack` are equal in shape
/// and directly chained, so they may become one reversible stack; −1 = never reversible.
struct Block {
  Name name;
  OpId begin{}, end{};
  TensorId input = no_tensor;
  std::int32_t stack = -1;
  /// Blocks of one segment are what the model's own checkpointing wraps, with all that lies behind
  /// them up to the next block; −1 = each block by itself.
  std::int32_t segment = -1;
  /// Predicts a further token, behind all blocks that do not: stages deal out those alone.
  bool is_further = false;

  bool operator==(const Block&) const = default;
};

struct Trace;

/// What a compiler has made a trace of, for who compiles it anew in another way. No file has it,
/// and traces without are equal to those with it.
struct EagerSource {
  std::shared_ptr<const Trace> trace = {};

  bool operator==(const EagerSource&) const { return true; }
};

struct Trace {
  std::string model;   ///< preset or file the trace was built from
  std::string family;  ///< "vit", "swin", …; "" when unknown
  StepOptions step;
  NamePool names;  ///< where those of tensors, ops and blocks lie
  std::vector<Tensor> tensors;
  std::vector<Op> ops;
  std::vector<TensorId> operands;
  std::vector<Attribute> attributes;
  std::vector<Block> blocks;
  std::vector<InputFill> fills;
  std::vector<OpaqueRow> opaque_rows;         ///< in the order of their ops
  std::vector<std::string> lines;             ///< of the model's code; in the order of their ops
  std::optional<RecordedUpdate> update = {};  ///< instead of what the step's optimizer would do
  std::optional<RecordedCalls> calls = {};    ///< of the capture
  EagerSource eager = {};                     ///< of a compiled step
  TensorId loss = no_tensor;

  const Tensor& operator[](TensorId id) const { return tensors[index(id)]; }
  const Op& operator[](OpId id) const { return ops[index(id)]; }
  std::span<const TensorId> inputs(const Op& op) const {
    return {operands.data() + op.first_operand, op.inputs};
  }
  std::span<const TensorId> outputs(const Op& op) const {
    return {operands.data() + op.first_operand + op.inputs, op.outputs};
  }
  std::span<const Attribute> attributes_of(const Op& op) const {
    return {attributes.data() + op.first_attribute, op.attributes};
  }
  bool operator==(const Trace&) const = default;
};

/// How many of the blocks stages share: all but those of further tokens, which come last.
std::size_t shared_blocks(const Trace& trace);

/// How the tensor is filled before the step; nullptr: with random numbers.
const InputFill* fill_of(const Trace& trace, const Tensor& tensor);

/// The attribute's value, or `otherwise`.
double attribute(const Trace& trace, const Op& op, AttributeKey key, double otherwise = 0);

/// Tensor of an operand bit position: inputs count from 0, outputs from 16; no_tensor if the op
/// has no such operand.
TensorId operand(const Trace& trace, const Op& op, int bit);

/// The row of an opaque op; nullptr for the kinds of the table.
inline const OpaqueRow* opaque_row(const Trace& trace, const Op& op) {
  return op.kind == OpKind::Opaque ? &trace.opaque_rows[index(op.opaque)] : nullptr;
}

/// File and line of the model's code that called the op; "" where nobody wrote it down.
inline std::string_view line_of(const Trace& trace, const Op& op) {
  return op.line == no_line ? std::string_view() : trace.lines[index(op.line)];
}

/// By the tensor that owns the memory, line_of() the op that made it; "" for what was there before.
std::vector<std::string_view> lines_by_tensor(const Trace& trace);

/// What the op does, for people: its kind, or what the framework calls an opaque one.
std::string_view operation_name(const Trace& trace, const Op& op);

/// Does it put a constant beside its first input (constant_pad_nd)?
bool is_padding(const Trace& trace, const Op& op);

/// Where the gradient of an input comes from, by the op's row. PyTorch copies what padding leaves
/// of a gradient, where of other concatenations it takes a view (constant_pad_nd() of
/// PadNd.cpp, with negative numbers).
inline GradientRule gradient_rule(const Trace& trace, const Op& op, std::size_t input) {
  if (op.kind == OpKind::Concat && is_padding(trace, op)) return {.flow = Flow::Fresh};
  const OpaqueRow* row = opaque_row(trace, op);
  if (!row) return row_of(op.kind).gradients[input < 3 ? input : 2];
  if ((row->gradients >> input & 1) == 0) return {};
  if (row->handed_on >> input & 1) return {.flow = Flow::Alias, .needs = row->saved};
  const Operands over = row->written_over & (Operands{1} << input);
  return {.flow = Flow::Fresh, .needs = row->saved, .over = over};
}

/// Of what the op's backward reads, what Mesa may keep in eight bits.
Operands quantized_operands(const Trace& trace, const Op& op);

/// Must not run again, whatever else that makes impossible?
bool runs_once(const Trace& trace, const Op& op);

/// What the op's backward holds, given which of its inputs require a gradient (bit i = input i):
/// the union of the rows' needs plus what the framework keeps, restricted to operands that exist.
Operands saved_operands(const Trace& trace, const Op& op, std::uint32_t inputs_with_gradient);

/// Per tensor: not 0 if it depends on a trainable one.
std::vector<std::uint8_t> requires_gradient(const Trace& trace);

/// Bit i is set if input i of the op is differentiable and requires a gradient.
std::uint32_t inputs_with_gradient(const Trace& trace, const Op& op,
                                   std::span<const std::uint8_t> requires_gradient);

/// Every defect of the trace, in order, each one line with a JSON pointer; empty if it is sound:
/// ids in range, inputs produced earlier or external, storages of sufficient size, shapes that
/// agree with the op kind, blocks in order, total below 2^58 bytes.
std::vector<std::string> check(const Trace& trace);

}  // namespace tidemark
