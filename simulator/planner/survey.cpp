// Walks the steps in issue order with the count of present bytes. A stage begins where a run of it
// follows one of another: what was there then, before anything was allocated for that run, is its
// entry.
//   entry of stage 1    entry of 2     …    entry of 2's backward   entry of 1's backward
//         └ kept by 1 ────┘                       └ gradients: above 2's end of forward
#include "simulator/planner/survey.h"

#include <algorithm>
#include <utility>

#include "simulator/cost/scratch.h"
#include "simulator/planner/exchange_runs.h"

namespace tidemark {
namespace {

constexpr std::int64_t unset = -1, highest = std::int64_t{1} << 60;
constexpr std::uint32_t no_stage = 0xffffffff;

class Walk {
 public:
  Walk(const Trace& trace, const Stages& stages, const Schedule& schedule, const CostModel& costs,
       const Device& device, const Counted& counted, Shared shared)
      : trace_(trace), schedule_(schedule), costs_(costs), device_(device), counted_(counted) {
    stage_of_.resize(trace.ops.size());
    for (std::uint32_t s = 0; s < stages.all.size(); ++s)
      for (std::size_t i = index(stages.all[s].begin); i < index(stages.all[s].end); ++i)
        stage_of_[i] = s;
    find_held(stages);
    find_readers(stages);
    shared_from_.assign(trace.tensors.size(), no_stage);
    if (shared == Shared::Held) find_shared(stages);
    result_.stages.resize(stages.all.size());
    now_ = rounded(counted.besides);
    for (const Buffer& buffer : schedule.buffers)
      if (buffer.persistent) now_ += rounded(buffer.size);
  }

  Survey run() && {
    begin_pass();
    for (const Step& step : schedule_.steps) {
      if (const auto* allocate = std::get_if<Allocate>(&step)) {
        if (settled_ == unset) settled_ = now_;
        now_ += rounded(schedule_[allocate->buffer].size);
      } else if (const auto* free = std::get_if<Free>(&step)) {
        if (stays(schedule_[free->buffer])) continue;
        remove(free->buffer);
        note_late(schedule_[free->buffer]);
      } else if (const auto* run = std::get_if<Run>(&step)) {
        is_of_exchange(*run) ? pass_exchange(*run) : pass(*run);
      }
    }
    end_exchange();
    end_pass();
    count_in(result_, Resource::Time);
    return std::move(result_);
  }

 private:
  struct Passing {
    std::int64_t entry = unset, forward = unset;
    std::int64_t gradients_entry = unset, backward = unset;
    std::int64_t late = 0, input = 0;
  };

  // By tensor: the stage behind which nobody reads what is held beyond it, and the block that
  // begins with it.
  void find_held(const Stages& stages) {
    held_of_.assign(trace_.tensors.size(), no_stage);
    fed_to_.assign(trace_.tensors.size(), no_stage);
    held_to_.resize(stages.all.size());
    for (std::uint32_t s = 0; s < stages.all.size(); ++s) {
      const Stage& stage = stages.all[s];
      held_to_[s] = stage.input_held == no_op ? s : stage_of_[index(stage.input_held)];
      if (stage.input != no_tensor) fed_to_[index(stage.input)] = s;
    }
    const std::vector<std::uint32_t> last = last_stages();
    for (std::size_t t = 0; t < trace_.tensors.size(); ++t) {
      const OpId held = trace_.tensors[t].held_until;
      if (held != no_op && last[t] != no_stage && stage_of_[index(held)] != last[t])
        held_of_[t] = last[t];
    }
  }

  // By storage that an op makes: the stage that reads it last.
  std::vector<std::uint32_t> last_stages() const {
    std::vector<std::uint32_t> last(trace_.tensors.size(), no_stage);
    for (std::size_t i = 0; i < trace_.ops.size(); ++i) {
      for (const TensorId output : trace_.outputs(trace_.ops[i]))
        last[index(output)] = stage_of_[i];
      for (const TensorId input : trace_.inputs(trace_.ops[i]))
        if (std::uint32_t& stage = last[index(trace_[input].storage)]; stage != no_stage)
          stage = stage_of_[i];
    }
    return last;
  }

  // By tensor: the stage that reads last what another one made.
  void find_readers(const Stages& stages) {
    reader_of_.assign(trace_.tensors.size(), no_stage);
    for (std::uint32_t s = 0; s < stages.all.size(); ++s)
      for (const TensorId input : stages.all[s].inputs) reader_of_[index(input)] = s;
  }

  // By tensor: the first of several stages whose reruns may read it.
  void find_shared(const Stages& stages) {
    for (std::uint32_t s = 0; s < stages.all.size(); ++s)
      for (const auto& [storage, bytes] : stages.all[s].shared_reads)
        if (std::uint32_t& first = shared_from_[index(storage)];
            first == no_stage && bytes < rounded(size(trace_[storage])))
          first = s;
  }

  // Of a buffer that the schedule frees.
  bool stays(const Buffer& buffer) {
    if (buffer.role != Role::Value || buffer.tensor == no_tensor) return false;
    const std::uint32_t first = shared_from_[index(buffer.tensor)];
    if (first == no_stage || (in_backward_ && stage_at_hand_ < first)) return false;
    staying_.push_back({first, rounded(buffer.size)});
    return true;
  }

