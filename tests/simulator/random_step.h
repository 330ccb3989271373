// Small random traces and plans.
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "simulator/graph/recovery.h"
#include "simulator/needs.h"
#include "simulator/plan.h"
#include "tests/simulator/dice.h"
#include "traces/megatron_optimizers.h"
#include "traces/trace_builder.h"

namespace tidemark {

enum class Concats { None, Some };
enum class Opaques { None, Some };

namespace detail {

inline const Shape shape = {2, 3, 4};

inline StepOptions random_options(Dice& dice) {
  StepOptions options{.batch = 2};
  options.precision = dice.pick(precisions).value;
  options.framework = dice.pick(frameworks()).name;
  options.optimizer = dice.pick(optimizers).value;
  if (find_framework(options.framework).megatron && !is_of_megatron(options.optimizer))
    options.optimizer = Optimizer::AdamW;
  options.ddp = dice.one_in(4);
  options.ema = dice.one_in(4);
  if (dice.one_in(3)) options.tuning = parse_tuning(dice.one_in(2) ? "frozen:op1*" : "frozen:op?");
  if (dice.one_in(4)) options.tuning = parse_tuning("lora:r=2,targets=fc");
  return options;
}

class TraceDice {
 public:
  TraceDice(Dice& dice, Concats concats, Opaques opaques)
      : dice_(dice),
        concats_(concats),
        opaques_(opaques),
        build_("random", "toy", random_options(dice)) {
    made_.push_back(build_.input("x", shape, DType::Float32));
    if (dice.one_in(3)) made_.push_back(build_.parameter("positions", shape));
  }

  Trace run() && {
    const TensorId targets = build_.input("targets", {2, 3}, DType::Int64);
    const std::size_t count = 2 + dice_.below(18);
    for (std::size_t i = 0; i < count; ++i) {
      step_between_blocks();
      name_ = fmt::format("op{}", i);
      const TensorId made = random_op();
      made_.push_back(in_function_ && dice_.one_in(2) ? build_.local(made) : made);
    }
    step_between_blocks();
    if (in_function_) build_.end_function();
    if (in_block_) build_.end_block();
    return build_.finish(build_.cross_entropy("loss", made_.back(), targets));
  }

 private:
  // Mostly the newest tensors, so that the trace is long rather than wide.
  TensorId any() {
    const std::size_t back = dice_.one_in(3) ? dice_.below(made_.size()) : 0;
    return made_[made_.size() - 1 - back];
  }

  void step_between_blocks() {
    if (!dice_.one_in(3)) return;
    if (in_function_) build_.end_function();
    if (in_block_) build_.end_block();
    in_block_ = in_function_ = !in_block_;
    if (!in_block_) return;
    build_.begin_block(fmt::format("block{}", blocks_++), made_.back(), -1);
    build_.begin_function();
    static_cast<void>(build_.local(build_.silu(fmt::format("silu{}", blocks_), made_.back())));
  }

  TensorId random_op() {
    if (opaques_ == Opaques::Some && dice_.one_in(4)) return opaque();
    switch (dice_.below(12)) {
      case 0:
        return build_.linear(name_, any(), 4);
      case 1:
        return build_.layer_norm(name_, any(), 1e-5);
      case 2:
        return build_.gelu(name_, any());
      case 3:
        return build_.residual(name_, any(), any());
      case 4:
        return build_.mul(name_, any(), any());
      case 5:
        return build_.dropout(name_, any(), 0.1);
      case 6:
        return build_.softmax(name_, any());
      case 7:
        return build_.cast(name_, any(), dice_.one_in(2) ? DType::Float16 : DType::Float32);
      case 8:
        return build_.view(name_, build_.view(name_ + ".flat", any(), {6, 4}), shape);
      case 9:
        return selected();
      case 10:
        return concatenated();
      default:
        return build_.add(name_, any(), build_.parameter(name_ + ".shift", {4}));
    }
  }

  // A split of a wider tensor, of which one part may have no reader.
  TensorId selected() {
    const TensorId wide = build_.linear(name_, any(), 8);
    if (dice_.one_in(2)) return build_.select(name_ + ".left", wide, shape);
    const auto parts = build_.split(name_ + ".split", wide, {shape, shape}, {"a", "b"});
    if (dice_.one_in(2)) made_.push_back(parts[1]);
    return parts[0];
  }

  TensorId concatenated() {
    const std::vector<TensorId> parts = {any(), any()};
    if (build_[parts[0]].dtype != build_[parts[1]].dtype || concats_ == Concats::None)
      return build_.gelu(name_, parts[0]);
    const TensorId wide = build_.concat(name_, parts, {2, 3, 8});
    return build_.linear(name_ + ".narrow", wide, 4, dice_.one_in(2));
  }

