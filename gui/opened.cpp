// Builds the indexes of a recording: lanes, busy times, runs by op, phases, homes and work.
#include "gui/opened.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

#include "analysis/comparison.h"
#include "base/parallel.h"

namespace tidemark::gui {
namespace {

// The runs of each stream as they follow one another; their order in the recording is the host's,
// which is that of time on each stream.
std::vector<TrackIndex> lanes_of(const Recording& recording) {
  const auto& runs = recording.timeline.runs;
  const Groups by_stream(recording.schedule.streams, [&](auto emit) {
    for (std::size_t r = 0; r < runs.size(); ++r)
      emit(index(runs[r].stream), static_cast<std::uint32_t>(r));
  });
  std::vector<TrackIndex> lanes;
  for (std::size_t stream = 0; stream < recording.schedule.streams; ++stream) {
    const std::span<const std::uint32_t> items = by_stream[stream];
    lanes.emplace_back(std::vector(items.begin(), items.end()), [&](std::uint32_t run) {
      return Stretch{runs[run].begin.count(), runs[run].end.count(), run};
    });
  }
  return lanes;
}

// By tensor: the op that writes its storage, or else the first that reads it.
std::vector<OpId> homes_of(const Trace& trace) {
  std::vector<OpId> homes(trace.tensors.size(), no_op);
  for (std::size_t i = 0; i < trace.ops.size(); ++i)
    for (const TensorId output : trace.outputs(trace.ops[i]))
      if (trace[output].storage == output) homes[index(output)] = static_cast<OpId>(i);
  for (std::size_t i = 0; i < trace.ops.size(); ++i)
    for (const TensorId input : trace.inputs(trace.ops[i]))
      if (OpId& home = homes[index(trace[input].storage)]; home == no_op)
        home = static_cast<OpId>(i);
  return homes;
}

std::vector<BufferId> by_address(const Recording& recording) {
  std::vector<BufferId> buffers(recording.offsets.size());
  for (std::size_t b = 0; b < buffers.size(); ++b) buffers[b] = static_cast<BufferId>(b);
  std::ranges::stable_sort(buffers, {}, [&](BufferId id) { return recording.offsets[index(id)]; });
  return buffers;
}

// A recording may come from a device that this program has no file of.
std::optional<Device> device_called(const std::string& name) {
  for (const Device& device : known_devices())
    if (device.name == name) return device;
  return {};
}

}  // namespace

Opened::Opened(Recording made)
    : recording(std::move(made)),
      name(title(recording)),
      end_(std::max(1.0, static_cast<double>(timeline().duration.count()))),
      device_(device_called(recording.device)) {
  if (device_) {
    if (!recording.derived) needs_ = derive_needs(trace());
    costs_.emplace(trace(), recording.derived ? recording.derived->needs : needs_, *device_);
    Scenario of_device;
    of_device.device = *device_;
    device_capacity_ = memory_budget_of(of_device).capacity;
  }
  // None needs what another one makes; the longest comes first.
  const std::array<std::function<void()>, 3> parts = {[&] {
                                                        buffers_ = BufferIndex(recording);
                                                        index_homes();
                                                      },
                                                      [&] { index_lanes(); },
                                                      [&] {
                                                        memory_ =
                                                            MemoryPyramid(schedule(), timeline());
                                                        peak_ = memory_.highest();
                                                        index_runs();
                                                      }};
  constexpr std::size_t worth_a_thread = 1'000'000;
  if (timeline().runs.size() + timeline().memory.size() >= worth_a_thread) {
    parallel_for(parts.size(), [&](std::size_t i) { parts[i](); });
  } else {
    for (const auto& part : parts) part();
  }
}

void Opened::index_lanes() {
  lanes_ = lanes_of(recording);
  busy_ = BusyTimes(lanes_);
  sum_up_work();
  outer_ = outer_modules(trace()), inner_ = gui::inner_modules(trace());
  outer_track_ = track_of(outer_), inner_track_ = track_of(inner_);
}

// Of the indexed buffers: what has no tensor is at home where it is written.
void Opened::index_homes() {
  home_ = homes_of(*recording.trace);
  sort_by_home();
  by_address_ = gui::by_address(recording);
  for (const Buffer& buffer : schedule().buffers)
    has_category_[static_cast<std::size_t>(buffer.category)] = true;
}

void Opened::index_runs() {
  runs_of_op_ = Groups(trace().ops.size(), [&, order = by_begin(timeline())](auto emit) {
    for (const std::uint32_t run : order)
      if (const OpId op = op_of(RunId{run}); op != no_op) emit(index(op), run);
  });
  for (std::size_t r = 0; r < timeline().runs.size(); ++r) {
    const Run* run = run_of(static_cast<RunId>(r));
    if (!run) has_copies_ = true;
    if (run) has_task_[static_cast<std::size_t>(run->task)] = true;
    if (run && run->op != no_op)
      has_kind_[static_cast<std::size_t>(class_of(trace()[run->op].kind))] = true;
  }
  phases_ = phases_of(recording, end_);
}

// Of the first stream, which computes; what others do at the same time may be about another module.
// Forward and backward of a module are two stretches where something is between them: a stage of a
// pipeline may wait there.
TrackIndex Opened::track_of(const Modules& modules) const {
  std::vector<Stretch> stretches;
  std::int64_t end_before = -1;  // of a run that belongs to the last stretch
  bool was_forward = true;
  for (std::size_t i = 0; !lanes_.empty() && i < lanes_.front().size(); ++i) {
    const TrackIndex& lane = lanes_.front();
    const OpId op = op_of(RunId{lane.item_of(i)});
    if (op == no_op) {
      end_before = -1;
      continue;
    }
    const std::uint32_t module = modules.of_op[index(op)];
    const Task task = run_of(RunId{lane.item_of(i)})->task;
    // Ranks talk to each other in both.
    const bool is_forward = is_collective(task) ? was_forward : is_of_forward(task);
    const bool turns = is_forward != was_forward && lane.begin_of(i) > end_before;
    if (end_before < 0 || stretches.back().item != module || turns)
      stretches.push_back({lane.begin_of(i), lane.end_of(i), module});
    stretches.back().end = end_before = lane.end_of(i);
    was_forward = is_forward;
  }
  return TrackIndex(std::move(stretches));
}

std::optional<RunId> Opened::maker_of_peak() const {
  if (peak_ == 0) return {};  // nothing is allocated after the beginning
  return buffers_.first_writer(timeline().memory[peak_ - 1].buffer);
}

// The order of the icicle, so that its boxes are walked and never sorted while the cursor moves. By
// counting: there are millions of buffers, and far fewer ops and categories.
void Opened::sort_by_home() {
  const std::size_t ops = trace().ops.size();
  std::vector<std::uint32_t> order(ops + 1);  // the last stands for no op, behind those of no block
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, {}, [&](std::uint32_t op) {
    return std::pair(op < ops ? trace().ops[op].block : -1, op);
  });
  std::vector<std::uint32_t> rank(ops + 1);
  for (std::size_t i = 0; i < order.size(); ++i) rank[order[i]] = static_cast<std::uint32_t>(i);
  const std::size_t count = schedule().buffers.size();
  const Groups by_rank(ops + 1, [&](auto emit) {
    for (std::size_t b = 0; b < count; ++b) {
      const OpId home = home_of(static_cast<BufferId>(b));
      emit(rank[std::min(index(home), ops)], static_cast<std::uint32_t>(b));
    }
  });
  const Groups by_category(category_count, [&](auto emit) {
    for (std::size_t group = 0; group <= ops; ++group)
      for (const std::uint32_t b : by_rank[group])
        emit(static_cast<std::size_t>(schedule().buffers[b].category), b);
  });
  by_home_.reserve(count);
  for (std::size_t category = 0; category < category_count; ++category)
    for (const std::uint32_t b : by_category[category])
      by_home_.push_back(static_cast<BufferId>(b));
}