  // Before the run: what stayed for stages that have had their backward.
  void release(const Run& run) {
    if (staying_.empty() || !in_backward_) return;
    const bool is_update = run.task == Task::Optimizer && !trace_.step.update_in_backward;
    if (is_of_forward(run.task) || is_update) return release_from(0);
    if (run.op != no_op) release_from(stage_of(run) + 1);
  }

  void release_from(std::uint32_t reader) {
    std::int64_t released = 0;
    std::erase_if(staying_, [&](const Staying& each) {
      if (each.first_reader < reader) return false;
      released += each.bytes;
      return true;
    });
    now_ -= released;
    if (settled_ != unset) settled_ -= released;
    if (lowest_ != highest) lowest_ -= released;
  }

  // Whose codes they are is for the last reader to say, whoever made the value.
  std::uint32_t stage_of(const Run& run) const {
    if (run.task == Task::Quantize || run.task == Task::Dequantize) {
      const std::uint32_t reader =
          reader_of_[index(schedule_[schedule_.reads(run).front()].tensor)];
      if (reader != no_stage) return reader;
    }
    return stage_of_[index(run.op)];
  }

  void note_late(const Buffer& buffer) {
    if (in_backward_ || buffer.tensor == no_tensor || buffer.role != Role::Value) return;
    const std::uint32_t reader = fed_to_[index(buffer.tensor)];
    const std::uint32_t home = held_of_[index(buffer.tensor)];
    if (reader != no_stage)
      passing_[reader].input += rounded(buffer.size);
    else if (home != no_stage)
      passing_[home].late += rounded(buffer.size);
  }

  // Nothing is recovered, and so nothing runs beside, before the first gradient and after the last.
  Load load_of(const Run& run, const Cost& cost, std::int64_t times) const {
    if (!in_backward_) return load_alone(cost, times);
    const bool is_gradient = run.task == Task::Seed || run.task == Task::Backward ||
                             run.task == Task::Accumulate || run.task == Task::Optimizer;
    return load_shared(cost, times, !is_gradient);
  }

  void note_forward(const Cost& cost) {
    if (in_backward_ || passes_ > 0) return;
    result_.stages[stage_at_hand_].forward_ns += cost.time.count();
  }

  std::int64_t passes_like_this() const { return passes_ == 1 ? counted_.like_second : 1; }

  // Of what ranks gather: its frees do not say that a stage has ended.
  bool is_gathered(const Buffer& buffer) const {
    if (buffer.persistent || buffer.tensor == no_tensor) return false;
    return buffer.category == Category::Communication ||
           (buffer.role == Role::Value && buffer.category == Category::Parameter);
  }

  void remove(BufferId buffer) {
    now_ -= rounded(schedule_[buffer].size);
    if (exchange_ == 0) return;
    lowest_ = std::min(lowest_, now_);
    if (!is_gathered(schedule_[buffer])) late_frees_ += rounded(schedule_[buffer].size);
  }

  // What a stage finds when its first run begins: before the first allocation since the last run.
  // Where ranks exchanged something since then, without what else was freed meanwhile; but a pass's
  // first run finds what the reduction of the last gradients has left.
  std::int64_t found_by(const Run& run) {
    const std::int64_t settled = std::exchange(settled_, unset);
    const std::int64_t lowest = std::exchange(lowest_, highest);
    const std::int64_t frees = std::exchange(late_frees_, 0);
    const std::int64_t found = settled == unset ? now_ : settled;
    return is_of_forward(run.task) && in_backward_ ? std::min(lowest, found) : found - frees;
  }

  // Nobody knows yet what follows.
  void pass_exchange(const Run& run) {
    const Cost cost = costs_.of(schedule_, run);
    const std::int64_t times = passes_like_this();
    result_.launches += times * cost.kernels * device_.host_launch.count();
    if (run.stream == StreamId::Compute) {
      result_.rest_load += load_of(run, cost, times);
      note_forward(cost);
    }
    exchange_ = std::max(exchange_, now_ + (counted_.scratch ? scratch(run) : 0));
  }

  // Behind the last gradient nothing follows that stages run.
  void end_exchange() { result_.rest = std::max(result_.rest, std::exchange(exchange_, 0)); }

