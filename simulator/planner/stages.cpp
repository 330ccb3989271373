// A stage's kind is known by its signature: all numbers that its local plans could depend on, with
// ops and tensors counted from its begin.
#include "simulator/planner/stages.h"

#include <algorithm>
#include <bit>
#include <map>
#include <unordered_map>

#include "simulator/parallel/shards.h"
#include "simulator/parallel/stage_trace.h"
#include "simulator/parallel/wrapped_groups.h"
#include "simulator/planner/survey.h"

namespace tidemark {
namespace {

using Signature = std::vector<std::int64_t>;

/// Of what a stage makes and others read too: how many gradients do?
enum class Crossing : std::uint8_t { Counted, Ignored };

/// Parameters that fully_shard gathers together.
struct GatheredGroup {
  OpId first_op{};
  std::int64_t elements = 0;  ///< with padding
};

// The root first. Empty where nothing is gathered.
std::vector<GatheredGroup> gathered_groups(const Trace& trace) {
  std::vector<GatheredGroup> gathered;
  if (!parameters_are_cut(trace.step)) return gathered;
  for (const WrappedGroup& group : wrapped_groups(trace)) {
    gathered.push_back({group.first_op});
    for (const TensorId parameter : group.parameters)
      gathered.back().elements += padded_numel(trace, parameter);
  }
  return gathered;
}

bool is_inside(const Stage& stage, OpId op) {
  return op != no_op && op >= stage.begin && op < stage.end;
}

/// What a stage's block begins with; no_tensor: the stage is no block.
TensorId fed_to(const Trace& trace, const Stage& stage) {
  if (stage.block < 0) return no_tensor;
  return trace[trace.blocks[static_cast<std::size_t>(stage.block)].input].storage;
}

class Signing {
 public:
  Signing(const Trace& trace, const Needs& needs, const std::vector<GatheredGroup>& gathered,
          const Stage& stage, Crossing crossing = Crossing::Counted)
      : trace_(trace), needs_(needs), gathered_(gathered), stage_(stage), crossing_(crossing) {}

  Signature run() && {
    sign_gathered();
    for (std::size_t i = index(stage_.begin); i < index(stage_.end); ++i) sign_op(i);
    for (const bool is_needed_here : stage_.needed_here) add(is_needed_here);
    if (crossing_ == Crossing::Counted)
      for (const SharedRead& read : stage_.shared_reads) add(read.bytes);
    return std::move(signature_);
  }

 private:
  template <typename... Numbers>
  void add(Numbers... numbers) {
    (signature_.push_back(static_cast<std::int64_t>(numbers)), ...);
  }

  // A stage's forward meets the group that was gathered before its own, and its backward the one
  // that is gathered ahead and the one whose gradients are being reduced.
  void sign_gathered() {
    std::int64_t before = 0, after = 0;
    for (std::size_t g = 0; g < gathered_.size(); ++g) {
      const auto& [first_op, elements] = gathered_[g];
      if (g == 0 || first_op < stage_.begin)
        before = elements;
      else if (is_inside(stage_, first_op))
        add(index(first_op) - index(stage_.begin), elements);
      else if (after == 0)
        after = elements;
    }
    add(before, after);
  }

  void sign_op(std::size_t i) {
    const Op& op = trace_.ops[i];
    add(op.kind, op.inputs, op.outputs, op.also_keeps, needs_.gradients[i], needs_.handed_on[i],
        needs_.saved[i], needs_.runs_once[i]);
    for (const Attribute& attribute : trace_.attributes_of(op))
      add(attribute.key, attribute.key == AttributeKey::Probability
                             ? attribute.value != 0  // of dropping: it rises from block to block
                             : std::bit_cast<std::int64_t>(attribute.value));
    if (const OpaqueRow* row = opaque_row(trace_, op)) sign_row(*row);
    for (const TensorId input : trace_.inputs(op)) sign_tensor(input);
    for (const TensorId output : trace_.outputs(op)) sign_tensor(output);
  }

  void sign_row(const OpaqueRow& row) {
    add(row.gradients, row.saved, row.quantized, row.runs_once);
    for (const OpaquePass* pass : {&row.forward, &row.backward})
      add(pass->workspace.count, pass->flops.value_or(-1), pass->moved ? pass->moved->count : -1,
          pass->streamed.count, pass->kernels);
  }

