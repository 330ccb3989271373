// LLaMA and the other decoders, as transformers' modeling files write them, eager:
//   embed ─ { norm ─ q,k,v ─ rope ─ attention ─ o ─ add ─ norm ─ gate,up ─ silu·up ─ down ─ add } ─
//   norm ─ head ─ loss
// is LLaMA; the others have other parts at these places, or the two branches at once.
#include <fmt/format.h>

#include <algorithm>

#include "traces/models/language_model.h"
#include "traces/models/latent_attention.h"
#include "traces/models/liger.h"
#include "traces/models/model_config.h"
#include "traces/models/task_head.h"
#include "traces/models/titan.h"

namespace tidemark {
namespace {

/// One block: its two branches, and where the norms and sums stand.
struct DecoderBlock {
  TraceBuilder& b;
  const DecoderConfig& config;
  const AttentionConfig& attention;
  std::string name;
  bool has_experts = false;
  std::optional<Mixer> mixer = {};  ///< of its only branch, if it has one

  TensorId normed(std::string_view which, TensorId x) const {
    return norm(b, name + "." + std::string(which), x, config.norm, config.epsilon);
  }

  TensorId named(TensorId x, BlockNames by = BlockNames::All) const {
    return config.names >= by ? b.local(x) : x;
  }

  double residual_dropout() const { return b.dropout_probability(config.residual_dropout); }

  bool drops_branches() const { return !config.drops_sum && !config.drops_inside; }

  TensorId attend(TensorId x) const {
    const TensorId y = config.latent.key_rank > 0
                           ? latent_attention(b, name + ".attn", x, config.latent, attention)
                           : self_attention(b, name + ".attn", x, attention);
    named(y, BlockNames::Attention);
    const bool drops = config.drops_attention_output && drops_branches();
    return drops ? b.dropout(name + ".attn.drop", y, residual_dropout()) : y;
  }

  TensorId mixed(TensorId x, const MlpConfig& inside) const {
    // Megatron-LM's own GPTs in any framework; those of all others are gated.
    const bool is_megatrons = config.mlp_form != MlpForm::Gated && !config.is_hybrid();
    return b.framework().grouped_experts || is_megatrons
               ? grouped_experts(b, name + ".mlp", x, config.experts, inside)
               : mixture_of_experts(b, name + ".mlp", x, config.experts, config.activation);
  }

  TensorId feed(TensorId x) const {
    const MlpConfig inside{.form = config.mlp_form,
                           .activation = config.activation,
                           .width = config.mlp,
                           .bias = config.mlp_bias,
                           .out_dropout = config.drops_inside ? residual_dropout() : 0,
                           .is_in_block = config.mlp_in_block};
    const TensorId y = has_experts ? mixed(x, inside) : mlp(b, name + ".mlp", x, inside);
    if (!config.drops_sum) named(y);  // else the name is that of the sum
    return drops_branches() ? b.dropout(name + ".mlp.drop", y, residual_dropout()) : y;
  }

  struct Half {
    Part part;
    TensorId (DecoderBlock::*branch)(TensorId) const;
    std::string_view norm_before, norm_after, add;
    BlockNames names_norm = BlockNames::All;
  };

  TensorId half(const Half& half, TensorId x) const {
    const BlockForm form = config.block;
    b.part(half.part);
    const bool norms_before = form == BlockForm::PreNorm || form == BlockForm::SandwichNorm;
    TensorId y = norms_before ? named(normed(half.norm_before, x), half.names_norm) : x;
    y = (this->*half.branch)(y);
    if (form == BlockForm::SandwichNorm || form == BlockForm::BranchNorm)
      y = normed(half.norm_after, y);
    if (config.branch_factor != 1)
      y = b.scale(fmt::format("{}.{}.scale", name, half.add), y, config.branch_factor);
    x = b.residual(name + "." + std::string(half.add), x, y);
    return form == BlockForm::PostNorm ? normed(half.norm_after, x) : x;
  }

  // Neither branch waits for the other, so there is nothing that a coupling could undo. What both
  // give has names until the block returns; Falcon's code adds in place of the second.
  TensorId both_at_once(TensorId x) const {
    const TensorId before = named(normed("input_norm", x), BlockNames::Attention);
    const bool shares = config.block == BlockForm::ParallelOneNorm;
    TensorId read = shares ? before : no_tensor;
    if (!shares && config.names == BlockNames::All) read = named(normed("post_norm", x));
    const TensorId attended = b.local(attend(before));
    const TensorId fed = feed(read != no_tensor ? read : normed("post_norm", x));
    if (config.sums_from_left) {
      b.local(fed);
      return b.add(name + ".add2", b.add(name + ".add1", x, attended), fed);
    }
    if (!config.drops_sum) {
      b.local(fed);
      return b.add(name + ".add2", b.add(name + ".add1", fed, attended), x);
    }
    const TensorId sum = named(b.add(name + ".add1", fed, attended));
    return b.add(name + ".add2", x, b.dropout(name + ".drop", sum, residual_dropout()));
  }

