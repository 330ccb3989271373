// A mixture of experts op by op, as transformers 5 runs it (grouped_mm_experts_forward() of
// integrations/moe.py, the routers and blocks of each modeling file): one parameter has the first
// weights of all experts, one the second, tokens' visits are sorted by expert, and one grouped
// product serves all. Which expert gets how many changes no size. PyTorch's grouped products know
// no autocast. What picks, sorts and multiplies are opaque ops.
#include <array>

#include "traces/models/clamped_experts.h"

namespace tidemark {
namespace {

struct PackedMixture {
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

  // Of the best groups only: those of all others count as nothing.
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

  Picked best_of(TensorId shares) const {
    const Shape picked = {b.shape(shares)[0], config.per_token};
    const std::array best = {OutputSpec{"", picked, DType::Float32},
                             OutputSpec{"experts", picked, DType::Int64}};
    const TensorId weights = b.opaque(name + ".router.top", std::array{shares}, best,
                                      {.operation = "aten::topk",
                                       .gradients = 1,
                                       .saved = output_bit(1),
                                       .computes = Formula::EvenTopK});
    return {weights, TensorId{static_cast<std::uint32_t>(index(weights) + 1)}};
  }

  // DeepSeek-V3's: which are picked needs no gradient.
  Picked found_among(TensorId shares) const {
    const Shape picked = {b.shape(shares)[0], config.per_token};
    const TensorId experts = opaque(".router.top", std::array{shares}, picked, DType::Int64,
                                    {.operation = "aten::topk", .computes = Formula::EvenTopK});
    const Attribute along_experts{AttributeKey::Axis, 1};
    const TensorId weights =
        opaque(".router.found", std::array{shares, experts}, picked, b[shares].dtype,
               {.operation = "aten::gather",
                .gradients = 1,
                .saved = input_bit(0) | input_bit(1),
                .computes = Formula::Gather},
               std::span(&along_experts, 1));
    return {weights, experts};
  }

  // Divided in place: of what is kept there is a copy.
  TensorId renormalized(TensorId weights) const {
    const Shape s = b.shape(weights);
    const bool widens = is_amp(precision_of(b.step()));  // sums are on autocast's fp32 list
    const DType of_sum = widens ? DType::Float32 : b[weights].dtype;
    const TensorId all =
        opaque(".router.sum", std::array{weights}, s.with_back(1), of_sum,
               {.operation = "aten::sum", .gradients = 1, .computes = Formula::Sum});
    return opaque(".router.shares", std::array{weights, all}, s, b[weights].dtype,
                  {.operation = "aten::div",
                   .gradients = 0b11,
                   .saved = input_bit(0) | input_bit(1),
                   .computes = Formula::Divide});
  }

  // The logits are returned, too, and have a name in the block.
  Picked pick(TensorId rows) const {
    const std::string router = name + ".router";
    if (config.router == RouterForm::SoftmaxOfPicked) {
      const auto [shares, experts] = softmax_of_picked(b, router, rows, config);
      return {shares, experts};
    }
    const bool is_deepseeks = config.router != RouterForm::Softmax;
    const TensorId table = b.parameter(router + ".weight", {config.count, b.shape(rows)[1]});
    TensorId read = rows, wide = table;
    if (is_deepseeks) {
      read = b.cast(router + ".upcast", rows, DType::Float32);
      wide = b.cast(router + ".weight.float", table, DType::Float32);
    }
    TensorId logits = b.local(b.linear_with(router, read, wide));
    const DType rounded = b[logits].dtype;
    b.begin_function();
    if (config.float_shares) logits = b.cast(router + ".float", logits, DType::Float32);
    Picked picked;
    if (config.router == RouterForm::SigmoidOfGroups) {
      picked = found_among(b.local(b.sigmoid(router + ".sigmoid", logits)));
    } else {
      TensorId shares = b.local(b.softmax(router + ".softmax", logits, true));
      if (is_deepseeks && config.groups > 1) shares = b.local(of_best_groups(shares));
      picked = best_of(shares);
    }
    if (config.renormalizes) picked.weights = renormalized(picked.weights);
    if (is_deepseeks)
      picked.weights = b.scale(router + ".scale", picked.weights, 1);
    else if (!config.float_shares)
      picked.weights = b.cast(router + ".round", picked.weights, rounded);
    b.end_function();
    return {b.local(picked.weights), b.local(picked.experts)};
  }

