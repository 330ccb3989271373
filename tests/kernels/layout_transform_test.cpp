// Ops that only move elements, against rearrangements followed index by index.
#include "kernels/layout_transform/layout_transform.h"

#include <numeric>

#include "tests/kernels/kernel_test.h"

namespace tidemark::cpu::layout_transform_test {
namespace {

// By the definition: for each element of the target, in row-major order, the source's.
std::vector<std::size_t> sources(const Rearrangement& move) {
  std::vector<std::size_t> result;
  const auto count = static_cast<std::size_t>(numel(move.target));
  for (std::size_t i = 0; i < count; ++i) {
    std::array<std::int64_t, Shape::max_rank> index = move.start;
    auto rest = static_cast<std::int64_t>(i);
    for (std::size_t k = move.factors.size(); k-- > 0;) {
      const Rearrangement::Factor& f = move.factors[k];
      index[f.source_axis] += rest % f.size * f.step;
      rest /= f.size;
    }
    if (const std::int64_t side = move.grid_side; side != 0) {
      const std::int64_t y = index[1] / side + move.shift, x = index[1] % side + move.shift;
      index[1] = (y % side + side) % side * side + (x % side + side) % side;
    }
    std::int64_t flat = 0;
    for (std::size_t axis = 0; axis < move.source.rank(); ++axis)
      flat = flat * move.source[axis] + index[axis];
    result.push_back(static_cast<std::size_t>(flat));
  }
  return result;
}

struct Moved {
  const char* what;
  Shape from, to;
  LayoutTransform layout_transform;
  std::vector<Attribute> attributes;
};

std::vector<Moved> transforms_to_test() {
  using enum LayoutTransform;
  using enum AttributeKey;
  return {
      {"reshape", {2, 6, 5}, {12, 5}, Reshape, {}},
      {"slice", {2, 33, 31}, {2, 7, 31}, Slice, {{Offset, 5}}},
      {"dropped axis", {3, 33, 31}, {33, 31}, Slice, {{Offset, 1}}},
      {"split heads", {2, 5, 12}, {2, 3, 5, 4}, SplitHeads, {}},
      {"split heads of wider rows", {2, 5, 36}, {2, 3, 5, 4}, SplitHeads, {{Offset, 12}}},
      {"merge heads", {2, 3, 5, 4}, {2, 5, 12}, MergeHeads, {}},
      {"channels first", {2, 70, 65}, {2, 65, 70}, ChannelsFirst, {}},
      {"one channel first", {31, 1, 1}, {31, 1, 1}, ChannelsFirst, {}},
      {"long channels first", {1, 1023, 33}, {1, 33, 1023}, ChannelsFirst, {}},
      {"channels first to a grid", {2, 16, 33}, {2, 33, 4, 4}, ChannelsFirst, {}},
      {"channels last", {2, 65, 70}, {2, 70, 65}, ChannelsLast, {}},
      {"windows", {2, 36, 7}, {8, 9, 7}, CutWindows, {{Window, 3}}},
      {"windows of a rolled grid", {2, 36, 7}, {8, 9, 7}, CutWindows, {{Window, 3}, {Shift, 1}}},
      {"joined windows", {8, 9, 7}, {2, 36, 7}, JoinWindows, {{Window, 3}, {Shift, 2}}},
      {"roll", {2, 25, 3}, {2, 25, 3}, Roll, {{Shift, 2}}},
      {"unroll", {2, 25, 3}, {2, 25, 3}, Unroll, {{Shift, 2}}},
      {"patch_merging", {2, 16, 5}, {2, 4, 5}, PatchMerging, {{Offset, 3}}},
      {"rows", {2, 3, 20, 7}, {4, 30, 7}, ToRows, {}},
      {"columns", {2, 3, 20, 7}, {5, 24, 7}, ToColumns, {}},
  };
}

/// A copy as the program meets it: a trace's op, and what its layout transform says.
Rearrangement copy_of(const Moved& m) {
  Trace trace;
  trace.tensors.resize(2);
  trace.tensors[0].shape = m.from, trace.tensors[1].shape = m.to;
  trace.operands = {static_cast<TensorId>(0), static_cast<TensorId>(1)};
  trace.attributes = m.attributes;
  trace.attributes.push_back(
      {AttributeKey::LayoutTransform, static_cast<double>(m.layout_transform)});
  Op op;
  op.name = trace.names.add(m.what), op.kind = OpKind::Copy, op.inputs = 1, op.outputs = 1;
  op.attributes = static_cast<std::uint16_t>(trace.attributes.size());
  trace.ops.push_back(op);
  return rearrangement_of(trace, trace.ops[0]);
}

Call with_moves(Call call, std::vector<Rearrangement> moves) {
  call.moves = std::move(moves);
  return call;
}

TEST(LayoutTransform, CopiesFollowTheirRearrangementForthAndBack) {
  Workspace workspace;
  for (const Moved& m : transforms_to_test()) {
    const Rearrangement move = copy_of(m);
    const std::vector<std::size_t> from = sources(move);
    for (const DType dtype : {DType::Float32, DType::BFloat16})
      for (const Lie in : lies)
        for (const Lie out : lies) {
          TestArray x(m.from, random_values(m.from, 1), dtype, in), y(m.to, dtype, out),
              dy(m.to, random_values(m.to, 2), dtype, out), dx(m.from, dtype, in);
          copy_forward(with_moves(forward(OpKind::Copy, {x.array()}, {y.array()}), {move}),
                       workspace);
          copy_backward(with_moves(backward(OpKind::Copy, {absent(m.from)}, {absent(m.to)},
                                            {dy.array()}, {dx.array()}),
                                   {move}),
                        workspace);
          Values wanted(y.values().size()), gradient(x.values().size());
          const Values given = x.values(), up = dy.values();
          for (std::size_t i = 0; i < from.size(); ++i) {
            const std::size_t input = move.inverted ? i : from[i];
            const std::size_t output = move.inverted ? from[i] : i;
            wanted[output] = given[input], gradient[input] = up[output];
          }
          ASSERT_EQ(y.values(), wanted) << m.what;
          ASSERT_EQ(dx.values(), gradient) << m.what;
          ASSERT_TRUE(y.is_intact() && dx.is_intact()) << m.what;
        }
  }
}

// What is moved is bits, not numbers: not-a-numbers keep their payload, zeros their sign.
TEST(LayoutTransform, CopiesAnyBitsForthAndBack) {
  Workspace workspace;
  const Shape from{2, 65, 31}, to{2, 31, 65};
  const Rearrangement move =
      copy_of({"channels first", from, to, LayoutTransform::ChannelsFirst, {}});
  for (const DType dtype : data_dtypes) {
    const auto size = static_cast<std::size_t>(numel(from) * size_of(dtype));
    std::vector<std::byte> given(size), between(size), back(size);
    std::mt19937 random(404);
    std::ranges::generate(given, [&] { return static_cast<std::byte>(random() & 0xff); });
    const auto array = [&](std::vector<std::byte>& memory, const Shape& shape) {
      return array_at(memory.data(), dtype, dense(shape));
    };
    Call copy = forward(OpKind::Copy, {array(given, from)}, {array(between, to)});
    copy_forward(with_moves(std::move(copy), {move}), workspace);
    copy_backward(with_moves(backward(OpKind::Copy, {absent(from)}, {absent(to)},
                                      {array(between, to)}, {array(back, from)}),
                             {move}),
                  workspace);
    EXPECT_NE(between, given);
    EXPECT_EQ(back, given);
  }
}

// The heads of a packed projection: three slices of one tensor.
std::vector<Rearrangement> packed_heads(const Shape& packed, const Shape& piece) {
  std::vector<Rearrangement> moves;
  for (int k = 0; k < 3; ++k)
    moves.push_back(copy_of({"heads",
                             packed,
                             piece,
                             LayoutTransform::SplitHeads,
                             {{AttributeKey::Offset, static_cast<double>(k * 12)}}}));
  return moves;
}

TEST(LayoutTransform, GradientsOfPiecesAreJoinedAndTheRestIsZero) {
  Workspace workspace;
  const Shape packed{2, 5, 36}, piece{2, 3, 5, 4};
  const std::vector<Rearrangement> moves = packed_heads(packed, piece);
  for (const DType dtype : data_dtypes)
    for (const Lie lie : lies)
      for (const unsigned present : {7u, 5u, 0u}) {
        std::vector<TestArray> pieces;
        std::vector<Array> d_outputs, outputs;
        Values wanted(360);
        for (unsigned k = 0; k < 3; ++k)
          pieces.emplace_back(piece, random_values(piece, k), dtype, lie);
        for (unsigned k = 0; k < 3; ++k) {
          outputs.push_back(absent(piece, dtype));
          d_outputs.push_back((present >> k & 1) != 0 ? pieces[k].array() : absent(piece, dtype));
          const std::vector<std::size_t> from = sources(moves[k]);
          for (std::size_t i = 0; i < from.size(); ++i)
            if ((present >> k & 1) != 0) wanted[from[i]] = pieces[k].values()[i];
        }
        TestArray dx(packed, dtype, lie);
        split_backward(
            with_moves(backward(OpKind::Split, {absent(packed)}, outputs, d_outputs, {dx.array()}),
                       moves),
            workspace);
        ASSERT_EQ(dx.values(), wanted);
        ASSERT_TRUE(dx.is_intact());
      }
}

TEST(LayoutTransform, SelectLeavesZerosElsewhere) {
  Workspace workspace;
  const Moved m{"first token", {3, 33, 31}, {3, 1, 31}, LayoutTransform::Slice, {}};
  TestArray dy(m.to, random_values(m.to, 1)), dx(m.from);
  select_backward(with_moves(backward(OpKind::Select, {absent(m.from)}, {absent(m.to)},
                                      {dy.array()}, {dx.array()}),
                             {copy_of(m)}),
                  workspace);
  Values wanted(static_cast<std::size_t>(numel(m.from)));
  for (std::size_t b = 0; b < 3; ++b)
    for (std::size_t c = 0; c < 31; ++c) wanted[b * 33 * 31 + c] = dy.values()[b * 31 + c];
  EXPECT_EQ(dx.values(), wanted);
}

/// [1, 1, c] spread over the batch, and [b, t, c] behind it: a class token.
struct Joined {
  Joined() {
    trace.tensors.resize(3);
    trace.tensors[0].shape = token, trace.tensors[1].shape = rest, trace.tensors[2].shape = all;
    for (std::size_t i = 0; i < 3; ++i) trace.operands.push_back(static_cast<TensorId>(i));
    Op op;
    op.name = "join", op.kind = OpKind::Concat, op.inputs = 2, op.outputs = 1;
    trace.ops.push_back(op);
    moves = {rearrangement_of(trace, trace.ops[0], 0), rearrangement_of(trace, trace.ops[0], 1)};
  }
  const Shape token{1, 1, 7}, rest{4, 5, 7}, all{4, 6, 7};
  Trace trace;
  std::vector<Rearrangement> moves;
};

TEST(LayoutTransform, ConcatJoinsAndSpreadsAndSumsBack) {
  Workspace workspace;
  const Joined joined;
  for (const DType dtype : data_dtypes)
    for (const Lie lie : lies) {
      TestArray token(joined.token, random_values(joined.token, 1), dtype, lie),
          rest(joined.rest, random_values(joined.rest, 2), dtype, lie), y(joined.all, dtype, lie);
      concat_forward(with_moves(forward(OpKind::Concat, {token.array(), rest.array()}, {y.array()}),
                                joined.moves),
                     workspace);
      TestArray dy(joined.all, random_values(joined.all, 3), dtype, lie),
          d_token(joined.token, dtype, lie), d_rest(joined.rest, dtype, lie);
      concat_backward(
          with_moves(
              backward(OpKind::Concat, {absent(joined.token), absent(joined.rest)},
                       {absent(joined.all)}, {dy.array()}, {d_token.array(), d_rest.array()}),
              joined.moves),
          workspace);
      const Values got = y.values(), up = dy.values();
      Values sum(7);
      for (std::size_t b = 0; b < 4; ++b)
        for (std::size_t t = 0; t < 6; ++t)
          for (std::size_t c = 0; c < 7; ++c) {
            const std::size_t i = (b * 6 + t) * 7 + c, in_rest = (b * 5 + t - 1) * 7 + c;
            ASSERT_EQ(got[i], t == 0 ? token.values()[c] : rest.values()[in_rest]);
            if (t == 0)
              sum[c] += up[i];
            else
              ASSERT_EQ(d_rest.values()[in_rest], up[i]);
          }
      ASSERT_LE(max_error(d_token.values(), sum), epsilon_of(dtype) + 1e-7);
      ASSERT_TRUE(y.is_intact() && d_token.is_intact() && d_rest.is_intact());
    }
}

TEST(LayoutTransform, ConcatJoinsAndSpreadsWholeNumbers) {
  Workspace workspace;
  const Joined joined;
  for (const Lie lie : lies) {
    Values numbers(static_cast<std::size_t>(numel(joined.rest)));
    std::iota(numbers.begin(), numbers.end(), 0x1p40);  // no fp32 has them
    TestArray token(joined.token, Values(7, -3), DType::Int64, lie),
        rest(joined.rest, numbers, DType::Int64, lie), y(joined.all, DType::Int64, lie);
    concat_forward(with_moves(forward(OpKind::Concat, {token.array(), rest.array()}, {y.array()}),
                              joined.moves),
                   workspace);
    const Values got = y.values();
    for (std::size_t b = 0; b < 4; ++b) {
      ASSERT_EQ(got[b * 6 * 7], -3);
      ASSERT_EQ(got[b * 6 * 7 + 7], numbers[b * 5 * 7]);
    }
    ASSERT_TRUE(y.is_intact());
  }
}

TEST(LayoutTransform, ConcatWithoutGradients) {
  Workspace workspace;
  const Joined joined;
  TestArray d_token(joined.token), dy(joined.all, random_values(joined.all, 1));
  concat_backward(with_moves(backward(OpKind::Concat, {absent(joined.token), absent(joined.rest)},
                                      {absent(joined.all)}, {absent(joined.all)},
                                      {d_token.array(), absent(joined.rest)}),
                             joined.moves),
                  workspace);
  EXPECT_EQ(d_token.values(), Values(7, 0));
}

TEST(LayoutTransform, RepeatedHeadsAndTheirSum) {
  Workspace workspace;
  const Shape few{2, 3, 5, 7}, many{2, 12, 5, 7};
  for (const DType dtype : data_dtypes)
    for (const Lie in : lies)
      for (const Lie out : lies) {
        TestArray x(few, random_values(few, 1), dtype, in), y(many, dtype, out),
            dy(many, random_values(many, 2), dtype, out), dx(few, dtype, in);
        repeat_heads_forward(forward(OpKind::RepeatHeads, {x.array()}, {y.array()}), workspace);
        repeat_heads_backward(backward(OpKind::RepeatHeads, {absent(few)}, {absent(many)},
                                       {dy.array()}, {dx.array()}),
                              workspace);
        const Values got = y.values(), given = x.values(), up = dy.values();
        Values sum(given.size());
        for (std::size_t i = 0; i < got.size(); ++i) {
          const std::size_t of_head = i % 35, head = i / 35 % 12, b = i / 420;
          const std::size_t source = (b * 3 + head / 4) * 35 + of_head;
          ASSERT_EQ(got[i], given[source]);
          sum[source] += up[i];
        }
        ASSERT_LE(max_error(dx.values(), sum), epsilon_of(dtype) + 1e-6);
        ASSERT_TRUE(y.is_intact() && dx.is_intact());
      }
}

TEST(LayoutTransform, WithoutGradientOfTheOutputItIsZero) {
  Workspace workspace;
  const Moved m{"copy", {33, 3}, {3, 33}, LayoutTransform::ChannelsFirst, {}};
  TestArray dx(m.from, DType::Float16, Lie::Padded), dh(Shape{1, 2, 3});
  copy_backward(with_moves(backward(OpKind::Copy, {absent(m.from)}, {absent(m.to)}, {absent(m.to)},
                                    {dx.array()}),
                           {copy_of(m)}),
                workspace);
  EXPECT_EQ(dx.values(), Values(99, 0));
  EXPECT_TRUE(dx.is_intact());
  repeat_heads_backward(backward(OpKind::RepeatHeads, {absent({1, 2, 3})}, {absent({1, 4, 3})},
                                 {absent({1, 4, 3})}, {dh.array()}),
                        workspace);
  EXPECT_EQ(dh.values(), Values(6, 0));
}

}  // namespace
}  // namespace tidemark::cpu::layout_transform_test
