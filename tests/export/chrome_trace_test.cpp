// The Chrome format, read by an independent parser and held against what Perfetto asks for.
#include "analysis/export/chrome_trace.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "tests/analysis/recording/recorded.h"
#include "traces/presets.h"

namespace tidemark::exports::chrome_trace_test {
namespace {

using Json = nlohmann::json;

Recording vision() {
  return recorded(build_trace(find_model("vit-ti-16"), {.batch = 2}), "pareprop");
}

std::vector<Json> events(std::span<const Recording> recordings, const std::string& phase) {
  std::vector<Json> found;
  const Json trace = Json::parse(chrome_trace(recordings));
  for (const Json& event : trace.at("traceEvents"))
    if (event.at("ph") == phase) found.push_back(event);
  return found;
}

// "12.345" µs as 12345 ns, from the text: no double may come between.
std::int64_t nanoseconds(const std::string& text, const std::string& key, std::size_t& at) {
  at = text.find("\"" + key + "\":", at) + key.size() + 3;
  std::string digits;
  for (; text[at] != ',' && text[at] != '}'; ++at)
    if (text[at] != '.') digits += text[at];
  return std::stoll(digits);
}

TEST(ChromeTrace, HasEachRunOnceOnTheTrackOfItsStreamAndProperlyNested) {
  const Recording recording = vision();
  std::map<std::int64_t, double> busy_until;
  std::size_t runs = 0;
  for (const Json& event : events({&recording, 1}, "X")) {
    const TimedRun& run = recording.timeline.runs[runs++];
    EXPECT_EQ(event.at("tid"), index(run.stream));
    const double begin = event.at("ts"), end = begin + event.at("dur").get<double>();
    double& busy = busy_until[event.at("tid")];
    EXPECT_GE(begin, busy - 1e-6);  // what does not overlap is nested
    busy = end;
  }
  EXPECT_EQ(runs, recording.timeline.runs.size());
  EXPECT_EQ(busy_until.size(), 2u);
}

TEST(ChromeTrace, WritesEveryNanosecond) {
  Recording recording = recorded(small_trace(), "vanilla");
  const Nanoseconds far{(std::int64_t{1} << 50) - 12'345'678};
  for (TimedRun& run : recording.timeline.runs) run.begin += far, run.end += far;
  const std::string text = chrome_trace({&recording, 1});
  std::size_t at = 0;
  for (const TimedRun& run : recording.timeline.runs) {
    at = text.find("\"ph\":\"X\"", at);
    EXPECT_EQ(nanoseconds(text, "ts", at), run.begin.count());
    EXPECT_EQ(nanoseconds(text, "dur", at), (run.end - run.begin).count());
  }
}

TEST(ChromeTrace, CountsEachCategoryUpToItsSizeAtThePeak) {
  const Recording recording = vision();
  std::map<std::string, std::int64_t> highest, last;
  for (const Json& event : events({&recording, 1}, "C")) {
    std::int64_t& most = highest[event.at("name")];
    const std::int64_t bytes = event.at("args").at("bytes");
    most = std::max(most, bytes), last[event.at("name")] = bytes;
  }
  const Peak top = peak(recording.schedule, recording.timeline);
  for (std::size_t c = 0; c < category_count; ++c) {
    const std::string name = "memory: " + std::string(categories[c].name);
    if (!highest.contains(name)) continue;
    EXPECT_GE(highest[name], top.by_category[c].count) << name;
    EXPECT_EQ(last[name], recording.timeline.baseline[c].count) << name;
  }
  EXPECT_TRUE(highest.contains("memory: activation"));
}

TEST(ChromeTrace, GivesEachRecordingAProcessWithItsTitle) {
  const std::vector<Recording> both = {recorded(small_trace(), "vanilla"),
                                       recorded(small_trace(), "checkpoint")};
  std::vector<std::string> titles;
  for (const Json& event : events(both, "M"))
    if (event.at("name") == "process_name") titles.push_back(event.at("args").at("name"));
  EXPECT_EQ(titles, (std::vector<std::string>{title(both[0]), title(both[1])}));
}

}  // namespace
}  // namespace tidemark::exports::chrome_trace_test
