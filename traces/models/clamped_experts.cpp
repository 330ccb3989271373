// Op by op, as modeling_gpt_oss.py of transformers 4.57 trains it: an expert's weights are views of
// what all have, so that their gradients are zeros of that size with one part filled. Which tokens
// an expert gets is not known here: --expert-load says how many.
#include "traces/models/clamped_experts.h"

#include <fmt/format.h>

#include <array>

namespace tidemark {
namespace {

constexpr double steepness = 1.702;  // GptOssExperts.alpha, of the sigmoid

// The node holds all columns; back, a mask makes one half's gradient, which is put into zeros.
TensorId clamped(TraceBuilder& b, const std::string& name, TensorId both) {
  const Shape s = b.shape(both), half = s.with_back(s.back() / 2);
  const OutputSpec made{"", half, b[both].dtype};
  const Bytes of_half{numel(half) * size_of(b[both].dtype)};
  return b.opaque(
      name, std::array{both}, std::span(&made, 1),
      {.operation = "aten::clamp",
       .gradients = 0b1,
       .saved = input_bit(0),
       .forward = {.moved = of_half + of_half},
       .backward = {.workspace = of_half, .moved = Bytes{7 * of_half.count}, .kernels = 3}});
}

TensorId plus_one(TraceBuilder& b, const std::string& name, TensorId x) {
  const OutputSpec sum{"", b.shape(x), b[x].dtype};
  const Bytes moved = size(b[x]) + size(b[x]);
  return b.opaque(
      name, std::array{x}, std::span(&sum, 1),
      {.operation = "aten::add", .gradients = 0b1, .handed_on = 0b1, .forward = {.moved = moved}});
}

struct ClampedMixture {
  TraceBuilder& b;
  const std::string& name;
  const ExpertsConfig& config;

  ExpertLoad load() const { return b.step().expert_load.value_or(ExpertLoad{1}); }

  TensorId opaque(const std::string& suffix, std::span<const TensorId> inputs, const Shape& shape,
                  DType dtype, OpaqueRow row) const {
    const OutputSpec made{"", shape, dtype};
    return b.opaque(name + suffix, inputs, std::span(&made, 1), std::move(row));
  }

  struct Routes {
    TensorId scores;  ///< [tokens, experts], zeros where a token does not go
    TensorId chosen;  ///< [tokens, per_token, experts and none], 1 where it does
  };

  Routes route(TensorId rows) const {
    const Shape s = b.shape(rows);
    const auto [shares, experts] = softmax_of_picked(b, name + ".router", rows, config);
    const DType dtype = b[shares].dtype;
    const TensorId scores =
        b.local(opaque(".router.scores", std::array{shares, experts}, {s[0], config.count}, dtype,
                       {.operation = "aten::scatter_", .gradients = 0b1, .saved = input_bit(1)}));
    const Shape flags = {s[0], config.per_token, config.count + 1};
    return {scores, b.local(opaque(".router.chosen", std::array{experts}, flags, DType::Int64,
                                   {.operation = "aten::one_hot"}))};
  }

  struct Weights {
    TensorId gate_up, gate_up_bias, down, down_bias;
  };

  Weights parameters(std::int64_t width) const {
    const auto of = [&](const char* which, const Shape& shape) {
      return b.parameter(name + ".experts." + which, shape);
    };
    const std::int64_t n = config.count, inside = config.width;
    return {of("gate_up", {n, width, 2 * inside}), of("gate_up_bias", {n, 2 * inside}),
            of("down", {n, inside, width}), of("down_bias", {n, width})};
  }

  // x · its weight + its bias, which is added by itself.
  TensorId product(const std::string& suffix, TensorId x, TensorId weights, TensorId biases,
                   std::int64_t expert) const {
    const Shape s = b.shape(weights);
    const std::string of = name + suffix;
    const TensorId weight =
        b.select(of + ".weight", weights, {s[1], s[2]}, LayoutTransform::Slice, expert);
    const TensorId bias = b.select(of + ".bias", biases, {s[2]}, LayoutTransform::Slice, expert);
    return b.add(of + ".sum", b.matmul(of, x, weight), bias);
  }

  // The variables of the loop over experts, which the next one writes anew.
  struct OfExpert {
    TensorId places = no_tensor, rows = no_tensor, both = no_tensor, gated = no_tensor,
             answer = no_tensor, weighted = no_tensor;
  };

  TensorId looked_up(const std::string& suffix, TensorId x, TensorId places,
                     const Shape& shape) const {
    const Bytes part{numel(shape) * size_of(b[x].dtype)};
    return opaque(suffix, std::array{x, places}, shape, b[x].dtype,
                  {.operation = "aten::index",
                   .gradients = 0b1,
                   .saved = input_bit(1),
                   .forward = {.moved = part + part},
                   .backward = {.moved = size(b[x]) + part + part}});
  }

