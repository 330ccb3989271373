// A mixture of experts op by op, as transformers' modeling_mixtral.py, modeling_qwen2_moe.py,
// modeling_qwen3_moe.py and modeling_olmoe.py of 4.57 run it: the router picks experts for each
// token; then one expert after the other looks up its tokens, and what it makes of them is added to
// the sum. Which tokens an expert gets is known at run time only: here all get as many, or what
// --expert-load says. What picks, finds, looks up and adds are opaque ops.
#include <fmt/format.h>

#include <array>

#include "traces/models/clamped_experts.h"

namespace tidemark {
namespace {

constexpr std::int64_t index_bytes = size_of(DType::Int64);

struct Mixture {
  TraceBuilder& b;
  const std::string& name;
  const ExpertsConfig& config;
  ActivationForm activation;

  Bytes bytes(TensorId x) const { return size(b[x]); }

  MlpForm form() const { return config.is_gated ? MlpForm::Gated : MlpForm::Plain; }

  ExpertLoad load() const { return b.step().expert_load.value_or(ExpertLoad{1}); }

  // What picks experts in a replay deals out visits evenly.
  Formula picks() const { return load().factor == 1 ? Formula::EvenTopK : Formula::None; }

  // Each op's own row; `gradients` and `saved` as in OpaqueRow.
  TensorId opaque(const std::string& suffix, std::span<const TensorId> inputs,
                  std::span<const OutputSpec> outputs, OpaqueRow row,
                  std::span<const Attribute> attributes = {}) const {
    return b.opaque(name + suffix, inputs, outputs, std::move(row), attributes);
  }

  struct Routes {
    TensorId weights;  ///< [tokens, per_token]
    TensorId chosen;   ///< [tokens, per_token, experts], 1 where a token goes to the expert
  };

  // Probabilities of all experts, of each by itself, in fp32 by an fp32 product; which are picked
  // needs no gradient. The weights are divided in place, so that a copy of them is kept.
  Routes route_by_groups(TensorId rows) const {
    const std::string router = name + ".router";
    const std::int64_t tokens = b.shape(rows)[0];
    const Shape picked = {tokens, config.per_token};
    const TensorId table = b.parameter(router + ".weight", {config.count, b.shape(rows)[1]});
    const TensorId wide = b.cast(router + ".weight.float", table, DType::Float32);
    const TensorId read = b.local(b.cast(router + ".upcast", rows, DType::Float32));
    const TensorId logits = b.local(b.linear_with(router, read, wide));
    const TensorId shares = b.local(b.sigmoid(router + ".sigmoid", logits));
    const OutputSpec best{"", picked, DType::Int64};
    const TensorId experts = b.local(opaque(".router.top", std::array{shares}, std::span(&best, 1),
                                            {.operation = "aten::topk", .computes = picks()}));
    const OutputSpec found{"", picked, b[shares].dtype};
    const Attribute along_experts{AttributeKey::Axis, 1};
    TensorId weights = opaque(".router.found", std::array{shares, experts}, std::span(&found, 1),
                              {.operation = "aten::gather",
                               .gradients = 1,
                               .saved = input_bit(0) | input_bit(1),
                               .computes = Formula::Gather},
                              std::span(&along_experts, 1));
    if (config.renormalizes) weights = renormalized(weights);
    weights = b.local(b.scale(router + ".scale", weights, 1));
    const OutputSpec chosen{"", {tokens, config.per_token, config.count}, DType::Int64};
    return {weights, b.local(opaque(".router.chosen", std::array{experts}, std::span(&chosen, 1),
                                    {.operation = "aten::one_hot", .computes = Formula::OneHot}))};
  }

  Routes route(TensorId rows) const {
    if (config.router == RouterForm::SigmoidOfGroups) return route_by_groups(rows);
    const std::int64_t tokens = b.shape(rows)[0];
    const Shape picked = {tokens, config.per_token};
    const TensorId logits = b.local(b.linear(name + ".router", rows, config.count, false));
    const TensorId shares = b.softmax(name + ".router.softmax", logits, true);
    const std::array best = {OutputSpec{"", picked, DType::Float32},
                             OutputSpec{"experts", picked, DType::Int64}};
    TensorId weights = opaque(
        ".router.top", std::array{shares}, best,
        {.operation = "aten::topk", .gradients = 1, .saved = output_bit(1), .computes = picks()});
    const TensorId experts{static_cast<std::uint32_t>(index(weights) + 1)};
    b.local(experts);
    if (config.renormalizes) weights = renormalized(weights);
    weights = b.local(b.cast(name + ".router.round", weights, b[rows].dtype));
    const OutputSpec chosen{"", {tokens, config.per_token, config.count}, DType::Int64};
    return {weights, b.local(opaque(".router.chosen", std::array{experts}, std::span(&chosen, 1),
                                    {.operation = "aten::one_hot", .computes = Formula::OneHot}))};
  }

  TensorId renormalized(TensorId weights) const {
    const bool widens = is_amp(precision_of(b.step()));  // sums are on autocast's fp32 list
    const DType dtype = widens ? DType::Float32 : b[weights].dtype;
    const OutputSpec sum{"", {b.shape(weights)[0], 1}, dtype};
    const TensorId all =
        opaque(".router.sum", std::array{weights}, std::span(&sum, 1),
               {.operation = "aten::sum", .gradients = 1, .computes = Formula::Sum});
    const OutputSpec shares{"", b.shape(weights), b[weights].dtype};
    return opaque(".router.shares", std::array{weights, all}, std::span(&shares, 1),
                  {.operation = "aten::div",
                   .gradients = 3,
                   .saved = input_bit(0) | input_bit(1),
                   .computes = Formula::Divide});
  }