  void sign_tensor(TensorId id) {
    const auto [known, is_new] = numbers_.try_emplace(id, numbers_.size());
    add(known->second);
    if (!is_new) return;
    const Tensor& tensor = trace_[id];
    add(tensor.dtype, tensor.category, tensor.trainable, tensor.shape.rank(),
        is_held_by_others(id) ? offset(no_op) : offset(tensor.held_until));
    for (const std::int64_t dim : tensor.shape.dims()) add(dim);
    if (tensor.storage != id) return sign_tensor(tensor.storage);
    const std::size_t s = index(id);
    add(offset(needs_.producer[s]), offset(needs_.last_read[s]), offset(needs_.overwritten_by[s]));
    const bool is_counted =
        crossing_ == Crossing::Counted || is_inside(stage_, last_forward_use(needs_, id));
    if (is_inside(stage_, needs_.producer[s]) && is_counted) add(needs_.uses[s]);
  }

  // What others call a block's input, or what the block hands on, changes nothing inside of it. Of
  // several blocks the first one's input would be gone before the last one runs.
  bool is_held_by_others(TensorId id) const {
    const OpId held = trace_[id].held_until;
    if (held == no_op || held < stage_.end) return false;
    const OpId read = needs_.last_read[index(id)];
    if (read != no_op && read >= stage_.end) return true;
    return id == fed_to(trace_, stage_) &&
           trace_.blocks[static_cast<std::size_t>(stage_.block)].end == stage_.end;
  }

  std::int64_t offset(OpId op) const {
    if (op == no_op) return -1;
    if (!is_inside(stage_, op)) return -2;
    return static_cast<std::int64_t>(index(op) - index(stage_.begin));
  }

