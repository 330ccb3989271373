// A small schedule to damage: where its steps are, by what they do.
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/judge/validate.h"
#include "simulator/lower.h"
#include "tests/traces/small_trace.h"

namespace tidemark {

/// x ─fc─► fc ─gelu─► gelu; add = fc + gelu; drop ─loss. No casts, no statistics of norms.
inline Trace tiny_trace() {
  TraceBuilder b("tiny", "toy", {.batch = 2, .precision = Precision::Fp32});
  const TensorId x = b.input("x", {2, 4}, DType::Float32);
  const TensorId targets = b.input("targets", {2}, DType::Int64);
  const TensorId y = b.linear("fc", x, 4);
  const TensorId z = b.dropout("drop", b.residual("add", y, b.gelu("gelu", y)), 0.1);
  return b.finish(b.cross_entropy("loss", z, targets));
}

/// A trace, a schedule for it, and where its steps are.
struct Example {
  Trace trace = tiny_trace();
  Plan plan = keep_everything(trace);
  Schedule schedule = lower(trace, plan);

  std::vector<std::string> judged() const { return validate(trace, schedule); }
  void lower_again() { schedule = lower(trace, plan); }

  std::size_t run(Task task, std::string_view op) const {
    for (std::size_t i = 0; i < schedule.steps.size(); ++i)
      if (const auto* run = std::get_if<Run>(&schedule.steps[i]))
        if (run->task == task && (run->op == no_op || trace[run->op].name == op)) return i;
    ADD_FAILURE() << "no " << to_string(task) << " of " << op;
    return 0;
  }
  template <typename Kind>
  std::size_t first() const {
    for (std::size_t i = 0; i < schedule.steps.size(); ++i)
      if (std::holds_alternative<Kind>(schedule.steps[i])) return i;
    ADD_FAILURE() << "no such step";
    return 0;
  }
  template <typename Kind>
  std::size_t of(BufferId buffer) const {
    for (std::size_t i = 0; i < schedule.steps.size(); ++i)
      if (const auto* step = std::get_if<Kind>(&schedule.steps[i]))
        if (step->buffer == buffer) return i;
    ADD_FAILURE() << "no such step of buffer " << index(buffer);
    return 0;
  }
  Run& at(std::size_t step) { return std::get<Run>(schedule.steps[step]); }
  BufferId& read(std::size_t step, std::size_t i) {
    return schedule.operands[at(step).first_operand + i];
  }
  BufferId& written(std::size_t step, std::size_t i = 0) {
    return schedule.operands[at(step).first_operand + at(step).reads + i];
  }

  void erase(std::size_t step) { schedule.steps.erase(begin(step)); }
  void insert(std::size_t step, Step what) { schedule.steps.insert(begin(step), what); }
  void repeat(std::size_t step) { insert(step, Step(schedule.steps[step])); }
  void move(std::size_t from, std::size_t to) {
    const Step step = schedule.steps[from];
    erase(from);
    insert(to > from ? to - 1 : to, step);
  }
  std::vector<Step>::iterator begin(std::size_t step) {
    return schedule.steps.begin() + static_cast<std::ptrdiff_t>(step);
  }
};

/// Everything of one op's forward happens on a second stream.
struct TwoStreams : Example {
  static constexpr StreamId other{1};

  TwoStreams() {
    schedule.streams = 2;
    const std::size_t step = run(Task::Forward, "gelu");
    at(step).stream = other;
    schedule.buffers[index(written(step))].stream = other;
    schedule.events = 2;
    insert(of<Allocate>(written(step)), Wait{EventId{0}, other});
    insert(of<Allocate>(written(run(Task::Forward, "gelu"))) - 1,
           Record{EventId{0}, StreamId::Compute});
    insert(run(Task::Forward, "gelu") + 1, Record{EventId{1}, other});
    insert(run(Task::Forward, "gelu") + 2, Wait{EventId{1}, StreamId::Compute});
  }
};

#define EXPECT_COMPLAINT(example, text) \
  EXPECT_THAT((example).judged(), testing::Contains(testing::HasSubstr(text)))

}  // namespace tidemark
