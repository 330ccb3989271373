// Fingerprints are FNV-1a, ignore a model's name, and differ where steps or devices do.
#include "analysis/check/fingerprint.h"

#include <gtest/gtest.h>

#include <set>

#include "traces/presets.h"
#include "traces/trace_builder.h"

namespace tidemark::regression::fingerprint_test {
namespace {

// The published test vectors of FNV-1a, 64 bits (draft-eastlake-fnv).
TEST(Fingerprint, IsFnv1a) {
  EXPECT_EQ(fingerprint(""), "cbf29ce484222325");
  EXPECT_EQ(fingerprint("a"), "af63dc4c8601ec8c");
  EXPECT_EQ(fingerprint("foobar"), "85944171f73967e8");
}

Trace small(const StepOptions& step) { return build_trace(find_model("vit-ti-16"), step); }

TEST(Fingerprint, OfATraceIgnoresWhatTheModelIsCalled) {
  Trace trace = small({});
  const std::string before = fingerprint(trace);
  trace.model = "moved/config.json";
  EXPECT_EQ(fingerprint(trace), before);
  EXPECT_EQ(trace.model, "moved/config.json");
}

TEST(Fingerprint, OfATraceIgnoresWhereItsCodeStands) {
  Trace trace = small({});
  const std::string before = fingerprint(trace);
  trace.lines = {"net.py:3"};
  trace.ops[0].line = LineId{0};
  EXPECT_EQ(fingerprint(trace), before);
}

TEST(Fingerprint, TellsStepsApart) {
  std::set<std::string> seen;
  StepOptions step;
  seen.insert(fingerprint(small(step)));
  step.batch = 2;
  seen.insert(fingerprint(small(step)));
  step.precision = Precision::AmpBf16;
  seen.insert(fingerprint(small(step)));
  step.optimizer = Optimizer::Sgd;
  seen.insert(fingerprint(small(step)));
  step.framework = "torch-1.13";
  seen.insert(fingerprint(small(step)));
  EXPECT_EQ(seen.size(), 5u);
}

TEST(Fingerprint, OfADeviceCoversItsFigures) {
  Device device = find_device("h100");
  const std::string before = fingerprint(device);
  EXPECT_EQ(fingerprint(find_device("h100")), before);
  EXPECT_NE(fingerprint(find_device("h200")), before);
  device.sm_count += 1;
  EXPECT_NE(fingerprint(device), before);
}

}  // namespace
}  // namespace tidemark::regression::fingerprint_test