  const Trace& trace_;
  const Needs& needs_;
  const std::vector<GatheredGroup>& gathered_;
  const Stage& stage_;
  const Crossing crossing_;
  Signature signature_;
  std::unordered_map<TensorId, std::size_t> numbers_;  ///< in the order of their first mention
};

void find_decided(const Trace& trace, const Needs& needs, Stage& stage) {
  if (const TensorId fed = fed_to(trace, stage); fed != no_tensor) {
    const OpId held = trace[fed].held_until;
    if (is_inside(stage, needs.last_read[index(fed)])) stage.input = fed;
    if (stage.input == fed && held != no_op && held >= stage.end) stage.input_held = held;
  }
  for (std::size_t i = index(stage.begin); i < index(stage.end); ++i) {
    if (needs.runs_once[i]) continue;
    for (const TensorId output : trace.outputs(trace.ops[i])) {
      const std::size_t s = index(output);
      if (trace[output].storage != output || needs.uses[s] == 0) continue;
      if (needs.producer[s] == static_cast<OpId>(i) &&
          is_inside(stage, last_forward_use(needs, output))) {
        const OpId held = trace[output].held_until;
        stage.decided.push_back(output);
        stage.held.push_back(held != no_op && !is_inside(stage, held));
      }
    }
  }
}

// Of a storage that a stage reads last: gradients of the stage's ops alone read it.
bool is_needed_inside(const Trace& trace, const Needs& needs, const Stage& stage,
                      TensorId storage) {
  std::uint32_t inside = 0;
  for (std::size_t i = index(stage.begin); i < index(stage.end); ++i)
    for_each_operand(trace, trace.ops[i], needs.saved[i],
                     [&](TensorId saved, TensorId) { inside += saved == storage; });
  return inside == needs.uses[index(storage)] && trace[storage].held_until == no_op;
}

void find_inputs(const Trace& trace, const Needs& needs, Stage& stage) {
  for (std::size_t i = index(stage.begin); i < index(stage.end); ++i)
    for (const TensorId input : trace.inputs(trace.ops[i])) {
      const TensorId storage = trace[input].storage;
      const OpId producer = needs.producer[index(storage)];
      if (producer == no_op || producer >= stage.begin) continue;
      std::vector<TensorId>& found =
          needs.uses[index(storage)] > 0 ? stage.inputs : stage.read_again;
      const bool is_last = is_inside(stage, needs.last_read[index(storage)]);
      if (is_last && std::ranges::find(found, storage) == found.end()) found.push_back(storage);
    }
  for (const TensorId input : stage.inputs)
    stage.needed_here.push_back(is_needed_inside(trace, needs, stage, input));
}

void find_all(const Trace& trace, const Needs& needs, Stage& stage) {
  find_decided(trace, needs, stage);
  find_inputs(trace, needs, stage);
}

bool works_in_place_on(const Trace& trace, const Op& op, TensorId storage) {
  return std::ranges::any_of(trace.outputs(op), [&](TensorId output) {
    return output != storage && trace[output].storage == storage;
  });
}

// Calls visit(storage) for what the op reads if it runs again, and no gradient needs.
template <typename Visit>
void for_each_read_again(const Trace& trace, const Needs& needs, std::size_t number, Visit visit) {
  const Op& op = trace.ops[number];
  if (needs.runs_once[number] || is_view(op.kind)) return;
  for (const TensorId input : trace.inputs(op)) {
    const TensorId storage = trace[input].storage;
    if (needs.producer[index(storage)] != no_op && needs.uses[index(storage)] == 0 &&
        !works_in_place_on(trace, op, storage))
      visit(storage);
  }
}

/// By storage: how many times ops that may run again read it, if no gradient needs it.
using ReadsAgain = std::vector<std::int64_t>;

ReadsAgain reads_again(const Trace& trace, const Needs& needs) {
  ReadsAgain reads(trace.tensors.size());
  for (std::size_t i = 0; i < trace.ops.size(); ++i)
    for_each_read_again(trace, needs, i, [&](TensorId storage) { ++reads[index(storage)]; });
  return reads;
}

void find_shared_reads(const Trace& trace, const Needs& needs, const ReadsAgain& all,
                       Stage& stage) {
  std::vector<std::pair<TensorId, std::int64_t>> own;  // reads
  for (std::size_t i = index(stage.begin); i < index(stage.end); ++i)
    for_each_read_again(trace, needs, i, [&](TensorId storage) {
      if (needs.producer[index(storage)] >= stage.begin) return;
      const auto known = std::ranges::find(own, storage, &std::pair<TensorId, std::int64_t>::first);
      if (known == own.end())
        own.push_back({storage, 1});
      else
        ++known->second;
    });
  for (const auto& [storage, reads] : own)
    stage.shared_reads.push_back(
        {storage, rounded(size(trace[storage])) / 512 * reads / all[index(storage)] * 512});
}

void find_transfers(const Trace& trace, Stages& stages) {
  for (std::size_t s = 0; s + 1 < stages.all.size(); ++s) {
    if (stages.all[s].block < 0) continue;
    const OpId after_next = stages.all[s + 1].end;
    stages.all[s].left_by = std::min(after_next, static_cast<OpId>(trace.ops.size() - 1));
    stages.all[s].fetched_at = static_cast<OpId>(index(after_next) - 1);
  }
}

// Views run nothing: a stretch of them belongs to the stage behind it.
bool runs_something(const Trace& trace, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i)
    if (!is_view(trace.ops[i].kind)) return true;
  return false;
}

std::vector<Stage> cut(const Trace& trace) {
  const std::vector<std::int64_t> chunk_of = chunk_of_ops(trace);
  std::vector<Stage> stages;
  std::size_t at = 0;
  const auto close = [&](std::size_t begin, std::size_t end, std::int32_t block) {
    if (begin == end) return;
    stages.push_back(
        {.begin = static_cast<OpId>(begin), .end = static_cast<OpId>(end), .block = block});
    at = end;
  };
  // Outside of blocks, but not of two chunks of a pipeline stage at once.
  const auto close_between = [&](std::size_t end) {
    for (std::size_t i = at + 1; i < end; ++i)
      if (chunk_of[i] != chunk_of[i - 1]) close(at, i, -1);
    close(at, end, -1);
  };
  for (std::size_t b = 0; b < trace.blocks.size(); ++b) {
    const std::size_t begin = index(trace.blocks[b].begin), end = index(trace.blocks[b].end);
    if (runs_something(trace, at, begin)) close_between(begin);
    close(at, end, static_cast<std::int32_t>(b));
  }
  close_between(trace.ops.size());
  return stages;
}

using Kinds = std::map<Signature, std::uint32_t>;

// Numbers stages by what they are.
void find_kinds(const Trace& trace, const Needs& needs, const std::vector<GatheredGroup>& gathered,
                const ReadsAgain& reads, Kinds& known, Stages& stages) {
  for (std::uint32_t s = 0; s < stages.all.size(); ++s) {
    Stage& stage = stages.all[s];
    find_all(trace, needs, stage);
    find_shared_reads(trace, needs, reads, stage);
    const auto [kind, is_new] =
        known.try_emplace(Signing(trace, needs, gathered, stage).run(), stages.kinds.size());
    if (is_new) stages.kinds.emplace_back();
    stage.kind = kind->second;
    stages.kinds[stage.kind].push_back(s);
  }
}

// Blocks alone are joined: what stands between them ends a run.
bool are_blocks(const Stages& single, std::size_t first, std::size_t count) {
  if (first + count > single.all.size()) return false;
  for (std::size_t s = first; s < first + count; ++s)
    if (single.all[s].block < 0) return false;
  return true;
}

Stage joined(const Stages& single, std::size_t first, std::size_t count) {
  const Stage& stage = single.all[first];
  return {.begin = stage.begin, .end = single.all[first + count - 1].end, .block = stage.block};
}

}  // namespace

