// A mixture of experts op by op, as Megatron-LM's core runs it (core/transformer/moe: moe_layer.py,
// router.py, moe_utils.py, experts.py): a token's visits of experts become rows, sorted by expert,
// and one product has the weights of all experts as an operand. Each visit
// is weighted inside of its expert. Which expert gets how many changes no size on one rank.
//
//   tokens ─permute─► visits ─sort─► ─fc1─► ─act · share─► ─fc2─► ─sort─► ─unpermute─► tokens
//
// Ranks that have some of the experts each exchange visits between permute and sort; where they
// gather all tokens (--ep-form all-gather) those are permuted, and nothing is sorted.
#include <array>

#include "traces/expert_ops.h"
#include "traces/models/decoder_parts.h"

namespace tidemark {
namespace {

struct GroupedMixture {
  TraceBuilder& b;
  const std::string& name;
  const ExpertsConfig& config;
  const MlpConfig& inside;

  template <std::size_t inputs, std::size_t outputs>
  TensorId emit(ExpertOp op, const std::string& suffix, const std::array<TensorId, inputs>& read,
                const std::array<OutputSpec, outputs>& made) const {
    const Shape second = inputs > 1 ? b.shape(read.back()) : Shape();
    return b.opaque(name + suffix, read, made, expert_row(op, b.shape(read[0]), second));
  }

  /// As many outputs further.
  static TensorId after(TensorId first, std::size_t count) {
    return TensorId{static_cast<std::uint32_t>(index(first) + count)};
  }

  struct Visits {
    TensorId rows, shares;
    TensorId tokens;  ///< of which token each is
  };

  bool gathers_tokens() const { return b.step().expert_form == ExpertForm::AllGather; }

  // The router reads tokens as they are, experts what `read` is made of them.
  Visits permuted(TensorId tokens, TensorId read) const {
    const std::int64_t count = b.shape(tokens)[0], visits = count * config.per_token;
    const DType dtype = b[tokens].dtype;
    const Shape all = {count, config.count}, picks = {count, config.per_token};
    const TensorId weight =
        b.to_compute(b.parameter(name + ".router.weight", {config.count, b.shape(tokens)[1]}));
    const DType of_shares = config.wide_router ? DType::Float32 : dtype;
    const TensorId logits = emit(ExpertOp::Gate, ".router", std::array{tokens, weight},
                                 std::array{OutputSpec{"", all, of_shares}});
    const TensorId shares =
        emit(ExpertOp::Pick, ".router.pick", std::array{logits},
             std::array{OutputSpec{"", all, of_shares}, OutputSpec{"map", all, DType::Bool},
                        OutputSpec{"experts", picks, DType::Int64},
                        OutputSpec{"softmax", picks, DType::Float32}});
    const TensorId rows = emit(ExpertOp::Permute, ".permute", std::array{read, after(shares, 1)},
                               std::array{OutputSpec{"", {visits, b.shape(read)[1]}, dtype},
                                          OutputSpec{"tokens", {visits}, DType::Int64},
                                          OutputSpec{"places", {visits}, DType::Int64}});
    const bool gathers = gathers_tokens();
    const TensorId of_visits =
        emit(gathers ? ExpertOp::PickShares : ExpertOp::Weigh, ".permute.shares",
             std::array{shares, gathers ? after(shares, 1) : after(rows, 2)},
             std::array{OutputSpec{"", {visits, 1}, of_shares}});
    return {b.local(rows), b.local(of_visits), after(rows, 1)};
  }

  TensorId sorted(const std::string& suffix, TensorId visits) const {
    if (config.count == 1 || gathers_tokens()) return visits;
    return emit(ExpertOp::Sort, suffix, std::array{visits},
                std::array{OutputSpec{"", b.shape(visits), b[visits].dtype}});
  }

