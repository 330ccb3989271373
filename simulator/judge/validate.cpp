// The judge walks over the steps in the order in which the host issues them. Each buffer is absent,
// empty or full of one number (validate_numbers.h); each stream has a vector clock.
//
//   memory  1  Allocate a buffer once, when it is absent. Free it once, when it is present and all
//              of its uses are ordered before the freeing stream. Never free a persistent one.
//           2  A run or copy reads full buffers and writes present ones.
//           3  It reads after the write and writes after every earlier use, by stream order or
//              Record → Wait or Synchronize, not by luck of timing; so does its stream follow what
//              the buffer's own stream knew when it got the memory.
//           4  What is copied in was copied out.
//           5  In the end only persistent buffers are left.
//   work    6  Each op that is no view runs Forward once, in trace order; each op that has a
//              gradient to write runs Backward once; Seed runs once; each trainable tensor that the
//              loss depends on is updated once.
//           7  A run reads exactly what its task needs and writes exactly what it makes; Temporary
//              buffers may come on top.
//                Forward, Recompute   the inputs' values → the outputs' values
//                Backward             the outputs' complete gradients and what the op's row names
//                                     → the inputs' gradients, but not those that are aliases
//                Accumulate           two parts of a gradient → their sum, of the gradient's size
//                Reconstruct          output and branch of a coupling's add → its shortcut
//                Quantize, Dequantize a value → its codes, codes → their value
//                Optimizer            a parameter's complete gradient → parameter and state
//           8  A random op runs again only with its key, and what may run only once does not.
//           9  Where an opaque op says that a pass needs a workspace, it has one of that size; a
//              recorded update has some that add up to it.
#include "simulator/judge/validate.h"

#include "simulator/judge/validate_runs.h"

namespace tidemark {
namespace {

// Ids that point nowhere: nothing else could be said about such a step.
bool is_in_range(const Trace& trace, const Schedule& schedule, const Step& step) {
  const auto has_buffer = [&](BufferId id) { return index(id) < schedule.buffers.size(); };
  const auto has_stream = [&](StreamId id) { return index(id) < schedule.streams; };
  const auto has_event = [&](EventId id) { return index(id) < schedule.events; };
  const auto has_operands = [&](const Run& run) {
    if (std::size_t{run.first_operand} + run.reads + run.writes > schedule.operands.size())
      return false;
    return std::ranges::all_of(schedule.reads(run), has_buffer) &&
           std::ranges::all_of(schedule.writes(run), has_buffer);
  };
  return std::visit(
      Overload{[&](const Allocate& s) { return has_buffer(s.buffer); },
               [&](const Free& s) { return has_buffer(s.buffer) && has_stream(s.stream); },
               [&](const Run& s) {
                 const bool has_op = s.task == Task::Optimizer || index(s.op) < trace.ops.size();
                 return has_stream(s.stream) && has_op && has_operands(s);
               },
               [&](const CopyOut& s) { return has_buffer(s.buffer) && has_stream(s.stream); },
               [&](const CopyIn& s) { return has_buffer(s.buffer) && has_stream(s.stream); },
               [&](const Record& s) { return has_event(s.event) && has_stream(s.stream); },
               [&](const Wait& s) { return has_event(s.event) && has_stream(s.stream); },
               [&](const Synchronize& s) { return has_event(s.event); }},
      step);
}

bool has_sound_buffers(const Trace& trace, const Schedule& schedule) {
  return std::ranges::all_of(schedule.buffers, [&](const Buffer& buffer) {
    const bool is_named = index(buffer.tensor) < trace.tensors.size();
    const bool is_temporary = buffer.role == Role::Temporary && buffer.tensor == no_tensor;
    return index(buffer.stream) < schedule.streams && (is_named || is_temporary);
  });
}

}  // namespace

std::vector<std::string> validate(const Trace& trace, const Schedule& schedule) {
  if (!has_sound_buffers(trace, schedule)) return {"a buffer has no such tensor or stream"};
  judge::Memory memory(trace, schedule);
  judge::Runs runs(trace, schedule, memory);
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    const Step& step = schedule.steps[i];
    memory.begin_step(i);
    if (!is_in_range(trace, schedule, step)) {
      memory.complain("refers to what is not there");
      continue;
    }
    std::visit(
        Overload{[&](const Allocate& s) { memory.allocate(s); },
                 [&](const Free& s) { memory.free(s); }, [&](const Run& s) { runs.run(s); },
                 [&](const CopyOut& s) { memory.copy(s); },
                 [&](const CopyIn& s) { memory.copy(s); },
                 [&](const Record& s) { memory.record(s); }, [&](const Wait& s) { memory.wait(s); },
                 [&](const Synchronize& s) { memory.synchronize(s); }},
        step);
  }
  memory.begin_step(schedule.steps.size());
  runs.check_complete();
  memory.check_balance();
  return memory.take_complaints();
}

}  // namespace tidemark
