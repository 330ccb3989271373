// Profiles: one that PyTorch wrote of a step on the CPU, and small ones of a GPU by hand.
#include "importers/kineto.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"

namespace tidemark::importers::kineto_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string sample = TIDEMARK_TESTS_DIR "/reference/profiles/mlp_cpu.json";

RecordedTimeline read(const std::string& text) {
  const JsonDocument document(text, "profile.json");
  return read_kineto(document.root(), "profile");
}

std::string with_events(const std::string& events) {
  return R"({"schemaVersion": 1, "traceEvents": [)" + events + "]}";
}

std::string problem_of(const std::string& text) {
  try {
    read(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "(none)";
}

std::string span(const char* category, const char* name, int tid, double begin, double length,
                 const std::string& args = "") {
  return fmt::format(
      R"({{"ph": "X", "cat": "{}", "name": "{}", "pid": 1, "tid": {}, "ts": {}, "dur": {}, )"
      R"("args": {{{}}}}},)",
      category, name, tid, begin, length, args);
}

/// A step on a GPU: a product forward and one backward, an update on another stream.
const std::string gpu_step = with_events(
    span("user_annotation", "ProfilerStep#3", 7, 90, 1000) +
    span("cpu_op", "aten::mm", 7, 100, 20) +
    span("cuda_runtime", "cudaLaunchKernel", 7, 105, 5, R"("correlation": 1)") +
    span("cpu_op", "autograd::engine::evaluate_function: MmBackward0", 8, 200, 50) +
    span("cpu_op", "aten::mm", 8, 210, 20) +
    span("cuda_runtime", "cudaLaunchKernel", 8, 215, 5, R"("correlation": 2)") +
    span("user_annotation", "Optimizer.step#SGD.step", 7, 300, 50) +
    span("cuda_runtime", "cudaLaunchKernel", 7, 310, 5, R"("correlation": 3)") +
    span("kernel", "sgemm", 0, 130, 30.5, R"("device": 0, "stream": 7, "correlation": 1)") +
    span("kernel", "sgemm", 0, 160.5, 40, R"("device": 0, "stream": 7, "correlation": 2)") +
    span("kernel", "add", 0, 320, 10, R"("device": 0, "stream": 20, "correlation": 3)") +
    R"({"ph": "i", "cat": "other", "name": "ignored", "ts": 1})");

TEST(Kineto, KernelsAreRunsOfTheirStreams) {
  const RecordedTimeline made = read(gpu_step);
  EXPECT_EQ(made.device, "cuda:0");
  EXPECT_EQ(made.schedule.streams, 2U);
  std::vector<std::string> runs;
  for (const TimedRun& timed : made.timeline.runs) {
    const tidemark::Run& run = std::get<tidemark::Run>(made.schedule.steps[timed.step]);
    runs.push_back(fmt::format("{} {} {} {}-{}", index(timed.stream), to_string(run.task),
                               (*made.trace)[run.op].name, timed.begin.count(), timed.end.count()));
  }
  // From the first operator on, at 100 µs; what launched a kernel says which phase it is of.
  EXPECT_THAT(runs, ElementsAre("0 forward sgemm 30000-60500", "0 backward sgemm 60500-100500",
                                "1 optimizer add 220000-230000"));
  EXPECT_EQ(made.timeline.duration, Nanoseconds(250000));
  EXPECT_EQ(made.timeline.idle, Nanoseconds(30000 + 119500 + 20000));
  EXPECT_EQ(made.timeline.overlap, Nanoseconds(0));
}

// The profiler counts what is allocated after each event; so do we, from nothing but the events.
TEST(Kineto, BytesInUseAreWhatTheProfilerCounted) {
  const std::string text = read_file(sample, FileKind::Recording);
  const RecordedTimeline made = read(text);
  EXPECT_EQ(made.device, "cpu");
  std::vector<std::int64_t> expected, found;
  const auto profile = nlohmann::json::parse(text);
  for (const auto& event : profile["traceEvents"])
    if (event["name"] == "[memory]") expected.push_back(event["args"]["Total Allocated"]);
  std::int64_t live = total(made.timeline.baseline).count;
  for (const MemoryEvent& event : made.timeline.memory) {
    const std::int64_t size = made.schedule[event.buffer].size.count;
    live += event.appears ? size : -size;
    const bool was_before = event.appears && event.time == Nanoseconds{};
    if (!was_before) found.push_back(live);
  }
  EXPECT_EQ(found, expected);
}

std::string memory_event(double time, int type, int device, std::int64_t bytes,
                         std::int64_t total) {
  return fmt::format(
      R"({{"ph": "i", "name": "[memory]", "pid": 1, "tid": 7, "ts": {}, "args": {{"Addr": {}, )"
      R"("Bytes": {}, "Total Allocated": {}, "Device Type": {}, "Device Id": {}}}}},)",
      time, 4096 + 64 * type + device, bytes, total, type, device);
}

// Of several GPUs the one with most allocations; of the CPU (type 0) only where there is no GPU.
TEST(Kineto, BytesInUseAreThoseOfOneDevice) {
  const std::string cpu = memory_event(1, 0, 0, 7, 7) + memory_event(2, 0, 0, 0, 7) +
                          memory_event(3, 0, 0, -7, 0) + memory_event(4, 0, 0, 9, 9);
  const std::string gpu = memory_event(5, 1, 1, 512, 512) + memory_event(6, 1, 1, -512, 0);
  const std::string other = memory_event(5, 1, 0, 1024, 1024);
  const auto sizes = [](const std::string& memory) {
    std::vector<std::int64_t> found;
    const RecordedTimeline made = read(with_events(span("cpu_op", "aten::mm", 7, 0, 10) + memory +
                                                   R"({"ph": "i", "name": "x", "ts": 1})"));
    for (const Buffer& buffer : made.schedule.buffers) found.push_back(buffer.size.count);
    return found;
  };
  EXPECT_THAT(sizes(cpu), ElementsAre(7, 9));
  EXPECT_THAT(sizes(cpu + gpu), ElementsAre(512));
  EXPECT_THAT(sizes(cpu + gpu + other), ElementsAre(512));
}

TEST(Kineto, WhoAllocatedIsTheOperatorThatAskedForIt) {
  const RecordedTimeline made = read(read_file(sample, FileKind::Recording));
  std::vector<std::string> names;
  for (const Tensor& tensor : made.trace->tensors) names.push_back(tensor.name);
  EXPECT_THAT(names, testing::Contains("aten::native_layer_norm"));
  EXPECT_THAT(names, testing::Contains("aten::addmm"));
  EXPECT_THAT(names, testing::Each(testing::Not(testing::StartsWith("aten::empty"))));
  EXPECT_THAT(made.callers, testing::Contains(HasSubstr("aten::addmm ← aten::linear")));
  EXPECT_EQ(made.callers.size(), made.trace->tensors.size());
}

TEST(Kineto, RunsOfALaneFollowOneAnother) {
  const RecordedTimeline made = read(read_file(sample, FileKind::Recording));
  ASSERT_GT(made.timeline.runs.size(), 5U);
  Nanoseconds busy{};
  for (const TimedRun& run : made.timeline.runs) {
    EXPECT_GE(run.begin, busy);
    EXPECT_GE(run.end, run.begin);
    busy = run.end;
  }
  EXPECT_LE(busy, made.timeline.duration);
}

TEST(Kineto, WhatIsMissingOrWrongIsSaid) {
  EXPECT_THAT(problem_of("{}"), HasSubstr("profile.json: "));
  EXPECT_THAT(problem_of(with_events("")), HasSubstr("/traceEvents: no operator, kernel"));
  EXPECT_THAT(problem_of(with_events(R"({"ph": "X", "cat": "cpu_op", "name": "a", "ts": "x"})")),
              HasSubstr("/traceEvents/0/ts: found text 'x'"));
  EXPECT_THAT(problem_of(with_events(R"({"ph": "X", "cat": "cpu_op", "name": "a", "ts": 0},)"
                                     R"({"ph": "X", "cat": "cpu_op", "name": "a", "ts": 1e13})")),
              HasSubstr("ends more than 13 days behind the first event"));
  EXPECT_THAT(problem_of(with_events(R"({"name": "[memory]", "ts": 0, "args": {}})")),
              HasSubstr("/traceEvents/0/args"));
}

TEST(Kineto, IsKnownByItsFirstBytes) {
  EXPECT_TRUE(is_kineto(sample));
  EXPECT_FALSE(is_kineto(TIDEMARK_SOURCE_DIR "/examples/toy/mlp.trace.json"));
  EXPECT_FALSE(is_kineto(TIDEMARK_TESTS_DIR "/reference/snapshots/ring.pickle"));
}

}  // namespace
}  // namespace tidemark::importers::kineto_test
