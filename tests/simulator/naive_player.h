// Plays schedules on numbers in place of tensors, in any order that their streams allow: what the
// judge is judged by. It knows nothing of what a step ought to read; it only computes with what is
// there, as a GPU would, and the mistakes show in the parameters.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "simulator/schedule.h"
#include "traces/trace.h"

namespace tidemark {

struct Played {
  std::string fault;                      ///< what a real machine would stumble over first, or ""
  std::vector<std::uint64_t> parameters;  ///< and their state, after the update
  std::uint64_t loss = 0;

  bool operator==(const Played&) const = default;
};

namespace detail {

using Number = std::uint64_t;
inline constexpr Number code_mark = 0x5555555555555555;

inline Number mix(Number a, Number b) {
  Number z = (a ^ (b * 0x9e3779b97f4a7c15u)) + 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

class Player {
 public:
  Player(const Trace& trace, const Schedule& schedule)
      : trace_(trace),
        schedule_(schedule),
        cells_(schedule.buffers.size()),
        next_(schedule.streams + 1) {
    for (std::size_t b = 0; b < cells_.size(); ++b) {
      const Buffer& buffer = schedule.buffers[b];
      if (!buffer.persistent) continue;
      cells_[b].is_present = true;
      cells_[b].number = buffer.role == Role::Gradient ? 0 : mix(index(buffer.tensor), 1);
    }
  }

  Played run(const std::vector<int>& priority) {
    find_dependencies();
    std::vector<bool> is_done(schedule_.steps.size());
    while (const std::optional<std::size_t> next = choose(is_done, priority)) {
      is_done[*next] = true;
      step(schedule_.steps[*next]);
    }
    if (std::ranges::count(is_done, false) > 0) fail("streams wait for each other");
    return finish();
  }

 private:
  struct Cell {
    bool is_present = false;
    std::optional<Number> number = {};
  };
  std::size_t host() const { return schedule_.streams; }

  std::size_t queue_of(const Step& step) const {
    if (const auto* s = std::get_if<Allocate>(&step)) return index(schedule_[s->buffer].stream);
    if (std::holds_alternative<Synchronize>(step)) return host();
    return std::visit(
        [&](const auto& s) -> std::size_t {
          if constexpr (requires { s.stream; }) return index(s.stream);
          return host();
        },
        step);
  }

  // A step waits for the one before on its stream, for the host to issue it, and for its event.
  void find_dependencies() {
    std::vector<std::optional<std::size_t>> last(schedule_.streams + 1);
    std::map<EventId, std::size_t> recorded;
    for (std::size_t i = 0; i < schedule_.steps.size(); ++i) {
      const Step& step = schedule_.steps[i];
      const std::size_t queue = queue_of(step);
      std::vector<std::size_t> before;
      for (const auto& other : {last[queue], last[host()]})
        if (other) before.push_back(*other);
      const auto await = [&](EventId event) {
        if (const auto found = recorded.find(event); found != recorded.end())
          before.push_back(found->second);
      };
      if (const auto* s = std::get_if<Wait>(&step)) await(s->event);
      if (const auto* s = std::get_if<Synchronize>(&step)) await(s->event);
      if (const auto* s = std::get_if<Record>(&step)) recorded[s->event] = i;
      last[queue] = i;
      queue_.push_back(queue);
      before_.push_back(before);
    }
  }

  std::optional<std::size_t> choose(const std::vector<bool>& is_done,
                                    const std::vector<int>& priority) {
    for (const int wanted : priority)
      for (std::size_t& i = next_[static_cast<std::size_t>(wanted)]; i < is_done.size(); ++i) {
        if (is_done[i] || queue_[i] != static_cast<std::size_t>(wanted)) continue;
        if (std::ranges::all_of(before_[i], [&](std::size_t b) { return is_done[b]; })) return i;
        break;
      }
    return std::nullopt;
  }

  void fail(std::string fault) {
    if (fault_.empty()) fault_ = std::move(fault);
  }

  Cell& cell(BufferId buffer) { return cells_[index(buffer)]; }

  Number read(BufferId buffer) {
    if (!cell(buffer).is_present || !cell(buffer).number) {
      fail(fmt::format("reads buffer {}, which holds nothing", index(buffer)));
      return 0;
    }
    return *cell(buffer).number;
  }

  void write(BufferId buffer, Number number) {
    if (!cell(buffer).is_present) fail(fmt::format("writes buffer {}, not present", index(buffer)));
    cell(buffer).number = number;
  }

  void set_present(BufferId buffer, bool is_present) {
    if (cell(buffer).is_present == is_present || schedule_[buffer].persistent)
      fail(fmt::format("buffer {} appears or goes twice", index(buffer)));
    cell(buffer) = {is_present, std::nullopt};
  }

  void step(const Step& step) {
    std::visit(Overload{[&](const Allocate& s) { set_present(s.buffer, true); },
                        [&](const Free& s) { set_present(s.buffer, false); },
                        [&](const Run& s) { run(s); },
                        [&](const CopyOut& s) { host_[key_of(s.buffer)] = read(s.buffer); },
                        [&](const CopyIn& s) { bring_back(s.buffer); }, [](const auto&) {}},
               step);
  }

  std::pair<TensorId, Role> key_of(BufferId buffer) const {
    return {schedule_[buffer].tensor, schedule_[buffer].role};
  }

  void bring_back(BufferId buffer) {
    const auto copy = host_.find(key_of(buffer));
    if (copy == host_.end()) return fail("the host has no copy");
    write(buffer, copy->second);
  }

  void run(const Run& run) {
    switch (run.task) {
      case Task::Forward:
      case Task::Recompute:
        return forward(run);
      case Task::Seed:
        return write_all(run, 7);
      case Task::Backward:
        return write_all(run, sum(run) + mix(index(run.op), 3));
      case Task::Accumulate:
        return accumulate(run);
      case Task::Reconstruct:
        return reconstruct(run);
      case Task::Quantize:
      case Task::Dequantize:
        return convert(run);
      case Task::Optimizer:
        return optimize(run);
      case Task::WeightGradient:
      case Task::Pack:
      case Task::AllReduce:
      case Task::AllGather:
      case Task::ReduceScatter:
        return fail("plays steps of one rank");
    }
  }

  // Codes are of use only with the ranges that were made with them.
  Number mark_of(Number codes) { return mix(codes, 17); }

  // Floats have behind them what decodes them.
  bool holds_floats(BufferId codes) {
    return schedule_.encodings[schedule_[codes].encoding].format == CodeFormat::Float8;
  }

  void check_ranges(const Run& run, BufferId codes) {
    if (holds_floats(codes)) return;
    for (const BufferId buffer : schedule_.reads(run))
      if (schedule_[buffer].role == Role::Ranges && read(buffer) == mark_of(read(codes))) return;
    fail("codes without their ranges");
  }

  // All that is read counts, in any order, but a gradient is not a value. A backward may decode.
  Number sum(const Run& run) {
    Number total = 0;
    for (const BufferId buffer : schedule_.reads(run)) {
      const Role role = schedule_[buffer].role;
      if (role == Role::Ranges) continue;
      const bool decodes = role == Role::Codes && run.task == Task::Backward;
      if (decodes && holds_floats(buffer)) fail("a backward that decodes floats");
      if (decodes) check_ranges(run, buffer);
      const Number number = read(buffer) ^ (decodes ? code_mark : 0);
      total += mix(number, static_cast<Number>(decodes ? Role::Value : role) + 11);
    }
    return total;
  }

  // Each buffer gets a number of its own, by its tensor and by how often that was written before.
  void write_all(const Run& run, Number number) {
    std::map<TensorId, Number> times;
    for (const BufferId buffer : schedule_.writes(run)) {
      if (schedule_[buffer].role == Role::Ranges || schedule_[buffer].role == Role::Codes) continue;
      const TensorId tensor = schedule_[buffer].tensor;
      write(buffer, mix(mix(number, index(tensor)), ++times[tensor]));
    }
  }

  BufferId find(const Run& run, TensorId tensor) {
    for (const BufferId buffer : schedule_.reads(run))
      if (schedule_[buffer].tensor == trace_[tensor].storage) return buffer;
    fail("an operand is missing");
    return schedule_.reads(run).empty() ? BufferId{0} : schedule_.reads(run)[0];
  }

  // A coupling's add adds, so that it can be undone; all other ops stir.
  void forward(const Run& run) {
    const Op& op = trace_[run.op];
    const Number stirred = sum(run) + mix(index(run.op), 5);
    for (const BufferId buffer : schedule_.writes(run))
      if (schedule_[buffer].role == Role::Ranges) write(buffer, 0);  // extremes, and no range yet
    if (op.residual) {
      const auto inputs = trace_.inputs(op);
      for (const BufferId buffer : schedule_.writes(run))
        if (schedule_[buffer].role == Role::Value)
          write(buffer, read(find(run, inputs[0])) + read(find(run, inputs[1])));
    } else {
      write_all(run, stirred);
    }
    write_codes(run);
    for (const BufferId buffer : schedule_.writes(run))
      if (schedule_[buffer].tensor == trace_[trace_.loss].storage &&
          schedule_[buffer].role == Role::Value)
        loss_ = read(buffer);
  }

  // In passing, by ranges that are there from the last step on.
  void write_codes(const Run& run) {
    for (const BufferId codes : schedule_.writes(run)) {
      if (schedule_[codes].role != Role::Codes) continue;
      for (const BufferId other : schedule_.writes(run))
        if (schedule_[other].tensor == schedule_[codes].tensor) {
          if (schedule_[other].role == Role::Value) write(codes, read(other) ^ code_mark);
          if (schedule_[other].role == Role::Ranges) write(other, mark_of(read(codes)));
        }
    }
  }

  void reconstruct(const Run& run) {
    const Op& op = trace_[run.op];
    const Number whole = read(find(run, trace_.outputs(op)[0]));
    const Number branch = read(find(run, trace_.inputs(op)[1]));
    for (const BufferId buffer : schedule_.writes(run)) write(buffer, whole - branch);
  }

  void accumulate(const Run& run) {
    Number total = 0;
    for (const BufferId buffer : schedule_.reads(run)) total += read(buffer);
    for (const BufferId buffer : schedule_.writes(run)) write(buffer, total);
  }

  void convert(const Run& run) {
    if (run.reads == 0 || run.writes == 0) return fail("an operand is missing");
    const BufferId from = schedule_.reads(run)[0];
    if (run.task == Task::Dequantize) check_ranges(run, from);
    for (const BufferId to : schedule_.writes(run)) {
      const Number made = read(from) ^ (schedule_[to].role == Role::Temporary ? 0 : code_mark);
      write(to, schedule_[to].role == Role::Ranges ? mark_of(made) : made);
    }
  }

  void optimize(const Run& run) {
    for (const BufferId buffer : schedule_.writes(run)) {
      const Buffer& written = schedule_[buffer];
      if (written.role == Role::Value)
        write(buffer, mix(read(buffer), read(gradient(run, written.tensor))));
      else
        write(buffer, written.role == Role::OptimizerState ? mix(read(buffer), 13) : 0);
    }
  }

  BufferId gradient(const Run& run, TensorId tensor) {
    for (const BufferId buffer : schedule_.reads(run))
      if (schedule_[buffer].tensor == tensor && schedule_[buffer].role == Role::Gradient)
        return buffer;
    fail("a gradient is missing");
    return BufferId{0};
  }

  Played finish() {
    Played played{.fault = {}, .parameters = {}, .loss = loss_};
    for (std::size_t b = 0; b < cells_.size(); ++b) {
      const Buffer& buffer = schedule_.buffers[b];
      if (cells_[b].is_present && !buffer.persistent) fail(fmt::format("buffer {} is left", b));
      const bool is_result =
          buffer.persistent && (buffer.role == Role::Value || buffer.role == Role::OptimizerState);
      if (is_result) played.parameters.push_back(cells_[b].number.value_or(0));
    }
    played.fault = fault_;
    return played;
  }

  const Trace& trace_;
  const Schedule& schedule_;
  std::vector<Cell> cells_;
  std::map<std::pair<TensorId, Role>, Number> host_;
  std::vector<std::size_t> queue_;
  std::vector<std::vector<std::size_t>> before_;
  std::vector<std::size_t> next_;  // by queue
  Number loss_ = 0;
  std::string fault_;
};

}  // namespace detail

/// Streams listed first go as far as they can before the others do; the host counts as the last
/// one. Gradients of concatenations are beyond it: two of them share one memory.
inline Played play(const Trace& trace, const Schedule& schedule, const std::vector<int>& priority) {
  return detail::Player(trace, schedule).run(priority);
}

inline std::vector<int> queues_of(const Schedule& schedule) {
  std::vector<int> queues(schedule.streams + 1);
  std::iota(queues.begin(), queues.end(), 0);
  return queues;
}

inline Played play(const Trace& trace, const Schedule& schedule) {
  return play(trace, schedule, queues_of(schedule));
}

/// In each order of streams, or 120 of many: no fault, and the same numbers.
inline bool plays_as(const Trace& trace, const Schedule& schedule, const Played& expected) {
  std::vector<int> priority = queues_of(schedule);
  const bool are_few = schedule.streams <= 4;
  std::mt19937 random;
  for (int order = 0; are_few || order < 120; ++order) {
    if (play(trace, schedule, priority) != expected) return false;
    if (schedule.streams == 1) return true;
    if (are_few && !std::ranges::next_permutation(priority).found) return true;
    if (!are_few) std::ranges::shuffle(priority, random);
  }
  return true;
}

}  // namespace tidemark
