// Allocator calls of a capture: how they stand in files, and each way to get them wrong.
#include "traces/recorded_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/traces/small_trace.h"
#include "traces/trace_json.h"

namespace tidemark::recorded_calls_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// 4096 and 512 stay; each step allocates 1024 and frees it.
RecordedCalls sound_calls() {
  return {.setup = {4096}, .first_step = {1024, 512, -2}, .step = {1024, -1}, .work = 1};
}

Trace captured_trace(RecordedCalls calls = sound_calls()) {
  Trace trace = small_trace();
  calls.of = trace.step;
  trace.calls = std::move(calls);
  return trace;
}

using Calls = std::vector<std::int64_t>;

std::vector<std::string> defects_of(Calls setup, Calls first_step = {}, Calls step = {},
                                    std::size_t work = 0) {
  return check(captured_trace({.setup = std::move(setup),
                               .first_step = std::move(first_step),
                               .step = std::move(step),
                               .work = work}));
}

TEST(RecordedCalls, ComeBackFromTheFile) {
  const Trace trace = captured_trace();
  const std::string text = write_trace(trace);
  EXPECT_THAT(text,
              HasSubstr("\"allocator_calls\": {\"setup\": [4096], \"first_step\": [1024, 512, "
                        "-2], \"step\": [1024, -1], \"work\": 1},\n"));
  EXPECT_EQ(read_trace(text, "t.json"), trace);
}

TEST(RecordedCalls, AreNotWrittenOfAnotherStep) {
  Trace trace = captured_trace();
  trace.step.accumulate = {2};
  EXPECT_THAT(write_trace(trace), Not(HasSubstr("allocator_calls")));
}

TEST(RecordedCalls, AreRefusedWithAKeyMissingOrTooMuch) {
  const std::string text = write_trace(captured_trace());
  const auto error_after = [&](std::string_view from, std::string_view to) {
    std::string damaged = text;
    damaged.replace(damaged.find(from), from.size(), to);
    try {
      read_trace(damaged, "t.json");
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(error_after(", \"work\": 1", ""), HasSubstr("/allocator_calls"));
  EXPECT_THAT(error_after("\"work\": 1", "\"works\": 1"), HasSubstr("unknown key 'works'"));
  EXPECT_THAT(error_after("[4096]", "[4096.5]"), HasSubstr("/allocator_calls/setup/0"));
}

TEST(RecordedCalls, AllocateAndFreeWhatIsThere) {
  EXPECT_THAT(check(captured_trace()), IsEmpty());
  EXPECT_THAT(defects_of({512, 0}),
              ElementsAre("/allocator_calls/setup/1: found 0; need bytes to allocate, or a number "
                          "below zero to free"));
  EXPECT_THAT(defects_of({512}, {-2}),
              ElementsAre("/allocator_calls/first_step/0: found -2; need an allocation before it "
                          "that was not freed yet"));
  EXPECT_THAT(defects_of({512, -1, -1, -1}),  // the first one is told
              ElementsAre(HasSubstr("/allocator_calls/setup/2: found -1;")));
  EXPECT_THAT(defects_of({512}, {}, {-1, 512}, 2), IsEmpty());
}

TEST(RecordedCalls, HaveAtMostSoManyBytesAtOnce) {
  constexpr std::int64_t most = std::int64_t{1} << 58;
  EXPECT_THAT(defects_of({most, -1, most}), IsEmpty());
  EXPECT_THAT(defects_of({most, 1}), ElementsAre(HasSubstr("/setup/1: found 1; need at")));
  EXPECT_THAT(defects_of({most + 1}), ElementsAre(HasSubstr("need at most 2^58 bytes")));
}

TEST(RecordedCalls, DoTheirWorkWithinTheStep) {
  EXPECT_THAT(defects_of({4096}, {}, {1024, -1}, 3),
              ElementsAre("/allocator_calls/work: found 3; need at most 2, the calls of the step"));
}

TEST(RecordedCalls, AreNotMoreThanAnybodyMakes) {
  EXPECT_THAT(defects_of(Calls(most_recorded_calls + 1, 512)),
              ElementsAre(HasSubstr("found 16777217 calls; need at most")));
}

}  // namespace
}  // namespace tidemark::recorded_calls_test
