// The CUDA kernels that move elements, emulated, against their CPU twins, with the rearrangements
// that traces make.
#include "kernels/layout_transform/layout_transform.cu"

#include "tests/emulation/twin.h"
#include "traces/trace.h"

namespace tidemark::layout_transform_test {
namespace {

/// A trace of one op, as far as rearrangement_of() reads it.
class OneOp {
 public:
  OneOp(OpKind kind, const std::vector<Shape>& inputs, const std::vector<Shape>& outputs,
        std::initializer_list<Attribute> attributes = {}) {
    Op op;
    op.kind = kind, op.name = "op";
    op.inputs = static_cast<decltype(op.inputs)>(inputs.size());
    op.outputs = static_cast<decltype(op.outputs)>(outputs.size());
    for (const Shape& shape : inputs) add(shape);
    for (const Shape& shape : outputs) add(shape);
    op.attributes = static_cast<decltype(op.attributes)>(attributes.size());
    trace_.attributes.assign(attributes);
    trace_.ops.push_back(op);
    for (std::size_t k = 0; k < std::max(inputs.size(), outputs.size()); ++k)
      if (k == 0 || kind == OpKind::Concat || kind == OpKind::Split)
        moves.push_back(rearrangement_of(trace_, trace_.ops[0], k));
  }
  std::vector<Rearrangement> moves;