  TensorId mix(TensorId x) const {
    switch (*mixer) {
      case Mixer::StateSpace:
        return b.dropout(name + ".mixer.drop",
                         state_space(b, name + ".mixer", x, config.state_space),
                         residual_dropout());
      case Mixer::Attention:
        return attend(x);
      case Mixer::Mlp:
      case Mixer::Experts:
        return feed(x);
    }
    return no_tensor;
  }

  TensorId operator()(TensorId x) const {
    b.begin_block(name, x, mixer ? -1 : 0);
    x = inside(x);
    b.end_block();
    return x;
  }

  TensorId inside(TensorId x) const {
    b.begin_function();
    if (mixer) {
      x = b.add(name + ".add", x, mix(normed("norm", x)));
    } else if (is_parallel(config.block)) {
      x = both_at_once(x);
    } else {
      x = half({Part::F, &DecoderBlock::attend, "input_norm", "attn_norm", "add1",
                BlockNames::Attention},
               x);
      x = half({Part::G, &DecoderBlock::feed, "post_norm", "mlp_norm", "add2"}, x);
    }
    b.end_function();
    return x;
  }
};

/// What blocks with a window see, and what those without see.
struct View {
  std::string_view suffix;  ///< of its inputs' names
  std::int64_t window = 0;
  Rotary rotary = {};
  const AttentionConfig* tables = nullptr;  ///< whose rotary tables serve here, too
};

// gpt-oss' attention and experts are those of transformers.
void require_known_parts(const TraceBuilder& b, const DecoderConfig& config) {
  if (config.experts.is_clamped && b.framework().grouped_experts)
    throw UsageError(fmt::format(
        "--framework {}: clamped experts with biases, as {} has them, are not known in its layers "
        "(take {})",
        b.framework().name, b.trace().model, default_framework));
  const Attention kernel = b.step().attention.value_or(Attention::Math);
  if (config.has_sinks && (kernel == Attention::Flash || kernel == Attention::MemoryEfficient))
    throw UsageError(
        fmt::format("--attention: {}'s sinks are in transformers' own attention alone (take math)",
                    b.trace().model));
}

// The tables and the mask have the dtype of the residual stream, so autocast's 16-bit q and k come
// out of the rotation in fp32.
AttentionConfig attention_of(TraceBuilder& b, const DecoderConfig& config, std::int64_t tokens,
                             const View& view) {
  const DType stream = b.framework().autocast_casts ? b.base_dtype() : b.compute_dtype();
  const std::string suffix(view.suffix);
  AttentionConfig attention{
      .heads = config.heads,
      .key_heads = config.key_heads,
      .head_width = config.head_width,
      .window = view.window,
      .packed = config.packed_qkv,
      .unpacking = config.unpacking,
      .scales_query = false,
      .causal = true,
      .qkv_bias = config.qkv_bias,
      .out_bias = config.out_bias,
      .softmax_in_fp32 = !config.plain_scores,
      .probabilities_as_query = !config.plain_scores,
      .dropout = b.dropout_probability(config.attention_dropout),
      .rotary_width = config.rotary_width,
      .turns_pairs = config.turns_pairs,
      .joins_nothing = config.joins_nothing,
      .rounds_rotated = config.rotates_in_fp32 || config.widens_rotated,
      .widens_rotated = config.widens_rotated,
      .turn = config.turn,
      .head_norm = config.head_norm,
      .norms_turned = config.norms_turned,
      .head_gain = gain_of(config.norm),
      .head_norm_epsilon = config.epsilon,
      .query_factor = config.query_factor,
      .has_sinks = config.has_sinks,
      .score_factor = config.score_factor,
      .out_dropout = config.drops_inside ? b.dropout_probability(config.residual_dropout) : 0,
      .score_cap = config.score_cap,
      .out_name = "o"};
  require_known_parts(b, config);
  if (config.has_sinks) attention.calls_sdpa = false;
  if (config.latent.key_rank > 0) attention.value_width = config.latent.value_width;
  const bool is_own =
      config.own_attention && (config.plain_scores || !b.framework().shared_attention);
  // Falcon's own code asks transformers 5 for a mask that is always there, and hands it on as it
  // is.
  const bool hands_on = config.plain_scores && b.framework().shared_attention;
  attention.by_shared_code = !is_own;
  attention.converts_mask = !is_own || hands_on;
  attention.repeats_key_heads = attention.dense_beside_mask = is_own && !hands_on;
  attention.is_always_masked = hands_on;
  attention.masks_each_sample = config.plain_scores || b.framework().masks_each_sample;
  attention.returns_weights = true;
  attention.names_products = config.plain_scores;
  attention.broadcasts_keys = config.broadcasts_keys;
  const std::int64_t keys = tokens + prefix_tokens(b.step().tuning);
  settle_attention(b, attention, "attention_mask" + suffix, {1, 1, tokens, keys}, stream,
                   fill::CausalMask{view.window});
  const bool turns = !config.learned_positions || config.latent.key_rank > 0;
  if (!turns || !config.has_positions) return attention;
  const std::int64_t turning = config.rotary_width ? config.rotary_width : config.head_width;
  const bool once = config.tables_are_halves || config.turn == HeadTurn::SpreadNeighbours;
  const Shape table = {tokens, once ? turning / 2 : turning};
  const bool is_rounded_later = config.latent.turn == LatentTurn::Called;
  const DType kept = config.rotates_in_fp32 || is_rounded_later ? DType::Float32 : stream;
  if (view.tables != nullptr) {
    attention.cosine = view.tables->cosine, attention.sine = view.tables->sine;
    return attention;
  }
  // A wave and its cosine beside each other.
  if (config.latent.turn == LatentTurn::Complex || config.turns_pairs) {
    attention.cosine = b.input("rope.waves" + suffix, table, DType::Float32,
                               fill::RotaryTable{fill::Wave::Pairs, view.rotary});
    return attention;
  }
  fill::WaveColumns columns = fill::WaveColumns::Halves;
  if (config.turn == HeadTurn::Neighbours) columns = fill::WaveColumns::Neighbours;
  if (once) columns = fill::WaveColumns::Once;
  const auto wave = [&](const char* name, fill::Wave kind) {
    return b.input(name + suffix, table, kept, fill::RotaryTable{kind, view.rotary, columns});
  };
  attention.cosine = wave("rope.cos", fill::Wave::Cosine);
  attention.sine = wave("rope.sin", fill::Wave::Sine);
  return attention;
}

// Learned positions count from the first one, for each sample by itself. The model has a name for
// what it looks up until all blocks are done.
TensorId with_positions(TraceBuilder& b, TensorId x, const DecoderConfig& config) {
  const TensorId places =
      b.input("position_ids", {b.shape(x)[0], b.shape(x)[1]}, DType::Int64,
              fill::Positions{config.first_position + prefix_tokens(b.step().tuning)});
  const TensorId table = b.parameter("position_embed.weight",
                                     {config.positions + config.first_position, config.width});
  return b.add("pos_add", x, b.local(b.embedding("position_embed", places, table)));
}

TensorId embed(TraceBuilder& b, TensorId ids, TensorId table, const DecoderConfig& config) {
  TensorId x = b.with_prompt(b.embedding("embed", ids, table));
  if (config.embedding_width) x = b.linear("project_in", x, config.width, false);
  const bool is_whole = b.step().mesh[Axis::Tensor] == 1;  // else ranks sum what they look up
  if (is_whole && !config.table_scales && !b.framework().torchtitan) b.local(x);
  if (config.embedding_factor != 1) x = b.scale("embed.scale", x, config.embedding_factor);
  if (is_whole && config.table_scales) b.local(x);
  if (config.learned_positions) x = with_positions(b, x, config);
  return b.dropout("drop", x, b.dropout_probability(config.embedding_dropout));
}

/// The attention of every n-th block, and of those between.
struct Attentions {
  AttentionConfig far, near;
};

bool mixes_windows(const DecoderConfig& config) {
  return config.global_every > 0 && config.sliding_window > 0;
}

Attentions attentions_of(TraceBuilder& b, const DecoderConfig& config, std::int64_t tokens) {
  const bool mixes = mixes_windows(config);
  const View all{
      .suffix = "", .window = mixes ? 0 : config.sliding_window, .rotary = config.rotary};
  const AttentionConfig far = attention_of(b, config, tokens, all);
  if (!mixes) return {far, far};
  const View local{.suffix = ".local",
                   .window = config.sliding_window,
                   .rotary = config.local_rotary.value_or(config.rotary),
                   .tables = config.local_rotary ? nullptr : &far};
  return {far, attention_of(b, config, tokens, local)};
}

// What a cache with a window does with a prefix, and what code of its own makes of one, is not
// known.
std::vector<Prefix> prefixes_of(TraceBuilder& b, const DecoderConfig& config) {
  const bool is_known = config.latent.key_rank == 0 && config.sliding_window == 0 &&
                        !config.own_attention && !config.is_hybrid();
  if (b.step().tuning.kind == Tuning::Kind::Prefix && !is_known)
    throw UsageError(fmt::format(
        "tuning: prefixes are known in front of blocks that see all tokens by transformers' shared "
        "code, which {}'s do not (take lora:r=8,targets=q,v)",
        b.trace().model));
  const std::int64_t heads = config.key_heads ? config.key_heads : config.heads;
  const std::int64_t head_width =
      config.head_width ? config.head_width : config.width / config.heads;
  return b.prefixes(config.depth, heads, head_width);
}

bool has_experts(const DecoderConfig& config, std::int64_t block) {
  if (config.is_hybrid()) return config.mixers[static_cast<std::size_t>(block)] == Mixer::Experts;
  return config.experts.count > 0 && (block + 1) % config.experts.every == 0 &&
         std::ranges::find(config.dense_blocks, block) == config.dense_blocks.end();
}

// What predicts the token after the next reads what the last norm wrote, beside the word that comes
// (core/transformer/multi_token_prediction.py); the next one reads what that wrote. All of it is
// joined, and cut again for the head. But for the word it is one block, which its checkpoint wraps.
//
//   word ahead ─norm─┐
//   x ─────────norm──┴─join─► ─eh_proj─► ─layers─► ─norm─► x of the next
struct FurtherTokens {
  TraceBuilder& b;
  const DecoderConfig& config;
  const AttentionConfig& attention;
  TensorId table;

