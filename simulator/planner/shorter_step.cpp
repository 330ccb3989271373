// What stands behind a stage that is left out reads what that stage was fed:
//   x ─block 0─► a ─block 1─► b ─block 2─► c ─head      without block 1:  x ─► a ─block 2─► c ─head
// Whether the others are what they were is not argued but looked up: their signatures are equal.
#include "simulator/planner/shorter_step.h"

#include <algorithm>

#include "simulator/strategies/trace_edit.h"

namespace tidemark {
namespace {

class Shortening {
 public:
  Shortening(const Trace& trace, const Needs& needs, const Stages& chain)
      : trace_(trace), needs_(needs), chain_(chain), handed_on_(chain.all.size(), no_tensor) {
    for (std::uint32_t s = 0; s < chain.all.size(); ++s)
      stage_of_.resize(index(chain.all[s].end), s);
    find_handed_on();
    find_shared();
  }

  std::optional<ShorterStep> run(const std::vector<std::size_t>& of_each_kind) && {
    choose(of_each_kind);
    if (kept_.size() == chain_.all.size()) return std::nullopt;
    ShorterStep made{std::make_shared<const Trace>(edited()), {}, {}};
    made.needs = derive_needs(*made.trace);
    made.chain.kinds.resize(chain_.kinds.size());
    for (const std::uint32_t s : kept_) add_stage(s, made);
    if (!costs_the_same(made)) return std::nullopt;
    return made;
  }

 private:
  // By stage: the only tensor that others read of it, as it is. Several make it one that stays.
  void find_handed_on() {
    std::vector<bool> has_more(chain_.all.size());
    for (std::uint32_t i = 0; i < trace_.ops.size(); ++i)
      for (const TensorId input : trace_.inputs(trace_.ops[i])) {
        const OpId producer = needs_.producer[index(trace_[input].storage)];
        if (producer == no_op || stage_of_[index(producer)] == stage_of_[i]) continue;
        const std::uint32_t s = stage_of_[index(producer)];
        if (trace_[input].storage != input ||
            (handed_on_[s] != no_tensor && handed_on_[s] != input))
          has_more[s] = true;
        handed_on_[s] = input;
      }
    for (std::size_t s = 0; s < has_more.size(); ++s)
      if (has_more[s]) handed_on_[s] = no_tensor;
  }

  // By stage: does it add to a gradient that others add to, as one of them that is the first?
  void find_shared() {
    shares_.resize(chain_.all.size());
    constexpr std::uint32_t nobody = 0xffffffff;
    std::vector<std::uint32_t> reader(trace_.tensors.size(), nobody);
    for (std::uint32_t i = 0; i < trace_.ops.size(); ++i) {
      const auto inputs = trace_.inputs(trace_.ops[i]);
      for (std::size_t k = 0; k < inputs.size() && k < 32; ++k) {
        if ((needs_.gradients[i] >> k & 1) == 0) continue;
        std::uint32_t& first = reader[index(trace_[inputs[k]].storage)];
        if (first == nobody) first = stage_of_[i];
        if (first != stage_of_[i]) shares_[first] = shares_[stage_of_[i]] = true;
      }
    }
  }

  const Tensor& fed(const Stage& stage) const {
    return trace_[trace_.blocks[static_cast<std::size_t>(stage.block)].input];
  }

  bool can_go(std::uint32_t s) const {
    const Stage& stage = chain_.all[s];
    if (stage.block < 0 || handed_on_[s] == no_tensor || shares_[s]) return false;
    const Tensor &in = fed(stage), &out = trace_[handed_on_[s]];
    const TensorId input = trace_.blocks[static_cast<std::size_t>(stage.block)].input;
    return in.storage == input && in.shape == out.shape && in.dtype == out.dtype &&
           in.category == out.category && in.held_until == out.held_until;
  }

  void choose(const std::vector<std::size_t>& of_each_kind) {
    std::vector<std::size_t> count(chain_.kinds.size());
    for (std::uint32_t s = 0; s < chain_.all.size(); ++s) {
      const std::uint32_t kind = chain_.all[s].kind;
      if (count[kind] >= of_each_kind[kind] && can_go(s)) continue;
      ++count[kind];
      kept_.push_back(s);
    }
  }

  Trace edited() {
    TraceEdit edit(trace_);
    std::vector<bool> is_block_kept(trace_.blocks.size());
    auto kept = kept_.begin();
    for (std::uint32_t s = 0; s < chain_.all.size(); ++s) {
      const Stage& stage = chain_.all[s];
      if (kept == kept_.end() || *kept != s) {
        const TensorId input = trace_.blocks[static_cast<std::size_t>(stage.block)].input;
        edit.redirect(handed_on_[s], edit.map(input));
        continue;
      }
      ++kept;
      for (std::size_t i = index(stage.begin); i < index(stage.end); ++i) {
        edit.copy(static_cast<OpId>(i));
        if (const std::int32_t block = trace_.ops[i].block; block >= 0)
          is_block_kept[static_cast<std::size_t>(block)] = true;
      }
    }
    for (std::size_t b = 0; b < is_block_kept.size(); ++b)
      if (!is_block_kept[b]) edit.feed_block(b, TensorId{0});
    return with_blocks(edit.finish(), is_block_kept);
  }

  static Trace with_blocks(Trace trace, const std::vector<bool>& is_kept) {
    std::vector<std::int32_t> number(trace.blocks.size(), -1);
    std::vector<Block> blocks;
    for (std::size_t b = 0; b < trace.blocks.size(); ++b) {
      if (!is_kept[b]) continue;
      number[b] = static_cast<std::int32_t>(blocks.size());
      blocks.push_back(trace.blocks[b]);
    }
    for (Op& op : trace.ops)
      if (op.block >= 0) op.block = number[static_cast<std::size_t>(op.block)];
    trace.blocks = std::move(blocks);
    return trace;
  }

  void add_stage(std::uint32_t s, ShorterStep& made) const {
    const Stage& stage = chain_.all[s];
    const std::size_t begin = made.chain.all.empty() ? 0 : index(made.chain.all.back().end);
    const std::size_t end = begin + index(stage.end) - index(stage.begin);
    Stage left =
        stage_of_ops(*made.trace, made.needs, static_cast<OpId>(begin), static_cast<OpId>(end));
    left.kind = stage.kind;
    made.chain.kinds[left.kind].push_back(static_cast<std::uint32_t>(made.chain.all.size()));
    made.chain.all.push_back(std::move(left));
  }

  bool costs_the_same(const ShorterStep& made) const {
    const auto before = signatures_of(trace_, needs_, chain_);
    const auto after = signatures_of(*made.trace, made.needs, made.chain);
    for (std::size_t s = 0; s < kept_.size(); ++s)
      if (after[s] != before[kept_[s]]) return false;
    return true;
  }

  const Trace& trace_;
  const Needs& needs_;
  const Stages& chain_;
  std::vector<std::uint32_t> stage_of_;  ///< by op
  std::vector<TensorId> handed_on_;      ///< by stage: see find_handed_on()
  std::vector<bool> shares_;             ///< by stage: see find_shared()
  std::vector<std::uint32_t> kept_;      ///< stages of the chain
};

}  // namespace

std::optional<ShorterStep> without_alike(const Trace& trace, const Needs& needs,
                                         const Stages& chain,
                                         const std::vector<std::size_t>& of_each_kind) {
  return Shortening(trace, needs, chain).run(of_each_kind);
}

}  // namespace tidemark