std::vector<ChunkOfStage> chunks_of(const Trace& trace, const Stages& stages) {
  const std::vector<std::int64_t> chunk_of = chunk_of_ops(trace);
  std::vector<ChunkOfStage> chunks = {{}};
  for (std::size_t s = 0; s < stages.all.size(); ++s) {
    if (s > 0 && chunk_of[index(stages.all[s].begin)] != chunk_of[index(stages.all[s - 1].begin)])
      chunks.push_back({s, s});
    chunks.back().end = s + 1;
  }
  return chunks;
}

std::vector<Signature> signatures_of(const Trace& trace, const Needs& needs, const Stages& stages) {
  const std::vector<GatheredGroup> gathered = gathered_groups(trace);
  std::vector<Signature> signatures;
  for (const Stage& stage : stages.all)
    signatures.push_back(Signing(trace, needs, gathered, stage, Crossing::Ignored).run());
  return signatures;
}

Stage stage_of_ops(const Trace& trace, const Needs& needs, OpId begin, OpId end) {
  Stage stage{.begin = begin, .end = end, .block = trace[begin].block};
  find_all(trace, needs, stage);
  return stage;
}

Stage joined_stage(const Trace& trace, const Needs& needs, const Stages& single, std::size_t first,
                   std::size_t count) {
  Stage stage = joined(single, first, count);
  find_all(trace, needs, stage);
  return stage;
}

Stages stages_of(const Trace& trace, const Needs& needs) {
  Stages stages{cut(trace), {}};
  Kinds known;
  find_kinds(trace, needs, gathered_groups(trace), reads_again(trace, needs), known, stages);
  find_transfers(trace, stages);
  return stages;
}

JoinedStages join(const Trace& trace, const Needs& needs, const Stages& single,
                  std::size_t length) {
  JoinedStages made{length, {}, std::vector<Stage>(single.all.size())};
  for (std::size_t s = 0; s < single.all.size();) {
    const std::size_t count = are_blocks(single, s, length) ? length : 1;
    made.chain.all.push_back(joined(single, s, count));
    s += count;
  }
  Kinds known;
  const std::vector<GatheredGroup> gathered = gathered_groups(trace);
  const ReadsAgain reads = reads_again(trace, needs);
  find_kinds(trace, needs, gathered, reads, known, made.chain);
  for (std::size_t s = 0; s < single.all.size(); ++s) {
    if (!are_blocks(single, s, length)) continue;
    Stage stage = joined(single, s, length);
    find_all(trace, needs, stage);
    find_shared_reads(trace, needs, reads, stage);
    const auto kind = known.find(Signing(trace, needs, gathered, stage).run());
    if (kind == known.end()) continue;
    stage.kind = kind->second;
    made.beginning[s] = std::move(stage);
  }
  return made;
}

}  // namespace tidemark