  // Layers of its own, or the same again.
  std::string module_of(std::int64_t number) const {
    return config.repeats_further ? "mtp" : fmt::format("mtp{}", number);
  }

  // A hybrid's are stated, others have one like the model's last.
  TensorId layers(const std::string& module, TensorId x) const {
    if (!config.is_hybrid())
      return DecoderBlock{b, config, attention, module + ".blocks.0",
                          has_experts(config, config.depth - 1)}
          .inside(x);
    for (std::size_t i = 0; i < config.further_mixers.size(); ++i) {
      const Mixer mixer = config.further_mixers[i];
      const std::string name = fmt::format("{}.blocks.{}", module, i);
      x = DecoderBlock{b, config, attention, name, mixer == Mixer::Experts, mixer}.inside(x);
    }
    return x;
  }

  TensorId ahead(std::int64_t number, TensorId x) const {
    const std::string module = module_of(number);
    const auto normed = [&](std::string_view name, TensorId y) {
      return norm(b, fmt::format("{}.{}", module, name), y, config.norm, config.epsilon);
    };
    b.begin_further_token(number, config.further_are_plain);
    const Shape s = b.shape(x);
    const TensorId ids = b.input("input_ids", {s[0], s[1]}, DType::Int64, fill::Words{});
    const TensorId word = embed(b, ids, table, config);
    b.begin_block(module, x, -1);
    const std::array both = {normed("enorm", word), normed("hnorm", x)};
    x = b.concat(module + ".join", both, s.with_back(2 * config.width));
    x = layers(module, b.linear(module + ".eh_proj", x, config.width, false));
    x = normed("norm", x);
    b.end_block();
    b.end_further_token();
    return x;
  }

