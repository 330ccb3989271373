// Records of a search that grow line by line: taken up, cut where they are torn, merged.
#include "cli/commands/search_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.h"
#include "tests/cli/program.h"

namespace tidemark::cli::search_records_test {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;

LayoutRecords asked(std::int64_t part = 1, std::int64_t parts = 1) {
  LayoutRecords records;
  records.version = "0.1.0";
  records.question = "0123456789abcdef";
  records.part = {part, parts};
  records.arguments = {"search", "gpt2", "--gpus", "8"};
  return records;
}

FoundLayout row(const std::string& key, std::int64_t bytes) {
  FoundLayout found;
  found.key = key;
  found.numbers.allocated = {bytes};
  return found;
}

std::string problem_of(const auto& make) {
  try {
    make();
  } catch (const InputError& error) {
    return error.what();
  }
  return "none";
}

std::string problem_with(const std::string& path, const LayoutRecords& records) {
  return problem_of([&] { SearchRecords(path, records); });
}

TEST(SearchRecords, NameTheFileOfAPart) {
  EXPECT_EQ(records_path("runs/gpt2.jsonl", {3, 7}), "runs/gpt2.3-of-7.jsonl");
  EXPECT_EQ(records_path("r", {1, 2}), "r.1-of-2");
  EXPECT_EQ(records_path("runs/gpt2.jsonl", {1, 1}), "runs/gpt2.jsonl");
}

TEST(SearchRecords, KnowWhatWasThereBefore) {
  const Folder folder;
  const std::string path = folder / "r.jsonl";
  {
    SearchRecords records(path, asked());
    EXPECT_EQ(records.find("a"), nullptr);
    records.add(row("a", 5));
    records.add(row("b", 7));
  }
  SearchRecords again(path, asked());
  ASSERT_NE(again.find("b"), nullptr);
  EXPECT_EQ(again.find("b")->allocated, Bytes{7});
  EXPECT_EQ(again.find("c"), nullptr);
}

// A process that was ended while it wrote leaves half a line: it is written again.
TEST(SearchRecords, CutATornLine) {
  const Folder folder;
  const std::string path = folder / "r.jsonl";
  {
    SearchRecords records(path, asked());
    records.add(row("a", 5));
  }
  const std::string whole = file_text(path);
  write_text(path, whole + row_line(row("b", 7)).substr(0, 20));
  {
    SearchRecords records(path, asked());
    EXPECT_NE(records.find("a"), nullptr);
    EXPECT_EQ(records.find("b"), nullptr);
    EXPECT_EQ(file_text(path), whole);
    records.add(row("b", 7));
  }
  EXPECT_EQ(file_text(path), whole + row_line(row("b", 7)));
}

TEST(SearchRecords, BeginAnewAfterATornHeader) {
  const Folder folder;
  const std::string path = folder / "r.jsonl";
  write_text(path, header_line(asked()).substr(0, 30));
  { SearchRecords records(path, asked()); }
  EXPECT_EQ(file_text(path), header_line(asked()));
}

// Two ends would be none.
TEST(SearchRecords, AreDoneOnce) {
  const Folder folder;
  const std::string path = folder / "r.jsonl";
  for (int i = 0; i < 2; ++i) SearchRecords(path, asked()).finish();
  EXPECT_EQ(file_text(path), header_line(asked()) + done_line());
}

TEST(SearchRecords, RefuseAnotherQuestion) {
  const Folder folder;
  const std::string path = folder / "r.jsonl";
  { SearchRecords records(path, asked()); }
  LayoutRecords other = asked();
  other.question = "fedcba9876543210";
  EXPECT_THAT(problem_with(path, other), AllOf(HasSubstr("another search (begin another file)"),
                                               EndsWith("tidemark search gpt2 --gpus 8")));
  other = asked();
  other.version = "0.2.0";
  EXPECT_THAT(problem_with(path, other), HasSubstr("is of tidemark 0.1.0, and this is 0.2.0"));
  EXPECT_THAT(problem_with(path, asked(1, 3)), HasSubstr("another search"));
}

// Nothing of a file that is something else is lost.
TEST(SearchRecords, RefuseWhatIsNoFileOfASearch) {
  const Folder folder;
  const std::string path = folder / "notes.txt";
  write_text(path, "my notes");
  EXPECT_THAT(problem_with(path, asked()), HasSubstr("holds no search (name another file)"));
  EXPECT_EQ(file_text(path), "my notes");
  EXPECT_THAT(problem_with(folder.path().string(), asked()), HasSubstr("is no regular file"));
  EXPECT_THAT(problem_with(folder / "r.jsonl.zst", asked()), HasSubstr("leave .zst out"));
  EXPECT_THAT(problem_with(folder / "none/r.jsonl", asked()), HasSubstr("cannot write"));
}

std::string part_file(const Folder& folder, std::int64_t part, bool is_done) {
  const std::string path = records_path(folder / "r.jsonl", {part, 3});
  SearchRecords records(path, asked(part, 3));
  records.add(row("layout " + std::to_string(part), part));
  if (is_done) records.finish();
  return path;
}

TEST(SearchRecords, AreMergedInAnyOrder) {
  const Folder folder;
  const LayoutRecords all = merged_records(
      {part_file(folder, 3, true), part_file(folder, 1, true), part_file(folder, 2, true)});
  ASSERT_EQ(all.rows.size(), 3u);
  EXPECT_EQ(all.rows.at("layout 2").allocated, Bytes{2});
  EXPECT_EQ(all.arguments, asked().arguments);
}

TEST(SearchRecords, AreNotMergedWithoutAPart) {
  const Folder folder;
  const std::string second = part_file(folder, 2, true);
  EXPECT_EQ(problem_of([&] { merged_records({second}); }), "of 3 parts these are missing: 1, 3");
  EXPECT_EQ(problem_of([&] {
              merged_records({second, second});
            }),
            "of 3 parts these are missing: 1, 3");
  EXPECT_THAT(problem_of([&] {
                merged_records({second, part_file(folder, 1, false)});
              }),
              HasSubstr("was stopped before its end"));
}

// The first twenty are named: of 22 parts with one there 21 are missing.
TEST(SearchRecords, CountTheMissingPartsThatAreNotNamed) {
  const Folder folder;
  const auto problem = [&](std::int64_t parts) {
    const std::string path = records_path(folder / "r.jsonl", {1, parts});
    SearchRecords(path, asked(1, parts)).finish();
    return problem_of([&] { merged_records({path}); });
  };
  EXPECT_THAT(problem(21), EndsWith("missing: 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, "
                                    "17, 18, 19, 20, 21"));
  EXPECT_THAT(problem(22), EndsWith(", 19, 20, 21 and 1 more"));
}

}  // namespace
}  // namespace tidemark::cli::search_records_test
