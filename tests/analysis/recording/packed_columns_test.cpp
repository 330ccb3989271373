// Columns that are taken out of the text: the same numbers, the same messages, and what is left is
// the text without them.
#include "analysis/recording/packed_columns.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "analysis/recording/recording_format.h"
#include "base/error.h"
#include "tests/analysis/recording/recorded.h"

namespace tidemark::packed_columns_test {
namespace {

std::string list_of(const std::vector<std::int64_t>& values, std::string_view between = ",") {
  return fmt::format("[{}]", fmt::join(values, between));
}

std::vector<std::int64_t> counted(std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(first + i);
  return values;
}

std::vector<std::int64_t> values_of(const PackedColumn& column) {
  std::vector<std::int64_t> values;
  for (std::size_t i = 0; i < column.size(); ++i) values.push_back(column[i]);
  return values;
}

// Widths change in the middle, by one step and by two.
TEST(PackedColumn, HoldsWhatWasAddedWhateverItsWidth) {
  constexpr std::int64_t narrow = 70'000, wide = std::int64_t{1} << 40;
  for (const std::vector<std::int64_t>& values : {std::vector<std::int64_t>{},
                                                  {0, 255},
                                                  {255, 256},
                                                  {0, -1, 3},
                                                  {1, narrow, 2, -narrow},
                                                  {1, 2, wide, 3},
                                                  {1, narrow, wide, 0, -wide},
                                                  {wide, 5},
                                                  {narrow, 5},
                                                  {2147483647, 2147483648},
                                                  {-2147483648, -2147483649}}) {
    PackedColumn column;
    for (const std::int64_t value : values) column.add(value);
    EXPECT_EQ(values_of(column), values);
  }
}

TEST(TakeColumns, LeavesTheTextWithoutThem) {
  const std::vector<std::int64_t> numbers = counted(-3, 40);
  const std::string text =
      "{ \"a\": [1, {\"x\": \"}]\\\"\"}], \"runs\" : {\"step\": " + list_of(numbers, " ,\n") +
      ", \"begin_ns\":[1,2]}, \"operands\":" + list_of(numbers) + ",\"other\":" + list_of(numbers) +
      "}";
  const UnpackedText made = take_columns(text, "file");
  EXPECT_EQ(made.rest,
            "{ \"a\": [1, {\"x\": \"}]\\\"\"}], \"runs\" : {\"step\": [], \"begin_ns\":[1,2]}, "
            "\"operands\":[],\"other\":" +
                list_of(numbers) + "}");
  ASSERT_EQ(made.columns.by_place.size(), 2u);
  EXPECT_EQ(values_of(*made.columns.find("runs/step")), numbers);
  EXPECT_EQ(values_of(*made.columns.find("operands")), numbers);
  EXPECT_FALSE(made.columns.find("runs/begin_ns"));
}

TEST(TakeColumns, ForgetsAnObjectAndNoOther) {
  const std::string list = list_of(counted(0, 16));
  PackedColumns columns =
      take_columns("{\"runs\":{\"step\":" + list + "},\"run_steps\":{\"task\":" + list + "}}", "")
          .columns;
  columns.forget("runs");
  EXPECT_FALSE(columns.find("runs/step"));
  EXPECT_TRUE(columns.find("run_steps/task"));
}

// Numbers of other forms, broken lists and texts that are no such object stay for the parser.
TEST(TakeColumns, LeavesAloneWhatIsUnusual) {
  const std::string fifteen = list_of(counted(0, 15));
  const std::string some = fifteen.substr(0, fifteen.size() - 1);
  for (const std::string& list :
       {fifteen, some + ",1.5]", some + ",1e3]", some + ",01]", some + ",-]", some + ",]",
        some + ",1234567890123456789]", some + ",\"1\"]", some + " 1]", some + ",[1]]"}) {
    const std::string text = "{\"operands\":" + list + ",\"b\":1}";
    const UnpackedText made = take_columns(text, "");
    EXPECT_EQ(made.rest, text);
    EXPECT_TRUE(made.columns.by_place.empty()) << text;
  }
  const std::string list = list_of(counted(0, 16));
  for (const std::string& text :
       {list, "{\"operands\":" + list, "{\"operands\":" + list + " x}", "{'operands':" + list + "}",
        "{\"operands\" " + list + "}", std::string("{\"a\":\"\\"), std::string()})
    EXPECT_EQ(take_columns(text, "").rest, text) << text;
}

// What is written twice is told by the parser, which needs both.
TEST(TakeColumns, TellsHowFarItIsInALongText) {
  std::string list = "[0";
  for (int i = 1; i < 300'000; ++i) list += ",1";
  ReadProgress progress;
  // The 262,144th value ends behind 524,288 of 600,014 characters.
  take_columns("{\"operands\":" + list + "]}", "", &progress);
  EXPECT_EQ(progress.text(), "reading columns, 87 %");
}

TEST(TakeColumns, OfTwoOfOneNameTheFirst) {
  const std::string list = list_of(counted(0, 16));
  const UnpackedText made =
      take_columns("{\"operands\":" + list + ",\"operands\":" + list + "}", "");
  EXPECT_EQ(made.rest, "{\"operands\":[],\"operands\":" + list + "}");
}

std::string problem_of(const std::string& text) {
  try {
    read_recording_text(text, "x.timeline.json");
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

// A column of a step that is long enough to be taken out.
class LongColumns : public testing::Test {
 protected:
  std::string text_ = write_recording_text(recorded(small_trace(), "vanilla"));

  // The text with another value in place of one of a column.
  std::string with(const std::string& object, const std::string& key, std::size_t position,
                   const std::string& value) const {
    std::size_t at = text_.find("\"" + object + "\"");
    at = text_.find("\"" + key + "\"", at);
    at = text_.find('[', at) + 1;
    for (std::size_t i = 0; i < position; ++i) at = text_.find(',', at) + 1;
    const std::size_t end = text_.find_first_of(",]", at);
    return text_.substr(0, at) + value + text_.substr(end);
  }
};

TEST_F(LongColumns, AreTakenOut) {
  const PackedColumns columns = take_columns(text_, "").columns;
  EXPECT_TRUE(columns.find("runs/begin_ns"));
  EXPECT_TRUE(columns.find("steps/of"));
  EXPECT_TRUE(columns.find("operands"));
}

TEST_F(LongColumns, SayWhatIsWrongAsAnyOtherValueDoes) {
  EXPECT_THAT(problem_of(with("runs", "begin_ns", 3, "-5")),
              testing::StartsWith("x.timeline.json: /runs/begin_ns/3: found -5; need a whole "
                                  "number from 0 to "));
  EXPECT_THAT(problem_of(with("runs", "begin_ns", 3, "1.5")),
              testing::StartsWith("x.timeline.json: /runs/begin_ns/3: found 1.5; need a whole "
                                  "number from 0 to "));
  EXPECT_EQ(problem_of(with("memory", "appears", 2, "1,0")),
            "x.timeline.json: /memory/appears: is longer than the columns beside it");
  EXPECT_EQ(problem_of(with("memory", "time_ns", 2, "1,1")),
            "x.timeline.json: /memory/buffer: is shorter than the columns beside it");
}

// Behind a column that was taken out: the line is that of the whole text.
TEST_F(LongColumns, AMistakeBehindThemIsSaidByItsPlaceInTheFile) {
  const std::string broken = text_.substr(0, text_.rfind('}')) + "!";
  const std::string line = std::to_string(1 + std::ranges::count(broken, '\n'));
  EXPECT_THAT(problem_of(broken), testing::StartsWith("x.timeline.json:" + line + ":"));
}

}  // namespace
}  // namespace tidemark::packed_columns_test