  // Rows of x, or single numbers, in the order of `places`; back they are added up in zeros.
  TensorId looked_up(const std::string& suffix, TensorId x, TensorId places,
                     const Shape& shape) const {
    return opaque(suffix, std::array{x, places}, shape, b[x].dtype,
                  {.operation = "aten::index",
                   .gradients = 1,
                   .saved = input_bit(1),
                   .computes = shape.rank() > 1 ? Formula::IndexRows : Formula::None});
  }

  // x [visits, in] → [visits, out], each row by its expert's weight. Below compute capability 8.0 a
  // loop over experts does it, which keeps both operands and makes both gradients whatever is
  // wanted.
  TensorId product(const std::string& suffix, TensorId x, TensorId ends, std::int64_t out) const {
    const std::int64_t visits = b.shape(x)[0], in = b.shape(x)[1];
    const TensorId weight = b.parameter(name + suffix + ".weight", {config.count, out, in});
    const TensorId read = b.cast(name + suffix + ".read", x, b[weight].dtype);
    const bool is_loop = b.step().capability.value_or(80) < 80;
    const bool is_trained = b[weight].trainable;
    const std::int64_t flops = 2 * visits * in * out;
    OpaqueRow row{.operation = is_loop ? "transformers::grouped_mm_fallback" : "aten::_grouped_mm",
                  .gradients = is_trained ? 0b11U : 0b01U,
                  .saved = input_bit(1) | input_bit(2)};
    if (is_trained || is_loop) row.saved |= input_bit(0);
    row.forward.flops = flops;
    row.backward.flops = is_trained || is_loop ? 2 * flops : flops;
    if (is_loop && !is_trained) row.backward.workspace = size(b[weight]);
    return opaque(suffix, std::array{read, weight, ends}, {visits, out}, b[weight].dtype,
                  std::move(row));
  }

  // Four bytes each, of which no kind of number here has the name.
  TensorId ints(const std::string& suffix, TensorId x, std::int64_t count,
                const char* operation) const {
    return opaque(suffix, std::array{x}, {count, 4}, DType::UInt8, {.operation = operation});
  }

  /// Visits in the order of their experts.
  struct Visits {
    TensorId order;  ///< which each is
    TensorId experts, rows, weights;
    TensorId ends;  ///< of each expert's
  };

  Visits sorted(TensorId rows, const Picked& picked) const {
    const std::int64_t visits = b.shape(rows)[0] * config.per_token, width = b.shape(rows)[1];
    const std::array made = {OutputSpec{"", {visits}, DType::Int64},
                             OutputSpec{"experts", {visits}, DType::Int64}};
    const TensorId order = b.local(
        b.opaque(name + ".order", std::array{picked.experts}, made, {.operation = "aten::sort"}));
    const TensorId experts = b.local(TensorId{static_cast<std::uint32_t>(index(order) + 1)});
    const Attribute visits_of_token{AttributeKey::Window, static_cast<double>(config.per_token)};
    const TensorId tokens =
        opaque(".places", std::array{order}, {visits}, DType::Int64,
               {.operation = "aten::floor_divide", .computes = Formula::FloorDivide},
               std::span(&visits_of_token, 1));
    const TensorId found = b.local(looked_up(".sorted", rows, tokens, {visits, width}));
    const TensorId weights = b.local(looked_up(
        ".weights", b.view(name + ".weights.flat", picked.weights, {visits}), order, {visits}));
    const TensorId whole = b.local(ints(".experts.int", experts, visits, "aten::_to_copy"));
    const TensorId counts = b.local(ints(".counts", whole, config.count, "aten::histc"));
    const TensorId ends = b.local(ints(".ends", counts, config.count, "aten::cumsum"));
    return {order, experts, found, weights, ends};
  }

  // What is added in place to each visit is looked up for all first, and has a name.
  TensorId biased(const std::string& suffix, TensorId y, TensorId experts, TensorId& named) const {
    const Shape s = b.shape(y);
    const TensorId bias = b.parameter(name + suffix + ".bias", {config.count, s[1]});
    named = b.next_local(named, looked_up(suffix + ".biases", bias, experts, s));
    return b.add_in_place(name + suffix + ".sum", y, named);
  }

