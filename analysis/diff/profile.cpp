// The profile of a recording: totals, what is alive at the peak, and where time goes.
#include "analysis/diff/profile.h"

#include <fmt/format.h>

#include <map>
#include <unordered_map>

#include "analysis/check/peak_groups.h"
#include "analysis/diff/time_groups.h"
#include "analysis/export/stacks.h"
#include "simulator/tensor_roles.h"

namespace tidemark::diff {
namespace {

/// Sums by key, in the order of the keys.
class Sums {
 public:
  void add(const std::string& key, std::int64_t value, const std::string& place = "") {
    ProfileRow& row = rows_.try_emplace(key, ProfileRow{key, 0, place}).first->second;
    row.value += value;
  }
  std::vector<ProfileRow> rows() const {
    std::vector<ProfileRow> all;
    for (const auto& [key, row] : rows_) all.push_back(row);
    return all;
  }

 private:
  std::map<std::string, ProfileRow> rows_;
};

constexpr const char* outside = "(outside of blocks)";

class RecordingProfile {
 public:
  explicit RecordingProfile(const Recording& recording)
      : recording_(recording),
        trace_(*recording.trace),
        block_of_(exports::blocks_by_tensor(trace_)) {
    for (std::size_t b = 0; b < trace_.blocks.size(); ++b)
      place_of_.emplace(trace_.blocks[b].name, fmt::format("block {}", b));
    producer_.assign(trace_.tensors.size(), no_op);
    for (std::size_t i = trace_.ops.size(); i-- > 0;)
      for (const TensorId output : trace_.outputs(trace_.ops[i]))
        producer_[index(output)] = static_cast<OpId>(i);
  }

  std::vector<ProfileTable> make() && {
    if (has_memory(recording_)) add_memory();
    add_time();
    if (has_memory(recording_)) add_peak();
    add_times();
    return std::move(tables_);
  }

 private:
  void add(std::string name, Measure measure, RowKind kind, std::vector<ProfileRow> rows) {
    tables_.push_back({std::move(name), measure, kind, std::move(rows)});
  }

  void add_memory() {
    std::vector<ProfileRow> memory = {
        {"live peak", peak(recording_.schedule, recording_.timeline).bytes.count},
        {"persistent", total(recording_.timeline.baseline).count}};
    if (recording_.planned.count > 0) memory.push_back({"planned", recording_.planned.count});
    add("totals", Measure::Size, RowKind::Fact, std::move(memory));
  }

  void add_time() {
    const Timeline& timeline = recording_.timeline;
    add("time", Measure::Time, RowKind::Fact,
        {{"step", timeline.duration.count()},
         {"idle", timeline.idle.count()},
         {"waits for the host", timeline.waits_for_host.count()},
         {"two streams busy", timeline.overlap.count()}});
  }

  void add_peak() {
    Sums categories, blocks, ops, roles_at_peak;
    for (const BufferId id : exports::alive_at_peak(recording_)) {
      const Buffer& buffer = recording_.schedule[id];
      const std::int64_t bytes = buffer.size.count;
      categories.add(std::string(to_string(buffer.category)), bytes);
      const std::string role(roles[static_cast<std::size_t>(buffer.role)].name);
      if (buffer.tensor == no_tensor) {
        blocks.add(outside, bytes);
        ops.add(fmt::format("({})", role), bytes);
        roles_at_peak.add(fmt::format("({})", role), bytes);
        continue;
      }
      add_block(blocks, block_of_[index(buffer.tensor)], bytes);
      const OpId producer = producer_[index(buffer.tensor)];
      ops.add(producer != no_op ? std::string(operation_name(trace_, trace_[producer]))
              : buffer.category == Category::Unknown ? std::string("(unknown)")
                                                     : std::string("(parameters and inputs)"),
              bytes);
      const std::string name = role_of(trace_[buffer.tensor].name);
      roles_at_peak.add(buffer.role == Role::Value ? name : fmt::format("{} ({})", name, role),
                        bytes);
    }
    add("at the peak, by category", Measure::Size, RowKind::Part, categories.rows());
    add("at the peak, by block", Measure::Size, RowKind::Part, blocks.rows());
    add("at the peak, by op", Measure::Size, RowKind::Part, ops.rows());
    add("at the peak, by role", Measure::Size, RowKind::Part, roles_at_peak.rows());
  }

  void add_times() {
    Sums by_task, by_kind, by_stream;
    for (const TimeGroup& group : time_groups(trace_, recording_.schedule, recording_.timeline)) {
      by_task.add(group.task, group.time.count());
      by_kind.add(name_of(group), group.time.count());
      by_stream.add(fmt::format("stream {}", group.stream), group.time.count());
    }
    add("time by task", Measure::Time, RowKind::Part, by_task.rows());
    add("time by op", Measure::Time, RowKind::Part, by_kind.rows());
    add("time by block", Measure::Time, RowKind::Part, times_by_block());
    add("time by stream", Measure::Time, RowKind::Part, by_stream.rows());
  }

  std::vector<ProfileRow> times_by_block() {
    std::vector<std::int64_t> inside(trace_.blocks.size(), 0);
    std::int64_t around = 0;
    for (const TimedRun& timed : recording_.timeline.runs) {
      const Run* run = std::get_if<Run>(&recording_.schedule.steps[timed.step]);
      const std::int32_t block = run && run->op != no_op ? trace_[run->op].block : -1;
      (block < 0 ? around : inside[static_cast<std::size_t>(block)]) +=
          (timed.end - timed.begin).count();
    }
    Sums by_block;
    if (around > 0) add_block(by_block, "", around);
    for (std::size_t b = 0; b < inside.size(); ++b)
      if (inside[b] > 0) add_block(by_block, trace_.blocks[b].name, inside[b]);
    return by_block.rows();
  }

  void add_block(Sums& sums, const std::string& block, std::int64_t value) {
    if (block.empty()) return sums.add(outside, value);
    sums.add(block, value, place_of_[block]);
  }

  const Recording& recording_;
  const Trace& trace_;
  std::vector<std::string> block_of_;
  std::unordered_map<std::string, std::string> place_of_;
  std::vector<OpId> producer_;  // by tensor: the first op that writes it
  std::vector<ProfileTable> tables_;
};

}  // namespace

Profile profile_of(const Recording& recording) {
  const std::int64_t batch = recording.trace->step.batch;  // 0: what was recorded does not say
  const StepFacts facts = {.batch = batch == 0 ? std::string() : std::to_string(batch),
                           .device = recording.device,
                           .strategy = recording.strategy};
  return {.title = title(recording),
          .kind = ProfileKind::OneStep,
          .source = sources[static_cast<std::size_t>(recording.source)].name,
          .cases = {{recording.strategy, facts, RecordingProfile(recording).make()}}};
}

}  // namespace tidemark::diff
