// Instructions of the pickle format one by one: what they make, and what the reader says to those
// that it refuses. The bytes are as Python's pickletools writes them down.
#include "importers/pickle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "importers/pickle_opcodes.h"

namespace tidemark::importers::pickle_test {
namespace {

using namespace std::string_literals;
using testing::HasSubstr;

/// What is read as text: [1, (2, 'a'), {'b': None}]
std::string show(const PickleReader& reader, Value value) {
  const auto inside = [&](std::string_view separators) {
    std::string text;
    std::size_t i = 0;
    for (const Value item : reader.items(value))
      text += (i == 0 ? "" : separators[i % 2] == ':' ? ": " : ", ") + show(reader, item), ++i;
    return text;
  };
  switch (value.kind) {
    case ValueKind::None:
      return "None";
    case ValueKind::Bool:
      return value.number != 0 ? "True" : "False";
    case ValueKind::Integer:
      return std::to_string(value.number);
    case ValueKind::Float:
      return "float";
    case ValueKind::Text:
      return "'" + std::string(reader.text(value)) + "'";
    case ValueKind::List:
      return "[" + inside(",,") + "]";
    case ValueKind::Tuple:
      return "(" + inside(",,") + ")";
    case ValueKind::Dict:
      return "{" + inside(",:") + "}";
    case ValueKind::Record:
      return "record " + std::to_string(value.number);
  }
  return "?";
}

std::optional<Value> take_nothing(ValueKind, std::span<const Value>) { return {}; }

std::string read(const std::string& body, const PickleReader::Take& take = take_nothing) {
  const std::string bytes = "\x80\x04" + body;
  PickleInput input(bytes, "file");
  PickleReader reader(input);
  return show(reader, reader.read(take));
}

std::string problem_of(const std::string& body) {
  try {
    read(body);
  } catch (const InputError& error) {
    return error.what();
  }
  return "(none)";
}

TEST(Pickle, NumbersAreLittleEndianAndSigned) {
  EXPECT_EQ(read("K\xff."s), "255");
  EXPECT_EQ(read("M\xff\xff."s), "65535");
  EXPECT_EQ(read("J\xfe\xff\xff\xff."s), "-2");
  EXPECT_EQ(read("\x8a\x00."s), "0");
  EXPECT_EQ(read("\x8a\x01\x80."s), "-128");
  EXPECT_EQ(read("\x8a\x02\x80\x00."s), "128");
  EXPECT_EQ(read("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f."s), "9223372036854775807");
  EXPECT_EQ(read("\x8b\x01\x00\x00\x00\x07."s), "7");
}

TEST(Pickle, ConstantsAndTexts) {
  EXPECT_EQ(read("N."), "None");
  EXPECT_EQ(read("\x88."), "True");
  EXPECT_EQ(read("\x89."), "False");
  EXPECT_EQ(read("G\x3f\xf0\0\0\0\0\0\0."s), "float");
  EXPECT_EQ(read("\x8c\x02hi."s), "'hi'");
  EXPECT_EQ(read("X\x02\0\0\0hi."s), "'hi'");
  EXPECT_EQ(read("\x8d\x02\0\0\0\0\0\0\0hi."s), "'hi'");
}

TEST(Pickle, ListsTuplesAndDicts) {
  EXPECT_EQ(read("]."), "[]");
  EXPECT_EQ(read("]K\x01"
                 "a."),
            "[1]");
  EXPECT_EQ(read("](K\x01K\x02"
                 "e(K\x03"
                 "e."),
            "[1, 2, 3]");
  EXPECT_EQ(read(")."), "()");
  EXPECT_EQ(read("K\x01\x85."), "(1)");
  EXPECT_EQ(read("K\x01K\x02\x86."), "(1, 2)");
  EXPECT_EQ(read("K\x01K\x02K\x03\x87."), "(1, 2, 3)");
  EXPECT_EQ(read("(K\x01K\x02t."), "(1, 2)");
  EXPECT_EQ(read("}\x8c\x01"
                 "aK\x01s."),
            "{'a': 1}");
  EXPECT_EQ(read("}(\x8c\x01"
                 "aK\x01\x8c\x01"
                 "bNu."),
            "{'a': 1, 'b': None}");
}

TEST(Pickle, WhatWasMemoizedIsFoundAgain) {
  EXPECT_EQ(read("](\x8c\x01"
                 "a\x94h\x00"
                 "e."s),
            "['a', 'a']");
  EXPECT_EQ(read("](\x8c\x01"
                 "aq\x00h\x00"
                 "e."s),
            "['a', 'a']");
  EXPECT_EQ(read("](\x8c\x01"
                 "ar\0\0\0\0j\0\0\0\0e."s),
            "['a', 'a']");
}

TEST(Pickle, FramesSayNothingToAReaderOfFiles) {
  EXPECT_EQ(read("\x95\x02\0\0\0\0\0\0\0N."s), "None");
}

TEST(Pickle, ACompleteDictMayBecomeARecord) {
  const auto take_dicts = [](ValueKind kind, std::span<const Value> items) -> std::optional<Value> {
    if (kind != ValueKind::Dict) return {};
    return Value{ValueKind::Record, 0, static_cast<std::int64_t>(items.size())};
  };
  EXPECT_EQ(read("](}\x8c\x01"
                 "aK\x01s}e.",
                 take_dicts),
            "[record 2, record 0]");
}

// Every instruction is understood or refused by its name; there is no third way.
TEST(Pickle, EveryOtherOpcodeIsRefusedByNameAndOffset) {
  for (const OpcodeRow& row : opcode_rows) {
    if (row.use == OpcodeUse::Understood) continue;
    const std::string problem = problem_of("K\x01"s + row.code);
    EXPECT_THAT(problem, HasSubstr("file: byte 4: opcode " + std::string(row.name) + ": "));
    EXPECT_EQ(problem.find("could run code") != std::string::npos, row.use == OpcodeUse::RunsCode);
  }
  EXPECT_THAT(problem_of("\xff"), HasSubstr("no opcode is 0xff"));
}

TEST(Pickle, WhatCallsAFunctionIsRefused) {
  // os.system('id'), as pickle.dumps writes an object whose __reduce__ says so.
  EXPECT_EQ(problem_of("\x8c\x02os\x94\x8c\x06system\x94\x93\x94\x8c\x02id\x85R."s),
            "file: byte 16: opcode STACK_GLOBAL: this file could run code; it is no plain snapshot "
            "and was not read further");
}

TEST(Pickle, DamagedFilesAreRefused) {
  EXPECT_THAT(problem_of("K"), HasSubstr("byte 3: the file ends where BININT1 needs 1 byte"));
  EXPECT_THAT(problem_of("X\xff\xff\xff\x7fhi"), HasSubstr("needs 2147483647 bytes"));
  EXPECT_THAT(problem_of("\x8d\xff\xff\xff\xff\xff\xff\xff\xffhi"), HasSubstr("the file ends"));
  EXPECT_THAT(problem_of("."), HasSubstr("STOP with 0 values"));
  EXPECT_THAT(problem_of("NN."), HasSubstr("STOP with 2 values"));
  EXPECT_THAT(problem_of("N.N"), HasSubstr("the file goes on"));
  EXPECT_THAT(problem_of("e."), HasSubstr("APPENDS without a MARK"));
  EXPECT_THAT(problem_of("(e."), HasSubstr("APPENDS without a list"));
  EXPECT_THAT(problem_of("K\x01(K\x02"
                         "e."),
              HasSubstr("APPENDS without a list"));
  EXPECT_THAT(problem_of("K\x01(\x85."), HasSubstr("TUPLE1 needs 1 values and finds 0"));
  EXPECT_THAT(problem_of("}(K\x01u."), HasSubstr("a key that has no value"));
  EXPECT_THAT(problem_of("h\x00."s), HasSubstr("BINGET names place 0 of 0"));
  EXPECT_THAT(problem_of("Nq\x07."s), HasSubstr("BINPUT names place 7 where 0 is next"));
  EXPECT_THAT(problem_of("\x8a\x09"), HasSubstr("a whole number of 9 bytes; need at most 8"));
}

TEST(Pickle, NothingContainsItself) {
  EXPECT_THAT(problem_of("]\x94h\x00"
                         "a."s),
              HasSubstr("a list that contains itself"));
  EXPECT_THAT(problem_of("}\x94K\x01h\x00s."s), HasSubstr("a dict that contains itself"));
  // a = [], b = [a], a.append(b)
  EXPECT_THAT(problem_of("]\x94]\x94h\x00"
                         "a0h\x00h\x01"
                         "a."s),
              HasSubstr("opcode POP"));
  EXPECT_THAT(problem_of("](]\x94]\x94(h\x00"
                         "eh\x00(h\x01"
                         "ee."s),
              HasSubstr("changes a list that is already part of something else"));
}

TEST(Pickle, DepthIsBounded) {
  EXPECT_EQ(problem_of(std::string(64, ']') + std::string(63, 'a') + "."), "(none)");
  EXPECT_THAT(problem_of(std::string(66, ']') + std::string(65, 'a') + "."),
              HasSubstr("more than 64 lists and dicts inside each other"));
}

TEST(Pickle, AFileThatOnlyFillsMemoryEnds) {
  EXPECT_THAT(problem_of(std::string(1 << 20, ']')), HasSubstr("(the file is damaged)"));
  EXPECT_THAT(problem_of(std::string(1 << 20, '(')), HasSubstr("(the file is damaged)"));
  EXPECT_THAT(problem_of(std::string(1 << 20, 'N')), HasSubstr("(the file is damaged)"));
  EXPECT_THAT(problem_of("N" + std::string(1 << 20, '\x94')), HasSubstr("(the file is damaged)"));
}

TEST(Pickle, OtherProtocolsAreRefused) {
  for (const std::string& bytes : {""s, "\x80"s, "\x80\x01N."s, "\x80\x06N."s, "(lp0\n."s, "{}"s}) {
    PickleInput input(bytes, "file");
    PickleReader reader(input);
    EXPECT_THROW(reader.read(take_nothing), InputError) << bytes;
  }
}

}  // namespace
}  // namespace tidemark::importers::pickle_test