  // gpt-oss'.
  TensorId clamped(const Visits& visits, std::int64_t width) const {
    const auto product_of = [&](const char* which, TensorId x, std::int64_t out) {
      return product(std::string(".experts.") + which, x, visits.ends, out);
    };
    TensorId biases = no_tensor;
    TensorId y = product_of("gate_up", visits.rows, 2 * config.width);
    y = clamped_swiglu(b, name + ".experts", biased(".experts.gate_up", y, visits.experts, biases));
    return biased(".experts.down", product_of("down", y, width), visits.experts, biases);
  }

  TensorId gated(TensorId both) const {
    const Shape half = {b.shape(both)[0], config.width};
    const auto halves = b.split(name + ".experts.unpack", both, {half, half}, {"gate", "up"});
    return b.mul(name + ".experts.product",
                 tidemark::activation(b, name + ".experts", halves[0], activation), halves[1]);
  }

  // Each visit weighted, in the order of tokens again, and those of a token added up.
  TensorId weighted_sum(TensorId answers, const Visits& visits, DType dtype) const {
    const Shape s = b.shape(answers);
    const TensorId by_row = b.view(name + ".weights.rows", visits.weights, {s[0], 1});
    TensorId y = b.mul(name + ".weighted", answers, by_row);
    const TensorId back = b.local(opaque(".inverse", std::array{visits.order}, {s[0]}, DType::Int64,
                                         {.operation = "aten::index_put_"}));
    y = b.local(looked_up(".unsorted", y, back, s));
    const Shape by_token = {s[0] / config.per_token, config.per_token, s[1]};
    const Attribute of_picks{AttributeKey::Axis, 1};
    y = opaque(".routed", std::array{b.view(name + ".by_token", y, by_token)}, {by_token[0], s[1]},
               b[y].dtype, {.operation = "aten::sum", .gradients = 1, .computes = Formula::Sum},
               std::span(&of_picks, 1));
    return b.cast(name + ".routed.round", b.local(y), dtype);
  }

  TensorId answers(const Visits& visits, std::int64_t width) const {
    if (config.is_clamped) return clamped(visits, width);
    TensorId y = no_tensor;
    if (config.is_gated) {
      y = gated(product(".experts.gate_up", visits.rows, visits.ends, 2 * config.width));
    } else {
      y = product(".experts.up", visits.rows, visits.ends, config.width);
      y = tidemark::activation(b, name + ".experts", y, activation);
    }
    return product(".experts.down", y, visits.ends, width);
  }

  TensorId routed(TensorId rows, const Picked& picked) const {
    b.begin_function();
    const Visits visits = sorted(rows, picked);
    TensorId y = b.local(answers(visits, b.shape(rows)[1]));
    y = weighted_sum(y, visits, b[rows].dtype);
    b.end_function();
    return y;
  }

  TensorId shared(TensorId x) const {
    return mlp(b, name + ".shared", x,
               {.form = config.is_gated ? MlpForm::Gated : MlpForm::Plain,
                .activation = activation,
                .width = config.shared_width});
  }

  // Picked by what tokens are, whatever experts read of them.
  TensorId routed(TensorId rows) const {
    const Picked picked = pick(rows);
    const TensorId y = routed(latent_in(b, name, rows, config), picked);
    return latent_out(b, name, y, b.shape(rows)[1], config);
  }

  TensorId operator()(TensorId x) const {
    const Shape s = b.shape(x);
    const TensorId rows = b.view(name + ".rows", x, {s[0] * s[1], s[2]});
    if (config.shared_width == 0) return b.view(name + ".tokens", routed(rows), s);
    if (!config.gates_shared) {  // DeepSeek's
      const TensorId y = b.local(b.view(name + ".tokens", routed(rows), s));
      return b.add(name + ".sum", y, shared(x));
    }
    const TensorId all = b.local(shared(rows));
    const TensorId y = b.local(routed(rows));
    const TensorId gate =
        b.sigmoid(name + ".shared.open", b.linear(name + ".shared_gate", rows, 1, false));
    const TensorId open = b.local(b.mul(name + ".shared.weighted", gate, all));
    return b.view(name + ".tokens", b.add(name + ".sum", y, open), s);
  }
};

}  // namespace

TensorId packed_experts(TraceBuilder& b, const std::string& name, TensorId x,
                        const ExpertsConfig& config, ActivationForm activation) {
  b.begin_function();
  const TensorId y = PackedMixture{b, name, config, activation}(x);
  b.end_function();
  return y;
}

}  // namespace tidemark