  TensorId with_expert(std::int64_t i, std::int64_t count, TensorId rows, const Routes& routes,
                       const Weights& weights, TensorId sum, OfExpert& names) const {
    const std::string expert = fmt::format(".experts.{}", i);
    const std::int64_t width = b.shape(rows)[1];
    const auto named = [&](TensorId& name_of, TensorId made) {
      return name_of = b.next_local(name_of, made);
    };
    const Shape all = b.shape(routes.chosen);
    const Bytes of_one{all[0] * all[1] * size_of(DType::Int64)};
    const TensorId places =
        named(names.places,
              opaque(expert + ".places", std::array{routes.chosen}, {count, 2}, DType::Int64,
                     {.operation = "aten::nonzero",
                      .forward = {.workspace = of_one, .moved = of_one + of_one}}));
    TensorId y = named(names.rows, looked_up(expert + ".rows", rows, places, {count, width}));
    y = named(names.both,
              product(expert + ".gate_up", y, weights.gate_up, weights.gate_up_bias, i));
    y = named(names.gated, clamped_swiglu(b, name + expert, y));
    y = named(names.answer, product(expert + ".down", y, weights.down, weights.down_bias, i));
    const TensorId share = looked_up(expert + ".share", routes.scores, places, {count, 1});
    y = b.mul(name + expert + ".weighted", y, share);
    y = b.cast(name + expert + ".weighted.round", named(names.weighted, y), b[sum].dtype);
    const OutputSpec total{"", b.shape(sum), b[sum].dtype, sum};
    const Bytes moved = size(b[y]);
    return b.opaque(name + expert + ".add", std::array{sum, places, y}, std::span(&total, 1),
                    {.operation = "aten::index_add_",
                     .gradients = 0b101,
                     .handed_on = 0b001,
                     .saved = input_bit(1) | input_bit(2),
                     .forward = {.moved = Bytes{3 * moved.count}},
                     .backward = {.moved = moved + moved}});
  }

  TensorId operator()(TensorId x) const {
    const Shape s = b.shape(x);
    const TensorId rows = b.local(b.view(name + ".rows", x, {s[0] * s[1], s[2]}));
    const Routes routes = route(rows);
    const Weights weights = parameters(s[2]);
    TensorId sum = opaque(".zeros", std::array{rows}, b.shape(rows), b[rows].dtype,
                          {.operation = "aten::zeros_like", .computes = Formula::Zeros});
    const std::vector<std::int64_t> visits =
        visits_by_expert(load(), {s[0] * s[1], config.per_token, config.count});
    OfExpert names;
    for (std::size_t i = 0; i < visits.size(); ++i)
      sum = with_expert(static_cast<std::int64_t>(i), visits[i], rows, routes, weights, sum, names);
    return b.view(name + ".tokens", sum, s);
  }
};

}  // namespace

// No module of its own multiplies, so that neither adapters nor weights in few bits know of it. A
// dtype is stated of softmax, so that autocast leaves it.
PickedShares softmax_of_picked(TraceBuilder& b, const std::string& name, TensorId rows,
                               const ExpertsConfig& config) {
  const Shape picked = {b.shape(rows)[0], config.per_token};
  const TensorId weight = b.parameter(name + ".weight", {config.count, b.shape(rows)[1]});
  const TensorId bias = b.parameter(name + ".bias", {config.count});
  const TensorId logits = b.local(b.linear_with(name, rows, weight, bias));
  const DType dtype = b[logits].dtype;
  const std::array best = {OutputSpec{"", picked, dtype},
                           OutputSpec{"experts", picked, DType::Int64}};
  const TensorId top =
      b.opaque(name + ".top", std::array{logits}, best,
               {.operation = "aten::topk", .gradients = 0b1, .saved = output_bit(1)});
  const TensorId experts = b.local(TensorId{static_cast<std::uint32_t>(index(top) + 1)});
  const OutputSpec made{"", picked, dtype};
  const TensorId shares =
      b.opaque(name + ".softmax", std::array{top}, std::span(&made, 1),
               {.operation = "aten::_softmax", .gradients = 0b1, .saved = output_bit(0)});
  return {b.local(shares), experts};
}

TensorId clamped_swiglu(TraceBuilder& b, const std::string& name, TensorId both) {
  b.begin_function();
  const TensorId gate = b.local(clamped(b, name + ".gate.clamp", both));
  const TensorId up = b.local(clamped(b, name + ".up.clamp", both));
  const TensorId open = b.sigmoid(name + ".sigmoid", b.scale(name + ".scale", gate, steepness));
  const TensorId glu = b.local(b.mul(name + ".glu", gate, open));
  const TensorId y = b.mul(name + ".product", plus_one(b, name + ".up.one", up), glu);
  b.end_function();
  return y;
}

TensorId clamped_experts(TraceBuilder& b, const std::string& name, TensorId x,
                         const ExpertsConfig& config) {
  b.begin_function();
  const TensorId y = ClampedMixture{b, name, config}(x);
  b.end_function();
  return y;
}

}  // namespace tidemark