// Prefix sums by stream: statistics of a range while it is dragged cost two searches per stream,
// and the few runs behind the last sum that is kept.
void Opened::sum_up_work() {
  for (const TrackIndex& lane : lanes_) {
    std::vector<Workload> sums;
    Workload sum;
    for (std::size_t i = 0; i < lane.size(); ++i) {
      if (i % work_stride == 0) sums.push_back(sum);
      add_work(RunId{lane.item_of(i)}, sum);
    }
    sums.push_back(sum);
    work_.push_back(std::move(sums));
  }
}

void Opened::add_work(RunId run, Workload& sum) const {
  const auto cost = cost_of(run);
  ++sum.runs;
  if (cost) sum.bytes += cost->bytes, sum.flops += cost->flops;
}

Workload Opened::work_before(std::size_t stream, std::size_t position) const {
  const std::size_t sample = position / work_stride;
  if (position == lanes_[stream].size()) return work_[stream].back();
  Workload sum = work_[stream][sample];
  for (std::size_t i = sample * work_stride; i < position; ++i)
    add_work(RunId{lanes_[stream].item_of(i)}, sum);
  return sum;
}

Workload Opened::work_in(Nanoseconds begin, Nanoseconds end) const {
  Workload work;
  for (std::size_t s = 0; s < lanes_.size(); ++s) {
    const Workload first = work_before(s, lanes_[s].begins_before(begin.count()));
    const Workload last = work_before(s, lanes_[s].begins_before(std::max(begin, end).count()));
    work.runs += last.runs - first.runs;
    work.bytes += last.bytes - first.bytes;
    work.flops += last.flops - first.flops;
  }
  return work;
}

const Run* Opened::run_of(RunId run) const {
  return std::get_if<Run>(&schedule().steps[(*this)[run].step]);
}

OpId Opened::op_of(RunId run) const {
  const Run* of_step = run_of(run);
  return of_step ? of_step->op : no_op;
}

std::size_t Opened::position_of(RunId run) const {
  const TrackIndex& lane = lanes_[index((*this)[run].stream)];
  // Runs of no length may begin at one moment: the item tells them apart.
  std::size_t position = lane.begins_before((*this)[run].begin.count());
  while (lane.item_of(position) != static_cast<std::uint32_t>(run)) ++position;
  return position;
}

std::optional<RunId> Opened::run_at(std::size_t stream, double moment) const {
  const TrackIndex& lane = lanes_[stream];
  const std::size_t position = lane.at(moment);
  if (position == lane.size()) return {};
  return RunId{lane.item_of(position)};
}

std::optional<Cost> Opened::cost_of(RunId run) const {
  if (!costs_) return {};
  if (const Run* of_step = run_of(run)) return costs_->of(schedule(), *of_step);
  const Step& step = schedule().steps[(*this)[run].step];
  // A copy in writes on the device, a copy out reads there; it moves the same bytes either way.
  const auto copied =
      reads_of(schedule(), step).empty() ? writes_of(schedule(), step) : reads_of(schedule(), step);
  return costs_->of_copy(schedule()[copied.front()].size);
}

}  // namespace tidemark::gui