  // Rows of x, or single weights: back comes a tensor of zeros of the size of all of x, and in it
  // the sums of what was looked up.
  TensorId looked_up(const std::string& suffix, TensorId x, TensorId places, const Shape& shape,
                     Formula formula) const {
    const OutputSpec found{"", shape, b[x].dtype};
    const Bytes part{numel(shape) * size_of(b[x].dtype)};
    const OpaquePass forward{.workspace = {}, .moved = part + part};
    const OpaquePass backward{.workspace = {}, .moved = bytes(x) + part + part};
    return opaque(suffix, std::array{x, places}, std::span(&found, 1),
                  {.operation = "aten::index",
                   .gradients = 1,
                   .saved = input_bit(1),
                   .computes = formula,
                   .forward = forward,
                   .backward = backward});
  }

  // The variables of the loop over experts, which the next one writes anew.
  struct OfExpert {
    TensorId places = no_tensor, rows = no_tensor, weighted = no_tensor;
  };

  TensorId with_expert(std::int64_t i, std::int64_t count, TensorId rows, const Routes& routes,
                       TensorId sum, OfExpert& names) const {
    const std::string expert = fmt::format(".experts.{}", i);
    const Shape all = b.shape(routes.chosen);
    const std::int64_t width = b.shape(rows)[1];
    const OutputSpec found{"", {count, 2}, DType::Int64};
    const Bytes of_one{all[0] * all[1] * index_bytes};
    const Attribute of_expert{AttributeKey::Offset, static_cast<double>(i)};
    const TensorId places = names.places = b.next_local(
        names.places, opaque(expert + ".places", std::array{routes.chosen}, std::span(&found, 1),
                             {.operation = "aten::nonzero",
                              .computes = Formula::FindVisits,
                              .forward = {.workspace = of_one, .moved = of_one + of_one}},
                             std::span(&of_expert, 1)));
    TensorId y = names.rows = b.next_local(
        names.rows, looked_up(expert + ".rows", rows, places, {count, width}, Formula::IndexRows));
    y = mlp(b, name + expert, y, {.form = form(), .activation = activation, .width = config.width});
    const TensorId weights =
        looked_up(expert + ".weights", routes.weights, places, {count, 1}, Formula::IndexPairs);
    y = names.weighted =
        b.next_local(names.weighted, b.mul(name + expert + ".weighted", y, weights));
    const OutputSpec total{"", b.shape(sum), b[sum].dtype, sum};
    const Bytes moved = bytes(y) + bytes(y) + bytes(y);
    return opaque(expert + ".add", std::array{sum, places, y}, std::span(&total, 1),
                  {.operation = "aten::index_add_",
                   .gradients = 0b101,
                   .handed_on = 0b001,
                   .saved = input_bit(1) | input_bit(2),
                   .computes = Formula::IndexAdd,
                   .forward = {.workspace = {}, .moved = moved},
                   .backward = {.workspace = {}, .moved = bytes(y) + bytes(y)}});
  }

  // Behind a gate of its own (Qwen2-MoE), or without one (DeepSeek).
  TensorId with_shared(TensorId rows, TensorId sum) const {
    const TensorId y =
        mlp(b, name + ".shared", rows,
            {.form = form(), .activation = activation, .width = config.shared_width});
    if (!config.gates_shared) return b.add(name + ".sum", sum, y);
    const TensorId gate =
        b.sigmoid(name + ".shared.open", b.linear(name + ".shared_gate", rows, 1, false));
    return b.add(name + ".sum", sum, b.mul(name + ".shared.weighted", y, gate));
  }

  TensorId operator()(TensorId x) const {
    const Shape s = b.shape(x);
    const TensorId rows = b.local(b.view(name + ".rows", x, {s[0] * s[1], s[2]}));
    const Routes routes = route(rows);
    const TensorId read = latent_in(b, name, rows, config);
    const DType dtype = b[read].dtype;
    const bool as_weights = config.router == RouterForm::SigmoidOfGroups;
    const OutputSpec zeros{"", b.shape(read), as_weights ? b[routes.weights].dtype : dtype};
    TensorId sum = opaque(".zeros", std::array{read}, std::span(&zeros, 1),
                          {.operation = "aten::zeros_like", .computes = Formula::Zeros});
    const std::vector<std::int64_t> visits =
        visits_by_expert(load(), {b.shape(rows)[0], config.per_token, config.count});
    OfExpert names;
    for (std::size_t i = 0; i < visits.size(); ++i)
      sum = with_expert(static_cast<std::int64_t>(i), visits[i], read, routes, sum, names);
    sum = b.cast(name + ".sum.round", sum, dtype);
    sum = latent_out(b, name, sum, s[2], config);
    if (config.shared_width > 0) sum = with_shared(rows, sum);
    return b.view(name + ".tokens", sum, s);
  }
};

}  // namespace

TensorId mixture_of_experts(TraceBuilder& b, const std::string& name, TensorId x,
                            const ExpertsConfig& config, ActivationForm activation) {
  b.refuse_codes("mixtures of experts, whose rows vary");
  // Ranks cut linears, so that among them experts run one after the other in any version.
  const Mesh& mesh = b.step().mesh;
  const bool is_cut = mesh.gpus() > mesh[Axis::Data] || mesh.experts > 1;
  if (b.framework().packed_experts && !is_cut)
    return packed_experts(b, name, x, config, activation);
  if (config.is_clamped) return clamped_experts(b, name, x, config);
  if (config.router == RouterForm::SoftmaxSorted)
    return sorted_experts(b, name, x, config, activation);
  b.begin_function();
  const TensorId y = Mixture{b, name, config, activation}(x);
  b.end_function();
  return y;
}

}  // namespace tidemark
