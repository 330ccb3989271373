// A mixture of experts op by op, as modeling_deepseek_v2.py of transformers 4.57 runs it: tokens
// are sorted by expert, each expert reads its rows, and what all have made is put back in order and
// weighted in fp32. Here all experts get as many tokens. What picks, sorts and puts back are opaque
// ops.
#include <fmt/format.h>

#include <array>

#include "traces/models/decoder_parts.h"

namespace tidemark {
namespace {

struct SortedMixture {
  TraceBuilder& b;
  const std::string& name;
  const ExpertsConfig& config;
  ActivationForm activation;

  TensorId opaque(const std::string& suffix, std::span<const TensorId> inputs, const Shape& shape,
                  DType dtype, OpaqueRow row, std::span<const Attribute> attributes = {}) const {
    const OutputSpec made{"", shape, dtype};
    return b.opaque(name + suffix, inputs, std::span(&made, 1), std::move(row), attributes);
  }

  struct Picked {
    TensorId weights, experts;  ///< [tokens, per_token]
  };

  // Only the best groups are left, by a mask that the node keeps.
  TensorId of_best_groups(TensorId shares) const {
    const Shape all = b.shape(shares);
    const std::array picks = {
        Attribute{AttributeKey::Window, static_cast<double>(config.per_token)},
        Attribute{AttributeKey::Groups, static_cast<double>(config.groups)}};
    const TensorId hidden =
        opaque(".router.hidden", std::array{shares}, all, DType::Bool,
               {.operation = "aten::bitwise_not", .computes = Formula::HiddenGroups}, picks);
    const Attribute zero{AttributeKey::Factor, 0};
    return opaque(".router.limited", std::array{shares, hidden}, all, DType::Float32,
                  {.operation = "aten::masked_fill",
                   .gradients = 1,
                   .saved = input_bit(1),
                   .computes = Formula::MaskedFill},
                  std::span(&zero, 1));
  }

  // Logits in fp32, of an fp32 copy of the weight.
  Picked pick(TensorId rows) const {
    const std::string router = name + ".router";
    const Shape picked = {b.shape(rows)[0], config.per_token};
    const TensorId table = b.parameter(router + ".weight", {config.count, b.shape(rows)[1]});
    b.begin_function();
    const TensorId read = b.local(b.cast(router + ".upcast", rows, DType::Float32));
    const TensorId wide = b.cast(router + ".weight.float", table, DType::Float32);
    const TensorId logits = b.local(b.linear_with(router, read, wide));
    TensorId shares = b.local(b.softmax(router + ".softmax", logits, true));
    if (config.groups > 1) shares = of_best_groups(shares);
    const std::array best = {OutputSpec{"", picked, DType::Float32},
                             OutputSpec{"experts", picked, DType::Int64}};
    const TensorId weights = b.opaque(router + ".top", std::array{shares}, best,
                                      {.operation = "aten::topk",
                                       .gradients = 1,
                                       .saved = output_bit(1),
                                       .computes = Formula::EvenTopK});
    const TensorId scaled = b.scale(router + ".scale", weights, 1);
    b.end_function();
    return {b.local(scaled), b.local(TensorId{static_cast<std::uint32_t>(index(weights) + 1)})};
  }

  // Rows of x, one for each visit of an expert; back they are added up in zeros of x's size.
  TensorId sorted_rows(TensorId rows, TensorId order) const {
    const std::int64_t visits = b.shape(order)[0], width = b.shape(rows)[1];
    const Attribute visits_of_token{AttributeKey::Window, static_cast<double>(config.per_token)};
    const TensorId places =
        opaque(".places", std::array{order}, {visits}, DType::Int64,
               {.operation = "aten::floor_divide", .computes = Formula::FloorDivide},
               std::span(&visits_of_token, 1));
    return opaque(".sorted", std::array{rows, places}, {visits, width}, b[rows].dtype,
                  {.operation = "aten::index",
                   .gradients = 1,
                   .saved = input_bit(1),
                   .computes = Formula::IndexRows});
  }

  TensorId with_experts(TensorId sorted) const {
    const std::int64_t visits = b.shape(sorted)[0], width = b.shape(sorted)[1];
    std::vector<TensorId> made;
    std::int64_t begin = 0;
    for (std::int64_t i = 0; i < std::min(config.count, visits); ++i) {
      const std::int64_t count = (visits - i + config.count - 1) / config.count;
      const std::string expert = fmt::format("{}.experts.{}", name, i);
      const TensorId rows =
          b.select(expert + ".rows", sorted, {count, width}, LayoutTransform::Slice, begin);
      made.push_back(
          b.local(mlp(b, expert, rows,
                      {.form = MlpForm::Gated, .activation = activation, .width = config.width})));
      begin += count;
    }
    return b.local(joined(made, {visits, width}));
  }