  // Any operands, none of them sometimes; what it keeps may include state that nobody else reads.
  TensorId opaque() {
    std::vector<TensorId> inputs;
    for (std::size_t count = dice_.below(4); inputs.size() < count;)
      inputs.push_back(dice_.one_in(5) ? weight(inputs.size()) : any());
    std::vector<OutputSpec> outputs = {
        {"", shape, dice_.one_in(2) ? DType::Float16 : DType::Float32}};
    if (dice_.one_in(2)) outputs.push_back({"state", {5}, DType::Float32});
    if (dice_.one_in(3)) outputs.push_back({"indices", {2, 3}, DType::Int64});
    const OpaqueRow row = random_row(inputs.size(), outputs.size());
    const TensorId made = build_.opaque(name_, inputs, outputs, row);
    return dice_.one_in(3) && (row.saved & output_bit(0)) == 0 ? in_place(made) : made;
  }

  // On what nobody has kept, and nobody will read any more.
  TensorId in_place(TensorId x) {
    const OutputSpec before{"", shape, DType::Float32};
    if (dice_.one_in(2))
      made_.push_back(
          build_.opaque(name_ + ".before", std::span(&x, 1), std::span(&before, 1),
                        {.operation = "aten::f", .gradients = 1, .saved = output_bit(0)}));
    const OutputSpec output{"", shape, build_[x].dtype, x};
    OpaqueRow row = random_row(1, 1);
    row.saved &= ~input_bit(0), row.quantized &= row.saved;
    return build_.opaque(name_ + ".in_place", std::span(&x, 1), std::span(&output, 1), row);
  }

  TensorId weight(std::size_t input) {
    return build_.parameter(fmt::format("{}.weight{}", name_, input), {3, 4});
  }

  OpaqueRow random_row(std::size_t inputs, std::size_t outputs) {
    OpaqueRow row{.operation = "aten::" + name_};
    row.gradients = bits_below(inputs);
    row.saved = bits_below(inputs) | bits_below(outputs) << 16;
    const Operands numbers = ((Operands{1} << inputs) - 1) | output_bit(0);
    row.quantized = row.saved & numbers & bits_below(17);
    row.runs_once = dice_.one_in(6);
    for (OpaquePass* pass : {&row.forward, &row.backward}) {
      if (dice_.one_in(2)) pass->workspace = {static_cast<std::int64_t>(8 * dice_.below(20))};
      if (dice_.one_in(2)) pass->flops = static_cast<std::int64_t>(dice_.below(1000));
      if (dice_.one_in(2)) pass->moved = Bytes{static_cast<std::int64_t>(dice_.below(1000))};
      pass->kernels = static_cast<int>(dice_.below(3));
    }
    return row;
  }

  std::uint32_t bits_below(std::size_t count) {
    return static_cast<std::uint32_t>(dice_.below(std::size_t{1} << count));
  }

  Dice& dice_;
  Concats concats_;
  Opaques opaques_;
  TraceBuilder build_;
  std::vector<TensorId> made_;
  std::string name_;
  std::size_t blocks_ = 0;
  bool in_block_ = false, in_function_ = false;
};

inline void draw_regions(const Trace& trace, Dice& dice, Plan& plan) {
  std::int32_t chain = 0;
  for (std::size_t op = dice.below(4); op + 1 < trace.ops.size();) {
    const std::size_t end = std::min(op + 1 + dice.below(8), trace.ops.size());
    const std::size_t split = op + dice.below(end - op + 1);
    plan.regions.push_back(
        {static_cast<OpId>(op), static_cast<OpId>(split), static_cast<OpId>(end), chain});
    const std::size_t gap = dice.one_in(3) ? dice.below(4) : 0;
    if (gap > 0 || dice.one_in(4)) ++chain;
    op = end + gap;
  }
}

// A tensor that is made again should be made and read inside of one region; others are chosen
// without a thought.
inline Action draw_action(Dice& dice) {
  constexpr std::array actions_of_tensors = {
      Action::Keep,    Action::Keep,      Action::Recompute, Action::Quantize,
      Action::Offload, Action::Recompute, Action::Offload,   Action::Reconstruct};
  return dice.pick(actions_of_tensors);
}

// One of several that fit: all widths, with and without groups, and floats of both kinds.
inline Encoding some_encoding(const Shape& of, std::size_t number) {
  if (number % 5 == 4)
    return number % 2 == 0 ? float8_encoding(of, 2) : float8_encoding_of_tensor();
  const auto bits = static_cast<int>(code_bits[number % code_bits.size()]);
  Encoding encoding = mesa_encoding(of, bits, number % 2 == 0 ? 2 : mesa_channels);
  encoding.delayed = number % 4 >= 2;
  return encoding;
}

inline std::vector<OpId> draw_ends(const Trace& trace, Dice& dice) {
  std::vector<OpId> ends(trace.tensors.size(), no_op);
  for (OpId& end : ends)
    if (dice.one_in(4)) end = static_cast<OpId>(dice.below(trace.ops.size()));
  return ends;
}

// What runs again waits for gradients of any op behind its region.
inline void draw_waits(const Trace& trace, const Needs& needs, Dice& dice, Plan& plan) {
  plan.lanes = static_cast<std::uint8_t>(least_lanes + dice.below(most_lanes - least_lanes + 1));
  plan.rerun_after.assign(trace.ops.size(), no_op);
  const Recovery recovery = derive_recovery(trace, plan, needs);
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    if (!recovery.reruns[i] || !dice.one_in(2)) continue;
    const std::size_t end = index(plan.regions[region_of(plan, static_cast<OpId>(i))].end);
    if (end < trace.ops.size())
      plan.rerun_after[i] = static_cast<OpId>(end + dice.below(trace.ops.size() - end));
  }
}

}  // namespace detail

