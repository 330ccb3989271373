// The quick parser takes exactly what the JSON library takes, and a long list of integers, which is
// stored as a column, answers like a short one.
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json_reader.h"

namespace tidemark::json_parser_test {
namespace {

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

/// The view's value as the library's, which compares numbers and texts of any kind.
nlohmann::json value_of(JsonView view) {
  nlohmann::json value;
  switch (view.kind()) {
    case JsonKind::Null:
      break;
    case JsonKind::Boolean:
      value = view.boolean();
      break;
    case JsonKind::Integer:
      value = view.integer(INT64_MIN, INT64_MAX);
      break;
    case JsonKind::Number:
      value = view.number(-1e308, 1e308);
      break;
    case JsonKind::Text:
      value = view.text();
      break;
    case JsonKind::List:
      value = nlohmann::json::array();
      for (const JsonView item : view.items()) value.push_back(value_of(item));
      break;
    case JsonKind::Object:
      value = nlohmann::json::object();
      for (const JsonView member : view.members())
        value[std::string(member.key())] = value_of(member);
      break;
  }
  return value;
}

/// Both must refuse the text, or read the same from it.
void expect_like_the_library(const std::string& text) {
  const auto expected = nlohmann::json::parse(text, nullptr, false);
  nlohmann::json found(nlohmann::json::value_t::discarded);
  const std::string error = error_of([&] {
    const JsonDocument document(text, "f.json");
    found = value_of(document.root());
  });
  if (error.ends_with("twice; keep one of them")) return;  // the library keeps the last
  EXPECT_EQ(found.is_discarded(), expected.is_discarded()) << text << "\n" << error;
  if (found.is_discarded() || expected.is_discarded()) return;  // and equals nothing
  EXPECT_EQ(found, expected) << text;
}

/// "[0,1,…]" up to `count`, each item what `write` makes of it.
std::string list_of(std::size_t count, const std::function<std::string(std::size_t)>& write) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += (i == 0 ? "" : ",") + write(i);
  return "[" + text + "]";
}

const auto plain = [](std::size_t i) { return std::to_string(i); };

TEST(JsonParser, TakesNumbersAsTheLibraryDoes) {
  for (const std::string number : {"0",
                                   "-0",
                                   "-1",
                                   "7",
                                   "10",
                                   "007",
                                   "-01",
                                   "-",
                                   "--1",
                                   "1-",
                                   "999999999999999999",
                                   "-999999999999999999",
                                   "1000000000000000000",
                                   "9223372036854775807",
                                   "9223372036854775808",
                                   "-9223372036854775808",
                                   "-9223372036854775809",
                                   "18446744073709551615",
                                   "18446744073709551616",
                                   "123456789012345678901234567890",
                                   "0.5",
                                   "-0.0",
                                   "0.",
                                   ".5",
                                   "1e5",
                                   "1E+5",
                                   "1e-5",
                                   "1e",
                                   "1e+",
                                   "1.5e3",
                                   "1.e3",
                                   "0e0",
                                   "00.5",
                                   "1e308",
                                   "1e309",
                                   "1e-400",
                                   "2.2250738585072011e-308",
                                   "0.1",
                                   "9007199254740993",
                                   "9007199254740993.0",
                                   "+1",
                                   "1 2"}) {
    expect_like_the_library(number);
    expect_like_the_library("[" + number + "]");
    expect_like_the_library("[1," + number + " , 3]");
    expect_like_the_library("{\"a\":" + number + "}");
    expect_like_the_library(
        list_of(40, [&](std::size_t i) { return i == 33 ? number : plain(i); }));
  }
}

TEST(JsonParser, TakesTextsAsTheLibraryDoes) {
  for (const std::string part : {"",
                                 "a",
                                 "abcdefgh",
                                 "é",
                                 "😀",
                                 "\xff",
                                 "\xc3",
                                 "\xe2\x82",
                                 "\xed\xa0\x80",
                                 "\xc0\x80",
                                 "\\n",
                                 "\\u00e9",
                                 "\\ud83d\\ude00",
                                 "\\ud83d",
                                 "\\u12",
                                 "\\x",
                                 "\\",
                                 "\\\\",
                                 "\\\"",
                                 "\"",
                                 "\t",
                                 "\n",
                                 "\x7f",
                                 "\x1f",
                                 "\\/"})
    // In each place of the eight bytes that are looked at together.
    for (std::size_t before = 0; before < 10; ++before) {
      const std::string text = "\"" + std::string(before, 'x') + part + "yyyyyyyyyyyy\"";
      expect_like_the_library(text);
      expect_like_the_library("{" + text + ":" + text + "}");
      expect_like_the_library("[" + text + "," + text.substr(0, text.size() - 1));
    }
  expect_like_the_library(std::string("\"a\0b\"", 5));
}

TEST(JsonParser, TakesStructureAsTheLibraryDoes) {
  for (const std::string text : {"",
                                 " ",
                                 "{}",
                                 "[]",
                                 " [ ] ",
                                 "[ 1 , 2 ]",
                                 "[1,]",
                                 "[,1]",
                                 "[1 2]",
                                 "{\"a\":1,}",
                                 "{,}",
                                 "{\"a\"}",
                                 "{\"a\":}",
                                 "{1:2}",
                                 "[[],{},[1,[2]],\"x\",null,true,false]",
                                 "nul",
                                 "nullx",
                                 "True",
                                 "[1}",
                                 "{\"a\":1]",
                                 "\xEF\xBB\xBF[1]",
                                 "\xEF\xBB[1]",
                                 "[1]]",
                                 "[1] 2",
                                 "\f[1]"})
    expect_like_the_library(text);
  expect_like_the_library(std::string("[1]\0x", 5));
}

// One byte of a small document is another: whatever it does, both agree.
TEST(JsonParser, TakesDamagedTextsAsTheLibraryDoes) {
  const std::string sound =
      R"({"list": )" + list_of(20, plain) +
      R"(, "a": [{"x": -1.5e3, "y": "t\u00e9"}, {"x": 2, "y": "é"}], "n": null})";
  const std::string bytes = std::string("\"\\{}[],:.-+eEtfn019 \t\n\xc3\xa9\x1f", 26);
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string text = sound;
    const std::size_t at = random() % text.size();
    const char byte = bytes[random() % bytes.size()];
    if (random() % 3 == 0)
      text.insert(at, 1, byte);
    else
      text[at] = byte;
    expect_like_the_library(text);
  }
}