  void pass(const Run& run) {
    release(run);
    const std::int64_t before = found_by(run);
    const std::int64_t during =
        std::max(now_ + (counted_.scratch ? scratch(run) : 0), std::exchange(exchange_, 0));
    // An update in the backward meets what stages keep, and so belongs to the stage at hand.
    const bool is_of_stage = run.op != no_op || (in_backward_ && trace_.step.update_in_backward);
    if (is_of_stage && is_of_forward(run.task) && in_backward_) {
      end_pass();
      begin_pass();
    }
    const Cost cost = costs_.of(schedule_, run);
    result_.launches += passes_like_this() * cost.kernels * device_.host_launch.count();
    if (!is_of_stage) {
      result_.rest = std::max(result_.rest, during);
      result_.rest_load += load_alone(cost, passes_like_this());
      return;
    }
    if (!is_of_forward(run.task) && !in_backward_) {
      in_backward_ = true;
      end_of_forward_ = before;
    }
    if (run.op != no_op) stage_at_hand_ = stage_of(run);
    const std::uint32_t s = stage_at_hand_;
    Passing& stage = passing_[s];
    result_.stages[s].load += load_of(run, cost, passes_like_this());
    note_forward(cost);
    if (in_backward_) {
      if (stage.gradients_entry == unset) stage.gradients_entry = before;
      stage.backward = std::max(stage.backward, during);
    } else {
      if (stage.entry == unset) stage.entry = before;
      stage.forward = std::max(stage.forward, during);
    }
  }

  std::int64_t scratch(const Run& run) const {
    std::int64_t bytes = 0;
    const Scratch requests = scratch_of(trace_, schedule_, run, device_);
    for (const Bytes request : requests.requests()) bytes += rounded(request);
    return bytes;
  }

  void begin_pass() {
    passing_.assign(result_.stages.size(), {});
    in_backward_ = false;
    end_of_forward_ = unset;
  }

  // A stage that runs nothing begins and ends where the next one begins. What goes late counts as
  // gone at once.
  void end_pass() {
    if (!in_backward_) end_of_forward_ = now_;
    std::int64_t end = end_of_forward_;
    std::int64_t late = 0;
    std::vector<std::int64_t> late_before, ends(passing_.size() + 1);
    for (std::size_t s = 0; s < passing_.size(); ++s) {
      late -= ends[s];
      late_before.push_back(late);
      late += passing_[s].late;
      if (held_to_[s] == s) continue;
      late += passing_[s].input;
      ends[held_to_[s] + 1] += passing_[s].input;
    }
    for (std::size_t s = passing_.size(); s-- > 0;) {
      Passing& stage = passing_[s];
      const std::int64_t entry = stage.entry == unset ? end : stage.entry - late_before[s];
      if (stage.entry == unset) stage.forward = entry + late_before[s];
      if (stage.gradients_entry == unset) stage.gradients_entry = stage.backward = end;
      note(s, {.kept = end - entry,
               .late = stage.late,
               .input = stage.input,
               .forward = stage.forward - late_before[s] - entry,
               .backward = stage.backward - entry - (stage.gradients_entry - end),
               .gradients = stage.gradients_entry - end});
      end = entry;
    }
    if (passes_ == 0)
      result_.before = end;
    else
      result_.before_later = std::max(result_.before_later, end - result_.before);
    result_.has_later = passes_++ > 0;
  }

  void note(std::size_t s, const StagePass& pass) {
    if (passes_ == 0) {
      result_.stages[s].first = pass;
      return;
    }
    StagePass& later = result_.stages[s].later;
    later.kept = std::max(later.kept, pass.kept);
    later.late = std::max(later.late, pass.late);
    later.input = std::max(later.input, pass.input);
    later.forward = std::max(later.forward, pass.forward);
    later.backward = std::max(later.backward, pass.backward);
    later.gradients = std::max(later.gradients, pass.gradients);
  }

  const Trace& trace_;
  const Schedule& schedule_;
  const CostModel& costs_;
  const Device& device_;
  const Counted& counted_;
  std::vector<std::uint32_t> stage_of_;   ///< by op
  std::vector<std::uint32_t> held_of_;    ///< by tensor: who reads it last, if it is held beyond
  std::vector<std::uint32_t> fed_to_;     ///< by tensor: the stage whose block begins with it
  std::vector<std::uint32_t> held_to_;    ///< by stage: where the name of what it begins with ends
  std::vector<std::uint32_t> reader_of_;  ///< by tensor: see find_readers()
  std::vector<std::uint32_t> shared_from_;  ///< by tensor: see find_shared()
  Survey result_;
  std::vector<Passing> passing_;  ///< by stage
  struct Staying {
    std::uint32_t first_reader;
    std::int64_t bytes;
  };
  std::vector<Staying> staying_;  ///< freed by the schedule, and not yet here
  std::int64_t now_ = 0;
  // Since the last run of a stage:
  std::int64_t settled_ = unset;   ///< before the first allocation
  std::int64_t lowest_ = highest;  ///< the least, once ranks have exchanged something
  std::int64_t exchange_ = 0;      ///< the most while they do
  std::int64_t late_frees_ = 0;    ///< freed after that, but for what was gathered
  std::int64_t end_of_forward_ = unset;
  std::uint32_t stage_at_hand_ = 0;
  bool in_backward_ = false;
  int passes_ = 0;
};

}  // namespace

void count_in(Survey& survey, Resource resource) {
  for (StageCost& stage : survey.stages) stage.time = stage.load[resource];
  survey.rest_time = survey.rest_load[resource];
}

Survey survey(const Trace& trace, const Stages& stages, const Schedule& schedule,
              const CostModel& costs, const Device& device, const Counted& counted, Shared shared) {
  return Walk(trace, stages, schedule, costs, device, counted, shared).run();
}

}  // namespace tidemark