  // One after the other where they are too many for one op.
  TensorId joined(std::span<const TensorId> parts, const Shape& shape) const {
    constexpr std::size_t at_once = 15;
    TensorId y = no_tensor;
    std::int64_t row = 0;
    for (std::size_t begin = 0; begin < parts.size(); begin += at_once) {
      const auto some = parts.subspan(begin, std::min(at_once, parts.size() - begin));
      std::vector<TensorId> inputs;
      if (y != no_tensor) inputs.push_back(y);
      inputs.insert(inputs.end(), some.begin(), some.end());
      const OutputSpec made{"", shape, b[parts[0]].dtype, y};
      const Attribute first{AttributeKey::Offset, static_cast<double>(row)};
      for (const TensorId part : some) row += b.shape(part)[0];
      y = b.opaque(fmt::format("{}.joined.{}", name, begin / at_once), inputs, std::span(&made, 1),
                   {.operation = "aten::cat",
                    .gradients = (1U << inputs.size()) - 1,
                    .handed_on = y != no_tensor ? 1U : 0U,
                    .computes = Formula::JoinRows},
                   std::span(&first, 1));
    }
    return y;
  }

  // The products are written over an fp32 copy, which the node therefore keeps once more. Where
  // nothing had to be copied, they are written over a view, and the gradient of what that is a part
  // of is made beside (CopySlices::apply_impl of PyTorch's autograd/functions/tensor.cpp): of its
  // own are a copy of the view's part, and both factors' gradients, before they are added up or
  // copied back.
  TensorId weighted_sum(TensorId joined, TensorId order, const Picked& picked) const {
    const Shape s = b.shape(joined), picks = b.shape(picked.weights);
    const Shape by_token = {picks[0], picks[1], s[1]};
    TensorId y = opaque(".unsorted", std::array{joined, order}, s, b[joined].dtype,
                        {.operation = "aten::index_put_",
                         .gradients = 1,
                         .saved = input_bit(1),
                         .computes = Formula::PutRows});
    y = b.view(name + ".by_token", b.local(y), by_token);
    y = b.cast(name + ".by_token.float", y, DType::Float32);
    const TensorId weights = b.view(name + ".weights", picked.weights, by_token.with_back(1));
    const TensorId kept = b.copy(name + ".by_token.kept", y, by_token);
    const OutputSpec product{"", by_token, DType::Float32, y};
    const bool is_over_view = b[y].storage != y;
    const Bytes beside = is_over_view ? Bytes{3 * size(b[y]).count} : Bytes{};
    y = b.opaque(name + ".weighted", std::array{y, weights, kept}, std::span(&product, 1),
                 {.operation = "aten::mul_",
                  .gradients = 0b011,
                  .saved = input_bit(1) | input_bit(2),
                  .computes = Formula::MulKept,
                  .backward = {.workspace = beside}});
    const OutputSpec sum{"", {picks[0], s[1]}, DType::Float32};
    const Attribute of_picks{AttributeKey::Axis, 1};
    y = b.opaque(name + ".sum", std::array{y}, std::span(&sum, 1),
                 {.operation = "aten::sum", .gradients = 1, .computes = Formula::Sum},
                 std::span(&of_picks, 1));
    return b.cast(name + ".sum.round", y, b[joined].dtype);
  }

  TensorId operator()(TensorId x) const {
    const Shape s = b.shape(x);
    const TensorId rows = b.view(name + ".rows", x, {s[0] * s[1], s[2]});
    const Picked picked = pick(rows);
    const std::int64_t visits = b.shape(rows)[0] * config.per_token;
    b.begin_function();
    const TensorId order =
        b.local(opaque(".order", std::array{picked.experts}, {visits}, DType::Int64,
                       {.operation = "aten::sort", .computes = Formula::Argsort}));
    const TensorId joined = with_experts(b.local(sorted_rows(rows, order)));
    const TensorId sum = b.view(name + ".tokens", weighted_sum(joined, order, picked), s);
    b.end_function();
    const TensorId shared =
        mlp(b, name + ".shared", x,
            {.form = MlpForm::Gated, .activation = activation, .width = config.shared_width});
    return b.add(name + ".add", sum, shared);
  }
};

}  // namespace

TensorId sorted_experts(TraceBuilder& b, const std::string& name, TensorId x,
                        const ExpertsConfig& config, ActivationForm activation) {
  b.begin_function();
  const TensorId y = SortedMixture{b, name, config, activation}(x);
  b.end_function();
  return y;
}

}  // namespace tidemark