  TensorId product(const std::string& suffix, TensorId x, std::int64_t out) const {
    const std::int64_t in = b.shape(x)[1];
    const TensorId weights =
        b.to_compute(b.parameter(name + ".experts" + suffix + ".weight", {config.count, in, out}));
    if (b.multiplies_codes(in, out))
      return b.engine_product(name + ".experts" + suffix, x, weights);
    const TensorId read = b.to_compute(x);
    const ExpertOp op = config.is_grouped ? ExpertOp::Product : ExpertOp::ProductOfEach;
    return emit(op, ".experts" + suffix, std::array{read, weights},
                std::array{OutputSpec{"", {b.shape(x)[0], out}, b[read].dtype}});
  }

  bool is_gated() const { return inside.form != MlpForm::Plain; }

  // SiLU of one half times the other and the share is one kernel, and so is a square times the
  // share (use_fused_weighted_squared_relu); all else is made by several.
  TensorId activated(TensorId x, TensorId shares) const {
    const std::string expert = name + ".experts";
    const Shape half = {b.shape(x)[0], config.width};
    if (is_gated() && inside.activation == ActivationForm::Silu)
      return emit(ExpertOp::Swiglu, ".experts.swiglu", std::array{x, shares},
                  std::array{OutputSpec{"", half, b[x].dtype}});
    if (!is_gated() && inside.activation == ActivationForm::SquaredRelu)
      return emit(ExpertOp::WeightedSquare, ".experts.relu2", std::array{x, shares},
                  std::array{OutputSpec{"", half, b[x].dtype}});
    TensorId y = x;
    if (is_gated()) {
      const auto halves = b.split(expert + ".unpack", x, {half, half}, {"gate", "up"});
      y = b.mul(expert + ".product", activation(b, expert, halves[0], inside.activation),
                halves[1]);
    } else {
      y = activation(b, expert, x, inside.activation);
    }
    const DType dtype = b[y].dtype;
    y = b.mul(expert + ".weighted", y, shares);
    return b[y].dtype == dtype ? y : b.cast(expert + ".rounded", y, dtype);
  }

  TensorId with_shared(TensorId x, TensorId sum) const {
    const TensorId y = mlp(b, name + ".shared", x,
                           {.form = is_gated() ? MlpForm::GatedPacked : inside.form,
                            .activation = inside.activation,
                            .width = config.shared_width});
    if (!config.gates_shared) return b.add(name + ".sum", sum, y);
    const TensorId gate =
        b.sigmoid(name + ".shared.open", b.linear(name + ".shared_gate", x, 1, false));
    return b.add(name + ".sum", sum, b.mul(name + ".shared.weighted", y, gate));
  }

  TensorId operator()(TensorId x) const {
    const Shape s = b.shape(x);
    const TensorId tokens = b.view(name + ".rows", x, {s[0] * s[1], s[2]});
    const TensorId read = latent_in(b, name, tokens, config);
    const Visits visits = permuted(tokens, read);
    const TensorId shares = sorted(".sort.shares", visits.shares);
    TensorId y =
        product(".fc1", sorted(".sort", visits.rows), is_gated() ? 2 * config.width : config.width);
    y = product(".fc2", activated(y, shares), b.shape(read)[1]);
    y = b.local(sorted(".unsort", y));
    y = emit(ExpertOp::Unpermute, ".unpermute", std::array{y, visits.tokens},
             std::array{OutputSpec{"", b.shape(read), b[read].dtype}});
    y = latent_out(b, name, y, s[2], config);
    y = b.view(name + ".tokens", y, s);
    return config.shared_width > 0 ? with_shared(x, y) : y;
  }
};

}  // namespace

TensorId grouped_experts(TraceBuilder& b, const std::string& name, TensorId x,
                         const ExpertsConfig& config, const MlpConfig& inside) {
  b.begin_function();
  const TensorId y = GroupedMixture{b, name, config, inside}(x);
  b.end_function();
  return y;
}

}  // namespace tidemark
