// A recording with all that makes it quick to look at. Made once when it is opened; drawing only
// reads it.
#pragma once

#include "analysis/recording/recording.h"
#include "gui/drawing/kind_class.h"
#include "gui/indexes/buffer_index.h"
#include "gui/indexes/busy_times.h"
#include "gui/indexes/memory_pyramid.h"
#include "gui/indexes/modules.h"
#include "gui/indexes/phases.h"
#include "gui/indexes/track_index.h"
#include "simulator/cost/cost_model.h"
#include "simulator/cost/device.h"

namespace tidemark::gui {

/// What runs do, summed up.
struct Workload {
  std::size_t runs = 0;
  double bytes = 0;  ///< moved from and to device memory
  double flops = 0;
};

class Opened {
 public:
  explicit Opened(Recording made);
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  const Recording recording;
  const std::string name;  ///< title(recording)

  const Schedule& schedule() const { return recording.schedule; }
  const Timeline& timeline() const { return recording.timeline; }
  const Trace& trace() const { return *recording.trace; }

  const std::vector<TrackIndex>& lanes() const { return lanes_; }
  /// Does a run of this colour occur?
  bool has(KindClass kind) const { return has_kind_[static_cast<std::size_t>(kind)]; }
  bool has_copies() const { return has_copies_; }
  bool has(Task task) const { return has_task_[static_cast<std::size_t>(task)]; }
  /// Is any buffer of this category?
  bool has(Category category) const { return has_category_[static_cast<std::size_t>(category)]; }

  const Modules& modules() const { return outer_; }
  const Modules& inner_modules() const { return inner_; }
  /// What stream 0 is at: stretches of runs of one module, items of modules() and inner_modules().
  const TrackIndex& module_track() const { return outer_track_; }
  const TrackIndex& inner_module_track() const { return inner_track_; }

  /// For how long of [begin, end) any stream is busy, and two or more are.
  Nanoseconds busy(Nanoseconds begin, Nanoseconds end) const {
    return Nanoseconds{busy_.busy(lanes_, begin.count(), end.count())};
  }
  Nanoseconds overlap(Nanoseconds begin, Nanoseconds end) const {
    return Nanoseconds{busy_.overlap(begin.count(), end.count())};
  }
  const MemoryPyramid& memory() const { return memory_; }
  const BufferIndex& buffers() const { return buffers_; }
  /// All buffers, by category, then block, then op that they belong to.
  std::span<const BufferId> by_home() const { return by_home_; }
  /// All buffers, lowest address first; empty if the recording knows no addresses.
  std::span<const BufferId> by_address() const { return by_address_; }
  StateId peak() const { return peak_; }
  /// The run that the allocation which makes the peak is for.
  std::optional<RunId> maker_of_peak() const;
  const std::vector<Phase>& phases() const { return phases_; }
  /// Up to this the axis goes: the step's end, or 1 ns for an empty recording.
  double end() const { return end_; }

  const TimedRun& operator[](RunId run) const { return timeline().runs[index(run)]; }
  /// The step's Run; null for a copy.
  const Run* run_of(RunId run) const;
  OpId op_of(RunId run) const;
  std::span<const std::uint32_t> runs_of(OpId op) const { return runs_of_op_[index(op)]; }
  /// In the lane of its stream.
  std::size_t position_of(RunId run) const;
  /// The run of a stream at a moment.
  std::optional<RunId> run_at(std::size_t stream, double moment) const;
  /// What the run computes and moves; empty where the device of the recording is not known.
  std::optional<Cost> cost_of(RunId run) const;
  /// Of the runs that begin in [begin, end); bytes and FLOPs only where the device is known.
  Workload work_in(Nanoseconds begin, Nanoseconds end) const;
  const Device* device() const { return device_ ? &*device_ : nullptr; }
  /// What the device has for tensors; 0 = unknown. The recording's own capacity may be a budget.
  Bytes device_capacity() const { return device_capacity_; }
  bool has_budget() const {
    return device_capacity_.count > 0 && recording.capacity.count > 0 &&
           recording.capacity != device_capacity_;
  }

  /// "backward of blocks.3.mlp.fc1", "copy of blocks.0.attn.qkv to the host".
  std::string describe(RunId run) const;
  /// "blocks.3.mlp.fc1 (codes)", or what stands for a buffer without a tensor.
  std::string describe(BufferId buffer) const;
  /// Where the buffer belongs: the op that makes its tensor, or else the first that reads it.
  OpId home_of(BufferId buffer) const;
  /// Index into the trace's blocks, or −1.
  std::int32_t block_of(BufferId buffer) const;
  std::string block_name(std::int32_t block) const;
  /// "keep: …", as the plan says; "" if nothing was decided about the buffer.
  std::string_view decision_of(BufferId buffer) const;
  /// The decision; or, of what nothing was decided about, why it is there all the same: "held for
  /// the recompute of blocks.3.norm1", "persistent", "not saved".
  std::string why_alive(BufferId buffer) const;

 private:
  static constexpr std::size_t work_stride = 64;  ///< runs between two sums

  void index_lanes();
  void index_homes();
  void sum_up_work();
  void add_work(RunId run, Workload& sum) const;
  Workload work_before(std::size_t stream, std::size_t position) const;
  void index_runs();
  void sort_by_home();
  TrackIndex track_of(const Modules& modules) const;

  std::vector<TrackIndex> lanes_;
  std::vector<std::vector<Workload>> work_;  ///< by stream: before every so-manieth, and of all
  BusyTimes busy_;
  Modules outer_, inner_;
  TrackIndex outer_track_, inner_track_;
  MemoryPyramid memory_;
  BufferIndex buffers_;
  Groups runs_of_op_;
  std::array<bool, kind_classes.size()> has_kind_{};
  std::array<bool, category_count> has_category_{};
  std::array<bool, tasks.size()> has_task_{};
  bool has_copies_ = false;
  std::vector<OpId> home_;  ///< by tensor
  std::vector<BufferId> by_address_, by_home_;
  StateId peak_ = 0;
  std::vector<Phase> phases_;
  double end_;
  std::optional<Device> device_;
  Needs needs_;  // of the costs, where the recording does not bring them
  std::optional<CostModel> costs_;
  Bytes device_capacity_;
};

}  // namespace tidemark::gui
