// What is told of a file that is being read, and by whom.
#include "base/read_progress.h"

#include <gtest/gtest.h>

#include "base/compression.h"
#include "base/error.h"
#include "base/files.h"

namespace tidemark::read_progress_test {
namespace {

TEST(ReadProgress, SaysThePartAndItsShareWhereOneIsKnown) {
  ReadProgress progress;
  EXPECT_EQ(progress.text(), "");
  progress.begin("unpacking");
  EXPECT_EQ(progress.text(), "unpacking");
  progress.reach(0);
  EXPECT_EQ(progress.text(), "unpacking, 0 %");
  progress.reach(0.999);
  EXPECT_EQ(progress.text(), "unpacking, 99 %");
  progress.reach(1);
  EXPECT_EQ(progress.text(), "unpacking, 100 %");
  progress.begin("indexing");
  EXPECT_EQ(progress.text(), "indexing");
}

TEST(ReadProgress, OfACompressedFileIsOfItsUnpacking) {
  const std::string path = testing::TempDir() + "progress.json.zst";
  write_file(path, std::string(1'000'000, ' '));
  constexpr FileKindRow kind{FileKind::Recording, "a timeline", 1 << 20, "smaller"};
  ReadProgress progress;
  EXPECT_EQ(read_file(path, kind, &progress).size(), 1'000'000u);
  EXPECT_EQ(progress.text(), "unpacking, 100 %");
}

// No share of nothing is known.
TEST(ReadProgress, OfAnEmptyFileIsANumber) {
  ReadProgress progress;
  constexpr FileKindRow kind{FileKind::Recording, "a timeline", 1 << 20, "smaller"};
  EXPECT_THROW(decompressed("", "empty.zst", kind, &progress), InputError);
  EXPECT_EQ(progress.text(), "unpacking, 0 %");
}

}  // namespace
}  // namespace tidemark::read_progress_test
