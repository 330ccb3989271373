// JSON values are read with their kind and range, and every mistake names its place.
#include "base/json_reader.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"

namespace tidemark::json_reader_test {
namespace {

std::string reading_error(const std::function<void()>& action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::string parse_error(std::string_view text) {
  return reading_error([&] { JsonDocument(text, "f.json"); });
}

/// The message of `ask` about the value under "a".
std::string getter_error(std::string_view value, const std::function<void(JsonView)>& ask) {
  const JsonDocument document("{\"a\": " + std::string(value) + "}", "f.json");
  return reading_error([&] { ask(document.root().at("a")); });
}

constexpr std::string_view sample = R"({
  "name": "vit",
  "layers": 12,
  "rate": 0.1,
  "tied": false,
  "none": null,
  "big": 8e10,
  "shape": [8, 197, [768]],
  "ops": [{"name": "fc1"}, {"a/b~c": {"deep": true}}]
})";

TEST(JsonReader, ReadsEachKind) {
  const JsonDocument document(sample, "f.json");
  const JsonView root = document.root();
  EXPECT_EQ(root.at("name").text(), "vit");
  EXPECT_EQ(root.at("layers").integer(), 12);
  EXPECT_EQ(root.at("rate").number(0, 1), 0.1);
  EXPECT_EQ(root.at("layers").number(0, 100), 12);
  EXPECT_FALSE(root.at("tied").boolean());
  EXPECT_EQ(root.at("none").kind(), JsonKind::Null);
  EXPECT_EQ(root.at("big").integer(), 80'000'000'000);
  EXPECT_EQ(root.at("big").kind(), JsonKind::Number);
}

TEST(JsonReader, IteratesInTextOrderAndSkipsSubtrees) {
  const JsonDocument document(sample, "f.json");
  std::string keys;
  for (const JsonView member : document.root().members()) keys += std::string(member.key()) + " ";
  EXPECT_EQ(keys, "name layers rate tied none big shape ops ");

  const JsonChildren shape = document.root().at("shape").items();
  EXPECT_EQ(shape.size(), 3u);
  EXPECT_EQ((*shape.begin()).integer(), 8);

  const JsonDocument empty(R"([[], {}])", "f.json");
  EXPECT_TRUE((*empty.root().items().begin()).items().empty());
  EXPECT_TRUE((*++empty.root().items().begin()).members().empty());
}

TEST(JsonReader, FindTreatsNullAsAbsent) {
  const JsonDocument document(sample, "f.json");
  EXPECT_TRUE(document.root().find("name").has_value());
  EXPECT_FALSE(document.root().find("none").has_value());
  EXPECT_FALSE(document.root().find("no such key").has_value());
}

TEST(JsonReader, FallbacksStandInForAbsentKeysOnly) {
  const JsonDocument document(sample, "f.json");
  const JsonView root = document.root();
  EXPECT_EQ(root.integer_or("layers", 6), 12);
  EXPECT_EQ(root.integer_or("heads", 6), 6);
  EXPECT_EQ(root.number_or("rate", 0.5, 0, 1), 0.1);
  EXPECT_EQ(root.number_or("none", 0.5, 0, 1), 0.5);
  EXPECT_EQ(root.text_or("name", "x"), "vit");
  EXPECT_EQ(root.text_or("title", "x"), "x");
  EXPECT_FALSE(root.boolean_or("tied", true));
  EXPECT_TRUE(root.boolean_or("bias", true));
  EXPECT_THROW(root.integer_or("name", 6), InputError);  // present but wrong is still wrong
}

TEST(JsonReader, PointersNameThePlace) {
  const JsonDocument document(sample, "f.json");
  const JsonView ops = document.root().at("ops");
  const JsonView second = *++ops.items().begin();
  EXPECT_EQ(document.root().pointer(), "");
  EXPECT_EQ(ops.pointer(), "/ops");
  EXPECT_EQ(second.pointer(), "/ops/1");
  EXPECT_EQ(second.at("a/b~c").at("deep").pointer(), "/ops/1/a~1b~0c/deep");
  EXPECT_EQ(reading_error([&] { second.at("name"); }),
            "f.json: /ops/1: found no key 'name'; it is required");
  EXPECT_EQ(reading_error([&] { document.root().fail("is wrong"); }), "f.json: is wrong");
}

// A whole number is needed: everything that is not one, or not in range, is refused.
TEST(JsonReader, IntegersAreWholeAndInRange) {
  const auto ask = [](JsonView view) { view.integer(1, 100); };
  const std::string need = "; need a whole number from 1 to 100";
  for (const std::string_view wrong :
       {"0", "101", "-5", "0.5", "1e3", "-1e300", "9223372036854775808", "18446744073709551616",
        "123456789012345678901234567890", "1.0000001"})
    EXPECT_NE(getter_error(wrong, ask).find(need), std::string::npos) << wrong;
  EXPECT_EQ(getter_error("12.5", ask), "f.json: /a: found 12.5" + need);
  EXPECT_EQ(getter_error("\"7\"", ask), "f.json: /a: found text '7'" + need);
  EXPECT_EQ(getter_error("null", ask), "f.json: /a: found null" + need);
  EXPECT_EQ(getter_error("true", ask), "f.json: /a: found true" + need);
  EXPECT_EQ(getter_error("[7]", ask), "f.json: /a: found a list" + need);
  EXPECT_EQ(getter_error("{}", ask), "f.json: /a: found an object" + need);
  for (const std::string_view right : {"1", "100", "1e1", "7.0", "0.5e2"})
    EXPECT_EQ(getter_error(right, ask), "no error") << right;
}

TEST(JsonReader, TheLargestIntegersSurvive) {
  const JsonDocument document("[9223372036854775807, -9223372036854775808]", "f.json");
  const JsonChildren items = document.root().items();
  EXPECT_EQ((*items.begin()).integer(0, INT64_MAX), INT64_MAX);
  EXPECT_EQ((*++items.begin()).integer(INT64_MIN, 0), INT64_MIN);
}

TEST(JsonReader, AFloatAbove2To53IsNoInteger) {
  // 2^53 + 1 as a float reads back as 2^53: accepting it would change what was written.
  EXPECT_NE(getter_error("9007199254740993.0", [](JsonView view) { view.integer(); }), "no error");
  EXPECT_EQ(getter_error("9007199254740993", [](JsonView view) { view.integer(); }), "no error");
}

TEST(JsonReader, NumbersTextAndBooleansSayWhatTheyNeed) {
  EXPECT_EQ(getter_error("\"fast\"", [](JsonView view) { view.number(0, 1); }),
            "f.json: /a: found text 'fast'; need a number from 0 to 1");
  EXPECT_EQ(getter_error("2", [](JsonView view) { view.number(0, 1); }),
            "f.json: /a: found 2; need a number from 0 to 1");
  EXPECT_EQ(getter_error("3", [](JsonView view) { view.text(); }),
            "f.json: /a: found 3; need text in quotes");
  EXPECT_EQ(getter_error("0", [](JsonView view) { view.boolean(); }),
            "f.json: /a: found 0; need true or false");
  EXPECT_EQ(getter_error("{}", [](JsonView view) { view.items(); }),
            "f.json: /a: found an object; need a list");
  EXPECT_EQ(getter_error("[]", [](JsonView view) { view.members(); }),
            "f.json: /a: found a list; need an object");
  EXPECT_EQ(getter_error("[]", [](JsonView view) { view.find("b"); }),
            "f.json: /a: found a list; need an object");
}

TEST(JsonReader, UnknownKeysComeWithTheNearestKnownOne) {
  const JsonDocument document(R"({"o": {"hidden_sise": 1}})", "f.json");
  EXPECT_EQ(reading_error([&] {
              document.root().at("o").allow_only({"layers", "hidden_size"});
            }),
            "f.json: /o: unknown key 'hidden_sise' (did you mean 'hidden_size'? known: layers, "
            "hidden_size)");
  document.root().at("o").allow_only({"hidden_sise"});
}

TEST(JsonReader, SyntaxErrorsNameLineAndColumn) {
  EXPECT_EQ(parse_error("{\n  \"a\": 1,\n  \"b\" 2\n}"),
            "f.json:3:7: syntax error while parsing object separator - unexpected number literal; "
            "expected ':'");
  EXPECT_EQ(parse_error("").rfind("f.json:1:1: ", 0), 0u);
  EXPECT_EQ(parse_error("[1] x").rfind("f.json:1:5: ", 0), 0u);
}

// Both sides of the conflict end their lines as JSON does, so only the markers are wrong.
TEST(JsonReader, MergeConflictsAreNamedWithTheLinesOfTheirMarkers) {
  EXPECT_EQ(parse_error("{\n<<<<<<< HEAD\n  \"a\": 1\n||||||| base\n  \"a\": 0\n=======\n"
                        "  \"a\": 2\n>>>>>>> branch\n}\n"),
            "f.json:2:1: found a merge conflict (its markers are in lines 2, 4, 6, 8); keep what "
            "you want of both sides and delete the markers");
  EXPECT_EQ(parse_error("[\n1,\n<<<<<<< ours"),
            "f.json:3:1: found a merge conflict (its markers are in line 3); keep what you want "
            "of both sides and delete the markers");
  EXPECT_EQ(
      parse_error("[\n1,\n=======\n2,\n>>>>>>> theirs\n]").rfind("f.json:3:1: found a merge", 0),
      0u);  // the first marker is gone already
  EXPECT_EQ(parse_error("[\"<<<<<<<\"]"), "no error");
  EXPECT_EQ(parse_error("[1, <<<<<<<]").find("merge"), std::string::npos);  // not at a line's begin
}

TEST(JsonReader, NotANumberAndInfinityAreNotJson) {
  for (const std::string_view wrong :
       {"NaN", "[nan]", "Infinity", "[-Infinity]", "1e999", "[-1e999]", "01", "+1", ".5", "1.",
        "0x10", "'a'", "{a: 1}", "[1,]", "{\"a\":1,}", "[1 2]", "// c\n1", "\"\xff\"", "\"\t\""})
    EXPECT_NE(parse_error(wrong), "no error") << wrong;
  EXPECT_EQ(parse_error("1e999"), "f.json:1:5: number overflow parsing '1e999'");
}

TEST(JsonReader, EveryTruncationIsAnError) {
  for (std::size_t size = 0; size < sample.size(); ++size)
    EXPECT_NE(parse_error(sample.substr(0, size)), "no error") << size;
  EXPECT_EQ(parse_error(sample), "no error");
}

TEST(JsonReader, NestingIsLimited) {
  const auto nested = [](std::size_t levels) {
    return std::string(levels, '[') + std::string(levels, ']');
  };
  EXPECT_EQ(parse_error(nested(JsonDocument::max_depth)), "no error");
  EXPECT_NE(parse_error(nested(JsonDocument::max_depth + 1)).find("more than 64 levels"),
            std::string::npos);
  EXPECT_NE(parse_error(std::string(1'000'000, '[')), "no error");  // and no stack overflow
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_NE(parse_error(objects).find("more than 64 levels"), std::string::npos);
}

TEST(JsonReader, DuplicateKeysAreRefused) {
  EXPECT_EQ(parse_error(R"({"x": [{"a": 1, "b": 2, "a": 3}]})"),
            "f.json: /x/0: found the key 'a' twice; keep one of them");
  EXPECT_EQ(parse_error(R"({"a": {"a": {"a": 1}}, "b": {"a": 1}})"), "no error");
}

TEST(JsonReader, MessagesStayOnOneShortLine) {
  const std::string wild = "\"line\\nbell\\u0007" + std::string(100'000, 'x') + "\"";
  const std::string message = getter_error(wild, [](JsonView view) { view.boolean(); });
  EXPECT_EQ(message.rfind("f.json: /a: found text 'line?bell?xxx", 0), 0u);
  EXPECT_LT(message.size(), 200u);

  const std::string broken = parse_error("[" + wild + " 1");
  EXPECT_LT(broken.size(), 400u);
  EXPECT_EQ(broken.find('\n'), std::string::npos);

  // Cut at 64 bytes, but not in the middle of a character of two bytes.
  std::string umlauts;
  for (int i = 0; i < 100; ++i) umlauts += "é";
  const std::string cut =
      getter_error("\"x" + umlauts + "\"", [](JsonView view) { view.boolean(); });
  EXPECT_NE(cut.find("é…'"), std::string::npos) << cut;
}

TEST(JsonReader, StringsAreDecoded) {
  const JsonDocument document(R"(["a\"\\\/\n\u00e9\ud83d\ude00", ""])", "f.json");
  const JsonChildren items = document.root().items();
  EXPECT_EQ((*items.begin()).text(), "a\"\\/\né😀");
  EXPECT_EQ((*++items.begin()).text(), "");
}

TEST(JsonReader, AByteOrderMarkIsSkipped) { EXPECT_EQ(parse_error("\xEF\xBB\xBF{}"), "no error"); }

TEST(JsonReader, ReadsFilesUnderTheirPath) {
  const std::string path = ::testing::TempDir() + "json_reader_test.json.zst";
  write_file(path, "{\"a\": \"b\"}");
  const JsonDocument document = read_json(path, FileKind::TrainingData);
  EXPECT_EQ(document.root().at("a").text(), "b");
  EXPECT_EQ(document.file(), path);
}

}  // namespace
}  // namespace tidemark::json_reader_test
