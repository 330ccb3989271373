// Timeline files: what is written is read again, and what is wrong is said in one line.
#include "analysis/recording/recording.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "analysis/recording/predicted_recording.h"
#include "analysis/recording/recording_format.h"
#include "base/files.h"
#include "tests/analysis/recording/recorded.h"
#include "traces/presets.h"

namespace tidemark::recording_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string read_error(const std::string& text) {
  try {
    read_recording_text(text, "x.timeline.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

/// The file of a small step with `from` replaced once.
std::string damaged(const std::string& from, const std::string& to) {
  std::string text = write_recording_text(recorded(small_trace(), "checkpoint"));
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(RecordingFile, ReadsWhatItWrote) {
  for (const char* strategy : {"vanilla", "checkpoint", "overlap+checkpoint", "mesa"}) {
    const Recording before = recorded(small_trace(), strategy);
    const std::string text = write_recording_text(before);
    const Recording after = read_recording_text(text, "again");
    EXPECT_EQ(write_recording_text(after), text) << strategy;
    expect_equal(before, after);
  }
}

TEST(RecordingFile, KeepsStreamsAndPeakOfARealModel) {
  const Recording before = recorded(build_trace(find_model("vit-ti-16"), {.batch = 2}), "pareprop");
  const Recording after = read_recording_text(write_recording_text(before), "again");
  EXPECT_EQ(after.schedule.streams, 2u);
  EXPECT_EQ(peak(after.schedule, after.timeline).bytes,
            peak(before.schedule, before.timeline).bytes);
  expect_equal(before, after);
}

TEST(RecordingFile, IsCompressedIfItsNameSaysSo) {
  const std::string path = testing::TempDir() + "recording.timeline.json";
  const Recording recording = recorded(small_trace(), "vanilla");
  write_recording(path, recording);
  write_recording(path + ".zst", recording);
  EXPECT_LT(std::filesystem::file_size(path + ".zst"), std::filesystem::file_size(path));
  expect_equal(read_recording(path), read_recording(path + ".zst"));
}

TEST(RecordingFile, NeedsNeitherOffsetsNorDecisions) {
  Recording recording = recorded(small_trace(), "vanilla");
  recording.offsets.clear();
  recording.decisions.clear();
  recording.source = Source::Measured;
  expect_equal(read_recording_text(write_recording_text(recording), "again"), recording);
}

// A program with other enumerators reads the file by the names in it.
TEST(RecordingFile, SaysWhatItsNumbersMean) {
  const Recording before = recorded(small_trace(), "vanilla");
  std::string text = write_recording_text(before);
  const auto swap_names = [&](const std::string& a, const std::string& b) {
    const std::string pair = "\"" + a + "\", \"" + b + "\"";
    ASSERT_NE(text.find(pair), std::string::npos);
    text.replace(text.find(pair), pair.size(), "\"" + b + "\", \"" + a + "\"");
  };
  swap_names("parameter", "gradient");
  const Recording after = read_recording_text(text, "again");
  for (std::size_t b = 0; b < before.schedule.buffers.size(); ++b)
    EXPECT_EQ(before.schedule.buffers[b].category == Category::Parameter,
              after.schedule.buffers[b].category == Category::Gradient);
}

TEST(RecordingFile, SaysWhatIsWrong) {
  EXPECT_EQ(read_error("{}"),
            "x.timeline.json: not a timeline file; need \"format\": \"tidemark-timeline\"");
  EXPECT_EQ(read_error(damaged("\"version\": 2", "\"version\": 3")),
            "x.timeline.json: /version: found 3; this program reads versions 1 to 2");
  EXPECT_THAT(read_error(damaged("\"source\": \"predicted\"", "\"source\": \"measure\"")),
              HasSubstr("did you mean 'measured'?"));
  EXPECT_THAT(read_error(damaged("\"begin_ns\": [0", "\"begin_ns\": [-1")),
              HasSubstr("/runs/begin_ns/0: found -1; need a whole number from 0"));
  EXPECT_THAT(read_error(damaged("\"appears\": [1,", "\"appears\": [")),
              HasSubstr("/memory/appears"));
  EXPECT_THAT(read_error(damaged("\"appears\": [1,", "\"appears\": [1,1,")),
              HasSubstr("/memory/appears: is longer than the columns beside it"));
  EXPECT_THAT(read_error(damaged("\"appears\": [1,", "\"appears\": [0,")),
              HasSubstr("/memory/appears/0: buffer"));
  EXPECT_THAT(read_error(damaged("\"operands\": [", "\"operands\": [0,")),
              HasSubstr("/operands: need"));
  EXPECT_THAT(read_error(damaged("\"kind\": \"layer_norm\"", "\"kind\": \"layer_nrm\"")),
              StartsWith("x.timeline.json: /trace/ops/0/kind: unknown kind of op 'layer_nrm'"));
  EXPECT_THAT(read_error(damaged("\"storage\": \"b1.add2\"", "\"storage\": \"b9.add2\"")),
              StartsWith("x.timeline.json: /trace: /tensors/"));
}

TEST(RecordingDefects, AreFoundBeforeAFileIsWritten) {
  const auto defect = [](auto damage) {
    Recording recording = recorded(small_trace(), "vanilla");
    damage(recording);
    return defect_of(recording);
  };
  EXPECT_EQ(defect([](Recording&) {}), "");
  EXPECT_THAT(defect([](Recording& r) { r.timeline.runs[1].begin = r.timeline.runs[0].begin; }),
              HasSubstr("/runs/begin_ns/1: found 0; its stream is busy until"));
  EXPECT_THAT(defect([](Recording& r) { r.timeline.runs[1].step = r.timeline.runs[0].step; }),
              HasSubstr("ran twice"));
  EXPECT_THAT(defect([](Recording& r) { r.timeline.runs[0].end = r.timeline.duration * 2; }),
              HasSubstr("/runs/end_ns/0"));
  EXPECT_THAT(defect([](Recording& r) { r.timeline.memory.pop_back(); }), "");  // may live on
  EXPECT_THAT(defect([](Recording& r) { r.timeline.memory.push_back(r.timeline.memory.back()); }),
              HasSubstr("disappears without being present"));
  EXPECT_THAT(defect([](Recording& r) { r.timeline.overlap = r.timeline.duration * 2; }),
              HasSubstr("/overlap_ns"));
  EXPECT_THAT(defect([](Recording& r) { r.offsets.back() = r.planned.count; }),
              HasSubstr("/buffers/offset/"));
  EXPECT_THAT(defect([](Recording& r) { r.schedule.buffers[1].size = {largest_size}; }),
              HasSubstr("in all buffers together"));
}

TEST(RecordingTitle, NamesModelStrategySourceAndDevice) {
  Recording recording = recorded(small_trace(), "checkpoint");
  EXPECT_EQ(title(recording), "small · checkpoint · predicted for toy");
  recording.source = Source::Measured;
  recording.device = "cpu";
  EXPECT_EQ(title(recording), "small · checkpoint · measured on cpu");
}

TEST(PredictedRecording, SaysWhyEachSavedTensorIsKeptOrNot) {
  const Recording recording = recorded(small_trace(), "checkpoint");
  const auto& tensors = recording.trace->tensors;
  ASSERT_EQ(recording.decisions.size(), tensors.size());
  EXPECT_THAT(recording.decisions[index(tensor_named(*recording.trace, "b0.norm"))],
              StartsWith("recompute: "));
  EXPECT_THAT(recording.decisions[index(tensor_named(*recording.trace, "targets"))],
              StartsWith("kept: "));
}

}  // namespace
}  // namespace tidemark::recording_test
