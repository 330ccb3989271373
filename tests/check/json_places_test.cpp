// Each JSON value is found at its bytes and line, even in odd text; broken text does no harm.
#include "analysis/check/json_places.h"

#include <gtest/gtest.h>

namespace tidemark::regression::json_places_test {
namespace {

std::string at(const std::string& text, std::string_view pointer) {
  const JsonPlaces places(text);
  const JsonPlace* place = places.find(pointer);
  return place ? text.substr(place->begin, place->end - place->begin) : "nothing";
}

TEST(JsonPlaces, AreTheBytesOfEachValue) {
  const std::string text = R"( {"a": [1, "two", {"b": null}], "c": -1.5e3 , "d":true}  )";
  EXPECT_EQ(at(text, ""), R"({"a": [1, "two", {"b": null}], "c": -1.5e3 , "d":true})");
  EXPECT_EQ(at(text, "/a"), R"([1, "two", {"b": null}])");
  EXPECT_EQ(at(text, "/a/0"), "1");
  EXPECT_EQ(at(text, "/a/1"), R"("two")");
  EXPECT_EQ(at(text, "/a/2/b"), "null");
  EXPECT_EQ(at(text, "/c"), "-1.5e3");
  EXPECT_EQ(at(text, "/d"), "true");
  EXPECT_EQ(at(text, "/e"), "nothing");
  EXPECT_EQ(at(text, "/a/3"), "nothing");
}

TEST(JsonPlaces, AreNotMisledByBracketsAndQuotesInText) {
  const std::string text = R"({"a": "}],{[\"", "b\\": "x\\", "c": 3})";
  EXPECT_EQ(at(text, "/a"), R"("}],{[\"")");
  EXPECT_EQ(at(text, "/b\\\\"), R"("x\\")");
  EXPECT_EQ(at(text, "/c"), "3");
}

TEST(JsonPlaces, KnowEmptyContainers) {
  EXPECT_EQ(at("[ ]", ""), "[ ]");
  EXPECT_EQ(at(R"({"a": {}, "b": [], "c": 1})", "/b"), "[]");
  EXPECT_EQ(at(R"({"a": {}, "b": [], "c": 1})", "/c"), "1");
}

// Editors on Windows write one.
TEST(JsonPlaces, BeginBehindAByteOrderMark) {
  const std::string text = "\xEF\xBB\xBF{\"a\": [1]}\n";
  EXPECT_EQ(at(text, ""), R"({"a": [1]})");
  EXPECT_EQ(at(text, "/a"), "[1]");
}

TEST(JsonPlaces, CountLinesFromOne) {
  const JsonPlaces places("{\n  \"a\": 1,\r\n\n  \"b\":\n    [2,\n 3]}");
  EXPECT_EQ(places.line_of(""), 1u);
  EXPECT_EQ(places.line_of("/a"), 2u);
  EXPECT_EQ(places.line_of("/b"), 5u);
  EXPECT_EQ(places.line_of("/b/1"), 6u);
  EXPECT_EQ(places.line_of("/none", 7), 7u);
}

TEST(JsonPlaces, EndAtTheDepthThatIsAskedFor) {
  const std::string text = R"({"a": {"b": {"c": {"d": 1}}}, "e": 2})";
  const JsonPlaces places(text, 2);
  EXPECT_NE(places.find("/a/b"), nullptr);
  EXPECT_EQ(places.find("/a/b/c"), nullptr);
  EXPECT_NE(places.find("/e"), nullptr);  // what follows the deep value is still found
}

// Not what it is for, but no reason to leave the text.
TEST(JsonPlaces, OfBrokenTextStayWithinIt) {
  const std::string text = R"({"a": [1, {"b": "x\"y", "c": tru}], "d": "\\"})";
  for (std::size_t size = 0; size <= text.size(); ++size) {
    const JsonPlaces places(text.substr(0, size));
    const JsonPlace* root = places.find("");
    ASSERT_NE(root, nullptr);
    EXPECT_LE(root->end, size);
  }
}

}  // namespace
}  // namespace tidemark::regression::json_places_test
