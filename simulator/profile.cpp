#include "simulator/profile.h"

#include <fmt/format.h>

#include <map>
#include <unordered_map>

#include "simulator/check/peak_groups.h"
#include "simulator/export/stacks.h"

namespace tidemark {
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
      : recording_(recording), trace_(*recording.trace), block_of_(blocks_by_tensor(trace_)) {
    for (std::size_t b = 0; b < trace_.blocks.size(); ++b)
      place_of_.emplace(trace_.blocks[b].name, fmt::format("block {}", b));
    producer_.assign(trace_.tensors.size(), no_op);
    for (std::size_t i = trace_.ops.size(); i-- > 0;)
      for (const TensorId output : trace_.outputs(trace_.ops[i]))
        producer_[index(output)] = static_cast<OpId>(i);
  }

  Profile make() && {
    profile_.title = title(recording_);
    add_totals();
    add_peak();
    add_times();
    return std::move(profile_);
  }

 private:
  void add(std::string name, Measure measure, RowKind kind, std::vector<ProfileRow> rows) {
    profile_.tables.push_back({std::move(name), measure, kind, std::move(rows)});
  }

  void add_totals() {
    const Timeline& timeline = recording_.timeline;
    std::vector<ProfileRow> memory = {
        {"live peak", peak(recording_.schedule, timeline).bytes.count},
        {"persistent", total(timeline.baseline).count}};
    if (recording_.planned.count > 0) memory.push_back({"planned", recording_.planned.count});
    add("totals", Measure::Size, RowKind::Fact, std::move(memory));
    add("time", Measure::Time, RowKind::Fact,
        {{"step", timeline.duration.count()},
         {"idle", timeline.idle.count()},
         {"waits for the host", timeline.waits_for_host.count()},
         {"two streams busy", timeline.overlap.count()}});
  }

  void add_peak() {
    Sums categories, blocks, ops, roles_at_peak;
    for (const BufferId id : alive_at_peak(recording_)) {
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
      ops.add(producer == no_op ? std::string("(parameters and inputs)")
                                : std::string(to_string(trace_[producer].kind)),
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
    Sums by_task, by_kind, by_block;
    for (const TimedRun& timed : recording_.timeline.runs) {
      const Step& step = recording_.schedule.steps[timed.step];
      const std::int64_t time = (timed.end - timed.begin).count();
      const Run* run = std::get_if<Run>(&step);
      const std::string task(run                                     ? to_string(run->task)
                             : std::holds_alternative<CopyOut>(step) ? "copy to the host"
                                                                     : "copy from the host");
      const bool has_op = run && run->op != no_op;
      by_task.add(task, time);
      by_kind.add(has_op ? fmt::format("{} of {}", task, to_string(trace_[run->op].kind)) : task,
                  time);
      const std::int32_t block = has_op ? trace_[run->op].block : -1;
      add_block(by_block,
                block < 0 ? std::string() : trace_.blocks[static_cast<std::size_t>(block)].name,
                time);
    }
    add("time by task", Measure::Time, RowKind::Part, by_task.rows());
    add("time by op", Measure::Time, RowKind::Part, by_kind.rows());
    add("time by block", Measure::Time, RowKind::Part, by_block.rows());
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
  Profile profile_;
};

}  // namespace

Profile profile_of(const Recording& recording) { return RecordingProfile(recording).make(); }

}  // namespace tidemark
