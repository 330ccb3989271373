// Rearrangements against index formulas written out by hand, and layouts against both.
#include "traces/layout_transform.h"

#include <gmock/gmock.h>

#include <functional>
#include <numeric>

#include "base/error.h"
#include "tests/support/brief_model.h"
#include "traces/models/titan.h"
#include "traces/presets.h"
#include "traces/trace_builder.h"

namespace tidemark::layout_transform_test {
namespace {

using Index = std::vector<std::int64_t>;

std::int64_t linear(const Index& i, const Shape& shape) {
  std::int64_t at = 0;
  for (std::size_t k = 0; k < shape.rank(); ++k) at = at * shape[k] + i[k];
  return at;
}

Index index_of(std::int64_t at, const Shape& shape) {
  Index i(shape.rank());
  for (std::size_t k = shape.rank(); k-- > 0; at /= shape[k]) i[k] = at % shape[k];
  return i;
}

// By element of the op's output: the row-major index of the input's element that it takes.
std::vector<std::int64_t> sources(const Rearrangement& r) {
  std::vector<std::int64_t> of_target;
  for (std::int64_t t = 0; t < numel(r.target); ++t) {
    std::int64_t rest = t;
    Index source(r.start.begin(), r.start.begin() + static_cast<std::ptrdiff_t>(r.source.rank()));
    for (auto f = r.factors.rbegin(); f != r.factors.rend(); rest /= f->size, ++f)
      source[f->source_axis] += rest % f->size * f->step;
    if (r.shift != 0) {
      const std::int64_t y = source[1] / r.grid_side + r.shift,
                         x = source[1] % r.grid_side + r.shift;
      source[1] = y % r.grid_side * r.grid_side + x % r.grid_side;
    }
    of_target.push_back(linear(source, r.source));
  }
  if (!r.inverted) return of_target;
  std::vector<std::int64_t> of_source(static_cast<std::size_t>(numel(r.source)), -1);
  for (std::size_t t = 0; t < of_target.size(); ++t)
    of_source[static_cast<std::size_t>(of_target[t])] = static_cast<std::int64_t>(t);
  return of_source;
}

using Formula = std::function<Index(const Index&)>;

// One op on x [shape]; the formula gives the input's index of an output's index.
void expect_moves(const Shape& in, const Shape& out, LayoutTransform layout_transform,
                  std::initializer_list<Attribute> attributes, const Formula& formula) {
  TraceBuilder b("test", "", {});
  const TensorId x = b.parameter("x", in);
  const TensorId y = b.copy("move", x, out, layout_transform, attributes);
  const Trace trace = b.finish(y);
  const std::vector<std::int64_t> found = sources(rearrangement_of(trace, trace.ops[0]));
  ASSERT_EQ(found.size(), static_cast<std::size_t>(numel(out)));
  for (std::int64_t at = 0; at < numel(out); ++at)
    ASSERT_EQ(found[static_cast<std::size_t>(at)], linear(formula(index_of(at, out)), in))
        << to_string(trace.ops[0].kind) << " " << static_cast<int>(layout_transform) << " at "
        << at;
}

TEST(LayoutTransform, HeadsAreSplitAndMerged) {
  expect_moves({2, 3, 8}, {2, 4, 3, 2}, LayoutTransform::SplitHeads, {}, [](const Index& o) {
    return Index{o[0], o[2], o[1] * 2 + o[3]};
  });
  expect_moves({2, 3, 24}, {2, 4, 3, 2}, LayoutTransform::SplitHeads, {{AttributeKey::Offset, 8}},
               [](const Index& o) {
                 return Index{o[0], o[2], 8 + o[1] * 2 + o[3]};
               });
  expect_moves({2, 4, 3, 2}, {2, 3, 8}, LayoutTransform::MergeHeads, {}, [](const Index& o) {
    return Index{o[0], o[2] / 2, o[1], o[2] % 2};
  });
}

TEST(LayoutTransform, ChannelsChangePlaces) {
  expect_moves({2, 3, 4}, {2, 4, 3}, LayoutTransform::ChannelsFirst, {}, [](const Index& o) {
    return Index{o[0], o[2], o[1]};
  });
  expect_moves({2, 3, 9, 5}, {6, 5, 3, 3}, LayoutTransform::ChannelsFirst, {}, [](const Index& o) {
    return Index{o[0] / 3, o[0] % 3, o[2] * 3 + o[3], o[1]};
  });
  expect_moves({6, 5, 3, 3}, {2, 3, 9, 5}, LayoutTransform::ChannelsLast, {}, [](const Index& o) {
    return Index{o[0] * 3 + o[1], o[3], o[2] / 3, o[2] % 3};
  });
}

TEST(LayoutTransform, WindowsAreCutFromARolledGridAndJoined) {
  for (const std::int64_t shift : {0, 1}) {
    const Attribute window{AttributeKey::Window, 2},
        shifted{AttributeKey::Shift, static_cast<double>(shift)};
    const Formula cut = [shift](const Index& o) {
      const std::int64_t wy = o[0] % 4 / 2, wx = o[0] % 2, iy = o[1] / 2, ix = o[1] % 2;
      const std::int64_t y = (wy * 2 + iy + shift) % 4, x = (wx * 2 + ix + shift) % 4;
      return Index{o[0] / 4, y * 4 + x, o[2]};
    };
    expect_moves({3, 16, 5}, {12, 4, 5}, LayoutTransform::CutWindows, {window, shifted}, cut);
    expect_moves({12, 4, 5}, {3, 16, 5}, LayoutTransform::JoinWindows, {window, shifted},
                 [shift](const Index& o) {
                   const std::int64_t y = (o[1] / 4 + 4 - shift) % 4, x = (o[1] + 4 - shift) % 4;
                   return Index{o[0] * 4 + y / 2 * 2 + x / 2, y % 2 * 2 + x % 2, o[2]};
                 });
    expect_moves({3, 16, 5}, {3, 16, 5}, LayoutTransform::Roll, {shifted}, [shift](const Index& o) {
      return Index{o[0], (o[1] / 4 + shift) % 4 * 4 + (o[1] + shift) % 4, o[2]};
    });
    expect_moves(
        {3, 16, 5}, {3, 16, 5}, LayoutTransform::Unroll, {shifted}, [shift](const Index& o) {
          return Index{o[0], (o[1] / 4 + 4 - shift) % 4 * 4 + (o[1] + 4 - shift) % 4, o[2]};
        });
  }
}

TEST(LayoutTransform, CornersTakeEverySecondToken) {
  for (std::int64_t corner = 0; corner < 4; ++corner)
    expect_moves({2, 16, 3}, {2, 2, 2, 3}, LayoutTransform::PatchMerging,
                 {{AttributeKey::Offset, static_cast<double>(corner)}}, [corner](const Index& o) {
                   const std::int64_t y = o[1] * 2 + corner % 2, x = o[2] * 2 + corner / 2;
                   return Index{o[0], y * 4 + x, o[3]};
                 });
}

TEST(LayoutTransform, AxesOfAGridComeToTheFrontAndGoBack) {
  expect_moves({2, 3, 20, 5}, {4, 30, 5}, LayoutTransform::ToRows, {}, [](const Index& o) {
    return Index{o[1] / 15, o[1] / 5 % 3, o[0] * 5 + o[1] % 5, o[2]};
  });
  expect_moves({2, 3, 20, 5}, {5, 24, 5}, LayoutTransform::ToColumns, {}, [](const Index& o) {
    return Index{o[1] / 12, o[1] / 4 % 3, o[1] % 4 * 5 + o[0], o[2]};
  });
  expect_moves({4, 30, 7}, {2, 3, 4, 5, 7, 1}, LayoutTransform::FromRows, {}, [](const Index& o) {
    return Index{o[2], o[0] * 15 + o[1] * 5 + o[3], o[4]};
  });
  expect_moves({5, 24, 7}, {2, 3, 4, 5, 1, 7}, LayoutTransform::FromColumns, {},
               [](const Index& o) {
                 return Index{o[3], o[0] * 12 + o[1] * 4 + o[2], o[5]};
               });
}

// A file may say anything; what no index formula could mean is refused before a kernel sees it.
TEST(LayoutTransform, ThatDoesNotFitItsShapesIsRefused) {
  struct Case {
    Shape in, out;
    LayoutTransform layout_transform;
    Attribute attribute;
  };
  for (const Case& c :
       {Case{{2, 3, 24}, {2, 4, 3, 2}, LayoutTransform::SplitHeads, {AttributeKey::Offset, 17}},
        Case{{2, 3, 24}, {2, 4, 3, 2}, LayoutTransform::SplitHeads, {AttributeKey::Offset, -1}},
        Case{{2, 3, 24}, {2, 4, 3, 2}, LayoutTransform::SplitHeads, {AttributeKey::Offset, 0.5}},
        Case{{2, 3, 24}, {2, 4, 3, 2}, LayoutTransform::SplitHeads, {AttributeKey::Offset, 9.2e18}},
        Case{{2, 3, 24}, {2, 4, 3, 2}, LayoutTransform::SplitHeads, {AttributeKey::Offset, -1e300}},
        Case{{2, 3, 24}, {2, 3, 24}, LayoutTransform::SplitHeads, {AttributeKey::Offset, 0}},
        Case{{3, 16, 5}, {12, 4, 5}, LayoutTransform::CutWindows, {AttributeKey::Window, 3}},
        Case{{3, 16, 5}, {12, 4, 5}, LayoutTransform::CutWindows, {AttributeKey::Window, 0}},
        Case{{3, 15, 5}, {3, 15, 5}, LayoutTransform::Roll, {AttributeKey::Shift, 1}},
        Case{{3, 16, 5}, {3, 16, 5}, LayoutTransform::Roll, {AttributeKey::Shift, 1e17}},
        Case{{2, 9, 3}, {2, 2, 2, 3}, LayoutTransform::PatchMerging, {AttributeKey::Offset, 0}},
        Case{{2, 16, 3}, {2, 2, 2, 3}, LayoutTransform::PatchMerging, {AttributeKey::Offset, 64}},
        Case{{4, 30, 7}, {4, 30, 7}, LayoutTransform::FromRows, {AttributeKey::Offset, 0}}}) {
    TraceBuilder b("test", "", {});
    const TensorId y =
        b.copy("move", b.parameter("x", c.in), c.out, c.layout_transform, {c.attribute});
    const Trace trace = b.finish(y);
    EXPECT_THROW(rearrangement_of(trace, trace.ops[0]), InputError)
        << static_cast<int>(c.layout_transform) << " with " << c.attribute.value;
  }
}

TEST(LayoutTransform, SlicesOneAxisOrDropsIt) {
  expect_moves({2, 5, 3}, {2, 4, 3}, LayoutTransform::Slice, {{AttributeKey::Offset, 1}},
               [](const Index& o) {
                 return Index{o[0], o[1] + 1, o[2]};
               });
  expect_moves({2, 5, 3}, {2, 3}, LayoutTransform::Slice, {{AttributeKey::Offset, 2}},
               [](const Index& o) {
                 return Index{o[0], 2, o[1]};
               });
  expect_moves({3, 3, 3}, {3, 3}, LayoutTransform::Slice, {}, [](const Index& o) {
    return Index{o[0], 0, o[1]};
  });
}

TEST(LayoutTransform, PiecesOfAConcatenationLieBehindEachOther) {
  TraceBuilder b("test", "", {});
  const TensorId token = b.parameter("token", {1, 1, 3}), x = b.parameter("x", {2, 4, 3});
  const Trace trace = b.finish(b.concat("tokens", std::array{token, x}, {2, 5, 3}));
  const Rearrangement second = rearrangement_of(trace, trace.ops[0], 1);
  EXPECT_TRUE(second.inverted);
  EXPECT_THAT(sources(second),
              testing::ElementsAre(-1, -1, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, -1, -1, -1, 12,
                                   13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23));
  // The token spreads over the batch: its slice of the result has two rows.
  EXPECT_EQ(rearrangement_of(trace, trace.ops[0], 0).target, Shape({2, 1, 3}));
}

TEST(LayoutTransform, SaysWhatDoesNotFit) {
  TraceBuilder b("test", "", {});
  const TensorId y = b.view("odd", b.parameter("x", {4, 6}), {3, 8});
  const Trace trace = b.finish(y);
  try {
    rearrangement_of(trace, trace.ops[0]);
    FAIL() << "a reshape across uneven axes";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("view 'odd': [4, 6] → [3, 8]"));
  }
}

TEST(Layouts, AViewFollowsTheStridesOfItsInput) {
  TraceBuilder b("test", "", {});
  const TensorId qkv = b.parameter("qkv", {2, 3, 24});
  const TensorId k = b.select("k", qkv, {2, 4, 3, 2}, LayoutTransform::SplitHeads, 8);
  const TensorId turned = b.view("turned", k, {2, 4, 2, 3}, LayoutTransform::ChannelsFirst);
  const Trace trace = b.finish(turned);
  const std::vector<Layout> layouts = value_layouts(trace);
  EXPECT_EQ(layouts[index(k)], (Layout{{2, 4, 3, 2}, {72, 2, 24, 1}, 8}));
  EXPECT_EQ(layouts[index(turned)], (Layout{{2, 4, 2, 3}, {72, 2, 1, 24}, 8}));
  EXPECT_EQ(dense_as(layouts[index(turned)]).strides, (Strides{24, 2, 1, 8}));
}

TEST(Layouts, WhatMergesWithoutACopyIsWrittenInThatOrder) {
  TraceBuilder b("test", "", {});
  const TensorId q = b.parameter("q", {2, 4, 3, 2});
  const TensorId mixed = b.flash_attention("mix", q, q, q, false);
  const TensorId merged = b.view("merge", mixed, {2, 3, 8}, LayoutTransform::MergeHeads);
  const Trace trace = b.finish(merged);
  const std::vector<Layout> layouts = value_layouts(trace);
  EXPECT_EQ(layouts[index(mixed)].strides, (Strides{24, 2, 8, 1}));
  EXPECT_TRUE(is_dense(layouts[index(merged)]));
  const auto back = back_through_view(rearrangement_of(trace, trace.ops[1]), dense({2, 3, 8}));
  EXPECT_EQ(back, layouts[index(mixed)]);
}

// Every view of every model that is known has strides, under each framework's rules.
TEST(Layouts, ExistForTheWholeZoo) {
  for (const Model& model : known_models())
    for (const Framework& framework : frameworks())
      for (const Attention attention : {Attention::Math, Attention::Flash}) {
        const StepOptions step{
            .batch = 2, .attention = attention, .framework = std::string(framework.name)};
        if (framework.torchtitan && !titan_defect(model, step).empty()) continue;
        const Trace trace = build_trace(brief(model), step);
        ASSERT_NO_THROW(value_layouts(trace)) << model.name;
        for (const Op& op : trace.ops) {
          if (op.kind != OpKind::Copy && op.kind != OpKind::Concat) continue;
          for (std::size_t i = 0; i < op.inputs; ++i)
            ASSERT_NO_THROW(rearrangement_of(trace, op, i)) << model.name;
        }
      }
}

}  // namespace
}  // namespace tidemark::layout_transform_test
