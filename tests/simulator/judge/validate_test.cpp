// The judge is judged: each rule about memory is broken once in a small schedule.
#include "tests/simulator/judge/judged_example.h"

namespace tidemark::validate_test {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Validate, AcceptsWhatLowerMakes) { EXPECT_THAT(Example().judged(), IsEmpty()); }

TEST(Validate, SaysWhereAndWhat) {
  Example e;
  const std::size_t step = e.run(Task::Forward, "gelu");
  e.erase(e.of<Allocate>(e.written(step)));
  EXPECT_THAT(e.judged()[0],
              fmt::format("step {} (forward of gelu): writes value of gelu (buffer {}), which is "
                          "not present",
                          step - 1, index(e.written(step - 1))));
}

TEST(Validate, CountsMicroBatches) {
  Example e;
  e.trace.step.accumulate.count = 2;
  EXPECT_COMPLAINT(e, "1 of 2 micro-batches ran");
  e.lower_again();
  EXPECT_THAT(e.judged(), IsEmpty());
  e.trace.step.accumulate.count = 1;
  EXPECT_COMPLAINT(e, "runs again or out of order");
  e.trace.step.accumulate.count = 3;
  EXPECT_COMPLAINT(e, "does not read the complete gradient of");
}

// --- rule 1: once allocated, once freed ---------------------------------------------------------

TEST(Validate, NoticesASecondAllocation) {
  Example e;
  e.repeat(e.first<Allocate>());
  EXPECT_COMPLAINT(e, "is present already");
}

TEST(Validate, NoticesASecondLifetime) {
  Example e;
  const BufferId buffer = std::get<Free>(e.schedule.steps[e.first<Free>()]).buffer;
  e.insert(e.schedule.steps.size(), Allocate{buffer});
  EXPECT_COMPLAINT(e, "had its lifetime already");
}

TEST(Validate, NoticesASecondFree) {
  Example e;
  e.repeat(e.first<Free>());
  EXPECT_COMPLAINT(e, "is not present");
}

TEST(Validate, NoticesThatAPersistentBufferIsFreed) {
  Example e;
  e.insert(e.schedule.steps.size(), Free{BufferId{0}, StreamId::Compute});
  EXPECT_COMPLAINT(e, "is persistent");
}

// --- rule 2: reads are full, writes are present -------------------------------------------------

TEST(Validate, NoticesAReadOfWhatIsEmpty) {
  Example e;
  e.erase(e.run(Task::Forward, "fc"));
  EXPECT_COMPLAINT(e, "(forward of gelu): reads value of fc (buffer 6), which is empty");
}

TEST(Validate, NoticesAReadAfterTheFree) {
  Example e;
  const std::size_t step = e.run(Task::Backward, "gelu");
  const BufferId input = e.read(step, 1);
  e.move(e.of<Free>(input), step);
  EXPECT_COMPLAINT(e, "(backward of gelu): reads value of fc (buffer 6), which is not present");
}

TEST(Validate, NoticesAWriteBeforeTheAllocation) {
  Example e;
  const std::size_t step = e.run(Task::Forward, "gelu");
  e.move(e.of<Allocate>(e.written(step)), step + 1);
  EXPECT_COMPLAINT(e, "(forward of gelu): writes value of gelu");
}

// --- rule 3: order across streams ---------------------------------------------------------------

TEST(Validate, AcceptsTwoStreamsThatWaitForEachOther) {
  EXPECT_THAT(TwoStreams().judged(), IsEmpty());
}

TEST(Validate, NoticesAReadThatDidNotWaitForTheWrite) {
  TwoStreams e;
  e.erase(e.first<Wait>());
  EXPECT_COMPLAINT(e, "(forward of gelu): reads value of fc (buffer 6), but has not waited");
}

TEST(Validate, NoticesAnEventThatWasNotRecorded) {
  TwoStreams e;
  e.erase(e.first<Record>());
  EXPECT_COMPLAINT(e, "event 0 was not recorded");
}

TEST(Validate, NoticesAnEventThatWasRecordedTooEarly) {
  TwoStreams e;
  e.move(e.first<Record>(), e.run(Task::Forward, "fc"));
  EXPECT_COMPLAINT(e, "(forward of gelu): reads value of fc (buffer 6), but has not waited");
}

TEST(Validate, NoticesAFreeThatDidNotWaitForTheLastUse) {
  TwoStreams e;
  const std::size_t add = e.run(Task::Forward, "add");
  const BufferId gelu = e.written(e.run(Task::Forward, "gelu"));
  std::get<Free>(e.schedule.steps[e.of<Free>(gelu)]).stream = TwoStreams::other;
  ASSERT_LT(add, e.of<Free>(gelu));
  EXPECT_COMPLAINT(e, "value of gelu (buffer 7) may still be in use on another stream");
}