 private:
  void add(const Shape& shape) {
    Tensor tensor;
    tensor.shape = shape;
    trace_.operands.push_back(static_cast<TensorId>(trace_.tensors.size()));
    trace_.tensors.push_back(tensor);
  }
  Trace trace_;
};

struct Example {
  LayoutTransform layout_transform;
  Shape from, to;
  double window = 0, shift = 0, offset = 0;
};

const std::array examples = {
    Example{LayoutTransform::Reshape, {6, 4, 33}, {24, 33}},
    Example{LayoutTransform::Slice, {3, 9, 32}, {3, 4, 32}, 0, 0, 2},
    Example{LayoutTransform::Slice, {3, 9, 33}, {3, 33}, 0, 0, 5},
    Example{LayoutTransform::SplitHeads, {2, 7, 48}, {2, 3, 7, 16}},
    Example{LayoutTransform::SplitHeads, {2, 7, 72}, {2, 3, 7, 8}, 0, 0, 24},
    Example{LayoutTransform::MergeHeads, {2, 3, 7, 16}, {2, 7, 48}},
    Example{LayoutTransform::ChannelsFirst, {2, 35, 67}, {2, 67, 35}},
    Example{LayoutTransform::ChannelsFirst, {2, 36, 5}, {2, 5, 6, 6}},
    Example{LayoutTransform::ChannelsLast, {2, 40, 33}, {2, 33, 40}},
    Example{LayoutTransform::CutWindows, {2, 64, 24}, {8, 16, 24}, 4},
    Example{LayoutTransform::CutWindows, {2, 64, 24}, {8, 16, 24}, 4, 2},
    Example{LayoutTransform::CutWindows, {2, 36, 3}, {8, 9, 3}, 3, 1},
    Example{LayoutTransform::JoinWindows, {8, 16, 24}, {2, 64, 24}, 4, 2},
    Example{LayoutTransform::JoinWindows, {8, 9, 3}, {2, 36, 3}, 3, 1},
    Example{LayoutTransform::Roll, {2, 36, 16}, {2, 36, 16}, 0, 2},
    Example{LayoutTransform::Unroll, {2, 36, 16}, {2, 36, 16}, 0, 2},
    Example{LayoutTransform::PatchMerging, {2, 36, 16}, {2, 9, 16}, 0, 0, 3},
};

OneOp op_of(const Example& e) {
  return {OpKind::Copy,
          {e.from},
          {e.to},
          {{AttributeKey::LayoutTransform, static_cast<double>(e.layout_transform)},
           {AttributeKey::Window, e.window},
           {AttributeKey::Shift, e.shift},
           {AttributeKey::Offset, e.offset}}};
}

TEST(LayoutTransformTwins, CopiesOfEveryKind) {
  for (const Example& e : examples)
    for (const DType dtype : data_dtypes)
      for (const Lie lie : lies) {
        SCOPED_TRACE(to_text(e.from) + " " + to_text(e.to));
        CallMaker up;
        up.call.moves = op_of(e).moves;
        up.input(e.from, dtype, lie).output(e.to, dtype);
        expect_twins(up.finish(0), cpu::copy_forward, cuda::copy_forward);
        CallMaker down;
        down.call.moves = up.call.moves;
        down.absent_input(e.from, dtype).absent_output(e.to, dtype);
        down.d_output(e.to, dtype).d_input(e.from, dtype, lie);
        expect_twins(down.finish(0), cpu::copy_backward, cuda::copy_backward);
      }
}

TEST(LayoutTransformTwins, AllSizesOfElements) {
  for (const DType dtype : {DType::UInt8, DType::Int64, DType::Float64}) {
    const Example e{LayoutTransform::ChannelsFirst, {2, 35, 67}, {2, 67, 35}};
    CallMaker maker;
    maker.call.moves = op_of(e).moves;
    Values x(static_cast<std::size_t>(numel(e.from)));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i % 251);
    maker.input_of(e.from, x, dtype).output(e.to, dtype);
    expect_twins(maker.finish(0), cpu::copy_forward, cuda::copy_forward);
  }
}

TEST(LayoutTransformTwins, SplitWithAnAbsentPiece) {
  const OneOp op(OpKind::Split, {{2, 5, 24}}, {{2, 5, 8}, {2, 5, 8}, {2, 5, 8}});
  for (const bool is_whole : {true, false}) {
    CallMaker maker;
    maker.call.moves = op.moves;
    maker.absent_input({2, 5, 24});
    for (int k = 0; k < 3; ++k) maker.absent_output({2, 5, 8});
    maker.d_output({2, 5, 8});
    is_whole ? maker.d_output({2, 5, 8}) : maker.absent_d_output({2, 5, 8});
    maker.d_output({2, 5, 8}, DType::Float32, Lie::Padded).d_input({2, 5, 24});
    expect_twins(maker.finish(0), cpu::split_backward, cuda::split_backward);
  }
}

TEST(LayoutTransformTwins, ConcatOfATokenThatSpreads) {
  const OneOp op(OpKind::Concat, {{1, 1, 24}, {3, 5, 24}}, {{3, 6, 24}});
  for (const DType dtype : data_dtypes) {
    CallMaker up;
    up.call.moves = op.moves;
    up.input({1, 1, 24}, dtype).input({3, 5, 24}, dtype, Lie::Swapped).output({3, 6, 24}, dtype);
    expect_twins(up.finish(0), cpu::concat_forward, cuda::concat_forward);
    CallMaker down;
    down.call.moves = op.moves;
    down.absent_input({1, 1, 24}, dtype).absent_input({3, 5, 24}, dtype);
    down.absent_output({3, 6, 24}, dtype).d_output({3, 6, 24}, dtype);
    down.d_input({1, 1, 24}, dtype).d_input({3, 5, 24}, dtype);
    expect_twins(down.finish(8), cpu::concat_backward, cuda::concat_backward);
  }
}

TEST(LayoutTransformTwins, RepeatedHeads) {
  for (const DType dtype : data_dtypes)
    for (const Lie lie : lies) {
      CallMaker up;
      up.input({2, 3, 5, 16}, dtype, lie).output({2, 12, 5, 16}, dtype);
      expect_twins(up.finish(0), cpu::repeat_heads_forward, cuda::repeat_heads_forward);
      CallMaker down;
      down.absent_input({2, 3, 5, 16}, dtype).absent_output({2, 12, 5, 16}, dtype);
      down.d_output({2, 12, 5, 16}, dtype, lie).d_input({2, 3, 5, 16}, dtype, lie);
      expect_twins(down.finish(8), cpu::repeat_heads_backward, cuda::repeat_heads_backward);
    }
}

}  // namespace
}  // namespace tidemark::layout_transform_test