  HiddenWords operator()(TensorId x) const {
    const Shape s = b.shape(x);
    std::vector<TensorId> all = {x};
    for (std::int64_t i = 1; i <= config.further_tokens; ++i) all.push_back(ahead(i, all.back()));
    const auto count = static_cast<std::int64_t>(all.size());
    const TensorId joined = b.concat("mtp.all", all, {s[0], count * s[1], s[2]});
    std::vector<std::string> names = {"next"};
    for (std::int64_t i = 1; i < count; ++i) names.push_back(fmt::format("ahead{}", i));
    std::vector<TensorId> parts = b.split("mtp.parts", joined, std::vector<Shape>(all.size(), s),
                                          {names.begin(), names.end()});
    return {parts[0], table, {parts.begin() + 1, parts.end()}};
  }
};

void require_known_further_tokens(const StepOptions& step) {
  if (step.tuning.kind == Tuning::Kind::Prompt)
    throw UsageError(
        "tuning: learned tokens are not known beside the prediction of several tokens (take full)");
  if (scores_pairs(step))
    throw UsageError(
        "--loss: pairs are not compared beside the prediction of several tokens (leave it out)");
}

HiddenWords hidden_words(TraceBuilder& b, const DecoderConfig& config, std::int64_t tokens) {
  const TensorId ids =
      b.input("input_ids", {sequences_of(b.step()), tokens}, DType::Int64, fill::Words{});
  b.begin_function();
  const Attentions by_layer = attentions_of(b, config, tokens + prompt_tokens(b.step().tuning));
  const std::int64_t of_table = config.embedding_width ? config.embedding_width : config.width;
  const TensorId table = b.parameter("embed.weight", {config.vocabulary, of_table});

  const std::vector<Prefix> prefixes = prefixes_of(b, config);
  TensorId x = embed(b, ids, table, config);
  b.expect_blocks(config.depth);
  for (std::int64_t i = 0; i < config.depth; ++i) {
    const bool is_near = mixes_windows(config) && (i + 1) % config.global_every != 0;
    AttentionConfig attention = is_near ? by_layer.near : by_layer.far;
    attention.prefix = prefixes[static_cast<std::size_t>(i)];
    if (config.still_every > 0 && (i + 1) % config.still_every == 0)
      attention.cosine = attention.sine = no_tensor;
    std::optional<Mixer> mixer;
    if (config.is_hybrid()) mixer = config.mixers[static_cast<std::size_t>(i)];
    x = DecoderBlock{b,    config, attention, "blocks." + std::to_string(i), has_experts(config, i),
                     mixer}(x);
  }
  if (config.block != BlockForm::PostNorm) x = norm(b, "norm", x, config.norm, config.epsilon);
  if (config.embedding_width) x = b.linear("project_out", x, config.embedding_width, false);
  if (config.further_tokens > 0 && b.framework().megatron) {
    require_known_further_tokens(b.step());
    const HiddenWords hidden = FurtherTokens{b, config, by_layer.far, table}(x);
    b.end_function();
    return hidden;
  }
  b.end_function();
  return {b.framework().torchtitan ? x : b.local(x), table};  // whose model has a name for it alone
}

// Up to transformers 4.57 Nemotron-H's class is that of NVIDIA's own file, which comes with the
// weights and whose norms multiply by the weight in fp32. Megatron-LM has its own attention, with
// one product for q, k and v, and turns latent heads by its kernels unless its own names say other.
DecoderConfig in_version(const TraceBuilder& b, DecoderConfig config) {
  const bool is_of_transformers = config.latent.turn < LatentTurn::Called;
  if (b.framework().megatron && config.latent.key_rank > 0 && is_of_transformers)
    config.latent.turn = LatentTurn::Fused;
  config.turns_pairs = b.framework().torchtitan && is_titans_llama(config);
  if (config.family != "nemotron-h") return config;
  if (b.framework().megatron) {
    config.own_attention = false;
    config.packed_qkv = config.plain_scores = true;
    config.unpacking = Unpacking::Slices;
  } else if (!b.framework().shared_attention) {
    config.norm = NormForm::RmsWide;
  }
  return config;
}

}  // namespace

Trace build_decoder(const std::string& model, const DecoderConfig& of_file,
                    const StepOptions& options) {
  TraceBuilder b(model, std::string(of_file.family), options);
  const DecoderConfig config = in_version(b, of_file);
  if (const std::string defect = options.liger ? liger_defect(config) : ""; !defect.empty())
    throw UsageError(fmt::format("--liger: {} (leave it out)", defect));
  const std::int64_t tokens = sequence_length(options, config.positions, config.learned_positions);
  const double dropout = b.dropout_probability(config.classifier_dropout.value_or(0.1));
  const bool wide_loss = !config.plain_scores;  // Falcon's classes stay in the dtype of the logits
  // Whose name for all outputs lasts until the loss is there; that of pairs is not the model's own.
  const bool names = !scores_pairs(options);
  if (names) b.begin_function();
  const TensorId loss =
      decoder_loss(b, [&] { return hidden_words(b, config, tokens); },
                   {.head = config.head,
                    .is_tied = config.tied_head,
                    .vocabulary = config.vocabulary,
                    .bias = config.head_bias,
                    .logit_cap = config.logit_cap,
                    .logit_factor = config.logit_factor,
                    .renames_logits = config.own_loss && b.framework().shifts_logits,
                    .token = {.labels = config.labels,
                              .dropout = dropout,
                              .loss_in_fp32 = wide_loss,
                              .name = "score"}});
  if (names) b.end_function();
  return b.finish(loss);
}

}  // namespace tidemark