TEST(Validate, NoticesAUseOfMemoryThatTheOtherStreamMayNotHaveYet) {
  TwoStreams e;
  const BufferId gelu = e.written(e.run(Task::Forward, "gelu"));
  e.schedule.buffers[index(gelu)].stream = StreamId::Compute;
  EXPECT_COMPLAINT(e, "on a stream that has not waited for its memory");
  e.move(e.of<Allocate>(gelu), e.first<Record>());
  EXPECT_THAT(e.judged(), IsEmpty());  // the event is recorded behind the allocation
}

TEST(Validate, NoticesAWriteThatDidNotWaitForEarlierReads) {
  Example e;  // the optimizer on a stream of its own
  e.schedule.streams = 2;
  e.at(e.run(Task::Optimizer, "")).stream = TwoStreams::other;
  EXPECT_COMPLAINT(e, "(optimizer): writes value of fc.weight (buffer 2), but has not waited");
}

TEST(Validate, AcceptsAHostThatWaits) {
  TwoStreams e;
  e.schedule.steps[e.first<Wait>()] = Synchronize{EventId{0}};
  EXPECT_THAT(e.judged(), IsEmpty());
  e.erase(e.first<Synchronize>());
  EXPECT_THAT(e.judged(), Not(IsEmpty()));
}

// --- rules 4 and 5: copies, balance -------------------------------------------------------------

struct Offloaded : Example {
  Offloaded() {
    decide(plan, tensor_named(trace, "fc"), Action::Offload, "to test");
    lower_again();
  }
};

TEST(Validate, AcceptsACopyOutAndIn) { EXPECT_THAT(Offloaded().judged(), IsEmpty()); }

TEST(Validate, NoticesWhatWasNotCopiedOut) {
  Offloaded e;
  e.erase(e.first<CopyOut>());
  EXPECT_COMPLAINT(e, "the host has no copy of value of fc");
}

TEST(Validate, NoticesACopyOfNothing) {
  Offloaded e;
  e.erase(e.run(Task::Forward, "fc"));
  EXPECT_COMPLAINT(e, "reads value of fc (buffer 6), which is empty");
}

TEST(Validate, NoticesWhatWasNotCopiedIn) {
  Offloaded e;
  e.erase(e.first<CopyIn>());
  EXPECT_COMPLAINT(e, "(backward of gelu): reads value of fc");
}

TEST(Validate, NoticesACopyInThatDidNotWaitForTheCopyOut) {
  Offloaded e;
  e.schedule.streams = 2;
  std::get<CopyOut>(e.schedule.steps[e.first<CopyOut>()]).stream = TwoStreams::other;
  EXPECT_COMPLAINT(e, "brings back value of fc");
}

TEST(Validate, NoticesABufferThatIsLeftBehind) {
  Example e;
  e.erase(e.first<Free>());
  EXPECT_COMPLAINT(e, "is left behind");
}

// --- what points nowhere ------------------------------------------------------------------------

TEST(Validate, NoticesIdsThatPointNowhere) {
  const auto with = [](Step step) {
    Example e;
    e.insert(0, step);
    return e.judged();
  };
  const BufferId buffer{100000};
  const StreamId stream{1};
  const auto complains = Contains("step 0: refers to what is not there");
  EXPECT_THAT(with(Allocate{buffer}), complains);
  EXPECT_THAT(with(Free{BufferId{0}, stream}), complains);
  EXPECT_THAT(with(CopyOut{buffer, StreamId::Compute}), complains);
  EXPECT_THAT(with(CopyIn{BufferId{0}, stream}), complains);
  EXPECT_THAT(with(Record{EventId{0}, StreamId::Compute}), complains);
  EXPECT_THAT(with(Wait{EventId{0}, StreamId::Compute}), complains);
  EXPECT_THAT(with(Synchronize{EventId{0}}), complains);
  EXPECT_THAT(with(tidemark::Run{Task::Seed, StreamId::Compute, OpId{0}, 100000, 1, 1}),
              Contains(HasSubstr("refers to what is not there")));
  EXPECT_THAT(with(tidemark::Run{Task::Forward, StreamId::Compute, OpId{1000}, 0, 0, 0}),
              Contains(HasSubstr("refers to what is not there")));
}

}  // namespace
}  // namespace tidemark::validate_test