/// Up to two dozen ops of the kinds that differ most in what their gradients do, over tensors
/// [2, 3, 4], with shortcuts, repeated operands, views, dead ends and frozen weights.
inline Trace random_trace(Dice& dice, Concats concats = Concats::Some,
                          Opaques opaques = Opaques::None) {
  Trace trace = detail::TraceDice(dice, concats, opaques).run();
  if (dice.one_in(4)) trace.step.accumulate.count = 2 + static_cast<std::int64_t>(dice.below(2));
  return trace;
}

/// Any actions on any tensors, any disjoint regions; check(trace, plan) may refuse it.
inline Plan random_plan(const Trace& trace, Dice& dice) {
  Plan plan = keep_everything(trace);
  if (!dice.one_in(4)) detail::draw_regions(trace, dice, plan);
  const std::size_t rarity = 1 + dice.below(6);
  const Needs needs = derive_needs(trace);
  std::vector<bool> is_made(trace.tensors.size()), is_made_once(trace.tensors.size());
  for (std::size_t t = 0; t < trace.tensors.size(); ++t)
    if (const OpId maker = needs.producer[t]; maker != no_op)
      is_made[t] = true, is_made_once[t] = needs.runs_once[index(maker)];
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    if (!is_made[t] || !dice.one_in(rarity)) continue;
    const Action action = detail::draw_action(dice);
    const bool makes_again = action == Action::Recompute || action == Action::Reconstruct;
    if (makes_again && is_made_once[t]) continue;
    if (action == Action::Quantize && !is_floating(trace.tensors[t].dtype)) continue;
    const auto id = static_cast<TensorId>(t);
    if (action == Action::Quantize)
      quantize(plan, id, detail::some_encoding(trace[id].shape, t), "drawn");
    else
      decide(plan, id, action, "drawn");
  }
  plan.overlap = dice.one_in(2);
  if (dice.one_in(3)) plan.left_by = detail::draw_ends(trace, dice);
  if (dice.one_in(3)) plan.fetched_at = detail::draw_ends(trace, dice);
  plan.quirks.codes_per_use = dice.one_in(4);
  plan.quirks.copies_by_group = dice.one_in(4);
  plan.quirks.batched_weight_gradient = dice.one_in(4);
  plan.quirks.synchronizes_host = dice.one_in(4);
  plan.quirks.two_new_streams = dice.one_in(4);
  plan.quirks.holds_unread = dice.one_in(4);
  if (dice.one_in(4)) plan.value_release_after = detail::draw_ends(trace, dice);
  if (dice.one_in(4)) plan.gradient_release_after = detail::draw_ends(trace, dice);
  if (dice.one_in(3))
    for (std::size_t t = 0; t < trace.tensors.size(); ++t)
      if (const auto id = static_cast<TensorId>(t); trace[id].storage == id && dice.one_in(3))
        keep_for_recovery(plan, id);
  if (plan.overlap && dice.one_in(2)) detail::draw_waits(trace, needs, dice, plan);
  return plan;
}

inline constexpr std::uint64_t first_seed = 404;

struct RandomStep {
  Trace trace;
  Plan plan;
};

/// Calls test(step) for `count` seeds whose plan is accepted, and fails if those become rare.
template <typename Test>
void for_random_steps(std::uint64_t count, Concats concats, Test test) {
  std::uint64_t accepted = 0;
  for (std::uint64_t seed = first_seed; seed < first_seed + count; ++seed) {
    Dice dice(seed);
    RandomStep step{random_trace(dice, concats, Opaques::Some), {}};
    ASSERT_THAT(check(step.trace), testing::IsEmpty()) << "seed " << seed;
    step.plan = random_plan(step.trace, dice);
    if (!check(step.trace, step.plan).empty()) continue;
    ++accepted;
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    test(step);
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(2 * accepted, count);
}

}  // namespace tidemark
