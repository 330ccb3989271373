// Builds the indexes of a recording: lanes, busy times, runs by op, phases, homes and work.
#include "gui/opened.h"

#include <algorithm>
#include <tuple>

#include "analysis/comparison.h"

namespace tidemark::gui {
namespace {

std::vector<TrackIndex> lanes_of(const Recording& recording) {
  std::vector<std::vector<Stretch>> stretches(recording.schedule.streams);
  const auto& runs = recording.timeline.runs;
  for (std::size_t r = 0; r < runs.size(); ++r)
    stretches.at(index(runs[r].stream))
        .push_back({runs[r].begin.count(), runs[r].end.count(), static_cast<std::uint32_t>(r)});
  std::vector<TrackIndex> lanes;
  for (auto& of_stream : stretches) lanes.emplace_back(std::move(of_stream));
  return lanes;
}

// Where at least `wanted` of the lanes are busy: a sweep over all begins and ends in time order.
TrackIndex busy_with(const std::vector<TrackIndex>& lanes, int wanted) {
  std::vector<std::pair<std::int64_t, int>> changes;
  for (const TrackIndex& lane : lanes)
    for (std::size_t i = 0; i < lane.size(); ++i) {
      if (lane.begin_of(i) == lane.end_of(i)) continue;
      changes.emplace_back(lane.begin_of(i), 1);
      changes.emplace_back(lane.end_of(i), -1);
    }
  // At one moment what begins comes first, so that touching runs make one stretch.
  std::ranges::sort(changes, [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second > b.second;
  });
  std::vector<Stretch> stretches;
  int busy = 0;
  for (const auto& [time, change] : changes) {
    if (change > 0 && ++busy == wanted) stretches.push_back({time, time, 0});
    if (change < 0 && busy-- == wanted) stretches.back().end = time;
  }
  return TrackIndex(std::move(stretches));
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
      lanes_(lanes_of(recording)),
      busy_(busy_with(lanes_, 1)),
      overlap_(busy_with(lanes_, 2)),
      memory_(recording.schedule, recording.timeline),
      buffers_(recording),
      home_(homes_of(*recording.trace)),
      by_address_(gui::by_address(recording)),
      peak_(memory_.highest()),
      device_(device_called(recording.device)) {
  end_ = std::max(1.0, static_cast<double>(timeline().duration.count()));
  index_runs();
  outer_ = outer_modules(trace()), inner_ = gui::inner_modules(trace());
  outer_track_ = track_of(outer_), inner_track_ = track_of(inner_);
  find_phases();
  sort_by_home();
  for (const Buffer& buffer : schedule().buffers)
    has_category_[static_cast<std::size_t>(buffer.category)] = true;
  if (device_) {
    if (!recording.derived) needs_ = derive_needs(trace());
    costs_.emplace(trace(), recording.derived ? recording.derived->needs : needs_, *device_);
    Scenario of_device;
    of_device.device = *device_;
    device_capacity_ = memory_budget_of(of_device).capacity;
  }
  sum_up_work();
}

void Opened::index_runs() {
  runs_of_op_ = Groups(trace().ops.size(), [&](auto emit) {
    for (std::size_t r = 0; r < timeline().runs.size(); ++r)
      if (const OpId op = op_of(static_cast<RunId>(r)); op != no_op)
        emit(index(op), static_cast<std::uint32_t>(r));
  });
  for (std::size_t r = 0; r < timeline().runs.size(); ++r) {
    const Run* run = run_of(static_cast<RunId>(r));
    if (!run) has_copies_ = true;
    if (run) has_task_[static_cast<std::size_t>(run->task)] = true;
    if (run && run->op != no_op)
      has_kind_[static_cast<std::size_t>(class_of(trace()[run->op].kind))] = true;
  }
}

// Of the first stream, which computes; what others do at the same time may be about another module.
TrackIndex Opened::track_of(const Modules& modules) const {
  std::vector<Stretch> stretches;
  std::int64_t end_before = -1;  // of a run that belongs to the last stretch
  for (std::size_t i = 0; !lanes_.empty() && i < lanes_.front().size(); ++i) {
    const TrackIndex& lane = lanes_.front();
    const OpId op = op_of(RunId{lane.item_of(i)});
    if (op == no_op) {
      end_before = -1;
      continue;
    }
    const std::uint32_t module = modules.of_op[index(op)];
    if (end_before < 0 || stretches.back().item != module)
      stretches.push_back({lane.begin_of(i), lane.end_of(i), module});
    stretches.back().end = end_before = lane.end_of(i);
  }
  return TrackIndex(std::move(stretches));
}

// Each phase begins with the first run of its kind: what follows in between, such as recomputation
// in the backward phase, belongs to it.
void Opened::find_phases() {
  double backward = end_, optimizer = end_;
  for (std::size_t r = 0; r < timeline().runs.size(); ++r) {
    const Run* run = run_of(static_cast<RunId>(r));
    if (!run) continue;
    const auto begin = static_cast<double>(timeline().runs[r].begin.count());
    if (run->task == Task::Seed || run->task == Task::Backward)
      backward = std::min(backward, begin);
    if (run->task == Task::Optimizer) optimizer = std::min(optimizer, begin);
  }
  backward = std::min(backward, optimizer);
  for (const Phase& phase :
       {Phase{"forward", {0, backward}}, Phase{"backward", {backward, optimizer}},
        Phase{"optimizer", {optimizer, end_}}})
    if (phase.range.span() > 0) phases_.push_back(phase);
}

std::optional<RunId> Opened::maker_of_peak() const {
  if (peak_ == 0) return {};  // nothing is allocated after the beginning
  return buffers_.first_writer(timeline().memory[peak_ - 1].buffer);
}

// The order of the icicle, so that its boxes are walked and never sorted while the cursor moves.
void Opened::sort_by_home() {
  struct Home {
    std::tuple<Category, std::int32_t, OpId> key;
    BufferId buffer;
  };
  std::vector<Home> homes(schedule().buffers.size());
  for (std::size_t b = 0; b < homes.size(); ++b) {
    const auto id = static_cast<BufferId>(b);
    homes[b] = {{schedule()[id].category, block_of(id), home_of(id)}, id};
  }
  std::ranges::stable_sort(homes, {}, &Home::key);
  by_home_.reserve(homes.size());
  for (const Home& home : homes) by_home_.push_back(home.buffer);
}

// Prefix sums by stream: statistics of a range while it is dragged cost two searches per stream.
void Opened::sum_up_work() {
  for (const TrackIndex& lane : lanes_) {
    std::vector<Workload> sums{Workload{}};
    sums.reserve(lane.size() + 1);
    for (std::size_t i = 0; i < lane.size(); ++i) {
      const auto cost = cost_of(RunId{lane.item_of(i)});
      const Workload& before = sums.back();
      sums.push_back({before.runs + 1, before.bytes + (cost ? cost->bytes : 0),
                      before.flops + (cost ? cost->flops : 0)});
    }
    work_.push_back(std::move(sums));
  }
}

Workload Opened::work_in(Nanoseconds begin, Nanoseconds end) const {
  Workload work;
  for (std::size_t s = 0; s < lanes_.size(); ++s) {
    const Workload& first = work_[s][lanes_[s].begins_before(begin.count())];
    const Workload& last = work_[s][lanes_[s].begins_before(std::max(begin, end).count())];
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