TEST(JsonColumns, AnswerLikeShortLists) {
  for (const std::size_t count : {1u, 15u, 16u, 17u, 1000u}) {
    const JsonDocument document("{\"a\": " + list_of(count, plain) + ", \"b\": 7}", "f.json");
    const JsonView list = document.root().at("a");
    EXPECT_EQ(list.kind(), JsonKind::List);
    EXPECT_EQ(list.items().size(), count);
    EXPECT_FALSE(list.items().empty());
    std::int64_t next = 0;
    for (const JsonView item : list.items()) {
      EXPECT_EQ(item.kind(), JsonKind::Integer);
      EXPECT_EQ(item.key(), "");
      EXPECT_EQ(item.number(0, 1e9), static_cast<double>(next));
      EXPECT_EQ(item.integer(), next++);
    }
    EXPECT_EQ(next, static_cast<std::int64_t>(count));
    EXPECT_EQ(document.root().at("b").integer(), 7);  // the walk passes over it
  }
}

TEST(JsonColumns, HoldAllThatFitsIn64Bits) {
  const std::vector<std::string> ends = {
      "2147483647",         "2147483648",          "-2147483648",         "-2147483649",
      "999999999999999999", "9223372036854775807", "-9223372036854775808"};
  for (const std::string& end : ends) {
    const JsonDocument document(
        list_of(50, [&](std::size_t i) { return i == 49 ? end : plain(i); }), "f.json");
    std::vector<std::int64_t> values;
    for (const JsonView item : document.root().items())
      values.push_back(item.integer(INT64_MIN, INT64_MAX));
    ASSERT_EQ(values.size(), 50u);
    EXPECT_EQ(values[48], 48);
    EXPECT_EQ(std::to_string(values[49]), end);
  }
}

TEST(JsonColumns, SayWhichItemIsWrong) {
  const JsonDocument document("{\"a\": [[], " + list_of(100, plain) + "]}", "f.json");
  const JsonView list = *++document.root().at("a").items().begin();
  auto item = list.items().begin();
  for (int i = 0; i < 42; ++i) ++item;
  EXPECT_EQ((*item).pointer(), "/a/1/42");
  EXPECT_EQ(error_of([&] { (*item).integer(0, 41); }),
            "f.json: /a/1/42: found 42; need a whole number from 0 to 41");
  EXPECT_EQ(error_of([&] { (*item).text(); }), "f.json: /a/1/42: found 42; need text in quotes");
  EXPECT_EQ(error_of([&] { (*item).items(); }), "f.json: /a/1/42: found 42; need a list");
  EXPECT_EQ(error_of([&] { list.members(); }), "f.json: /a/1: found a list; need an object");
  EXPECT_EQ(error_of([&] { list.integer(); }).find("f.json: /a/1: found a list; need"), 0u);
}

TEST(JsonColumns, AreNotDeeperThanOtherLists) {
  const std::size_t depth = JsonDocument::max_depth;
  const auto nested = [&](std::size_t levels) {
    return std::string(levels - 1, '[') + list_of(20, plain) + std::string(levels - 1, ']');
  };
  EXPECT_EQ(error_of([&] { JsonDocument(nested(depth), "f.json"); }), "no error");
  EXPECT_NE(error_of([&] { JsonDocument(nested(depth + 1), "f.json"); }).find("64 levels"),
            std::string::npos);
}

}  // namespace
}  // namespace tidemark::json_parser_test
